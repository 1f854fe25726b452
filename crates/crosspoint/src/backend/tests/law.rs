//! The law of exchange: everything that a caller wrote reaches the agent, and everything that the agent wrote
//! reaches the caller, in its place or carried. The tests check this by translating back: the resulting document has
//! everything that the first one had.

use std::fs;
use std::path::Path;

use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::{read_jobs, translate};

use super::*;

/// The contracts that have doors and agents, each of them combined with the bridge and with messages. The other pairs
/// have tests of their own.
const PAIRS: [(Contract, Contract); 12] = [
    (Contract::Bridge, Contract::Bridge),
    (Contract::Bridge, Contract::Run),
    (Contract::Bridge, Contract::Task),
    (Contract::Bridge, Contract::Message),
    (Contract::Run, Contract::Bridge),
    (Contract::Run, Contract::Message),
    (Contract::Task, Contract::Bridge),
    (Contract::Task, Contract::Message),
    (Contract::Message, Contract::Message),
    (Contract::Message, Contract::Run),
    (Contract::Message, Contract::Task),
    (Contract::Message, Contract::Bridge),
];

/// What each server on the way writes anew: a span below the caller's (TASK-8), itself at the end of the chain, and the
/// target (TASK-9).
const HANDED_ON: [&str; 3] = ["/observability/spanId", "/routing/delegationChain", "/routing/target"];

/// What a caller of the message contract gets back of its own request, whatever the agent says (MSG-17.2, MSG-18.2),
/// and the id of the message, which is ours.
const ECHOED: [&str; 4] = ["/message_id", "/trace_id", "/from_agent", "/to_agent"];

pub(super) fn request_of(contract: Contract) -> Kind {
    contract.exchange().request
}

/// The kind of a document that tells a caller of this contract how work ended.
pub(super) fn kind_of(contract: Contract, document: &str) -> Kind {
    let document: Value = serde_json::from_str(document).expect("JSON");
    if document["type"] == "error" { Kind::MessageError } else { contract.exchange().response }
}

/// The golden requests of a contract.
pub(super) fn requests(contract: Contract) -> Vec<(String, Value)> {
    golden(contract, if contract == Contract::Message { "work_request-" } else { "request-" })
}

/// The request with only the members that it must have.
pub(super) fn minimal(contract: Contract) -> Value {
    requests(contract).into_iter().find(|(name, _)| name.contains("minimal")).expect("one").1
}

/// The golden answers of a contract that end work.
pub(super) fn responses(contract: Contract) -> Vec<(String, Kind, Value)> {
    let prefixes: &[(&str, Kind)] = if contract == Contract::Message {
        &[("work_result-", Kind::WorkResult), ("error-", Kind::MessageError)]
    } else {
        &[("response-", contract.exchange().response)]
    };
    let of = |(prefix, kind): &(&str, Kind)| {
        let all = golden(contract, prefix).into_iter();
        all.map(|(name, document)| (name, *kind, document)).collect::<Vec<_>>()
    };
    prefixes.iter().flat_map(of).collect()
}

/// Names the work of an answer by these ids, wherever the answer names it.
fn name_by(contract: Contract, answer: &mut Value, id: impl Fn(&str) -> Value) {
    for path in contract.exchange().needs.ids {
        let place = format!("/{path}");
        if let Some(value) = answer.pointer_mut(&place) {
            *value = id(&place);
        }
    }
}

/// Returns the golden documents of a kind. They have every member of the contract, and some unknown ones.
fn golden(contract: Contract, what: &str) -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(contract.name());
    let entries = fs::read_dir(folder).expect("it can be listed").map(|entry| entry.expect("it can be read"));
    let files = entries.map(|entry| (entry.file_name().into_string().expect("UTF-8"), entry.path()));
    let files = files.filter(|(name, _)| name.starts_with(what) && name.ends_with(".json"));
    let read = |path: &Path| serde_json::from_slice(&fs::read(path).expect("it can be read")).expect("JSON");
    let all: Vec<_> = files.map(|(name, path)| (name, read(&path))).collect();
    assert!(all.len() >= 4, "only {} were found", all.len());
    all
}

/// Translates a document into another contract.
fn translated(document: &str, kind: Kind, to: Contract) -> Value {
    let options = Options { kind: Some(kind), ..Options::default() };
    let (reading, jobs) = read_jobs(document.as_bytes(), &options);
    let job = jobs.into_iter().next().unwrap_or_else(|| panic!("{:?} in {document}", reading.report));
    let id = JobId::new(Seq(8), Time(1_800_000_000_000_000), 9);
    let fresh = WriteContext {
        now: "2027-01-15T08:00:00Z",
        id: id.uuid(),
        message_id: id.uuid(),
        agent_types: &[],
        agent_type: "code",
        carrying: Carrying::On,
        known_as: None,
        completing: false,
        levels: Levels::Received,
        facts: &[],
    };
    let written = translate::write(&job, to, &fresh).expect("it can be written");
    serde_json::from_str(&written.into_text()).expect("JSON")
}

/// Returns a message of a later dialect as v1.0 writes it, because only that is written (MSG-16). Other documents stay.
fn plainly(name: &str, kind: Kind, document: Value) -> Value {
    if !name.contains("loose") || kind.contract() != Contract::Message {
        return document;
    }
    let mut written = translated(&document.to_string(), kind, Contract::Message);
    if let Some(carried) = written.pointer_mut("/x_custom_fields/x_crosspoint").and_then(Value::as_object_mut) {
        // An error to a caller names the caller's task in its context, and what is null is absent (ALL-11).
        ["filled", "task_id"].iter().for_each(|name| drop(carried.remove(*name)));
    }
    if let Some(payload) = written["payload"].as_object_mut() {
        payload.retain(|_, value| !value.is_null());
    }
    written
}

