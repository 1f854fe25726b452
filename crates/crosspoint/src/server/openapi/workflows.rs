//! Runs of workflows: their operations.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use schemars::JsonSchema;
use serde_json::json;

use super::operation::{Operation, STATE, TRACE};
use super::shape::Job;
use super::table::{WORKFLOWS, id, key};

const KEY: &str = "What makes a repeat the same run, in place of `request_id`.";

pub(super) fn operations() -> Vec<Operation> {
    let location = json!({ "Location": { "description": "The path of the job.", "schema": { "type": "string" } } });
    let example = json!({
        "definition": "name = \"hello\"\n[[stage]]\nid = \"greet\"\nagent = \"echo\"\naction = \"echo\"\n",
        "root": "/srv/repository",
        "feature": "005-user-auth",
    });
    vec![
        Operation::post("/api/v1/workflows", "start_workflow", WORKFLOWS, "Start a run of a workflow")
            .describe("A run is a job, and its stages are jobs of their own, whose `origin` names the run. When it is answered, the run is on disk. Its events of kind `step` say what each stage said and what was decided; where a person is asked, it waits like any other job.")
            .header("Idempotency-Key", KEY, &key())
            .header("traceparent", TRACE, &json!({ "type": "string" }))
            .header("tracestate", STATE, &json!({ "type": "string" }))
            .body::<NewWorkflow>("The workflow, and where it works.", example)
            .answers_with::<Job>(202, "The run is on disk, and goes on.", location)
            .refuses(&[400, 409, 429]),
        Operation::get("/api/v1/workflows/{id}/diff", "show_diff", WORKFLOWS, "Show what a run changed")
            .path("id", "The id of the run's job.", &id())
            .answers_text("text/x-diff", "A unified diff of all files that the run has written so far.")
            .refuses(&[400, 404]),
    ]
}

/// A run of a workflow.
#[derive(JsonSchema)]
struct NewWorkflow {
    /// The text of the workflow file, which is TOML.
    definition: String,
    /// The repository: an absolute path on the server's machine, below one of `[workflow] roots`.
    root: String,
    /// The feature that it works on, if it is known at the start.
    feature: Option<String>,
    /// Whether it works in a copy of the repository.
    dry_run: Option<bool>,
    /// Your own id of the run. Sent again with the same id, it is the same run.
    request_id: Option<String>,
}
