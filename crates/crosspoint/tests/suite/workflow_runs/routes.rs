//! Where a run goes, and what its agents are given on the way.

use serde_json::{Value, json};

use crate::support::documents::faultless;
use crate::support::workflow_place::{Place, noted, said, stage, workflow, wrote};
use crosspoint_contracts::Kind;

/// Checks that these are envelopes, and returns one member of each.
fn each(envelopes: &[Value], pointer: &str) -> Vec<Value> {
    for envelope in envelopes {
        faultless(envelope.to_string().as_bytes(), Kind::WorkflowInput);
    }
    envelopes.iter().map(|envelope| envelope.pointer(pointer).cloned().unwrap_or(json!("missing"))).collect()
}

#[test]
fn stages_run_in_their_order_and_hand_on_their_notes_without_names() {
    let place = Place::new();
    for (agent, note) in [("one", "first"), ("two", "second"), ("three", "third")] {
        place.replies(agent, &[noted(&format!("Did {note}."), "proceed", &[note, "and more"])]);
    }
    let agents: Vec<String> = ["one", "two", "three"].map(|name| place.configured(name, "")).to_vec();
    let server = place.server(&agents);
    let params = "params = { depth = 2, of = [\"a\"] }";
    let stages = [stage("a", "one", params), stage("b", "two", ""), stage("c", "three", "")];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    let run = server.ended(&id);
    assert_eq!((&run["outcome"]["status"], &run["work"]), (&json!("completed"), &json!("workflow-run")), "{run}");
    let outputs = &run["outcome"]["outputs"];
    assert_eq!((&outputs["workflow"], &outputs["summary"]), (&json!("specify"), &json!("Did third.")), "{run}");
    assert_eq!((&outputs["stages"], &outputs["iterations"]), (&json!(3), &json!(1)), "{run}");
    let seen = |agent: &str| place.seen(agent);
    let first = json!({
        "context": {"feature_id": null, "workflow": "specify", "iteration": 1},
        "paths": {},
        "task": {"action": "do", "params": {"depth": 2, "of": ["a"]}},
    });
    assert_eq!(seen("one"), [first]);
    assert_eq!(each(&seen("two"), "/prior_context"), [json!(["first", "and more"])]);
    assert_eq!(each(&seen("three"), "/prior_context"), [json!(["second", "and more"])]);
    assert_eq!(each(&seen("three"), "/task/params"), [json!({})]);
    let stages = server.stages_of(&id);
    let stage_of = |job: &Value| job["origin"]["stage"].clone();
    assert_eq!(stages.iter().map(stage_of).collect::<Vec<_>>(), [json!("a"), json!("b"), json!("c")]);
}

/// What each stage said and what was decided is in the run's events.
#[test]
fn the_events_of_a_run_say_what_each_stage_said_and_what_was_decided() {
    let place = Place::new();
    place.replies("writer", &[wrote(&[("a.md", "create", "a")])]);
    place.replies("judge", &[noted("Not good.", "retry", &["worse"]), said("Good.", "proceed")]);
    let server = place.server(&[place.configured("writer", ""), place.configured("judge", "")]);
    let stages = [stage("write", "writer", ""), stage("judge", "judge", "")];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    server.ended(&id);
    let steps = server.steps_of(&id);
    let done: Vec<&Value> = steps.iter().map(|step| step.get("done").unwrap_or(step)).collect();
    assert_eq!(done.len(), 3, "{steps:?}");
    let stages: Vec<&Value> = done.iter().map(|step| &step["stage"]).collect();
    assert_eq!(stages, [&json!("write"), &json!("judge"), &json!("judge")]);
    let iterations: Vec<&Value> = done.iter().map(|step| &step["iteration"]).collect();
    assert_eq!(iterations, [&json!(1), &json!(1), &json!(2)]);
    assert_eq!(done[0]["happened"]["said"]["artifacts"], json!([{"path": "a.md", "change": "created"}]));
    assert_eq!(done[1]["happened"]["said"]["notes"], json!(["worse"]));
    assert_eq!(done[1]["happened"]["said"]["recommendation"], "retry");
    assert_eq!(done[1]["decided"]["next"], "stage", "{}", done[1]);
    assert_eq!(done[2]["decided"]["next"], "done", "{}", done[2]);
    let jobs: Vec<Value> = server.stages_of(&id).iter().map(|job| job["id"].clone()).collect();
    let told: Vec<Value> = done.iter().map(|step| step["happened"]["said"]["job"].clone()).collect();
    assert_eq!(told, jobs, "each step names its job");
}

