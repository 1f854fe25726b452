//! `crosspoint workflow show`: draws a workflow file, or shows a run.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use super::arguments::WorkflowShow;
use super::file::WorkflowFile;
use super::kept;
use super::steps;
use crate::Exit;
use crate::client::{self, Client, Failed, Heard, Need, segment};
use crate::command::jobs::{card, print_job};
use crate::terminal::{fold, render};

/// Spaces before the rest of a line that is broken.
const INDENT: usize = 4;

pub(super) fn show(arguments: &WorkflowShow) -> Result<Exit> {
    let path = Path::new(&arguments.what);
    if !path.is_file() {
        return client::with(&arguments.reach, Need::Run, async |client| run(client, arguments).await);
    }
    if arguments.json || arguments.diff {
        let flag = if arguments.json { "--json" } else { "--diff" };
        let message = format!("{} is a workflow file, and {flag} is for runs", arguments.what);
        return Err(Failed::other(message, "leave the flag away, or name a run by its id").into());
    }
    let Some(file) = WorkflowFile::read(path)? else { return Ok(Exit::NotFine) };
    let drawn = if arguments.mermaid { file.definition.mermaid() } else { file.definition.drawn() };
    io::stdout().lock().write_all(drawn.as_bytes())?;
    Ok(Exit::Fine)
}

async fn run(client: &Client, arguments: &WorkflowShow) -> Result<Exit> {
    let job = kept::run_of(client, "show", &arguments.what).await;
    let job = job.map_err(|error| no_such_run(&arguments.what, error))?;
    if arguments.json {
        return print_job(client, &job, true);
    }
    if arguments.mermaid {
        let hint = "name the workflow file to have it drawn";
        return Err(Failed::other("--mermaid draws a workflow file, and this is a run", hint).into());
    }
    if !arguments.diff {
        let mut out = anstream::AutoStream::auto(io::stdout().lock());
        card::print(&mut out, client, &job.is)?;
        writeln!(out)?;
        print_steps(&mut out, client, &job.is.id).await?;
    }
    print_diff(client, &job.is.id).await?;
    Ok(Exit::Fine)
}

/// Prints what the stages said, each with its notes, and what persons answered.
async fn print_steps(out: &mut impl Write, client: &Client, id: &str) -> Result<()> {
    let mut past = client.past(id, 0);
    let mut clock = steps::Clock::default();
    let mut count = 0;
    loop {
        let event = match past.next().await? {
            Heard::Event(event) => event,
            Heard::Lost => continue,
            Heard::End => break,
        };
        let Some(step) = clock.step(&event) else { continue };
        writeln!(out, "{}", fold::for_stdout(&step.line(), INDENT))?;
        for line in step.details() {
            writeln!(out, "{}", fold::for_stdout(&format!("    {line}"), INDENT + 2))?;
        }
        count += 1;
    }
    if count > 0 { Ok(writeln!(out)?) } else { Ok(()) }
}

/// A name may be meant as a file that is not there.
fn no_such_run(name: &str, error: anyhow::Error) -> anyhow::Error {
    if name.contains(['/', '.']) {
        let message = format!("there is no file {name}");
        return Failed::other(render::visible(&message), "crosspoint workflow list shows the ids of runs").into();
    }
    error
}

/// Prints what a run changed. Characters that could control a terminal are replaced on one.
pub(super) async fn print_diff(client: &Client, id: &str) -> Result<()> {
    let diff = client.get(&format!("/api/v1/workflows/{}/diff", segment(id))).await?;
    let mut out = io::stdout().lock();
    if io::IsTerminal::is_terminal(&out) {
        diff.lines().try_for_each(|line| writeln!(out, "{}", render::visible(line)))?;
    } else {
        out.write_all(diff.as_bytes())?;
    }
    Ok(out.flush()?)
}
