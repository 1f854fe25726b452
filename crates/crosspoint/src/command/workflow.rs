//! `crosspoint workflow`: checks workflow files, runs them, and shows runs.
//!
//! A run is a job of a server, or of this command where no server runs. `file` reads a workflow file, and `check` finds
//! what is wrong with it; `start` asks for a run, `kept` is what one was asked for with, `resting` follows it until it
//! rests, `steps` reads what its stages said, `shown` is what a waiting user sees, with the `tree` of the stages, and
//! `ask` asks a person. `list` and `show` are for runs that there are.

pub(crate) mod arguments;
mod ask;
mod check;
mod file;
mod kept;
mod list;
mod resting;
mod show;
mod shown;
mod start;
mod steps;
mod tree;

use anyhow::Result;

use self::arguments::{Workflow, WorkflowAction};
use crate::Exit;
use crate::client::{self, Need};
use crate::command::jobs::{post_action, print_job};

pub(crate) fn run(arguments: &Workflow) -> Result<Exit> {
    match &arguments.action {
        WorkflowAction::Run(run) => start::run(run),
        WorkflowAction::Resume(resume) => start::resume(resume),
        WorkflowAction::List(list) => {
            client::with(&list.reach, Need::Run, async |client| list::print(client, list).await)
        }
        WorkflowAction::Show(show) => show::show(show),
        WorkflowAction::Check(check) => check::file(check),
        WorkflowAction::Cancel(cancel) => client::with(&cancel.reach, Need::Run, async |client| {
            let run = kept::run_of(client, "cancel", &cancel.id.id).await?;
            let job = post_action(client, &run.is.id, "cancel", String::new()).await?;
            print_job(client, &job, cancel.json)
        }),
    }
}
