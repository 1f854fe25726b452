//! What a caller got, in a form that is the same for all doors, so that all can be compared with the same expectation.

use crosspoint_contracts::Kind;
use serde_json::Value;

use super::agents::{OWN_CODE, message};
use super::doors::Door;
use crate::support::documents::{faultless, findings};
use crate::support::message_caller;
use crate::support::server::Answer;

#[derive(Debug)]
pub(super) struct View {
    /// The HTTP status; 200 if there is none.
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
    pub(super) artifacts: Vec<String>,
    /// The document; for a stream, the data of its terminal event.
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
            // A refusal of the server does not repeat the id.
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
        // JSON that was formatted over several lines is several lines of data.
        let last = events.last().and_then(|event| event.split_once("data: ")).expect("it has data").1;
        let last = &last.replace("\ndata: ", "\n");
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
        // TASK-6: a code that only the agent knows is passed on unchanged.
        let faults = findings(&answer.body, Kind::TaskResponse);
        let own = [OWN_CODE, &message::OWN_CODE.to_string()].iter().any(|own| document["error"]["code"] == **own);
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

    /// BRIDGE-7.2: indented by two spaces, with nothing but the nine members (BRIDGE-1.4).
    pub(super) fn bridge(text: &str) -> View {
        assert!(text.starts_with("{\n  \"request_id\": "), "it is laid out: {text:.200}");
        let document: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(document.as_object().map(serde_json::Map::len), Some(9), "{document}");
        // BRIDGE-4.5: an id that is not a UUID is copied unchanged.
        let faults = findings(text.as_bytes(), Kind::BridgeResponse);
        let faults: Vec<_> = faults.into_iter().filter(|finding| finding.clause.id != "BRIDGE-4.5").collect();
        assert!(faults.is_empty(), "{faults:?} in {document}");
        let state = match (document["status"].as_str(), document["error_type"].as_str()) {
            (Some("success"), _) => "completed",
            (_, Some("cancelled")) => "cancelled",
            _ => "failed",
        };
        let carried = &document["metadata"]["x_crosspoint"];
        View {
            status: 200,
            state: state.to_owned(),
            outputs: document["response"].as_str().map_or(Value::Null, inner),
            code: said(&document["error_type"]),
            message: said(&document["error_message"]),
            repeat: said(&carried["details"]["repeat"]),
            details: carried["details"].clone(),
            id: said(&document["request_id"]).unwrap_or_default(),
            artifacts: names(&carried["artifacts"]),
            document: document.clone(),
        }
    }

    /// A failure of the work without a code is a result; every other one is an error.
    pub(super) fn message(answer: &Answer) -> View {
        View::told(answer.status, &message_caller::judged(&answer.body))
    }

    /// The same of a message that was sent later.
    pub(super) fn told(status: u16, document: &Value) -> View {
        let payload = &document["payload"];
        let code = payload["error_code"].as_i64();
        let state = match (document["type"].as_str(), payload["status"].as_str(), code) {
            (Some("work_result"), Some("success"), _) => "completed",
            (_, _, Some(5901)) => "cancelled",
            _ => "failed",
        };
        let carried = &document["x_custom_fields"]["x_crosspoint"]["details"];
        let details = if code.is_some() { &payload["error_context"] } else { carried };
        let words = if code.is_some() { &payload["error_message"] } else { &payload["output"] };
        let is_done = state == "completed";
        View {
            status,
            state: state.to_owned(),
            outputs: payload["output"].as_str().filter(|_| is_done).map_or(Value::Null, inner),
            code: code.map(|code| code.to_string()),
            message: said(words).filter(|_| !is_done),
            repeat: said(&details["repeat"]),
            details: details.clone(),
            id: said(&document["request_id"]).unwrap_or_default(),
            artifacts: names(&document["x_custom_fields"]["x_crosspoint"]["artifacts"]),
            document: document.clone(),
        }
    }

    pub(super) fn workflow(answer: &Answer) -> View {
        faultless(&answer.body, Kind::WorkflowOutput);
        let document = answer.json();
        let carried = &document["x_crosspoint"];
        let is_done = document["success"] == true;
        let code = (!is_done).then(|| said(&carried["failure"]).unwrap_or_else(|| "agent_failed".to_owned()));
        let state = match (is_done, code.as_deref()) {
            (true, _) => "completed",
            (false, Some("cancelled")) => "cancelled",
            (false, _) => "failed",
        };
        // A mere object is carried, and the summary says so in a sentence (ALL-8).
        let given = || carried.get("outputs").cloned().or_else(|| document["summary"].as_str().map(inner));
        let artifacts = document["artifacts"].as_array().into_iter().flatten();
        View {
            status: answer.status,
            state: state.to_owned(),
            outputs: Some(given).filter(|_| is_done).and_then(|given| given()).unwrap_or_default(),
            code,
            message: said(&document["summary"]).filter(|_| !is_done),
            repeat: said(&carried["details"]["repeat"]),
            details: carried["details"].clone(),
            // An envelope has none.
            id: String::new(),
            artifacts: artifacts.filter_map(|artifact| said(&artifact["path"])).collect(),
            document: document.clone(),
        }
    }

    /// What was carried beside the members of the door's contract.
    pub(super) fn carried(&self, door: Door) -> &Value {
        match door {
            Door::Native => &self.document["outcome"]["said"]["document"],
            Door::Sync | Door::Stream | Door::Workflow => &self.document["x_crosspoint"],
            Door::Task | Door::Bridge => &self.document["metadata"]["x_crosspoint"],
            Door::Message | Door::Callback => &self.document["x_custom_fields"]["x_crosspoint"],
        }
    }
}

/// BRIDGE-5: the text in a response is itself a document.
fn inner(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:.200}"))
}

fn said(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn names(artifacts: &Value) -> Vec<String> {
    artifacts.as_array().into_iter().flatten().filter_map(|artifact| said(&artifact["name"])).collect()
}