/// WF-7: a retry adds 1 to the iteration, seen by all stages from there on.
#[test]
fn a_retry_goes_where_its_route_says_and_counts_for_all_stages() {
    let place = Place::new();
    place.replies("writer", &[noted("Wrote.", "proceed", &["draft"])]);
    let again = noted("Two gaps.", "retry", &["gap one", "gap two"]);
    place.replies("judge", &[again.clone(), again, noted("Fine.", "proceed", &["fine"])]);
    place.replies("last", &[said("Shipped.", "proceed")]);
    let agents: Vec<String> = ["writer", "judge", "last"].map(|name| place.configured(name, "")).to_vec();
    let server = place.server(&agents);
    let stages = [
        stage("write", "writer", ""),
        stage("judge", "judge", "retry = { goto = \"write\", limit = 2 }"),
        stage("last", "last", ""),
    ];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["outputs"]["iterations"], 3, "{run}");
    let (writer, judge) = (place.seen("writer"), place.seen("judge"));
    assert_eq!(each(&writer, "/context/iteration"), [json!(1), json!(2), json!(3)]);
    assert_eq!(each(&judge, "/context/iteration"), [json!(1), json!(2), json!(3)]);
    assert_eq!(each(&place.seen("last"), "/context/iteration"), [json!(3)]);
    let gaps = json!(["gap one", "gap two"]);
    assert_eq!(each(&writer, "/prior_context"), [json!("missing"), gaps.clone(), gaps]);
    assert_eq!(each(&judge, "/prior_context"), vec![json!(["draft"]); 3]);
}

/// The definition decides, whatever the order of the file (WF-6.3).
#[test]
fn proceed_may_skip_stages_and_end_the_run() {
    let place = Place::new();
    for agent in ["one", "two", "three"] {
        place.replies(agent, &[said("Done.", "proceed")]);
    }
    let agents: Vec<String> = ["one", "two", "three"].map(|name| place.configured(name, "")).to_vec();
    let server = place.server(&agents);
    let stages = [
        stage("a", "one", "proceed = \"c\""),
        stage("b", "two", "proceed = \"done\""),
        stage("c", "three", "proceed = \"b\""),
    ];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    assert_eq!(server.ended(&id)["outcome"]["outputs"]["stages"], 3);
    let order: Vec<Value> = server.stages_of(&id).iter().map(|job| job["origin"]["stage"].clone()).collect();
    assert_eq!(order, [json!("a"), json!("c"), json!("b")]);
}

/// WF-10: paths of a feature are left out until it is known, and it is known from the first file at one of them.
#[test]
fn a_feature_is_taken_from_the_files_that_a_stage_writes() {
    let place = Place::new();
    place.replies("scaffold", &[wrote(&[("notes.md", "create", "n"), ("specs/007-search/spec.md", "create", "s")])]);
    place.replies("writer", &[said("Done.", "proceed")]);
    let server = place.server(&[place.configured("scaffold", ""), place.configured("writer", "")]);
    let paths = "[paths]\nroot = \"specs/{feature}/\"\nspec = \"specs/{feature}/spec.md\"\nmemory = \"memory.md\"\n";
    let stages = [stage("scaffold", "scaffold", ""), stage("write", "writer", "")].concat();
    let definition = format!("name = \"specify\"\n{paths}{stages}");
    let id = server.run_workflow(&definition, &place.repo());
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["outputs"]["feature_id"], "007-search", "{run}");
    assert_eq!(run["outcome"]["outputs"]["files"], json!(["notes.md", "specs/007-search/spec.md"]));
    let first = &place.seen("scaffold")[0];
    assert_eq!((&first["context"]["feature_id"], &first["paths"]), (&json!(null), &json!({"memory": "memory.md"})));
    let second = &place.seen("writer")[0];
    assert_eq!(second["context"]["feature_id"], "007-search");
    let filled = json!({"root": "specs/007-search/", "spec": "specs/007-search/spec.md", "memory": "memory.md"});
    assert_eq!(second["paths"], filled);
    // A run of a feature that is known from the start.
    let order = json!({"definition": definition, "root": place.repo(), "feature": "008-export"});
    place.replies("scaffold", &[wrote(&[("specs/009-other/spec.md", "create", "s")])]);
    let id = server.ordered(&order);
    assert_eq!(server.ended(&id)["outcome"]["outputs"]["feature_id"], "008-export");
    assert_eq!(place.seen("scaffold")[1]["paths"]["spec"], "specs/008-export/spec.md");
}

/// The same order again is the same run.
#[test]
fn a_run_that_is_asked_for_twice_runs_once() {
    let place = Place::new();
    place.replies("one", &[said("Done.", "proceed")]);
    let server = place.server(&[place.configured("one", "")]);
    let definition = workflow(&[stage("a", "one", "")]);
    let order = json!({"definition": definition, "root": place.repo(), "request_id": "r-1"});
    let id = server.ordered(&order);
    server.ended(&id);
    assert_eq!(server.order(&order).json()["id"], json!(id));
    let other = json!({"definition": definition, "root": place.repo(), "request_id": "r-1", "feature": "f"});
    assert_eq!(server.order(&other).status, 409);
    assert_eq!(place.seen("one").len(), 1);
}
