//! `crosspoint bridge`: agents for programs that can only read and write files.
//!
//! In reading order: `work` has a server answer one request; `attend` is the requests of one directory, with `record`
//! as its memory; `run` is the driver of one program, and `watch` that of many directories, which `notice` tells of
//! changes. `ask`, `answer` and `status` are for the other sides of the files: programs that ask, people who answer,
//! and people who look.

mod answer;
mod ask;
mod asked;
mod attend;
pub(crate) mod notice;
mod record;
mod run;
mod status;
mod watch;
mod work;

use anyhow::Result;

pub(crate) use run::{CHILD, become_program};

use crate::Outcome;
use crate::cli::{Bridge, BridgeAction};

pub(crate) fn run(arguments: &Bridge) -> Result<Outcome> {
    match &arguments.action {
        BridgeAction::Run(arguments) => run::run(arguments),
        BridgeAction::Watch(arguments) => watch::run(arguments),
        BridgeAction::Ask(arguments) => ask::run(arguments),
        BridgeAction::Answer(arguments) => answer::run(arguments),
        BridgeAction::Status(arguments) => status::run(arguments),
    }
}
