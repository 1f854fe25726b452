//! A directory with programs that ask by files, and commands that are run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::support::program::crosspoint;

/// A directory of the test's own.
pub(crate) struct Desk(PathBuf);

/// How a command ended: exit code, stdout, stderr.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    pub(crate) errors: String,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-desk-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        Desk(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("it can be written");
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.join(name).symlink_metadata().is_ok()
    }

    /// The names of the files of the bridge.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it can be listed");
        let names = entries.map(|entry| entry.expect("it can be read").file_name().into_string().expect("UTF-8"));
        let mut names: Vec<String> = names.filter(|name| name.starts_with(".agent-")).collect();
        names.sort_unstable();
        names
    }

    /// Our program, in this directory, where scripts find it too.
    pub(crate) fn crosspoint(&self, arguments: &[&str]) -> Command {
        let mut command = crosspoint(arguments);
        let program = PathBuf::from(command.get_program());
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().expect("it is somewhere").display());
        command.current_dir(&self.0).env("PATH", path).env_remove("CROSSPOINT_SERVER");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(&mut self.crosspoint(arguments))
    }

    /// `crosspoint bridge ask`, with nothing on its stdin.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Ended {
        self.run(&[&["bridge", "ask"], arguments].concat())
    }

    /// The request that waits for an answer.
    pub(crate) fn request(&self) -> Value {
        serde_json::from_str(&self.text(".agent-request.json")).expect("it is JSON")
    }

    /// Answers the request as a driver does: writes the response and removes the request. Returns its id.
    pub(crate) fn respond(&self, response: &str) -> String {
        let id = self.request()["request_id"].as_str().expect("it has one").to_owned();
        self.put(".agent-response.json", &response.replace(PRINTED_ID, &id));
        fs::remove_file(self.0.join(".agent-request.json")).expect("it can be removed");
        id
    }

    /// The same, with a text.
    pub(crate) fn answer(&self, text: &str) -> String {
        self.respond(&success(text).to_string())
    }
}

/// The id in the examples of the contract.
pub(crate) const PRINTED_ID: &str = "32ecfadc-2b66-4daa-a7c0-a03c449fcea5";

pub(crate) fn success(text: &str) -> Value {
    json!({
        "request_id": PRINTED_ID, "version": "1.0", "status": "success", "response": text, "error_message": null,
        "error_type": null, "created_at": "2025-11-24T14:22:45+00:00", "duration_seconds": 1.0, "metadata": {},
    })
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ended { code: output.status.code(), said: text(output.stdout), errors: text(output.stderr) }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
