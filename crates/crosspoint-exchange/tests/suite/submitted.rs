//! Requests of the message contract as they come in: what the engine is told of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::request::{Key, Priority};
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::incoming;
use serde_json::{Value, json};

use crate::made::{REQUEST, TASK, came, work_request};

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut request = work_request();
    change(&mut request);
    request
}

fn message(document: &Value) -> crosspoint_contracts::request::NewJob {
    came(Contract::Message, document, Headers::default())
}

/// MSG-6.2, ALL-4: the seconds are those of each attempt, and it is given up 30 s after them.
#[test]
fn seconds_limit_each_attempt() {
    for (hints, attempt) in [
        (json!({"max_duration_seconds": 600}), Some(630.0)),
        (json!({"max_duration_seconds": 0.5}), Some(30.5)),
        (json!({"max_duration_seconds": 0}), None),
        (json!({"max_duration_seconds": null}), None),
        (json!({"max_duration_seconds": 1e300}), None),
        (json!({}), None),
    ] {
        let new = message(&with(|request| request["payload"]["hints"] = hints.clone()));
        assert_eq!(new.limits.attempt, attempt.map(Duration::from_secs_f64), "{hints}");
        assert_eq!(new.limits.total, None, "{hints}");
    }
    let task = json!({"id": "t", "type": "w", "payload": {}, "x_crosspoint": {}, "constraints": {}});
    assert_eq!(came(Contract::Task, &task, Headers::default()).limits.attempt, None);
}

/// MSG-16: the later dialect has five degrees.
#[test]
fn the_priority_of_the_later_dialect_orders_the_queue() {
    for (given, priority) in
        [(1, Priority::Low), (2, Priority::Low), (3, Priority::Normal), (4, Priority::High), (5, Priority::Urgent)]
    {
        assert_eq!(message(&with(|request| request["priority"] = json!(given))).priority, priority, "{given}");
    }
    assert_eq!(message(&with(|request| request["priority"] = json!(9))).priority, Priority::Normal, "it is not used");
}

/// MSG-18: work is for the type in `to_agent`, unless that is whoever hands it on.
#[test]
fn a_request_is_addressed_to_a_type_and_pinned_to_no_agent() {
    let new = message(&work_request());
    assert_eq!((new.addressed.as_deref(), new.agent.as_deref()), (Some("infra"), None));
    assert_eq!((new.key, new.request_id.as_deref()), (Key::RequestId, Some(REQUEST)));
    let anyone = message(&with(|request| request["to_agent"] = json!("orchestrator")));
    assert_eq!((anyone.addressed, anyone.agent), (None, None));
}

/// A request that was translated names an agent among its carried facts. The type was made up for it.
#[test]
fn a_carried_target_is_the_name_of_an_agent() {
    let carried = json!({"x_crosspoint": {
        "from": "task.request", "target": "infra-7", "filled": {"message": {"/to_agent": "infra"}}
    }});
    let new = message(&with(|request| request["x_custom_fields"] = carried));
    assert_eq!((new.agent.as_deref(), new.addressed.as_deref()), (Some("infra-7"), None));
    let nobody = json!({"x_crosspoint": {"from": "run.request", "filled": {"message": {"/to_agent": "infra"}}}});
    let new = message(&with(|request| request["x_custom_fields"] = nobody));
    assert_eq!((new.agent, new.addressed), (None, None), "the type stands in for none");
    let echo: Value = serde_json::from_str(new.echo.as_deref().expect("an echo")).expect("JSON");
    assert_eq!(echo["recipient"], "infra", "and the answer comes from there all the same: {echo}");
}

#[test]
fn what_answers_repeat_is_kept_with_the_job() {
    let new = message(&work_request());
    let echo: Value = serde_json::from_str(new.echo.as_deref().expect("an echo")).expect("JSON");
    let trace = "550E8400e29b41d4a716446655440002";
    assert_eq!(echo, json!({"task_id": TASK, "trace": trace, "target": "research", "source": "infra"}));
    assert!(new.trace.expect("a trace").contains(&trace.to_lowercase()));
    let run = json!({"request_id": "r", "task_type": "w"});
    assert_eq!(came(Contract::Run, &run, Headers::default()).echo, None, "other contracts repeat nothing");
}

#[test]
fn types_that_the_operator_added_are_known_at_the_door() {
    let custom = with(|request| (request["to_agent"], request["from_agent"]) = (json!("gpu"), json!("lab")));
    let bytes = Bytes::from(custom.to_string());
    assert!(incoming::read(Contract::Message, &bytes, Headers::default()).is_err());
    let agent_types: Arc<[Box<str>]> = ["gpu".into(), "lab".into()].into();
    let headers = Headers { agent_types, notify: Some("upstream".into()), ..Headers::default() };
    let new = came(Contract::Message, &custom, headers);
    assert_eq!((new.addressed.as_deref(), new.notify.as_deref()), (Some("gpu"), Some("upstream")));
}
