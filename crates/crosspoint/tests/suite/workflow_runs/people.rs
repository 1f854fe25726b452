//! What a person is asked, and what an answer does.

use serde_json::{Value, json};

use crate::support::programs::nothing_runs_for;
use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, noted, said, stage, workflow};

fn prompt(job: &Value) -> String {
    job["question"]["prompt"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned()
}

/// Escalates once, then proceeds.
fn escalating(place: &Place) -> Server {
    let blocked = noted("Which provider?", "escalate", &["tried two", "none fits"]);
    place.replies("judge", &[blocked, said("Fine.", "proceed")]);
    place.replies("writer", &[said("Wrote.", "proceed")]);
    place.server(&[place.configured("judge", ""), place.configured("writer", "")])
}

/// WF-7.3, WF-7.4: summary and notes are shown; the answer is in the parameters and once in the notes.
#[test]
fn an_escalation_waits_and_the_answer_reaches_the_stage() {
    let place = Place::new();
    let server = escalating(&place);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "params = { a = 1 }")]), &place.repo());
    let waiting = server.in_state(&id, "waiting");
    assert_eq!(prompt(&waiting), "Which provider?\n- tried two\n- none fits", "{waiting}");
    server.answer_run(&id, &json!("GitHub"));
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    let second = &place.seen("judge")[1];
    let answers = json!([{"question": "Which provider?", "answer": "GitHub"}]);
    assert_eq!(second["task"]["params"], json!({"a": 1, "answers": answers}));
    let told = json!(["tried two", "none fits", "Question: Which provider? Answer: GitHub"]);
    assert_eq!(second["prior_context"], told);
    assert_eq!(second["context"]["iteration"], 1, "an answer is no retry");
}

#[test]
fn an_answer_may_be_for_another_stage_and_any_json() {
    let place = Place::new();
    let server = escalating(&place);
    let stages = [stage("write", "writer", ""), stage("judge", "judge", "escalate = { then = \"write\" }")];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    server.in_state(&id, "waiting");
    server.answer_run(&id, &json!({"provider": "GitHub", "scopes": ["user"]}));
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    let answers = &place.seen("writer")[1]["task"]["params"]["answers"];
    assert_eq!(answers[0]["answer"], json!({"provider": "GitHub", "scopes": ["user"]}), "{answers}");
    assert!(place.seen("judge")[1]["task"]["params"].get("answers").is_none(), "it was for another stage");
}

/// WF-7.2: after the limit, retry counts as escalate; an answer starts the count anew.
#[test]
fn when_the_retries_are_used_up_a_person_is_asked() {
    let place = Place::new();
    place.replies("judge", &[noted("Still two gaps.", "retry", &["gap"])]);
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "retry = { limit = 2 }")]), &place.repo());
    let waiting = server.in_state(&id, "waiting");
    let asked =
        "Still two gaps.\n- gap\n(The stage judge has used up its retries, 2. An answer starts the count anew.)";
    assert_eq!(prompt(&waiting), asked, "{waiting}");
    assert_eq!(place.seen("judge").len(), 3);
    server.answer_run(&id, &json!("leave them"));
    until("it has run again", || (place.seen("judge").len() == 6).then_some(()));
    server.in_state(&id, "waiting");
    let iterations: Vec<Value> = place.seen("judge").iter().map(|seen| seen["context"]["iteration"].clone()).collect();
    assert_eq!(iterations, [1, 2, 3, 3, 4, 5].map(|iteration| json!(iteration)));
    server.cancel(&id);
}

/// `success: false` with `proceed` contradicts itself, and reads as `escalate` (WF-3).
#[test]
fn a_failure_that_proceeds_is_an_escalation() {
    let place = Place::new();
    let contradiction = json!({"success": false, "summary": "No.", "artifacts": [], "recommendation": "proceed"});
    place.replies("judge", &[contradiction, said("Yes.", "proceed")]);
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    assert_eq!(prompt(&server.in_state(&id, "waiting")), "No.");
    server.answer_run(&id, &json!("go on"));
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
}

