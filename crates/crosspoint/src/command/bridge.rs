//! `crosspoint bridge`: agents for programs that can only read and write files.
//!
//! `run` is the driver of one program, and `watch` that of many directories. `ask`, `answer` and `status` are for the
//! other sides of the files: programs that ask, people who answer, and people who look. What the two drivers share is
//! in [`crate::bridge`].

mod answer;
pub(crate) mod arguments;
mod ask;
mod run;
mod status;
mod watch;

use anyhow::Result;

use crate::Exit;
use crate::command::bridge::arguments::{Bridge, BridgeAction};
pub(crate) use run::{CHILD, become_program};

pub(crate) fn run(arguments: &Bridge) -> Result<Exit> {
    match &arguments.action {
        BridgeAction::Run(arguments) => run::run(arguments),
        BridgeAction::Watch(arguments) => watch::run(arguments),
        BridgeAction::Ask(arguments) => ask::run(arguments),
        BridgeAction::Answer(arguments) => answer::run(arguments),
        BridgeAction::Status(arguments) => status::run(arguments),
    }
}
