//! What a run was asked for with: the document of its job.

use std::path::PathBuf;

use anyhow::Result;
use crosspoint_workflow::definition::Definition;
use serde::Deserialize;

use crate::client::{Client, Failed, Job, RunOf, segment};
use crate::command::jobs::no_such_job;
use crate::terminal::render;
use crate::workflow::WORK;

/// What commands need of the document.
#[derive(Deserialize)]
pub(super) struct Kept {
    pub(super) definition: String,
    #[serde(default)]
    pub(super) root: PathBuf,
    feature: Option<String>,
    #[serde(default)]
    pub(super) dry_run: bool,
    /// The directory from which the programs of the workflow are found. Only commands say it.
    pub(super) home: Option<PathBuf>,
}

impl Kept {
    pub(super) async fn of(client: &Client, job: &Job) -> Result<Kept> {
        let document = client.get(&format!("/api/v1/jobs/{}/document", segment(&job.is.id))).await?;
        serde_json::from_str(&document).map_err(|_| no_run(client, job).into())
    }

    /// Returns what the run is about, for people.
    pub(super) fn about(&self) -> RunOf {
        RunOf {
            name: Definition::read(&self.definition).ok().map(|definition| definition.name().to_owned()),
            feature: self.feature.clone(),
            root: Some(self.root.display().to_string()),
            dry_run: self.dry_run,
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
