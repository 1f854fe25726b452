//! Starting a run, and going on with one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use crosspoint_workflow::run::Feature;
use uuid::Uuid;

use super::arguments::{WorkflowResume, WorkflowRun};
use super::check;
use super::file::WorkflowFile;
use super::kept;
use super::resting::{self, Followed};
use super::show::print_diff;
use crate::Exit;
use crate::client::{self, Client, Failed, Job, Need, Session, segment};
use crate::command::flags::Reach;
use crate::command::jobs::print_job;
use crate::command::submit::wait;
use crate::config::Config;
use crate::terminal::render;
use crate::workflow::Roots;

const RUNS: &str = "/api/v1/workflows";

pub(super) fn run(arguments: &WorkflowRun) -> Result<Exit> {
    let Some(file) = WorkflowFile::read(&arguments.file)? else { return Ok(Exit::NotFine) };
    check_flags(arguments, &file)?;
    let is_here = arguments.embedded || file.has_programs();
    let root = match &arguments.root {
        Some(root) => root.clone(),
        None => std::env::current_dir().context("cannot tell the working directory")?,
    };
    let found = check::mistakes(&file, &arguments.reach, is_here, &root)?;
    if found.has_errors() || !is_good_feature(arguments.feature.as_deref()) {
        return Ok(Exit::NotFine);
    }
    let root = root.canonicalize().with_context(|| format!("the root {} is not there", root.display()))?;
    let text = |path: &Path| -> Result<String> {
        let text = path.to_str().with_context(|| format!("{} is not UTF-8: rename it", path.display()))?;
        Ok(text.to_owned())
    };
    let body = serde_json::json!({
        "definition": file.text,
        "root": text(&root)?,
        "feature": arguments.feature,
        "dry_run": arguments.dry_run,
        "request_id": Uuid::new_v4().to_string(),
        "home": text(&file.home)?,
        "file": text(&std::path::absolute(&arguments.file)?)?,
    });
    let ways = Ways { reach: &arguments.reach, need: (!is_here).then_some(Need::Silent), file: &file };
    with(&ways, async |session| {
        let client = &session.client;
        let interrupts = wait::interrupts()?;
        if is_here {
            close_breakers(client, &file).await?;
        } else {
            say_embedded(client);
        }
        let job = match client.post_once(RUNS, None, &body.to_string()).await {
            Ok(job) => job,
            // The file or the feature is not fine, as far as only the server can tell.
            Err(failed) if failed.is_at("/definition") || failed.is_at("/feature") => {
                render::error(&failed.without_place().into());
                return Ok(Exit::NotFine);
            }
            Err(failed) => return Err(failed.without_place().into()),
        };
        let followed = Followed { id: &job.is.id, file: &file, root: &root, is_dry: arguments.dry_run };
        if arguments.detach {
            followed.say_begun();
            return wait::print_id(client, &job, arguments.json);
        }
        let (exit, job) = resting::until(client, &followed, !arguments.json, interrupts).await?;
        finish(client, &job, arguments.json, arguments.dry_run).await?;
        Ok(exit)
    })
}

/// Refuses flags that have no meaning for a workflow whose programs run in this command.
fn check_flags(arguments: &WorkflowRun, file: &WorkflowFile) -> Result<()> {
    let message = "this workflow brings programs of its own ([[agent]]), which run in this command alone";
    if file.has_programs() && arguments.detach {
        return Err(Failed::other(message, "run it without --detach").into());
    }
    if file.has_programs() && arguments.reach.server.is_some() {
        let hint = "run it without --server, or put its agents into the server's configuration";
        return Err(Failed::other(format!("{message}: --server cannot be used"), hint).into());
    }
    Ok(())
}

/// Whether a run may have this feature. Says why not.
fn is_good_feature(feature: Option<&str>) -> bool {
    let Some(Err(misnamed)) = feature.map(Feature::new) else { return true };
    let hint = "name it as its directory is to be called, such as 005-user-auth";
    render::refused(&format!("the feature cannot have this name: {misnamed}"), hint);
    false
}

/// Says where the work is done if no server runs, which a user may have expected.
fn say_embedded(client: &Client) {
    if client.is_embedded() {
        render::note("no server runs here (--server URL names another): this command does the work");
    }
}

pub(super) fn resume(arguments: &WorkflowResume) -> Result<Exit> {
    // The definition may bring programs, which a command needs before it drives the run. So the document is read first.
    let mut found = None;
    client::with(&arguments.reach, Need::Run, async |client| {
        let job = kept::run_of(client, "resume", &arguments.id.id).await?;
        found = Some((kept::order_of(client, &job).await?, client.is_embedded(), job));
        Ok(Exit::Fine)
    })?;
    let Some((order, is_embedded, job)) = found else { return Ok(Exit::CouldNot) };
    let home = order.home.unwrap_or_default();
    let Some(file) = WorkflowFile::of("the workflow".to_owned(), order.definition, home)? else {
        return Ok(Exit::CouldNot);
    };
    if job.outcome().is_none() {
        say_changed(order.file.as_deref(), &file.text);
    }
    let drives = is_embedded && job.outcome().is_none();
    let ways = Ways { reach: &arguments.reach, need: (!drives).then_some(Need::Run), file: &file };
    with(&ways, async |session| {
        let client = &session.client;
        let interrupts = wait::interrupts()?;
        if drives {
            if !file.has_programs() {
                say_embedded(client);
            }
            close_breakers(client, &file).await?;
            session.take_up(&job.is.id).await?;
        }
        let followed = Followed { id: &job.is.id, file: &file, root: &order.root, is_dry: order.dry_run };
        let (exit, job) = resting::until(client, &followed, !arguments.json, interrupts).await?;
        finish(client, &job, arguments.json, order.dry_run).await?;
        Ok(exit)
    })
}

/// Says where the workflow file is another one by now: a run follows the file as it was when it began.
fn say_changed(path: Option<&Path>, text: &str) {
    let Some((path, now)) = path.and_then(|path| Some((path, fs::read(path).ok()?))) else { return };
    if now != text.as_bytes() {
        render::note(&render::visible(&format!(
            "{} has changed since; the run follows it as it was. To use the new one, cancel the run and begin another",
            path.display()
        )));
    }
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

async fn finish(client: &Client, job: &Job, json: bool, dry_run: bool) -> Result<()> {
    if json {
        return print_job(client, job, true).map(drop);
    }
    if dry_run && job.outcome().is_none() {
        render::note("the changes so far; the run is not over:");
    }
    // How the run rests is said already, and is what the command returns.
    if dry_run && let Err(why) = print_diff(client, &job.is.id).await {
        render::error(&why);
    }
    Ok(())
}

/// How a command reaches the process that drives its run.
struct Ways<'w> {
    reach: &'w Reach,
    /// What is needed where no server runs; `None` if this process drives the run whatever server there is.
    need: Option<Need>,
    /// The workflow, whose programs this process then runs.
    file: &'w WorkflowFile,
}

fn with(ways: &Ways<'_>, act: impl AsyncFnOnce(&Session) -> Result<Exit>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    let outcome = runtime.block_on(async {
        let adapt = |config: &mut Config| {
            config.workflow.roots = Roots::Anywhere;
            ways.file.add_programs(config)
        };
        let session = match ways.need {
            None => Session::here(ways.reach, adapt).await?,
            Some(need) => Session::begin_with(ways.reach, need, adapt).await?,
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
