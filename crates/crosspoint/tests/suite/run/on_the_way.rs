//! What a run agent says before the end, in its own words: it reaches callers of the same contract as it was.

use serde_json::{Value, json};

use crate::support::run_agent::{Call, held_streams};
use crate::support::run_caller::{Following, request};
use crate::support::scripted_agent::event;
use crate::support::server::{Server, until};

/// The `started` of an agent that says more than it must.
fn started(call: &Call) -> Value {
    json!({
        "request_id": call.request.id(), "task_type": "far", "model": "m-7", "limits": {"tokens": [5, 2.50]},
        "started_at": "2026-11-17T12:00:00+01:00",
    })
}

/// The same for the caller, who knows the run by its own id.
fn for_caller(mut said: Value) -> Value {
    said["request_id"] = json!("mine");
    said
}

fn progress() -> Value {
    json!({"percent": 40, "step": "Dig", "found": {"pages": [1, 2]}, "eta_s": 7.50})
}

fn far() -> String {
    request("mine", "far", &json!({}))
}

#[test]
fn what_an_agent_says_at_its_start_reaches_callers_that_follow_and_callers_that_join() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far(""));
    let mut caller = Following::begin(&server, &far());
    let (name, ours) = caller.next();
    assert_eq!((&*name, ours), ("started", json!({"request_id": "mine", "task_type": "far"})), "without the agent");
    let call = calls.next();
    call.say(event("started", &started(&call)));
    assert_eq!(caller.next(), ("started".to_owned(), for_caller(started(&call))));
    call.say(event("progress", &progress()));
    let mut said = progress();
    said["request_id"] = json!("mine");
    said["task_type"] = json!("far");
    let (name, shown) = caller.next();
    assert_eq!((&*name, &shown["found"], &shown["eta_s"]), ("progress", &said["found"], &said["eta_s"]), "{shown}");
    let mut joined = Following::begin(&server, &far());
    assert_eq!(joined.next(), ("started".to_owned(), for_caller(started(&call))), "at once in the agent's words");
    assert_eq!(joined.next(), ("progress".to_owned(), shown));
    call.say(event("final", &call.request.response(json!({}))));
    drop(call);
    for follower in [caller, joined] {
        let rest: Vec<String> = follower.rest().into_iter().map(|(name, _)| name).collect();
        assert_eq!(rest.last().map(String::as_str), Some("final"), "{rest:?}");
        assert!(!rest.contains(&"started".to_owned()), "it is said once: {rest:?}");
    }
}

#[test]
fn an_agent_that_says_no_more_than_it_must_is_not_repeated() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far(""));
    let caller = Following::begin(&server, &far());
    let call = calls.next();
    call.say(call.request.stream(json!({})));
    drop(call);
    let names: Vec<String> = caller.rest().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["started", "final"]);
}

/// Words over the limit are not kept, and the run goes on.
#[test]
fn a_start_that_is_too_long_is_left_out() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far(""));
    let caller = Following::begin(&server, &far());
    let call = calls.next();
    let mut said = started(&call);
    said["model"] = json!("m".repeat(16 << 10));
    call.say(event("started", &said) + &event("final", &call.request.response(json!({}))));
    drop(call);
    let events = caller.rest();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["started", "final"]);
}

/// The server is killed, and the run begins again. Until its agent says more, callers see what it said before.
#[test]
fn what_was_said_is_shown_after_a_kill() {
    let (service, calls) = held_streams();
    let mut server = Server::configured(&service.far("repeatable = true"));
    let mut caller = Following::begin(&server, &far());
    let job = caller.job();
    let call = calls.next();
    call.say(event("started", &started(&call)));
    call.say(event("progress", &progress()));
    let shown = loop {
        let (name, data) = caller.next();
        if name == "progress" && data["eta_s"].is_number() {
            break data;
        }
    };
    server.kill();
    server.restart();
    let again = calls.next();
    let mut joined = Following::begin(&server, &far());
    assert_eq!(joined.job(), job);
    assert_eq!(joined.next(), ("started".to_owned(), for_caller(started(&call))));
    assert_eq!(joined.next(), ("progress".to_owned(), shown));
    again.say(event("final", &again.request.response(json!({}))));
    drop(again);
    until("the end", || joined.try_next().ok().flatten().filter(|(name, _)| name == "final"));
}
