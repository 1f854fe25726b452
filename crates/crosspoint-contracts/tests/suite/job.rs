//! What a job reports about itself, independent of the contract it came from.

use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::job::{Canonical, Event, Home, Input, Outcome, RequestKey, State};
use crosspoint_contracts::{Contract, Kind};
use serde_json::json;

use crate::corpus;
use crate::translation::{job, lawful, to};

fn of(kind: Kind, document: &serde_json::Value) -> Canonical<'static> {
    job(kind, document.to_string().as_bytes()).into_owned()
}

fn run_request(request_id: &str, work: &str, stage: Option<&str>) -> Canonical<'static> {
    let mut request = json!({"request_id": request_id, "task_type": work, "inputs": {"a": 1}});
    if let Some(stage) = stage {
        request["stage_id"] = json!(stage);
    }
    of(Kind::RunRequest, &request)
}

/// ALL-1: one trace id of a run may cover several stages; the other contracts have one id; workflow has none.
#[test]
fn request_keys_are_those_of_the_contract() {
    let key = |request_id, work, stage| run_request(request_id, work, stage).request_key().expect("runs have keys");
    assert_eq!(key("r", "w", Some("s")), key("r", "w", Some("s")));
    assert_ne!(key("r", "w", Some("s")), key("r", "w", None));
    assert_ne!(key("r", "w", None), key("r", "x", None));
    assert_ne!(key("r", "w", None), key("q", "w", None));
    let task = |id: &str, work: &str| {
        of(Kind::TaskRequest, &json!({"id": id, "type": work, "payload": {}})).request_key().expect("tasks have keys")
    };
    assert_eq!(task("t", "w"), task("t", "x"));
    assert_ne!(task("t", "w"), task("u", "w"));
    let envelope = json!({"context": {"feature_id": null, "workflow": "w", "iteration": 1}, "paths": {},
        "task": {"action": "a", "params": {}}});
    assert_eq!(of(Kind::WorkflowInput, &envelope).request_key(), None::<RequestKey>);
}

#[test]
fn keys_do_not_print_themselves() {
    let key = run_request("Mustermann", "w", Some("ward 7")).request_key().expect("runs have keys");
    assert_eq!(format!("{key:?}"), "RequestKey[17 bytes]");
}

/// The key of a caller is the same when its request is read from a translation of it.
#[test]
fn keys_survive_translation() {
    for case in lawful() {
        let job = job(case.kind(), &case.bytes);
        for contract in Contract::ALL {
            let there = to(contract, &case.bytes).expect("requests and results go everywhere");
            let again = crate::translation::job(there.kind, there.text().as_bytes());
            assert_eq!(again.request_key(), job.request_key(), "{} in {}", case.path.display(), contract.name());
        }
    }
}

#[test]
fn input_is_an_object_a_prompt_or_nothing() {
    let request = run_request("r", "w", None);
    assert!(matches!(request.input(), Input::Object(object) if object.get() == r#"{"a":1}"#));
    assert_eq!(request.work().as_deref(), Some("w"));
    assert!(matches!(request.event(), Event::Requested));
    let asked = json!({"request_id": "r", "version": "1.0", "agent_name": "a", "prompt": "p", "context": {"c": 1}});
    let asked = of(Kind::BridgeRequest, &asked);
    assert!(matches!(asked.input(), Input::Prompt(prompt, Some(context))
        if prompt.get() == "\"p\"" && context.get() == r#"{"c":1}"#));
    let bare = of(Kind::RunRequest, &json!({"request_id": "r", "task_type": "t"}));
    assert!(matches!(bare.input(), Input::None));
}

#[test]
fn documents_are_events_of_a_job() {
    let queued = of(Kind::TaskResponse, &json!({"id": "t", "status": "pending"}));
    assert!(matches!(queued.event(), Event::Queued));
    let asks = json!({"id": "t", "status": "input_required", "inputRequest": {"prompt": "Which?"}});
    assert!(matches!(of(Kind::TaskResponse, &asks).event(), Event::Waiting { question: Some(_) }));
    let status = corpus::golden().into_iter().find(|case| case.stem() == "work_status-printed").expect("it is golden");
    let progress = job(Kind::WorkStatus, &status.bytes);
    assert!(matches!(progress.event(), Event::Progress { percent: Some(percent), step: Some(_), output: Some(_) }
        if percent.get() == "50"));
    let done = of(Kind::TaskResponse, &json!({"id": "t", "status": "completed", "result": {"a": 1}}));
    assert!(matches!(done.event(), Event::Ended(Outcome::Completed { outputs: Some(_), text: None })));
    let cancelled = of(Kind::TaskResponse, &json!({"id": "t", "status": "cancelled"}));
    assert!(matches!(cancelled.event(), Event::Ended(Outcome::Cancelled)));
    let failed = json!({"id": "t", "status": "failed",
        "error": {"code": "MCP_ERROR", "message": "m", "recoverable": false, "details": {}}});
    let failed = of(Kind::TaskResponse, &failed);
    assert!(
        matches!(failed.event(), Event::Ended(Outcome::Failed { failure: Failure::AgentFailed, code: Some(code), .. })
        if code.get() == "\"MCP_ERROR\"")
    );
}

/// An outcome may be both an object and a text. Contracts of text show the text, contracts of objects show the object,
/// and neither loses the other.
#[test]
fn an_outcome_may_be_both() {
    let both = json!({"success": true, "summary": "Two papers.", "artifacts": [], "recommendation": "proceed",
        "x_crosspoint": {"from": "run.response", "request_id": "r", "outputs": {"papers": 2}}});
    let both = of(Kind::WorkflowOutput, &both);
    assert!(matches!(both.event(), Event::Ended(Outcome::Completed { outputs: Some(_), text: Some(_) })));
    assert_eq!(both.state(), Some(State::Completed));
    for (contract, shown, carried) in [
        (Contract::Bridge, "\"response\":\"Two papers.\"", "\"outputs\":{\"papers\":2}"),
        (Contract::Task, "\"result\":{\"papers\":2}", "\"text\":\"Two papers.\""),
    ] {
        let fresh = crate::translation::fresh();
        let written = crosspoint_contracts::translate::write(&both, contract, &fresh).expect("it goes everywhere");
        assert!(written.text().contains(shown) && written.text().contains(carried), "{}", written.text());
        let again = job(written.kind, written.text().as_bytes());
        assert_eq!(again.get(Home::Outputs), both.get(Home::Outputs));
        assert_eq!(again.get(Home::Text), both.get(Home::Text));
    }
}

/// The debug output of a job shows only sizes of content.
#[test]
fn jobs_do_not_print_themselves() {
    let secret = json!({"request_id": "r", "task_type": "t", "inputs": {"name": "Mustermann"}, "user_id": "Mustermann",
        "ward": "Mustermann"});
    let job = of(Kind::RunRequest, &secret);
    assert!(!format!("{job:?}").contains("Mustermann"));
    assert!(!format!("{:?}", job.own).contains("Mustermann"));
}
