//! Starting a run, and going on with one.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use uuid::Uuid;

use super::arguments::{WorkflowResume, WorkflowRun};
use super::file::WorkflowFile;
use super::{print_diff, print_json, resting};
use crate::Exit;
use crate::client::{self, Client, Failed, Job, Need, Session, segment};
use crate::command::flags::Reach;
use crate::command::jobs::no_such_job;
use crate::command::submit::wait;
use crate::config::Config;
use crate::workflow::Roots;

const RUNS: &str = "/api/v1/workflows";

pub(super) fn run(arguments: &WorkflowRun) -> Result<Exit> {
    let Some(file) = WorkflowFile::read(&arguments.file)? else { return Ok(Exit::NotFine) };
    if arguments.detach && file.has_programs() {
        let message = "this workflow brings programs of its own ([[agent]]), which run in this command alone";
        return Err(Failed::other(message.to_owned(), "run it without --detach").into());
    }
    file.print(file.definition.warnings())?;
    let root = match &arguments.root {
        Some(root) => root.clone(),
        None => std::env::current_dir().context("cannot tell the working directory")?,
    };
    let root = root.canonicalize().with_context(|| format!("the root {} is not there", root.display()))?;
    let body = serde_json::json!({
        "definition": file.text,
        "root": root,
        "feature": arguments.feature,
        "dry_run": arguments.dry_run,
        "request_id": Uuid::new_v4().to_string(),
        "home": file.home,
    });
    let here = arguments.embedded || file.has_programs();
    let ways = Ways { reach: &arguments.reach, here, file: Some(&file) };
    with(&ways, async |session| {
        let client = &session.client;
        let interrupts = wait::interrupts()?;
        if here {
            close_breakers(client, &file).await?;
        }
        let job = client.post_once(RUNS, None, &body.to_string()).await?;
        if arguments.detach {
            return wait::print_id(client, &job, arguments.json);
        }
        let run = (job.is.id.as_str(), &file.definition);
        let (exit, job) = resting::until(client, run, !arguments.json, interrupts).await?;
        finish(client, &job, arguments.json, arguments.dry_run).await?;
        Ok(exit)
    })
}

pub(super) fn resume(arguments: &WorkflowResume) -> Result<Exit> {
    // The definition may bring programs, which a command needs before it drives the run. So the document is read first.
    let mut kept = None;
    client::with(&arguments.reach, Need::Existing, async |client| {
        let id = segment(&arguments.id.id);
        let job = client.job(&arguments.id.id).await.map_err(no_such_job)?;
        kept = Some((client.get(&format!("/api/v1/jobs/{id}/document")).await?, client.is_embedded(), job));
        Ok(Exit::Fine)
    })?;
    let Some((document, is_embedded, job)) = kept else { return Ok(Exit::CouldNot) };
    let Ok(order) = serde_json::from_str::<Kept>(&document) else {
        let message = format!("job {} is no run of a workflow", job.is.id);
        return Err(Failed::other(message, "crosspoint workflow list shows the runs").into());
    };
    let home = order.home.unwrap_or_default();
    let Some(file) = WorkflowFile::of("the workflow".to_owned(), order.definition, home)? else {
        return Ok(Exit::CouldNot);
    };
    let is_over = job.outcome().is_some();
    let ways = Ways { reach: &arguments.reach, here: is_embedded && !is_over, file: Some(&file) };
    with(&ways, async |session| {
        let client = &session.client;
        let interrupts = wait::interrupts()?;
        if client.is_embedded() && !is_over {
            close_breakers(client, &file).await?;
            session.take_up(&job.is.id).await?;
        }
        let run = (job.is.id.as_str(), &file.definition);
        let (exit, job) = resting::until(client, run, !arguments.json, interrupts).await?;
        finish(client, &job, arguments.json, order.dry_run).await?;
        Ok(exit)
    })
}

/// Lets the programs of the file be tried at once. A breaker that opened in an earlier command would have this one wait
/// without need: its user has just mended the program, or is about to be told what is wrong with it.
async fn close_breakers(client: &Client, file: &WorkflowFile) -> Result<()> {
    for agent in file.definition.agents() {
        let path = format!("/api/v1/agents/{}/breaker", segment(&agent.name));
        client.post(&path, "{\"state\":\"closed\"}".to_owned()).await?;
    }
    Ok(())
}

/// What is needed of the document of a run.
#[derive(Deserialize)]
struct Kept {
    definition: String,
    #[serde(default)]
    dry_run: bool,
    home: Option<PathBuf>,
}

async fn finish(client: &Client, job: &Job, json: bool, dry_run: bool) -> Result<()> {
    if json {
        return print_json(job);
    }
    if dry_run {
        return print_diff(client, &job.is.id).await;
    }
    Ok(())
}

/// How a command reaches the process that drives its run.
struct Ways<'w> {
    reach: &'w Reach,
    /// Whether it is this process.
    here: bool,
    /// The workflow, whose programs this process then runs.
    file: Option<&'w WorkflowFile>,
}

fn with(ways: &Ways<'_>, act: impl AsyncFnOnce(&Session) -> Result<Exit>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    let outcome = runtime.block_on(async {
        let adapt = |config: &mut Config| {
            config.workflow.roots = Roots::Anywhere;
            ways.file.map_or(Ok(()), |file| file.add_programs(config))
        };
        let session = match ways.here {
            true => Session::here(ways.reach, adapt).await?,
            false => Session::begin_with(ways.reach, Need::Any, adapt).await?,
        };
        let outcome = act(&session).await;
        session.end().await;
        outcome
    });
    // Files that are being copied or written must not keep a command that was interrupted: what is half done is
    // finished or taken back when the run goes on.
    runtime.shutdown_background();
    outcome
}
