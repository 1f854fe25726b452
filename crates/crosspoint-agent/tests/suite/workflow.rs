//! What handlers of workflows know and say.

use crosspoint_agent::{Agent, Context, Failure, Operation, Recommendation};
use serde_json::{Value, json};

use crate::support::{Served, scratch};

async fn review(input: Value, context: Context) -> Result<Value, Failure> {
    let workflow = context.workflow().ok_or_else(|| Failure::invalid("no workflow"))?;
    context.artifact("new.md", "text/markdown", "new")?;
    context.artifact_with("old.md", "text/markdown", Operation::Update, "changed")?;
    context.note("first")?;
    context.note("second")?;
    context.recommend(Recommendation::Proceed);
    context.recommend(Recommendation::Retry);
    if input["fails"] == true {
        return Err(Failure::new("it is not good").code("GAPS"));
    }
    Ok(json!({
        "name": workflow.name, "feature": workflow.feature_id, "iteration": workflow.iteration,
        "paths": workflow.paths, "notes": workflow.prior_context,
    }))
}

fn envelope(params: &Value) -> Value {
    json!({
        "context": {"feature_id": "F-1", "workflow": "release", "iteration": 3},
        "paths": {"spec": "spec.md", "tests": ["a.rs", "b.rs"]},
        "task": {"action": "review", "params": params}, "prior_context": ["before"],
    })
}

#[test]
fn a_function_speaks_the_whole_workflow_contract() {
    let served = Served::start(Agent::new("reviewer").on("review", review).forgetful());
    let output = |params: Value| served.post("/agents/reviewer/envelope", &envelope(&params).to_string()).json();
    let done = output(json!({}));
    let artifacts = json!([
        {"path": "new.md", "operation": "create", "content": "new"},
        {"path": "old.md", "operation": "update", "content": "changed"},
    ]);
    let said =
        |output: &Value| (output["artifacts"].clone(), output["notes"].clone(), output["recommendation"].clone());
    let wanted = (artifacts, json!(["first", "second"]), json!("retry"));
    assert_eq!((&done["success"], said(&done)), (&json!(true), wanted.clone()), "{done}");
    let known = json!({
        "name": "release", "feature": "F-1", "iteration": 3,
        "paths": {"spec": ["spec.md"], "tests": ["a.rs", "b.rs"]}, "notes": ["before"],
    });
    assert_eq!(done["x_crosspoint"]["outputs"], known, "{done}");

    let failed = output(json!({"fails": true}));
    assert_eq!((&failed["success"], said(&failed)), (&json!(false), wanted), "{failed}");
    assert_eq!(failed["summary"], "it is not good", "{failed}");
}

#[test]
fn a_caller_of_another_contract_is_carried_the_same_also_after_a_restart() {
    let path = scratch("workflow");
    let run = json!({
        "request_id": "1", "task_type": "review", "inputs": {},
        "x_crosspoint": {"from": "workflow.input", "workflow": "release", "iteration": 3, "feature": null},
    });
    let mut answers = Vec::new();
    for _ in 0..2 {
        let served = Served::start(Agent::new("reviewer").on("review", review).answers(&path));
        answers.push(served.post("/agents/run/sync", &run.to_string()).json());
        served.stop();
    }
    let carried = &answers[0]["x_crosspoint"];
    assert_eq!((&carried["notes"], &carried["recommendation"]), (&json!(["first", "second"]), &json!("retry")));
    assert!(carried["artifacts"].to_string().contains("update"), "{carried}");
    assert_eq!((&answers[0]["outputs"]["name"], &answers[0]["outputs"]["feature"]), (&json!("release"), &Value::Null));
    assert_eq!(answers[0], answers[1]);
}
