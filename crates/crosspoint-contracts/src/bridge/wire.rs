//! What the two files hold.

use schemars::{JsonSchema, Schema};
use serde_json::json;

use crate::content::{Extra, Nullable, RawObject, Text, id};
use crate::fields::words;
use crate::timestamp::{self, Timestamp};

id!(
    /// The requester's id for one request, preferably a UUID.
    RequestId { "type": "string" }
);

/// `.agent-request.json`: what a program asks of an agent.
#[derive(Debug, JsonSchema)]
#[schemars(title = "bridge.request")]
pub struct Request<'s> {
    /// The response must carry the same.
    pub request_id: RequestId<'s>,
    /// The protocol's version; only "1.0" is spoken.
    #[schemars(extend("const" = "1.0"))]
    pub version: Text<'s>,
    /// Which agent or work is wanted.
    pub agent_name: Text<'s>,
    /// What the agent is told.
    pub prompt: Text<'s>,
    /// Phase of the requester's own run, 1 to 9.
    #[schemars(range(min = 1, max = 9))]
    pub phase: Option<i64>,
    /// What the requester calls the phase.
    pub phase_name: Option<Text<'s>>,
    /// How long the requester is ready to wait; 120 where it is left out.
    #[schemars(range(min = 0))]
    pub timeout_seconds: Option<f64>,
    /// When the request was written.
    #[schemars(extend("pattern" = timestamp::WITH_OFFSET_PATTERN))]
    pub created_at: Option<Timestamp<'s>>,
    /// Structured input beside the prompt.
    pub context: Option<RawObject<'s>>,
    /// The model the requester would like.
    pub model: Option<Nullable<Text<'s>>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// How an agent's work ended.
    Status {
        /// `response` holds the output.
        Success = "success",
        /// It failed; `error_type` says how.
        Error = "error",
        /// It took too long.
        Timeout = "timeout",
    }
);

/// `.agent-response.json`: what an agent answered.
#[derive(Debug, JsonSchema)]
#[schemars(title = "bridge.response", transform = status_rules)]
pub struct Response<'s> {
    /// The request's.
    pub request_id: RequestId<'s>,
    /// The protocol's version; only "1.0" is spoken.
    #[schemars(extend("const" = "1.0"))]
    pub version: Text<'s>,
    /// How it ended.
    pub status: Status,
    /// The agent's output as text, often JSON-encoded; null unless it succeeded.
    pub response: Nullable<Text<'s>>,
    /// What went wrong; null on success.
    pub error_message: Nullable<Text<'s>>,
    /// Which sort of error; null on success.
    pub error_type: Nullable<Text<'s>>,
    /// When the response was written.
    #[schemars(extend("pattern" = timestamp::WITH_OFFSET_PATTERN))]
    pub created_at: Timestamp<'s>,
    /// How long the agent took.
    #[schemars(range(min = 0))]
    pub duration_seconds: f64,
    /// Further facts; an open object.
    pub metadata: RawObject<'s>,
    /// Members the contract does not know; existing readers refuse them.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// BRIDGE-3.2 and BRIDGE-3.3 as conditions of JSON Schema.
fn status_rules(schema: &mut Schema) {
    let given = |status: &[&str]| json!({ "properties": { "status": { "enum": status } }, "required": ["status"] });
    let nothing = json!({ "type": "null" });
    let reason = json!({ "type": "string", "minLength": 1 });
    schema.insert(
        "allOf".to_owned(),
        json!([
            {
                "if": given(&["success"]),
                "then": { "properties": { "response": { "type": "string" }, "error_message": nothing, "error_type": nothing } }
            },
            {
                "if": given(&["error", "timeout"]),
                "then": { "properties": { "response": nothing, "error_message": reason, "error_type": reason } }
            }
        ]),
    );
}
