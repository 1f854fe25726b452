//! What the two envelopes hold.

use schemars::{JsonSchema, Schema, json_schema};
use serde_json::json;

use super::path;
use crate::content::{Extra, Nullable, RawObject, Text, id, inline_schema};
use crate::fields::words;

id!(
    /// The feature a workflow works on.
    hidden FeatureId { "type": "string" }
);

/// What an agent is given.
#[derive(Debug, JsonSchema)]
#[schemars(title = "workflow.input")]
pub struct Input<'s> {
    /// Where in which workflow this is.
    pub context: Context<'s>,
    /// All file paths the agent may need, by name.
    pub paths: Paths<'s>,
    /// What the agent should do.
    pub task: Task<'s>,
    /// Notes from the agent before, without its name.
    pub prior_context: Option<Vec<Text<'s>>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Identity and position within a workflow.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Context<'s> {
    /// The feature worked on; null while it is being scaffolded.
    pub feature_id: Nullable<FeatureId<'s>>,
    /// The workflow's name.
    pub workflow: Text<'s>,
    /// How many times round, from 1.
    #[schemars(range(min = 1))]
    pub iteration: i64,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Names and the path or paths they stand for, as they were written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths<'s>(pub RawObject<'s>);

inline_schema!(Paths<'_>, {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
    }
});

/// What to do.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Task<'s> {
    /// The verb: validate, create, classify_gaps.
    pub action: Text<'s>,
    /// What the action needs; an open object.
    pub params: RawObject<'s>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// What should happen next.
    Recommendation {
        /// Go on.
        Proceed = "proceed",
        /// Try again.
        Retry = "retry",
        /// Ask a person.
        Escalate = "escalate",
    }
);

/// What an agent gives back.
#[derive(Debug, JsonSchema)]
#[schemars(title = "workflow.output", transform = recommendation_rule)]
pub struct Output<'s> {
    /// Whether the agent completed its task.
    pub success: bool,
    /// What happened, errors included.
    #[schemars(length(min = 1))]
    pub summary: Text<'s>,
    /// Files to write.
    pub artifacts: Vec<Artifact<'s>>,
    /// Context for the next agent.
    pub notes: Option<Vec<Text<'s>>>,
    /// What should happen next.
    pub recommendation: Recommendation,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// What is done to the file.
    Operation {
        /// It must not exist yet.
        Create = "create",
        /// It must exist.
        Update = "update",
    }
);

/// One file to write.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Artifact<'s> {
    /// From the repository's root.
    #[schemars(schema_with = "path_schema")]
    pub path: Text<'s>,
    /// Whether the file is new.
    pub operation: Operation,
    /// The complete file.
    pub content: Text<'s>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

fn path_schema(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "allOf": path::PATTERNS.map(|pattern| json!({ "pattern": pattern })) })
}

/// WF-3.2 as a condition of JSON Schema.
fn recommendation_rule(schema: &mut Schema) {
    schema.insert("if".to_owned(), json!({ "properties": { "success": { "const": false } }, "required": ["success"] }));
    schema.insert("then".to_owned(), json!({ "properties": { "recommendation": { "not": { "const": "proceed" } } } }));
}
