//! What a run was asked for with: the document of its job.

use std::path::PathBuf;

use anyhow::Result;
use crosspoint_workflow::definition::Definition;
use serde::Deserialize;

use crate::client::{Client, Failed, Job, RunOf, segment};
use crate::command::jobs::no_such_job;
use crate::terminal::render;
use crate::workflow::{Order, WORK};

/// What commands need of the document.
pub(super) struct Kept {
    pub(super) order: Order,
    /// The directory from which the programs of the workflow are found. Only commands say it.
    pub(super) home: PathBuf,
}

#[derive(Deserialize)]
struct Home {
    home: PathBuf,
}

impl Kept {
    pub(super) async fn of(client: &Client, job: &Job) -> Result<Kept> {
        let document = client.get(&format!("/api/v1/jobs/{}/document", segment(&job.is.id))).await?;
        let order = Order::read(document.as_bytes()).ok_or_else(|| no_run(client, job))?;
        let home = serde_json::from_str(&document).map_or_else(|_| PathBuf::new(), |Home { home }| home);
        Ok(Kept { order, home })
    }

    /// Returns what the run is about, for people.
    pub(super) fn about(&self) -> RunOf {
        let Order { definition, root, feature, dry_run } = &self.order;
        RunOf {
            name: Definition::read(definition).ok().map(|definition| definition.name().to_owned()),
            feature: feature.clone(),
            root: Some(root.display().to_string()),
            dry_run: *dry_run,
        }
    }
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
