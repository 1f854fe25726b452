//! Translation where it is easily got wrong: streams, foreign hands on what is carried, names of the operator's own.

use std::collections::BTreeSet;

use crosspoint_contracts::map::Fresh;
use crosspoint_contracts::translate::{Refused, Translation};
use crosspoint_contracts::{Contract, Options, translate};
use serde_json::Value;

use crate::corpus;
use crate::translation::{fresh, to, value};

fn translated(bytes: &[u8], contract: Contract) -> Translation {
    translate(bytes, &Options::default(), contract, &fresh())
}

/// Only the first event says which request it is about, but messages and tasks are about one each.
#[test]
fn events_of_one_stream_are_about_one_request() {
    let stream = corpus::golden().into_iter().find(|case| case.path.ends_with("run/stream-full.sse")).expect("golden");
    let members = |contract: Contract, pointer: &str| -> Vec<String> {
        let written = translated(&stream.bytes, contract).written;
        let texts = written.iter().map(|written| written.as_ref().expect("every event has a counterpart").text());
        texts.map(|text| value(text).pointer(pointer).expect("it is there").to_string()).collect()
    };
    let distinct = |contract, pointer| members(contract, pointer).into_iter().collect::<BTreeSet<_>>().len();
    assert_eq!(members(Contract::Task, "/id"), vec!["\"req-2026-001\""; 4]);
    for shared in ["/request_id", "/trace_id", "/payload/task_id"] {
        assert_eq!(distinct(Contract::Message, shared), 1, "{shared}");
    }
    assert_eq!(distinct(Contract::Message, "/message_id"), 4);
}

/// The id they were lent is not kept, and neither is anything else that was filled in.
#[test]
fn events_come_back_from_messages_and_tasks() {
    for case in corpus::golden().into_iter().filter(|case| case.path.extension().is_some_and(|end| end == "sse")) {
        let own: Vec<String> = texts(translated(&case.bytes, Contract::Run));
        for contract in [Contract::Message, Contract::Task] {
            for (there, event) in texts(translated(&case.bytes, contract)).iter().zip(&own) {
                let back = to(Contract::Run, there.as_bytes()).expect("an event comes back");
                assert_eq!(parts(back.text()), parts(event), "{} by way of {}", case.path.display(), contract.name());
            }
        }
    }
}

/// The line with an event's name, and its data.
fn parts(event: &str) -> (&str, Value) {
    let (name, data) = event.split_once('\n').expect("an event has lines");
    let data: Vec<&str> = data.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    (name, value(&data.join("\n")))
}

fn texts(translation: Translation) -> Vec<String> {
    translation.written.into_iter().map(|written| written.expect("it has a counterpart").into_text()).collect()
}

#[test]
fn an_event_that_nests_too_deep_elsewhere_is_refused() {
    let deep = format!("{}{}", "[".repeat(125), "]".repeat(125));
    let stream = format!(
        "event: started\ndata: {{\"request_id\": \"a\", \"task_type\": \"b\"}}\n\nevent: progress\ndata: {{\"x\": {deep}}}\n\n\
         event: final\ndata: {{\"request_id\": \"a\", \"task_type\": \"b\", \"status\": \"ok\", \"outputs\": {{}}}}\n\n"
    );
    let written = translated(stream.as_bytes(), Contract::Message).written;
    assert!(matches!(written[1], Err(Refused::Broken { .. })), "{written:?}");
}

/// What is carried may say anything. What does not fit stays where it is, rather than vanish.
#[test]
fn what_does_not_fit_is_carried_on() {
    for (place, found) in [("/usage", "5"), ("/usage", "{\"a\": 1}"), ("/grounding", "5")] {
        let document = format!(
            "{{\"id\": \"a\", \"status\": \"completed\", \"result\": {{}}, \"metadata\": {{\"x_crosspoint\": \
             {{\"from\": \"run.response\", \"fields\": {{\"run\": {{\"{place}\": {found}}}}}}}}}}}"
        );
        let written = to(Contract::Run, document.as_bytes()).expect("it can be written");
        assert_eq!(written.homeless, [format!("run{place}")]);
        assert_eq!(value(written.text())["x_crosspoint"]["fields"]["run"][place], value(found));
    }
}

#[test]
fn what_is_kept_beside_an_event_is_named_apart_from_its_members() {
    let case = corpus::golden().into_iter().find(|case| case.path.ends_with("run/stream-multi_line.sse"));
    let written = translated(&case.expect("golden").bytes, Contract::Task).written.remove(1).expect("it goes there");
    assert_eq!(written.homeless, ["run event", "run data"]);
}

/// The operator may call agents anything.
#[test]
fn a_type_of_agent_is_written_as_json() {
    let name = "a\"\\b";
    let fresh = Fresh { agent_types: &[name], agent_type: name, ..fresh() };
    let request = br#"{"id": "a", "type": "b", "payload": {}, "routing": {"target": "somebody"}}"#;
    let written = translate(request, &Options::default(), Contract::Message, &fresh).written.remove(0);
    assert_eq!(value(written.expect("it goes there").text())["to_agent"], name);
}
