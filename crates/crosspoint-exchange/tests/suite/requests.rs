//! What agents of the message contract are sent, whoever asked for the work.

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::request::{Door, Key, Limits, NewJob, Priority};
use crosspoint_contracts::{Contract, Kind};
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::outgoing::AgentOptions;
use serde_json::{Value, json};

use crate::made::{JOB, REQUEST, TASK, TRACE, came, faultless, faultless_among, options, sent, work_request};

/// The same work from every door.
fn from_every_door() -> Vec<(&'static str, NewJob)> {
    let native = Bytes::from_static(b"{\"n\":1}");
    let native = NewJob {
        door: Door::Native,
        caller: "".into(),
        request_id: Some("mine".into()),
        key: Key::None,
        work: "deploy".into(),
        agent: None,
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        input: 0..native.len(),
        document: Block(native),
        trace: None,
        echo: None,
        notify: None,
    };
    let bridge = json!({"request_id": REQUEST, "version": "1.0", "agent_name": "deploy", "prompt": "Do it."});
    let run = json!({"request_id": "mine", "task_type": "deploy"});
    let task = json!({"id": "mine", "type": "deploy", "payload": {}, "routing": {"target": "infra-1"}});
    let of = |contract, document| came(contract, document, Headers::default());
    vec![
        ("native", native),
        ("bridge", of(Contract::Bridge, &bridge)),
        ("run", of(Contract::Run, &run)),
        ("task", of(Contract::Task, &task)),
        ("message", of(Contract::Message, &work_request())),
    ]
}

fn written(new: &NewJob, attempt: u32, options: &AgentOptions) -> Value {
    let text = sent(new, attempt, options).text;
    let types: Vec<&str> = options.agent_type.as_deref().into_iter().collect();
    faultless_among(std::str::from_utf8(&text).expect("text"), Kind::WorkRequest, &types)
}

#[test]
fn every_attempt_is_a_new_message_about_the_same_job() {
    for (door, new) in from_every_door() {
        let first = written(&new, 1, &options(Contract::Message));
        let second = written(&new, 2, &options(Contract::Message));
        for message in [&first, &second] {
            // ALL-2.
            assert_eq!((&message["request_id"], &message["payload"]["task_id"]), (&json!(JOB), &json!(JOB)), "{door}");
            assert_eq!((&message["from_agent"], &message["type"]), (&json!("orchestrator"), &json!("work_request")));
            assert_eq!(message["payload"]["work_type"], "deploy", "{door}");
            // MSG-16: even if they are empty.
            for object in ["/payload/parameters", "/payload/hints", "/x_custom_fields"] {
                assert!(message.pointer(object).is_some_and(Value::is_object), "{door} {object}: {message}");
            }
        }
        // MSG-5.2, MSG-123.
        assert_ne!(first["message_id"], second["message_id"], "{door}");
        assert_eq!(first["trace_id"], second["trace_id"], "{door}");
        assert_eq!(first["timestamp"], "2027-01-15T08:00:01.000Z", "{door}");
        assert_eq!(second["timestamp"], "2027-01-15T08:00:02.000Z", "{door}");
    }
}

#[test]
fn the_callers_own_ids_are_carried_beside() {
    let new = came(Contract::Message, &work_request(), Headers::default());
    let message = written(&new, 1, &options(Contract::Message));
    let carried = &message["x_custom_fields"]["x_crosspoint"];
    assert_eq!((&carried["request_id"], &carried["task_id"]), (&json!(REQUEST), &json!(TASK)), "{message}");
    assert_eq!(carried["fields"]["message"]["/message_id"], work_request()["message_id"], "{message}");
    assert_eq!((&carried["created_at"], &carried["source"]), (&json!("2026-01-19T04:21:04Z"), &json!("research")));
    let off = AgentOptions { carry: false, ..options(Contract::Message) };
    let message = written(&new, 1, &off);
    assert_eq!(message["x_custom_fields"], json!({}), "{message}");
    let lost = sent(&new, 1, &off).lost.expect("something is lost");
    assert!(lost.contains("created_at") && !lost.contains("_id") && !lost.contains("not known"), "{lost}");
}

#[test]
fn the_trace_is_that_of_the_job() {
    let of = |new: &NewJob| written(new, 1, &options(Contract::Message))["trace_id"].clone();
    let new = came(Contract::Message, &work_request(), Headers::default());
    assert_eq!(of(&new), json!(TRACE.to_lowercase()));
    let traced = json!({"id": "t", "type": "deploy", "payload": {},
        "observability": {"traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7"}});
    let new = came(Contract::Task, &traced, Headers::default());
    assert_eq!(of(&new), json!("4bf92f35-77b3-4da6-a3ce-929d0e0e4736"));
    let run = came(Contract::Run, &json!({"request_id": "mine", "task_type": "deploy"}), Headers::default());
    assert_eq!(of(&run), json!(JOB), "without a caller's trace the job is the trace");
}

/// MSG-18: to the agent's type, else to the type that was addressed, else to code.
#[test]
fn a_message_is_for_the_type_of_its_agent() {
    let to = |new: &NewJob, agent_type: Option<&str>| {
        let options = AgentOptions { agent_type: agent_type.map(str::to_owned), ..options(Contract::Message) };
        written(new, 1, &options)["to_agent"].clone()
    };
    for (door, new) in from_every_door() {
        assert_eq!(to(&new, Some("desktop")), "desktop", "{door}");
        assert_eq!(to(&new, Some("gpu")), "gpu", "{door}");
        assert_eq!(to(&new, None), if door == "message" { "infra" } else { "code" }, "{door}");
    }
    let mut anyone = work_request();
    anyone["to_agent"] = json!("orchestrator");
    assert_eq!(to(&came(Contract::Message, &anyone, Headers::default()), None), "code");
}

/// The type may be gone from the configuration when the job's turn comes.
#[test]
fn a_request_from_a_type_that_was_removed_is_still_sent() {
    let mut custom = work_request();
    (custom["from_agent"], custom["to_agent"]) = (json!("lab"), json!("gpu"));
    let headers = Headers { agent_types: ["lab".into(), "gpu".into()].into(), ..Headers::default() };
    let new = came(Contract::Message, &custom, headers);
    let text = sent(&new, 1, &options(Contract::Message)).text;
    let message = faultless_among(std::str::from_utf8(&text).expect("text"), Kind::WorkRequest, &["gpu"]);
    assert_eq!(message["to_agent"], "gpu");
    let text = sent(&new, 1, &options(Contract::Run)).text;
    faultless(std::str::from_utf8(&text).expect("text"), Kind::RunRequest);
}

/// The agent's own limit is the caller's, as it came; what is left of a limit on the whole job is written anew.
#[test]
fn hints_are_handed_on() {
    let mut hinted = work_request();
    hinted["payload"]["hints"] = json!({"max_duration_seconds": 600, "max_memory_mb": 512, "own": 1});
    let new = came(Contract::Message, &hinted, Headers::default());
    assert_eq!(written(&new, 2, &options(Contract::Message))["payload"]["hints"], hinted["payload"]["hints"]);
}
