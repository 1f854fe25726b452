//! Envelopes of the workflow contract, and agents that answer with them.

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use super::documents::faultless;
use super::program::root;
use super::server::{Answer, Server};

/// An input envelope for this action.
pub(crate) fn envelope(action: &str, params: &Value) -> String {
    json!({
        "context": {"feature_id": "005-user-auth", "workflow": "specify", "iteration": 1},
        "paths": {"spec": "specs/005-user-auth/spec.md"},
        "task": {"action": action, "params": params},
    })
    .to_string()
}

/// An output envelope without artifacts.
pub(crate) fn output(success: bool, summary: &str, recommendation: &str) -> Value {
    json!({"success": success, "summary": summary, "artifacts": [], "recommendation": recommendation})
}

/// A document of the corpus, as it is kept.
pub(crate) fn kept(name: &str) -> String {
    std::fs::read_to_string(root().join("testdata/workflow").join(name)).expect("it is there")
}

/// An agent that is a script of bash and speaks the contract, with further keys.
pub(crate) fn program(name: &str, script: &str, keys: &str) -> String {
    let argv = json!(["bash", "-c", script]);
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"workflow\"\nexec = {argv}\n{keys}\n")
}

impl Server {
    /// Gives an envelope to an agent. The answer has no fault.
    pub(crate) fn give(&self, agent: &str, envelope: &str) -> Answer {
        let answer = self.post(&format!("/agents/{agent}/envelope"), envelope);
        faultless(&answer.body, Kind::WorkflowOutput);
        answer
    }

    /// The job of an answer.
    pub(crate) fn job_of(&self, answer: &Answer) -> Value {
        self.get(answer.header("location").expect("it says where the job is")).json()
    }
}
