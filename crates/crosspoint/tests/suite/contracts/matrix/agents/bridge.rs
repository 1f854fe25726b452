//! The agents of the bridge contract: the test looks into directories, and leaves responses beside the requests. A
//! directory has one pair of files, so every cell has an agent of its own.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use super::super::cases::CASES;
use super::super::doors::Door;
use super::super::ledger::{Ledger, Seen};
use super::{Kind, Purpose, blob, name, own_members, text};
use crate::support::bridge_files::leave;
use crate::support::bridge_watcher::{REQUEST, RESPONSE};
use crate::support::server::within;

/// The name of the agent of a case at a door.
pub(in super::super) fn name_for(case: &str, door: Door) -> String {
    format!("bridge-{}-{}", case.replace([' ', ':', ','], "_"), door.name())
}

/// The directory of an agent's requests.
pub(in super::super) fn directory(root: &Path, agent: &str) -> PathBuf {
    root.join(agent)
}

fn quiet(door: Door) -> String {
    name(Kind::Bridge, door, Purpose::Quiet)
}

/// The answering side takes its time, so that no silence is too long: only the total time ends a job.
pub(super) fn configuration(root: &Path, door: Door) -> String {
    let plain = CASES.iter().map(|(case, _)| agent(&name_for(case, door), &directory(root, &name_for(case, door)), ""));
    let quiet = agent(&quiet(door), &directory(root, &quiet(door)), "total_seconds = 2\n");
    let away = agent(&name(Kind::Bridge, door, Purpose::Away), &root.join("never/made"), "");
    plain.chain([quiet, away]).collect()
}

fn agent(name: &str, directory: &Path, keys: &str) -> String {
    format!(
        "[[agent]]\nname = \"{name}\"\ncontract = \"bridge\"\ndir = {:?}\n{keys}\n",
        directory.display().to_string()
    )
}

/// Answers in all directories, until the root is gone.
pub(super) fn start(root: &Path, ledger: Arc<Ledger>) {
    let plain = Door::ALL.into_iter().flat_map(|door| CASES.iter().map(move |(case, _)| name_for(case, door)));
    let names: Vec<String> = plain.chain(Door::ALL.map(quiet)).collect();
    let mut agents: Vec<Agent> =
        names.iter().map(|name| Agent { directory: directory(root, name), held: None }).collect();
    agents.iter().for_each(|agent| fs::create_dir_all(&agent.directory).expect("it can be made"));
    let root = root.to_owned();
    let look = move || {
        agents.iter_mut().for_each(|agent| agent.look(&ledger));
        (!root.exists()).then_some(())
    };
    thread::spawn(move || within(Duration::MAX, look));
}

struct Agent {
    directory: PathBuf,
    held: Option<Held>,
}

/// A request in a directory.
struct Held {
    /// Identity of the file: the same request may be left again.
    mark: (u64, i64, i64),
    request: Value,
    input: Value,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Broken,
    Answered,
}

impl Agent {
    fn look(&mut self, ledger: &Ledger) {
        let place = self.directory.join(REQUEST);
        let mark = fs::symlink_metadata(&place).ok().map(|file| (file.ino(), file.mtime(), file.mtime_nsec()));
        if self.held.as_ref().map(|held| held.mark) != mark {
            if let Some(gone) = self.held.take().filter(|held| held.stage != Stage::Answered) {
                gone.note("told", ledger);
            }
            self.held = mark.and_then(|mark| Held::read(&place, mark));
            self.held.iter().for_each(|held| held.note("new", ledger));
        }
        let directory = &self.directory;
        if let Some((stage, response)) = self.held.as_ref().and_then(|held| held.next(ledger)) {
            leave(directory, RESPONSE, &serde_json::to_string_pretty(&response).expect("JSON"));
            self.held.iter_mut().for_each(|held| held.stage = stage);
        }
    }
}

impl Held {
    fn read(place: &Path, mark: (u64, i64, i64)) -> Option<Held> {
        let request: Value = serde_json::from_slice(&fs::read(place).ok()?).ok()?;
        // Objects are texts in this contract (ALL-8).
        let input = serde_json::from_str(request["prompt"].as_str()?).unwrap_or_default();
        Some(Held { mark, request, input, stage: Stage::Open })
    }

    fn note(&self, what: &'static str, ledger: &Ledger) {
        let (id, document) = (text(&self.request, "request_id"), self.request.clone());
        ledger.note(&text(&self.input, "cell"), Seen { what, id, trace: String::new(), document });
    }

    /// The response to leave now, if any.
    fn next(&self, ledger: &Ledger) -> Option<(Stage, Value)> {
        let wanted = text(&self.input, "do");
        let released = || ledger.released(&text(&self.input, "cell"), Duration::ZERO);
        match (wanted.as_str(), self.stage) {
            (_, Stage::Answered) | ("" | "hold" | "silent", _) => None,
            ("break", Stage::Open) => Some((Stage::Broken, self.broken())),
            ("break", Stage::Broken) | ("progress", _) if !released() => None,
            ("fail", _) => Some((Stage::Answered, self.failed())),
            (other, _) => Some((Stage::Answered, self.succeeded(other))),
        }
    }

    fn succeeded(&self, wanted: &str) -> Value {
        let output = match wanted {
            "big" => json!({"blob": blob()}).to_string(),
            "raw" => text(&self.input, "raw"),
            _ => text(&self.request, "prompt"),
        };
        let artifact = json!({"at": 0, "name": "report.md", "type": "text/markdown", "content": "# Report"});
        let metadata = match wanted {
            "own" => json!({"own": own_members(), "cost": 812}),
            "artifacts" => json!({"x_crosspoint": {"from": "task.response", "artifacts": [artifact]}}),
            _ => json!({}),
        };
        self.response("success", &json!(output), &Value::Null, &Value::Null, &metadata)
    }

    fn failed(&self) -> Value {
        let input = &self.input;
        let metadata = json!({"own": own_members()});
        self.response(&text(input, "status"), &Value::Null, &input["message"], &input["code"], &metadata)
    }

    /// The most common mistake of people: the output is not JSON-encoded.
    fn broken(&self) -> Value {
        self.response("success", &self.input, &Value::Null, &Value::Null, &json!({}))
    }

    fn response(&self, status: &str, output: &Value, message: &Value, code: &Value, metadata: &Value) -> Value {
        json!({
            "request_id": self.request["request_id"], "version": "1.0", "status": status, "response": output,
            "error_message": message, "error_type": code, "created_at": "2025-11-24T14:22:45.123456+00:00",
            "duration_seconds": 1.0, "metadata": metadata,
        })
    }
}