/// Returns the places of what is in `part` and not in `whole`.
fn missing(part: &Value, whole: &Value, place: &str) -> Vec<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            let within = |(name, value): (&String, &Value)| match whole.get(name) {
                Some(other) => missing(value, other, &format!("{place}/{name}")),
                None => vec![format!("{place}/{name}")],
            };
            part.iter().flat_map(within).collect()
        }
        _ if part == whole => Vec::new(),
        _ => vec![place.to_owned()],
    }
}

#[test]
fn whatever_is_in_a_request_reaches_the_agent() {
    for (door, agent) in PAIRS {
        for (name, given) in requests(door) {
            let (job, document) = came(request_of(door), &given);
            let sent = sent(&job, &document, agent);
            let back = translated(&sent.to_string(), request_of(agent), door);
            let missing = missing(&plainly(&name, request_of(door), given), &back, "");
            let missing: Vec<_> = missing.iter().filter(|place| !HANDED_ON.contains(&place.as_str())).collect();
            assert!(missing.is_empty(), "{name} from {door:?} to {agent:?}: {missing:?} in {back}, which was {sent}");
        }
    }
}

#[test]
fn whatever_an_agent_says_reaches_the_caller() {
    for (door, agent) in PAIRS {
        for (name, kind, mut said) in responses(agent) {
            let (job, _) = came(request_of(door), &minimal(door));
            name_by(agent, &mut said, |_| json!(job.id().to_string()));
            let Some(done) = ended(&job, kind, &said.to_string()) else { continue };
            let told = told(&done, door);
            let back = translated(&told, kind_of(door, &told), agent);
            said = plainly(&name, kind, said);
            // The id is the caller's here.
            name_by(agent, &mut said, |place| back.pointer(place).cloned().unwrap_or_default());
            // Outputs are read under two names, and written under one.
            if let Some(outputs) = said.as_object_mut().and_then(|said| said.remove("data")) {
                said["outputs"] = outputs;
            }
            // Loose forms are not written again, nor are members beside the nine of a response (BRIDGE-1.4): they are
            // carried.
            let told_of: Value = serde_json::from_str(&told).expect("JSON");
            let beside = if door == Contract::Run {
                &told_of
            } else if door == Contract::Message {
                &told_of["x_custom_fields"]
            } else {
                &told_of["metadata"]
            };
            let carried = &beside["x_crosspoint"]["fields"][agent.name()];
            let missing = missing(&said, &back, "");
            let is_carried = |place: &str| carried.get(place).is_some_and(|value| said.pointer(place) == Some(value));
            let is_echoed = |place: &str| door == agent && ECHOED.contains(&place);
            let missing: Vec<_> = missing.iter().filter(|place| !is_carried(place) && !is_echoed(place)).collect();
            assert!(missing.is_empty(), "{name} from {agent:?} to {door:?}: {missing:?} in {back}, which was {told}");
        }
    }
}

/// Returns the job with this outcome, or `None` if the document has no outcome.
pub(super) fn ended(job: &Job, kind: Kind, document: &str) -> Option<Job> {
    let reply = reply::read(kind, &Bytes::from(document.to_owned())).unwrap_or_else(|report| panic!("{report:?}"));
    let reply::Meaning::Ended(result) = reply.meaning else { return None };
    let mut policy = Policy::DEFAULT;
    policy.schedule.attempts_max = 1;
    let event = Event::Finish { attempt: 1, result: result.map_err(|failed| *failed) };
    Some(machine::step(job, event, Time(1_800_000_002_100_000), &policy).expect("it ends").job)
}

/// ALL-8: a requester that carried an object in its files gets an object back. A requester that writes prompts gets
/// only texts.
#[test]
fn an_object_is_an_object_again_for_whoever_asked_with_one() {
    let carried = json!({"x_crosspoint": {"from": "run.request", "form": {"input": "json"}}});
    let mut request = bridged();
    (request["prompt"], request["context"]) = (json!("{\"a\":1}"), carried);
    for (request, is_translated) in [(request, true), (bridged(), false)] {
        let bytes = Bytes::from(request.to_string());
        let incoming = incoming::read(Contract::Bridge, &bytes, Headers::default()).expect("it is valid");
        assert_eq!(incoming.is_translated, is_translated);
    }
    let is_translated = Beside { is_translated: true, ..Beside::default() };
    let (job, _) = came(Kind::BridgeRequest, &bridged());
    let outputs = [r#"{"b":2.50,"ä":null}"#, "\"words\"", "[1]"];
    for (outputs, expected) in outputs.into_iter().zip([
        json!({"b": 2.50, "ä": null}),
        json!({"output": "words"}),
        json!({"output": "{\"output\":[1]}"}),
    ]) {
        let success = Success::of(Body::trusted(outputs));
        let done = stepped(&job, Event::Finish { attempt: 1, result: Ok(success) });
        let both = answer::document(&snapshot(&done), Contract::Bridge, &is_translated);
        let got = parsed(&both, Kind::BridgeResponse);
        assert_eq!(got["response"], parsed(&told(&done, Contract::Bridge), Kind::BridgeResponse)["response"]);
        assert_eq!(translated(&both, Kind::BridgeResponse, Contract::Run)["outputs"], expected, "{both}");
    }
    let failed = stepped(&job, Event::Cancel);
    assert_eq!(answer::document(&snapshot(&failed), Contract::Bridge, &is_translated), told(&failed, Contract::Bridge));
}
