//! Callers of the message door: every message that they get is one of the contract, without a finding.

use crosspoint_contracts::{Kind, Options, read};
use serde_json::{Value, json};

use crate::support::message_post::{ENDPOINT, new_id};
use crate::support::server::{Answer, Server};

/// The complete example of the contract, as it is printed there.
pub(crate) const PRINTED: &str = include_str!("../../../../../examples/message/request.json");

/// A type of agents that some configurations add to those of the contract.
pub(crate) const ADDED_TYPE: &str = "gardener";

/// A message that came back.
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) document: Value,
    pub(crate) answer: Answer,
}

impl Said {
    fn of(answer: Answer) -> Said {
        let document = answer.json();
        let kind = match document["type"].as_str() {
            Some("work_status") => Kind::WorkStatus,
            Some("work_result") => Kind::WorkResult,
            Some("error") => Kind::MessageError,
            Some(_) | None => panic!("{answer:?}"),
        };
        let options = Options { kind: Some(kind), agent_types: &[ADDED_TYPE], ..Options::default() };
        let findings = read(&answer.body, &options).report.findings;
        assert!(findings.is_empty(), "{findings:?} in {answer:?}");
        Said { status: answer.status, document, answer }
    }

    /// The type of the message.
    pub(crate) fn kind(&self) -> &str {
        self.document["type"].as_str().expect("a type")
    }

    pub(crate) fn payload(&self) -> &Value {
        &self.document["payload"]
    }

    pub(crate) fn code(&self) -> Option<u64> {
        self.payload()["error_code"].as_u64()
    }

    pub(crate) fn context(&self) -> &Value {
        &self.payload()["error_context"]
    }

    pub(crate) fn message(&self) -> &str {
        self.payload()["error_message"].as_str().expect("a message")
    }

    /// Checks that it answers this message: with its ids, and the other way.
    #[track_caller]
    pub(crate) fn answers(&self, request: &Value) {
        let said = &self.document;
        for id in ["request_id", "trace_id"] {
            assert_eq!(said[id], request[id], "{id} of {said}");
        }
        assert_eq!((&said["to_agent"], &said["from_agent"]), (&request["from_agent"], &request["to_agent"]), "{said}");
        let task = &request["payload"]["task_id"];
        let echoed = [&said["payload"]["task_id"], &said["payload"]["error_context"]["task_id"]];
        let carried = &said["x_custom_fields"]["x_crosspoint"]["task_id"];
        assert!(echoed.contains(&task) || carried == task, "task_id of {said}");
        assert_ne!(said["message_id"], request["message_id"], "{said}");
    }
}

/// A message with ids of its own.
pub(crate) fn message(kind: &str, payload: &Value) -> Value {
    json!({
        "protocol_version": "1.0", "message_id": new_id(), "from_agent": "orchestrator", "to_agent": "infra",
        "timestamp": "2026-01-19T04:21:04Z", "trace_id": new_id(), "request_id": new_id(), "type": kind,
        "payload": payload, "x_custom_fields": {},
    })
}

/// A `work_request` with ids of its own.
pub(crate) fn asking(work: &str, parameters: &Value) -> Value {
    message("work_request", &json!({"task_id": new_id(), "work_type": work, "parameters": parameters, "hints": {}}))
}

/// A sample agent of the type `infra` for work of one name.
pub(crate) fn sample(run: &str, work: &str, keys: &str) -> String {
    format!(
        "[[agent]]\nname = \"{work}\"\ncontract = \"builtin\"\nrun = \"{run}\"\nwork = [\"{work}\"]\ntype = \"infra\"\n{keys}\n"
    )
}

/// An `error` that cancels the work of a request.
pub(crate) fn cancelling(request: &Value) -> Value {
    let context = json!({"task_id": request["payload"]["task_id"]});
    let payload = json!({"error_code": 5901, "error_message": "No longer wanted", "error_context": context});
    let mut cancel = message("error", &payload);
    for id in ["request_id", "trace_id"] {
        cancel[id] = request[id].clone();
    }
    cancel
}

impl Server {
    /// Sends a body to the door.
    pub(crate) fn message(&self, query: &str, headers: &[(&str, &str)], body: &str) -> Said {
        Said::of(self.request("POST", &format!("{ENDPOINT}{query}"), headers, body.as_bytes()))
    }

    /// Sends a message.
    pub(crate) fn say(&self, message: &Value) -> Said {
        self.message("", &[], &message.to_string())
    }

    /// Sends a message that must be taken, and returns the answer, which comes when the work has ended.
    pub(crate) fn outcome_of(&self, message: &Value) -> Said {
        let said = self.message("?wait=60", &[], &message.to_string());
        assert_eq!(said.status, 200, "{:?}", said.answer);
        said
    }

    /// The job of a request, as the native API shows it.
    pub(crate) fn job_of_message(&self, request: &Value) -> Value {
        let jobs = self.get("/api/v1/jobs?door=message&limit=500").json();
        let id = &request["request_id"];
        let mut found = jobs["jobs"].as_array().expect("a list").iter().filter(|job| job["request_id"] == *id);
        let job = found.next().unwrap_or_else(|| panic!("no job of {id}")).clone();
        assert!(found.next().is_none(), "two jobs have the id {id}");
        job
    }

    /// How many jobs there are.
    pub(crate) fn job_count(&self) -> usize {
        self.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map_or(0, Vec::len)
    }
}
