//! A server with an agent that answers in a directory, and the side that answers there.

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::support::bridge_directory::Directory;
use crate::support::program::crosspoint;
use crate::support::server::{Server, until};

/// An agent called `human` with this directory, and further keys.
pub(crate) fn human(dir: &str, keys: &str) -> String {
    format!("[[agent]]\nname = \"human\"\ncontract = \"bridge\"\ndir = \"{dir}\"\n{keys}\n")
}

/// The directory of that agent, if it is called `inbox`.
pub(crate) fn inbox_of(server: &Server) -> Directory {
    Directory::at(server.directory().join("inbox"))
}

impl Directory {
    /// A command of the bridge about this directory.
    pub(crate) fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = crosspoint(&["bridge", verb]);
        command.arg(self.path()).args(arguments);
        command
    }

    /// Answers with `bridge answer`, and returns its exit code.
    pub(crate) fn answer(&self, arguments: &[&str]) -> i32 {
        self.command("answer", arguments).output().expect("it starts").status.code().expect("it exits")
    }
}

/// Begins a job with a prompt.
pub(crate) fn prompt(server: &Server, text: &str) -> String {
    let job = server.submit(&json!({"work": "human", "input": text}).to_string());
    job["id"].as_str().expect("an id").to_owned()
}

/// Waits until the job reports this as its status.
pub(crate) fn says(server: &Server, id: &str, part: &str) -> Value {
    until(part, || {
        let job = server.job(id);
        assert!(job["outcome"].is_null(), "{job}");
        job["progress"]["step"].as_str().is_some_and(|step| step.contains(part)).then_some(job)
    })
}
