//! Callers of the message contract: every document that they get is one of the contract, without a finding.

use std::net::SocketAddr;

use crosspoint_contracts::{Finding, Kind, Options, read};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::{Answer, Server};

/// Where messages are sent (MSG-14).
pub(crate) const MESSAGES: &str = "/api/agent/message";

/// The name of a caller that is told later, which has to be among the types of agents that the operator added.
pub(crate) const PLANNER: &str = "planner";

/// A work_request. Its ids differ from each other, and follow from the id of the request.
pub(crate) fn request(id: &str, work: &str, parameters: &Value) -> Value {
    json!({
        "protocol_version": "1.0", "message_id": derived(id, 1), "from_agent": "orchestrator", "to_agent": "infra",
        "timestamp": "2026-01-19T04:21:04Z", "trace_id": derived(id, 2), "request_id": id, "type": "work_request",
        "payload": {"task_id": derived(id, 3), "work_type": work, "parameters": parameters, "hints": {}},
        "x_custom_fields": {},
    })
}

/// The message that cancels the work of a request (MSG-19).
pub(crate) fn cancel(request: &Value) -> Value {
    let mut message = request.clone();
    message["message_id"] = json!(Uuid::new_v4().to_string());
    message["type"] = json!("error");
    message["payload"] = json!({
        "error_code": 5901, "error_message": "not needed any more",
        "error_context": {"task_id": request["payload"]["task_id"]},
    });
    message
}

/// Checks that an answer has no finding, warnings included, and returns it.
#[track_caller]
pub(crate) fn judged(text: &[u8]) -> Value {
    let message: Value = serde_json::from_slice(text).expect("a message is JSON");
    let mut found = faults(text);
    // MSG-9.7: on the connection of its request, a caller has a long text whole.
    found.retain(|finding| finding.clause.id != "MSG-9.6");
    assert!(found.is_empty(), "{found:?} in {message}");
    message
}

/// All findings of a message.
pub(crate) fn faults(text: &[u8]) -> Vec<Finding> {
    let message: Value = serde_json::from_slice(text).expect("a message is JSON");
    let options = Options { kind: Some(kind_of(&message)), agent_types: &[PLANNER], ..Options::default() };
    read(text, &options).report.findings
}

/// Which message it is, by its type.
#[track_caller]
pub(crate) fn kind_of(message: &Value) -> Kind {
    match message["type"].as_str() {
        Some("work_request") => Kind::WorkRequest,
        Some("work_status") => Kind::WorkStatus,
        Some("work_result") => Kind::WorkResult,
        Some("error") => Kind::MessageError,
        _ => panic!("it is of no type: {message}"),
    }
}

/// Checks that an answer is about its request: the same work in the same trace, and the other way (MSG-17.2, MSG-18.2).
#[track_caller]
pub(crate) fn answers(request: &Value, answer: &Value) {
    for name in ["request_id", "trace_id"] {
        assert_eq!(answer[name], request[name], "{name}: {answer}");
    }
    assert_eq!(answer["to_agent"], request["from_agent"], "{answer}");
    if request["to_agent"] != "orchestrator" {
        assert_eq!(answer["from_agent"], request["to_agent"], "{answer}");
    }
    if answer["type"] != "error" {
        assert_eq!(answer["payload"]["task_id"], request["payload"]["task_id"], "{answer}");
    }
    assert_ne!(answer["message_id"], request["message_id"], "it is a message of its own: {answer}");
}

/// Another id that follows from this one: the same with another version and another beginning.
fn derived(id: &str, number: u32) -> String {
    let known = id.parse::<Uuid>().map_or(0, |id| id.as_u128());
    Uuid::from_u128(known ^ (u128::from(number) << 96)).to_string()
}

impl Server {
    /// Sends a request, and returns the answer, which is about it.
    #[track_caller]
    pub(crate) fn send_message(&self, query: &str, request: &Value) -> Answer {
        let answer = self.post(&format!("{MESSAGES}{query}"), &request.to_string());
        answers(request, &judged(&answer.body));
        answer
    }

    /// Sends a request, waits, and returns how the work ended.
    #[track_caller]
    pub(crate) fn message_result(&self, request: &Value) -> Value {
        let answer = self.send_message("?wait=60", request);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

/// The same for a thread that has no server, only its address. `None` if there is no whole answer.
pub(crate) fn sent_to(address: SocketAddr, message: &str) -> Option<Answer> {
    crate::support::server::exchange(address, "POST", MESSAGES, &[], message.as_bytes())
}
