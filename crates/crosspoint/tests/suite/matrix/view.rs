//! What a caller got, whatever its contract: so that all doors can be held against the same expectation.

use crosspoint_contracts::Kind;
use serde_json::Value;

use super::agents::OWN_CODE;
use super::doors::Door;
use crate::faultless::{faultless, findings};
use crate::live::Answer;

#[derive(Debug)]
pub(super) struct View {
    /// Of HTTP.
    pub(super) status: u16,
    /// `completed`, `failed` or `cancelled`.
    pub(super) state: String,
    pub(super) outputs: Value,
    /// In the words of the contract.
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) repeat: Option<String>,
    pub(super) details: Value,
    /// The caller's id as the caller got it.
    pub(super) id: String,
    /// Names of artifacts.
    pub(super) artifacts: Vec<String>,
    /// The document; of a stream the data of its terminal event.
    pub(super) document: Value,
}

impl View {
    pub(super) fn native(answer: &Answer) -> View {
        let job = answer.json();
        let outcome = &job["outcome"];
        let failure = &outcome["failure"];
        View {
            status: answer.status,
            state: said(&outcome["status"]).unwrap_or_default(),
            outputs: outcome["outputs"].clone(),
            code: said(&failure["code"]),
            message: said(&failure["message"]),
            repeat: said(&failure["repeat"]),
            details: failure["details"].clone(),
            id: said(&job["request_id"]).unwrap_or_default(),
            artifacts: names(&outcome["artifacts"]),
            document: job.clone(),
        }
    }

    pub(super) fn native_refusal(answer: &Answer) -> View {
        let document = answer.json();
        let error = &document["error"];
        View {
            status: answer.status,
            state: "failed".to_owned(),
            outputs: Value::Null,
            code: said(&error["code"]),
            message: said(&error["message"]),
            repeat: said(&error["repeat"]),
            details: error.clone(),
            // A refusal of ours does not repeat it.
            id: String::new(),
            artifacts: Vec::new(),
            document: document.clone(),
        }
    }

    pub(super) fn run(answer: &Answer) -> View {
        faultless(&answer.body, Kind::RunResponse);
        View::of_run(answer.status, &answer.json())
    }

    /// RUN-6: one `started`, and one terminal event, the last.
    pub(super) fn run_stream(text: &str) -> View {
        faultless(text.as_bytes(), Kind::RunStream);
        let events: Vec<&str> = text.split("\n\n").filter(|block| block.starts_with("event: ")).collect();
        let named = |name: &str| events.iter().filter(|event| event.starts_with(&format!("event: {name}\n"))).count();
        assert!(events.first().is_some_and(|event| event.starts_with("event: started\n")), "{text}");
        assert!(events.last().is_some_and(|event| event.starts_with("event: final\n")), "{text}");
        assert_eq!((named("started"), named("final")), (1, 1), "{text}");
        let last = events.last().and_then(|event| event.split_once("data: ")).expect("it has data").1;
        faultless(last.as_bytes(), Kind::RunResponse);
        View::of_run(200, &serde_json::from_str(last).expect("JSON"))
    }

    fn of_run(status: u16, document: &Value) -> View {
        let error = &document["error"];
        let code = said(&error["code"]);
        let state = match (document["status"].as_str(), code.as_deref()) {
            (Some("error"), Some("CANCELLED")) => "cancelled",
            (Some("error"), _) => "failed",
            _ => "completed",
        };
        View {
            status,
            state: state.to_owned(),
            outputs: document["outputs"].clone(),
            message: said(&error["message"]),
            repeat: said(&error["details"]["repeat"]),
            details: error["details"].clone(),
            id: said(&document["request_id"]).unwrap_or_default(),
            artifacts: document["artifacts"].as_array().into_iter().flatten().filter_map(said).collect(),
            code,
            document: document.clone(),
        }
    }

    pub(super) fn task(answer: &Answer) -> View {
        let document = answer.json();
        // TASK-6: a code that only the agent knows is the agent's, and is passed on as it is.
        let faults = findings(&answer.body, Kind::TaskResponse);
        let own = document["error"]["code"] == OWN_CODE;
        let faults: Vec<_> = faults.into_iter().filter(|finding| !own || finding.clause.id != "TASK-6").collect();
        assert!(faults.is_empty(), "{faults:?} in {document}");
        let error = &document["error"];
        View {
            status: answer.status,
            state: said(&document["status"]).unwrap_or_default(),
            outputs: document["result"].clone(),
            code: said(&error["code"]),
            message: said(&error["message"]),
            repeat: said(&error["details"]["repeat"]),
            details: error["details"].clone(),
            id: said(&document["id"]).unwrap_or_default(),
            artifacts: names(&document["artifacts"]),
            document: document.clone(),
        }
    }

    /// What was carried beside the members of the door's contract.
    pub(super) fn carried(&self, door: Door) -> &Value {
        match door {
            Door::Native => &self.document["outcome"]["said"]["document"],
            Door::Sync | Door::Stream => &self.document["x_crosspoint"],
            Door::Task => &self.document["metadata"]["x_crosspoint"],
        }
    }
}

fn said(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn names(artifacts: &Value) -> Vec<String> {
    artifacts.as_array().into_iter().flatten().filter_map(|artifact| said(&artifact["name"])).collect()
}
