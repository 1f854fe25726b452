//! Commands that are run in a directory with programs that ask by files.

use std::path::PathBuf;

use assert_cmd::Command;

use crate::support::bridge_directory::Directory;
use crate::support::bridge_run::Ran;
use crate::support::program::crosspoint;

impl Directory {
    /// Our program, in this directory, where scripts find it too.
    pub(crate) fn crosspoint(&self, arguments: &[&str]) -> Command {
        let mut command = crosspoint(arguments);
        let program = PathBuf::from(command.get_program());
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().expect("it is somewhere").display());
        command.current_dir(self.path()).env("PATH", path).env_remove("CROSSPOINT_SERVER");
        command
    }

    pub(crate) fn run_crosspoint(&self, arguments: &[&str]) -> Ran {
        ended(&mut self.crosspoint(arguments))
    }

    /// `crosspoint bridge ask`, with nothing on its stdin.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Ran {
        self.run_crosspoint(&[&["bridge", "ask"], arguments].concat())
    }
}

pub(crate) fn ended(command: &mut Command) -> Ran {
    command.output().expect("it starts").into()
}
