//! Errors that we send to an agent about its work: that it is cancelled (MSG-19), or what is wrong with a reply.

use serde_json::{Value, json};
use uuid::Uuid;

use super::code;
use super::version::Picked;

/// An error to an agent.
#[derive(Clone, Debug)]
pub struct Notice<'n> {
    /// The version that the agent speaks.
    pub version: Picked<'n>,
    /// The id of this message.
    pub message_id: Uuid,
    /// The agent's type.
    pub to_agent: &'n str,
    /// When it is sent, in RFC 3339 with `Z`.
    pub timestamp: &'n str,
    /// The trace of the work, hyphenated.
    pub trace_id: Uuid,
    /// The id that the agent knows the work by, as request and as task (ALL-2).
    pub work: Uuid,
}

impl Notice<'_> {
    /// Says that the agent is to stop: the work was cancelled, or given up. The agent need not answer.
    pub fn cancelled(&self) -> String {
        self.error(code::CANCELLED, "The work is no longer wanted.", [])
    }

    /// Says that a reply cannot be used: its chunks do not fit together, or it breaks the contract.
    pub fn invalid(&self, why: &str, field_name: Option<&str>) -> String {
        let context = [("validation_error", json!(why)), ("field_name", json!(field_name))];
        self.error(code::INVALID_MESSAGE, why, context)
    }

    /// Says that a reply is longer than its limit.
    pub fn over_limit(&self, why: &str, limit_name: &str, available: u64, required: u64) -> String {
        let context =
            [("limit_name", json!(limit_name)), ("available", json!(available)), ("required", json!(required))];
        self.error(code::RESOURCE_LIMIT, why, context)
    }

    fn error<const N: usize>(&self, error_code: i64, message: &str, context: [(&str, Value); N]) -> String {
        let work = self.work.to_string();
        let context = context.into_iter().chain([("task_id", json!(work))]);
        let context: serde_json::Map<String, Value> = context.map(|(name, value)| (name.to_owned(), value)).collect();
        let message = json!({
            "protocol_version": self.version.get(),
            "message_id": self.message_id.to_string(),
            "from_agent": "orchestrator",
            "to_agent": self.to_agent,
            "timestamp": self.timestamp,
            "trace_id": self.trace_id.to_string(),
            "request_id": work,
            "type": "error",
            "payload": { "error_code": error_code, "error_message": message, "error_context": context },
            "x_custom_fields": {},
        });
        message.to_string()
    }
}
