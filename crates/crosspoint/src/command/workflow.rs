//! `crosspoint workflow`: checks workflow files, runs them, and shows runs.
//!
//! A run is a job of a server, or of this command where no server runs. `file` reads a workflow file, `start` asks for
//! a run, `resting` follows it until it rests, `steps` reads what its stages said, `shown` is what a waiting user sees,
//! with the `tree` of the stages, and `ask` asks a person.

pub(crate) mod arguments;
mod ask;
mod file;
mod resting;
mod shown;
mod start;
mod steps;
mod tree;

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use self::arguments::{Workflow, WorkflowAction, WorkflowCheck, WorkflowList, WorkflowShow};
use self::file::WorkflowFile;
use crate::Exit;
use crate::client::{self, Client, Failed, Heard, Job, Need, segment};
use crate::command::jobs::arguments::JobsList;
use crate::command::jobs::{card, list, no_such_job, post_action, print_job};
use crate::terminal::{json, render};
use crate::workflow::WORK;

pub(crate) fn run(arguments: &Workflow) -> Result<Exit> {
    match &arguments.action {
        WorkflowAction::Run(run) => start::run(run),
        WorkflowAction::Resume(resume) => start::resume(resume),
        WorkflowAction::List(list) => {
            client::with(&list.reach, Need::Existing, async |client| print_list(client, list).await)
        }
        WorkflowAction::Show(show) => show_file_or_run(show),
        WorkflowAction::Check(check) => check_file(check),
        WorkflowAction::Cancel(cancel) => client::with(&cancel.reach, Need::Existing, async |client| {
            let job = post_action(client, &cancel.id.id, "cancel", String::new()).await?;
            print_job(&job, cancel.json)
        }),
    }
}

async fn print_list(client: &Client, arguments: &WorkflowList) -> Result<Exit> {
    let jobs = JobsList {
        state: None,
        work: Some(WORK.to_owned()),
        agent: None,
        door: None,
        limit: arguments.limit,
        before: None,
        json: arguments.json,
        reach: arguments.reach.clone(),
    };
    list::list(client, &jobs).await
}

fn check_file(arguments: &WorkflowCheck) -> Result<Exit> {
    let Some(file) = WorkflowFile::read(&arguments.file)? else { return Ok(Exit::NotFine) };
    let known = file::known_agents(&arguments.reach)?;
    let mut mistakes = file.definition.warnings().to_vec();
    mistakes.extend(file.definition.check(&|name| known.get(name).cloned()));
    mistakes.extend(file.unstartable());
    file.print(&mistakes)?;
    if file::any_error(&mistakes) {
        return Ok(Exit::NotFine);
    }
    let stages = file.definition.stages().len();
    let shown = render::visible(&file.name);
    writeln!(io::stdout().lock(), "ok: {shown} is a workflow of {stages} stage{}", if stages == 1 { "" } else { "s" })?;
    Ok(Exit::Fine)
}

fn show_file_or_run(arguments: &WorkflowShow) -> Result<Exit> {
    let path = Path::new(&arguments.what);
    if path.is_file() {
        if arguments.json || arguments.diff {
            let flag = if arguments.json { "--json" } else { "--diff" };
            let message = format!("{} is a workflow file, and {flag} is for runs", arguments.what);
            return Err(Failed::other(message, "leave the flag away, or name a run by its id").into());
        }
        let Some(file) = WorkflowFile::read(path)? else { return Ok(Exit::NotFine) };
        let drawn = if arguments.mermaid { file.definition.mermaid() } else { file.definition.drawn() };
        io::stdout().lock().write_all(drawn.as_bytes())?;
        return Ok(Exit::Fine);
    }
    client::with(&arguments.reach, Need::Existing, async |client| show_run(client, arguments).await)
}

async fn show_run(client: &Client, arguments: &WorkflowShow) -> Result<Exit> {
    let job = client.job(&arguments.what).await.map_err(|error| no_such_run(&arguments.what, error))?;
    if job.is.work != WORK {
        let message = format!("job {} is no run of a workflow", job.is.id);
        return Err(Failed::other(message, "crosspoint workflow list shows the runs").into());
    }
    if arguments.json {
        return print_job(&job, true);
    }
    if !arguments.diff {
        let mut out = anstream::AutoStream::auto(io::stdout().lock());
        card::print(&mut out, &job.is)?;
        let mut past = client.past(&job.is.id, 0);
        let mut clock = steps::Clock::default();
        while let Heard::Event(event) = past.next().await? {
            if let Some(step) = clock.step(&event) {
                writeln!(out, "{}", step.line())?;
            }
        }
        writeln!(out)?;
    }
    print_diff(client, &job.is.id).await?;
    Ok(Exit::Fine)
}

/// A name may be meant as a file that is not there.
fn no_such_run(name: &str, error: Failed) -> anyhow::Error {
    if name.contains(['/', '.']) {
        let message = format!("there is no file {name}");
        return Failed::other(render::visible(&message), "crosspoint workflow list shows the ids of runs").into();
    }
    no_such_job(error).into()
}

/// Prints what a run changed. Characters that could control a terminal are replaced on one.
async fn print_diff(client: &Client, id: &str) -> Result<()> {
    let diff = client.get(&format!("/api/v1/workflows/{}/diff", segment(id))).await?;
    let mut out = io::stdout().lock();
    if io::IsTerminal::is_terminal(&out) {
        diff.lines().try_for_each(|line| writeln!(out, "{}", render::visible(line)))?;
    } else {
        out.write_all(diff.as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Prints the job of a run that rests, for a program.
fn print_json(job: &Job) -> Result<()> {
    Ok(writeln!(io::stdout().lock(), "{}", json::one_line(&job.text))?)
}
