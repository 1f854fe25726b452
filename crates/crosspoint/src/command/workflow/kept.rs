//! What a run was asked for with: the document of its job.

use anyhow::Result;

use crate::client::{Client, Failed, Job, segment};
use crate::command::jobs::no_such_job;
use crate::terminal::render;
use crate::workflow::{Order, WORK};

/// Returns what a run was asked for with.
pub(super) async fn order_of(client: &Client, job: &Job) -> Result<Order> {
    let document = client.get(&format!("/api/v1/jobs/{}/document", segment(&job.is.id))).await?;
    Ok(Order::read(document.as_bytes()).ok_or_else(|| no_run(client, job))?)
}

/// Returns the job of a run. `verb` is the command that asks for it.
pub(super) async fn run_of(client: &Client, verb: &str, id: &str) -> Result<Job> {
    let failed =
        |failed: Failed| client.no_such_job(&format!("workflow {verb} {id}"), no_such_job(failed.without_place()));
    let job = client.job(id).await.map_err(failed)?;
    if job.is.work == WORK { Ok(job) } else { Err(no_run(client, &job).into()) }
}

fn no_run(client: &Client, job: &Job) -> Failed {
    let message = format!("job {} is no run of a workflow", render::visible(&job.is.id));
    Failed::other(message, format!("{} shows the runs", client.command("workflow list")))
}