/// An agent that says in an envelope that it failed has done its part: the run follows what it recommends.
#[test]
fn a_failure_in_an_envelope_is_followed_and_not_parked() {
    let place = Place::new();
    let busy = json!({"success": false, "summary": "Busy.", "artifacts": [], "recommendation": "retry"});
    place.replies("judge", &[busy, said("Yes.", "proceed")]);
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    assert_eq!(server.ended(&id)["outcome"]["outputs"]["iterations"], 2);
    // A stage that has failed parks its run, and this one did not.
    let stages = server.stages_of(&id);
    let statuses: Vec<&Value> = stages.iter().map(|stage| &stage["outcome"]["status"]).collect();
    assert_eq!(statuses, ["completed", "completed"]);
    assert_eq!(stages[0]["outcome"]["outputs"], "Busy.", "{}", stages[0]);
    let said = &server.steps_of(&id)[0]["done"]["happened"]["said"];
    assert_eq!((&said["success"], &said["recommendation"]), (&json!(false), &json!("retry")), "{said}");
}

#[test]
fn a_failed_stage_parks_the_run_and_an_answer_lets_it_run_again() {
    let place = Place::new();
    place.prints("judge", b"no envelope");
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    let waiting = server.in_state(&id, "waiting");
    assert!(prompt(&waiting).starts_with("The stage judge (agent judge, action do) failed: broken_contract"));
    place.replies("judge", &[said("Fine.", "proceed")]);
    server.answer_run(&id, &json!("mended"));
    let run = server.ended(&id);
    assert_eq!((&run["outcome"]["status"], &run["outcome"]["outputs"]["stages"]), (&json!("completed"), &json!(2)));
    // The answer was for the runner, not for the agent.
    let [first, second] = &place.seen("judge")[..] else { panic!("not two runs") };
    assert_eq!(first, second);
    let stages: Vec<Value> = server.stages_of(&id).iter().map(|job| job["state"].clone()).collect();
    assert_eq!(stages, [json!("failed"), json!("completed")]);
}

#[test]
fn cancelling_a_run_cancels_its_stage() {
    let place = Place::new();
    let server = place.server(&[place.configured_script("hangs", "cat > /dev/null; exec sleep 600", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "hangs", "")]), &place.repo());
    let stage = until("the stage runs", || server.stages_of(&id).into_iter().find(|job| job["state"] == "running"));
    let stage = stage["id"].as_str().expect("an id");
    server.cancel(&id);
    assert_eq!(server.ended(stage)["state"], "cancelled");
    nothing_runs_for(stage);
    assert_eq!(server.job(&id)["state"], "cancelled");
}

#[test]
fn a_run_that_waits_can_be_cancelled() {
    let place = Place::new();
    let server = escalating(&place);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.in_state(&id, "waiting");
    server.cancel(&id);
    assert_eq!(place.seen("judge").len(), 1);
}

/// A run that waits is taken up with its question, and an answer while the server stops is not lost.
#[test]
fn a_question_survives_the_server() {
    let place = Place::new();
    let mut server = escalating(&place);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    let before = prompt(&server.in_state(&id, "waiting"));
    server.kill();
    server.restart();
    assert_eq!(prompt(&server.in_state(&id, "waiting")), before);
    server.answer_run(&id, &json!("GitHub"));
    server.kill();
    server.restart();
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    assert_eq!(place.seen("judge").len(), 2);
}

/// A server that is stopped takes its runs up at the next start. Runs do not keep it from stopping.
#[test]
fn a_server_that_stops_in_the_middle_of_a_stage_takes_the_run_up() {
    let place = Place::new();
    let script = r#"cat > /dev/null; echo began >> "$PLACE/ledger"; [ -e "$PLACE/go" ] || exec sleep 600
        echo '{"success":true,"summary":"Done.","artifacts":[],"recommendation":"proceed"}'"#;
    let configuration = place.configuration(&[place.configured_script("slow", script, "grace_seconds = 1")]);
    let mut server = Server::configured(&format!("[server]\ndrain_seconds = 1\n{configuration}"));
    let id = server.run_workflow(&workflow(&[stage("slow", "slow", "")]), &place.repo());
    until("the stage runs", || place.file("agents/ledger").exists().then_some(()));
    assert!(server.stop().success());
    place.write("agents/go", "");
    server.restart();
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    assert_eq!(server.stages_of(&id).len(), 1, "it is the same stage");
    let ledger = std::fs::read_to_string(place.file("agents/ledger")).expect("it is there");
    assert_eq!(ledger.lines().count(), 2, "the program began again: {ledger}");
}
