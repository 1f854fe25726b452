//! Requesters at the bridge door: whatever they are answered with is judged by the contract's own validator.

use crosspoint_contracts::Kind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::faultless::faultless;
use crate::live::{Answer, Server};

pub(crate) const BRIDGE: &str = "/api/v1/bridge";

/// An id as the contract wants one.
pub(crate) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// A request with nothing but what it must have.
pub(crate) fn request(id: &str, agent_name: &str, prompt: &str) -> Value {
    json!({"request_id": id, "version": "1.0", "agent_name": agent_name, "prompt": prompt})
}

/// A request whose input is this object, which was carried in it.
pub(crate) fn carrying(id: &str, agent_name: &str, input: &Value) -> Value {
    let mut request = request(id, agent_name, &input.to_string());
    request["context"] = json!({"x_crosspoint": {"from": "run.request", "form": {"input": "json"}}});
    request
}

/// A response, in which nothing is wrong or loose and nothing is there but the nine.
#[track_caller]
pub(crate) fn response(answer: &Answer) -> Value {
    faultless(&answer.body, Kind::BridgeResponse);
    let document = answer.json();
    assert_eq!(document.as_object().map(serde_json::Map::len), Some(9), "{document}");
    document
}

impl Server {
    /// Sends a request and waits for as long as it takes.
    pub(crate) fn ask(&self, request: &Value) -> Answer {
        self.post(&format!("{BRIDGE}?wait=60"), &request.to_string())
    }

    /// The response to a request.
    #[track_caller]
    pub(crate) fn response_to(&self, request: &Value) -> Value {
        let answer = self.ask(request);
        assert_eq!(answer.status, 200, "{answer:?}");
        let document = response(&answer);
        assert_eq!(document["request_id"], request["request_id"], "BRIDGE-4");
        document
    }

    /// The jobs that came in at the bridge door.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.get("/api/v1/jobs?door=bridge").json()["jobs"].as_array().cloned().unwrap_or_default()
    }
}
