//! A server with an agent that answers in a directory, and the side that answers there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::support::program::crosspoint;
use crate::support::server::{Server, until};

pub(crate) const REQUEST: &str = ".agent-request.json";
pub(crate) const RESPONSE: &str = ".agent-response.json";

/// An agent called `human` with this directory, and further keys.
pub(crate) fn human(dir: &str, keys: &str) -> String {
    format!("[[agent]]\nname = \"human\"\ncontract = \"bridge\"\ndir = \"{dir}\"\n{keys}\n")
}

/// A directory in which questions are answered.
pub(crate) struct Inbox(pub(crate) PathBuf);

impl Inbox {
    pub(crate) fn of(server: &Server) -> Inbox {
        Inbox(server.directory().join("inbox"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn request(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.file(REQUEST)).ok()?).ok()
    }

    /// Waits for the request of this job.
    pub(crate) fn asked(&self, id: &str) -> Value {
        until("the request", || self.request().filter(|request| request["request_id"] == id))
    }

    /// Inode of the request, which shows that it was not written anew.
    pub(crate) fn inode(&self) -> u64 {
        fs::metadata(self.file(REQUEST)).expect("it is there").ino()
    }

    /// The names in it, without leftovers of processes that were killed while writing.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let half_written = |name: &String| name.contains(".tmp-") && !name.ends_with(".tmp-removed");
        let mut names: Vec<String> = names.filter(|name| !half_written(name)).collect();
        names.sort();
        names
    }

    pub(crate) fn is_cleared(&self) {
        until("the files are gone", || self.names().is_empty().then_some(()));
    }

    /// Writes the response as people do: in place.
    pub(crate) fn write(&self, response: &Value) {
        fs::write(self.file(RESPONSE), serde_json::to_vec_pretty(response).expect("it is JSON"))
            .expect("it is written");
    }

    pub(crate) fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = crosspoint(&["bridge", verb]);
        command.arg(&self.0).args(arguments);
        command
    }

    /// Answers with `bridge answer`, and returns its exit code.
    pub(crate) fn answer(&self, arguments: &[&str]) -> i32 {
        self.command("answer", arguments).output().expect("it starts").status.code().expect("it exits")
    }
}

/// A correct response.
pub(crate) fn good(id: &str, text: &str) -> Value {
    json!({
        "request_id": id, "version": "1.0", "status": "success", "response": text, "error_message": null,
        "error_type": null, "created_at": "2026-01-05T10:00:00+00:00", "duration_seconds": 1.0, "metadata": {},
    })
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
