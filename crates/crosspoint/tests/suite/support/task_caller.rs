//! Callers of the task door: every document that they get is one of the contract, without a finding.

use crosspoint_contracts::{Kind, Options, read};
use serde_json::{Value, json};

use crate::support::server::{Answer, Server};

pub(crate) struct Task {
    pub(crate) status: u16,
    pub(crate) document: Value,
    pub(crate) answer: Answer,
}

impl Task {
    fn of(answer: Answer) -> Task {
        let document = faultless(&answer.text());
        Task { status: answer.status, document, answer }
    }

    pub(crate) fn word(&self) -> &str {
        self.document["status"].as_str().expect("a status")
    }

    pub(crate) fn warnings(&self) -> Value {
        self.document["metadata"]["x_crosspoint"]["warnings"].clone()
    }
}

/// Checks that a text is a task.response without a finding, warnings included.
pub(crate) fn faultless(text: &str) -> Value {
    let options = Options { kind: Some(Kind::TaskResponse), ..Options::default() };
    let report = read(text.as_bytes(), &options).report;
    assert!(report.findings.is_empty(), "{:?} in {text}", report.findings);
    serde_json::from_str(text).expect("it is JSON")
}

pub(crate) fn request(id: &str, work: &str, payload: &Value) -> String {
    json!({"id": id, "type": work, "payload": payload}).to_string()
}

/// A text as one segment of a path, with every byte encoded.
pub(crate) fn encoded(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

impl Server {
    pub(crate) fn task(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Task {
        Task::of(self.request(method, path, headers, body.as_bytes()))
    }

    pub(crate) fn submit_task(&self, query: &str, body: &str) -> Task {
        let task = self.task("POST", &format!("/tasks{query}"), &[], body);
        assert!([200, 202].contains(&task.status), "{:?}", task.answer);
        task
    }

    pub(crate) fn poll(&self, id: &str) -> Task {
        let task = self.task("GET", &format!("/tasks/{}", encoded(id)), &[], "");
        assert_eq!(task.status, 200, "{:?}", task.answer);
        task
    }

    /// The task, once it has ended or asks for input.
    pub(crate) fn settled(&self, id: &str) -> Task {
        self.task("GET", &format!("/tasks/{}?wait=60", encoded(id)), &[], "")
    }

    /// The job of a task, as the native API shows it.
    pub(crate) fn job_of_task(&self, id: &str) -> Value {
        let jobs = self.get("/api/v1/jobs?door=task&limit=500").json();
        let mut found = jobs["jobs"].as_array().expect("a list").iter().filter(|job| job["request_id"] == id);
        let job = found.next().unwrap_or_else(|| panic!("no job of {id}")).clone();
        assert!(found.next().is_none(), "two jobs have the id {id}");
        job
    }
}

/// The events of a stream: number, name and task of each.
pub(crate) fn events(stream: &str) -> Vec<(u32, String, Value)> {
    let blocks = stream.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
    blocks.map(event).collect()
}

fn event(block: &str) -> (u32, String, Value) {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).expect("it has all fields");
    let task = faultless(field("data: "));
    let name = field("event: ").to_owned();
    assert_eq!(task["status"], name.as_str(), "an event is named by the task's status");
    (field("id: ").parse().expect("a number"), name, task)
}
