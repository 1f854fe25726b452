//! What request, response and terminal event hold.

use schemars::{JsonSchema, Schema};
use serde_json::json;

use crate::content::{Extra, Raw, RawObject, Text, id};
use crate::fields::words;

id!(
    /// The caller's trace id: any non-empty string.
    RequestId { "type": "string", "minLength": 1 }
);

id!(
    /// The workflow a run belongs to.
    hidden WorkflowId { "type": "string" }
);
id!(
    /// The stage of a workflow.
    hidden StageId { "type": "string" }
);
id!(
    /// The person behind a run.
    hidden UserId { "type": "string" }
);
id!(
    /// The field it is about, for example clinical.
    hidden DomainId { "type": "string" }
);

/// What an agent is to run.
#[derive(Debug, JsonSchema)]
#[schemars(title = "run.request")]
pub struct Request<'s> {
    /// Echoed in the answer.
    pub request_id: RequestId<'s>,
    /// The kind of task.
    #[schemars(length(min = 1))]
    pub task_type: Text<'s>,
    /// The workflow it belongs to.
    pub workflow_id: Option<WorkflowId<'s>>,
    /// The stage of that workflow.
    pub stage_id: Option<StageId<'s>>,
    /// The person behind it.
    pub user_id: Option<UserId<'s>>,
    /// DEMO, LIVE; an agent that finds none takes it as DEMO.
    pub mode: Option<Text<'s>>,
    /// For example NON_SENSITIVE.
    pub risk_tier: Option<Text<'s>>,
    /// For example clinical.
    pub domain_id: Option<DomainId<'s>>,
    /// What the task needs; an open object.
    pub inputs: Option<RawObject<'s>>,
    /// Limits on time and tokens; an open object.
    #[schemars(extend("properties" = {
        "max_seconds": { "type": "number", "minimum": 0 }, "timeout_seconds": { "type": "number", "minimum": 0 },
        "timeout_ms": { "type": "number", "minimum": 0 }, "max_time_ms": { "type": "number", "minimum": 0 },
        "max_memory_mb": { "type": "number", "minimum": 0 }
    }))]
    pub budgets: Option<RawObject<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// How a run ended.
    Status {
        /// It worked.
        Ok = "ok",
        /// It worked.
        Success = "success",
        /// It did not.
        Error = "error",
        /// It worked after a fashion; read as a success, with a warning.
        Degraded = "degraded",
    }
);

/// What came of a run.
#[derive(Debug, Default, JsonSchema)]
#[schemars(title = "run.response", transform = looseness_rules)]
pub struct Response<'s> {
    /// The request's.
    pub request_id: RequestId<'s>,
    /// The canonical mark of success.
    pub status: Option<Status>,
    /// The accepted mark of success.
    pub ok: Option<bool>,
    /// Another accepted mark of success.
    pub success: Option<bool>,
    /// What came of it.
    pub outputs: Option<RawObject<'s>>,
    /// What came of it, under an accepted other name; only where there is no `outputs`.
    #[schemars(with = "Option<Raw>")]
    pub data: Option<RawObject<'s>>,
    /// Ids of what was produced.
    pub artifacts: Option<Vec<Text<'s>>>,
    /// Where it came from; an open object.
    pub provenance: Option<RawObject<'s>>,
    /// What it used; an open object.
    pub usage: Option<RawObject<'s>>,
    /// What the caller should know.
    pub warnings: Option<Vec<Raw<'s>>>,
    /// What it rests on. Null says that there is none.
    #[schemars(extend("nullable" = true))]
    pub grounding: Option<Grounding<'s>>,
    /// Why it failed. Null says that it did not.
    #[schemars(extend("nullable" = true))]
    pub error: Option<AgentError<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

impl Response<'_> {
    /// Whether the run worked: status error beats any other mark.
    pub fn succeeded(&self) -> bool {
        match self.status {
            Some(Status::Error) => false,
            Some(Status::Ok | Status::Success | Status::Degraded) => true,
            None => self.ok != Some(false) && self.success != Some(false),
        }
    }
}

/// The first event of a stream.
#[derive(Debug, Default)]
pub struct Started<'s> {
    /// The request's; it should be there.
    pub request_id: Option<RequestId<'s>>,
    /// The request's; it should be there.
    pub task_type: Option<Text<'s>>,
    /// Members the contract does not know.
    pub extra: Vec<Extra<'s>>,
}

/// How far a run is. The contract asks nothing of it.
#[derive(Debug, Default)]
pub struct Progress<'s> {
    /// 0 to 100, where it is a number.
    pub percent: Option<f64>,
    /// What is being done, where it is a string.
    pub step: Option<Text<'s>>,
    /// All of it, as it came.
    pub data: Raw<'s>,
}

/// The terminal event of a stream: a response that says what it is the answer to.
#[derive(Debug, Default)]
pub struct Terminal<'s> {
    /// The request's.
    pub task_type: Text<'s>,
    /// What came of it.
    pub response: Response<'s>,
}

impl Terminal<'_> {
    /// Whether all that a terminal event must have could be read (RUN-106 to RUN-109). What cannot be read is the
    /// placeholder of its type, and that of a name is empty, which no name may be.
    pub(super) fn is_complete(&self) -> bool {
        let response = &self.response;
        let named = !self.task_type.is_empty() && !response.request_id.0.is_empty();
        named && response.status.is_some() && (response.outputs.is_some() || response.data.is_some())
    }
}

/// RUN-103 and RUN-3.2 with the accepted other names.
fn looseness_rules(schema: &mut Schema) {
    let mark = json!({ "anyOf": [{ "required": ["status"] }, { "required": ["ok"] }, { "required": ["success"] }] });
    let outputs = json!({ "anyOf": [
        { "required": ["outputs"] },
        { "required": ["data"], "properties": { "data": { "type": "object" } } }
    ] });
    schema.insert("allOf".to_owned(), json!([mark, outputs]));
}

/// What an answer rests on. Its objects are open.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Grounding<'s> {
    /// Pieces of documents: chunk_id, doc_id, text, score, metadata.
    pub chunks: Option<Vec<RawObject<'s>>>,
    /// As they should be shown.
    pub citations: Option<Vec<Text<'s>>>,
    /// How they were found: stages, semantic_k, bm25_k, rerank_k.
    pub retrieval_trace: Option<RawObject<'s>>,
    /// Where they are from.
    pub sources: Option<Raw<'s>>,
    /// Which part of the answer rests on which.
    pub span_refs: Option<Raw<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Why a run failed.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct AgentError<'s> {
    /// For programs.
    pub code: Text<'s>,
    /// For people.
    pub message: Text<'s>,
    /// What helps to debug it.
    pub details: Option<Raw<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}
