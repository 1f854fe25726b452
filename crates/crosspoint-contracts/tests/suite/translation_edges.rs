//! Translation where mistakes are easy: streams, carried data that others changed, names of the operator's own.

use std::collections::BTreeSet;

use crosspoint_contracts::map::WriteContext;
use crosspoint_contracts::translate::{Homeless, Refused, Translation, write};
use crosspoint_contracts::{Contract, Kind, Options, read_jobs, translate};

use crate::corpus;
use crate::translation::{fresh, to, value};

fn translated(bytes: &[u8], contract: Contract) -> Translation {
    translate(bytes, &Options::default(), contract, &fresh())
}

/// Only the first event names its request, but each message and each task must name its own.
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

/// What did not fit an optional member stood in its place (ALL-11), and stands there again.
#[test]
fn what_does_not_fit_comes_back_to_its_place() {
    for (place, found) in [("usage", "5"), ("usage", "{\"a\": 1}"), ("grounding", "5"), ("grounding", "null")] {
        let document = format!(
            "{{\"id\": \"a\", \"status\": \"completed\", \"result\": {{}}, \"metadata\": {{\"x_crosspoint\": \
             {{\"from\": \"run.response\", \"fields\": {{\"run\": {{\"/{place}\": {found}}}}}}}}}}}"
        );
        let written = to(Contract::Run, document.as_bytes()).expect("it can be written");
        assert_eq!(written.homeless, []);
        assert_eq!(value(written.text())[place], value(found));
    }
}

/// Carried data may contain anything. What cannot stand in its place is carried on instead of being dropped.
#[test]
fn what_does_not_fit_is_carried_on() {
    for (place, found) in [("/request_id", "5"), ("/outputs", "5"), ("/status/x", "5")] {
        let document = format!(
            "{{\"id\": \"a\", \"status\": \"completed\", \"result\": {{}}, \"metadata\": {{\"x_crosspoint\": \
             {{\"from\": \"run.response\", \"fields\": {{\"run\": {{\"{place}\": {found}}}}}}}}}}}"
        );
        let written = to(Contract::Run, document.as_bytes()).expect("it can be written");
        assert_eq!(written.homeless, [Homeless::Own(format!("run{place}"))]);
        assert_eq!(value(written.text())["x_crosspoint"]["fields"]["run"][place], value(found));
    }
}

#[test]
fn what_is_kept_beside_an_event_is_named_apart_from_its_members() {
    let case = corpus::golden().into_iter().find(|case| case.path.ends_with("run/stream-multi_line.sse"));
    let written = translated(&case.expect("golden").bytes, Contract::Task).written.remove(1).expect("it goes there");
    assert_eq!(written.homeless, ["run event", "run document"].map(|place| Homeless::Own(place.to_owned())));
}

/// The operator may call agents anything.
#[test]
fn a_type_of_agent_is_written_as_json() {
    let name = "a\"\\b";
    let fresh = WriteContext { agent_types: &[name], agent_type: name, ..fresh() };
    let request = br#"{"id": "a", "type": "b", "payload": {}, "routing": {"target": "somebody"}}"#;
    let written = translate(request, &Options::default(), Contract::Message, &fresh).written.remove(0);
    assert_eq!(value(written.expect("it goes there").text())["to_agent"], name);
}

/// The events of a stream, without their framing.
fn events(stream: &[u8]) -> Vec<(String, serde_json::Value)> {
    let reading = crosspoint_contracts::read(stream, &Options { kind: Some(Kind::RunStream), ..Options::default() });
    let Some(crosspoint_contracts::Document::RunStream(stream)) = reading.document else {
        panic!("{:?}", reading.report.findings)
    };
    let event = |event: crosspoint_contracts::run::StreamEvent| {
        (event.name, serde_json::from_str(&event.data).expect("data is JSON"))
    };
    stream.events.into_iter().map(event).collect()
}

/// A stream that goes out as messages or tasks, one per event, comes back event by event unchanged: neither the id that
/// was lent to the events nor anything else that was filled in is kept.
#[test]
fn streams_come_back_event_by_event() {
    for case in corpus::golden().into_iter().filter(|case| case.kind() == Kind::RunStream) {
        for contract in [Contract::Message, Contract::Task, Contract::Run] {
            let (_, jobs) = read_jobs(&case.bytes, &Options::default());
            let mut back = String::new();
            let mut strict = String::new();
            for job in &jobs {
                let there = write(job, contract, &fresh()).expect("events go there");
                strict += write(job, Contract::Run, &fresh()).expect("and to where they came from").text();
                if contract == Contract::Run {
                    back += there.text();
                    continue;
                }
                let (reading, again) = read_jobs(there.text().as_bytes(), &Options::default());
                assert!(reading.report.is_valid(), "{}", there.text());
                back += write(&again[0], Contract::Run, &fresh()).expect("and come back").text();
            }
            assert_eq!(events(back.as_bytes()), events(strict.as_bytes()), "{}", case.path.display());
            if !case.stem().contains("loose") {
                assert_eq!(events(back.as_bytes()), events(&case.bytes), "{}", case.path.display());
            }
        }
    }
}
