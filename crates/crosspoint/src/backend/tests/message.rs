//! What callers of the message contract are told, and what its agents are asked.

use super::*;

/// A request of the message contract.
fn requested_work() -> Value {
    json!({
        "protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001", "from_agent": "orchestrator",
        "to_agent": "infra", "timestamp": "2026-01-19T04:21:04Z", "trace_id": "550e8400-e29b-41d4-a716-446655440002",
        "request_id": "550e8400-e29b-41d4-a716-446655440003", "type": "work_request",
        "payload": {"task_id": "550e8400-e29b-41d4-a716-446655440004", "work_type": "T"},
    })
}

/// What a caller is told of a job beside the members of its contract.
fn beside(job: &Job, kind: Kind) -> Value {
    parsed(&told(job, Contract::Message), kind)["x_custom_fields"].clone()
}

#[test]
fn what_the_engine_says_itself_needs_nothing_beside_the_members_of_the_contract() {
    let (job, _) = came(Kind::WorkRequest, &requested_work());
    assert_eq!(beside(&job, Kind::WorkStatus), json!({}), "it runs");
    let success = Success::of(Body::trusted("{\"a\":1}"));
    let done = stepped(&job, Event::Finish { attempt: 1, result: Ok(success) });
    assert_eq!(beside(&done, Kind::WorkResult), json!({}), "it is done");
    let got = parsed(&told(&done, Contract::Message), Kind::WorkResult);
    assert_eq!(got["payload"]["resources_used"], json!({"duration_seconds": 2}), "{got}");
}

#[test]
fn what_has_no_place_in_the_contract_is_carried_without_a_list_of_what_was_filled_in() {
    let (job, _) = came(Kind::WorkRequest, &requested_work());
    let question = Question::read(Body::trusted("{\"prompt\":\"Which?\"}"));
    let waiting = beside(&stepped(&job, Event::Ask { attempt: 1, question, answered: None }), Kind::WorkStatus);
    assert_eq!(waiting["x_crosspoint"], json!({"from": "message.work_result", "question": {"prompt": "Which?"}}));
    let failed = Failed::said(Failure::AgentFailed, Dispatched::Yes, "No.");
    let failed = beside(&stepped(&job, Event::Finish { attempt: 1, result: Err(failed) }), Kind::WorkResult);
    assert_eq!(failed["x_crosspoint"], json!({"from": "message.work_result", "details": {"repeat": "never"}}));
    assert_eq!(beside(&stepped(&job, Event::Cancel), Kind::MessageError), json!({}), "its context says all");
}
