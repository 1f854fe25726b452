//! Requesters at the bridge door: every answer they get is judged by the contract's own validator.

use crosspoint_contracts::Kind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::documents::faultless;
use crate::support::server::{Answer, Server};

pub(crate) const BRIDGE: &str = "/api/v1/bridge";

/// An id of the form that the contract asks for.
pub(crate) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// A request with only the required members.
pub(crate) fn request(id: &str, agent_name: &str, prompt: &str) -> Value {
    json!({"request_id": id, "version": "1.0", "agent_name": agent_name, "prompt": prompt})
}

/// A request that carries this object as its input.
pub(crate) fn carrying(id: &str, agent_name: &str, input: &Value) -> Value {
    let mut request = request(id, agent_name, &input.to_string());
    request["context"] = json!({"x_crosspoint": {"from": "run.request", "form": {"input": "json"}}});
    request
}

/// A response without findings or looseness, with nothing but the nine members.
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
