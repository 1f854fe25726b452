//! What is decided about messages without judging them whole: what they are about, what cancels work, who is there.

use crosspoint_contracts::message::registration::{AGENT_ID_BYTES_MAX, CONCURRENCY_MAX, WORK_BYTES_MAX};
use crosspoint_contracts::message::version::{SPOKEN, pick};
use crosspoint_contracts::message::{About, Cancel, Notice, Presence, Registration, Sign};
use crosspoint_contracts::{Contract, Kind, Options, read};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::changes::changed;
use crate::corpus;

const TASK: &str = "550e8400-e29b-41d4-a716-446655440004";
const REQUEST: &str = "550e8400-e29b-41d4-a716-446655440003";

fn golden(name: &str) -> Value {
    let path = corpus::testdata().join("message").join(name).with_extension("json");
    serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("it is JSON")
}

fn about(message: &Value) -> About {
    About::of(message.to_string().as_bytes())
}

#[test]
fn every_golden_message_is_about_what_it_says() {
    let mut seen = 0;
    for case in corpus::golden().into_iter().filter(|case| case.kind().contract() == Contract::Message) {
        let about = About::of(&case.bytes);
        assert_eq!(about.kind, Some(case.kind()), "{}", case.path.display());
        assert_eq!(about.is_heartbeat, case.stem().contains("heartbeat"), "{}", case.path.display());
        assert_eq!((about.version.as_deref(), about.unspoken()), (Some("1.0"), None));
        seen += 1;
    }
    assert!(seen > 30, "only {seen}");
}

/// MSG-17.2: the task counts more than the request.
#[test]
fn a_reply_is_matched_by_its_task_and_then_by_its_request() {
    let result = golden("work_result-minimal");
    assert_eq!(about(&result).ids, [TASK, REQUEST]);
    for wrong in [None, Some(json!(null)), Some(json!(7)), Some(json!(""))] {
        let changed = changed(&result, "/payload/task_id", wrong.as_ref()).expect("it is there");
        assert_eq!(about(&changed).ids, [REQUEST]);
    }
    assert_eq!(about(&golden("error-minimal")).ids, [REQUEST]);
    assert_eq!(about(&golden("error-cancelled")).ids, [TASK, REQUEST]);
    let mut later = golden("error-cancelled");
    later["payload"]["context"] = later["payload"]["error_context"].take();
    assert_eq!(about(&later).ids, [TASK, REQUEST]);
}

#[test]
fn without_a_type_the_payload_tells_what_a_message_is() {
    for (name, kind) in [
        ("work_request-minimal", Kind::WorkRequest),
        ("work_status-minimal", Kind::WorkStatus),
        ("work_result-minimal", Kind::WorkResult),
        ("error-minimal", Kind::MessageError),
    ] {
        for wrong in [None, Some(json!("work")), Some(json!(1))] {
            let changed = changed(&golden(name), "/type", wrong.as_ref()).expect("it is there");
            assert_eq!(about(&changed).kind, Some(kind), "{changed}");
        }
    }
    for nothing in ["", "[]", "{}", "null", r#"{"payload": 7}"#, r#"{"type": {}}"#] {
        assert_eq!(About::of(nothing.as_bytes()), About::default(), "{nothing}");
    }
    let cut = r#"{"protocol_version": "1.0", "type": "error", "request_id": "r", "payload": {"error_code"#;
    let about = About::of(cut.as_bytes());
    assert_eq!((about.kind, about.ids), (Some(Kind::MessageError), vec!["r".to_owned()]));
    assert!(About::of(br#"{"type": "error", "request_id": "550e8400"#).ids.is_empty(), "half an id is none");
}

#[test]
fn a_message_in_another_version_names_both_lists() {
    let mut message = golden("work_result-minimal");
    message["protocol_version"] = json!("2.0");
    let words = about(&message).unspoken().expect("it is not spoken").to_string();
    assert!(words.contains("\"1.0\"") && words.contains("\"2.0\""), "{words}");
}

#[test]
fn a_cancel_names_its_work() {
    let cancel = golden("error-cancelled");
    let read = |message: &Value| Cancel::read(message.to_string().as_bytes());
    let both = Cancel { request_id: Some(REQUEST.to_owned()), task_id: Some(TASK.to_owned()) };
    assert_eq!(read(&cancel), Some(both.clone()));
    for (place, cancel) in [
        ("/payload/error_context", Cancel { task_id: None, ..both.clone() }),
        ("/payload/error_context/task_id", Cancel { task_id: None, ..both.clone() }),
        ("/request_id", Cancel { request_id: None, ..both.clone() }),
        ("/payload/error_message", both.clone()),
        ("/message_id", both.clone()),
    ] {
        let changed = changed(&golden("error-cancelled"), place, None).expect("it is there");
        assert_eq!(read(&changed), Some(cancel), "{place}");
    }
    for (place, value) in [
        ("/payload/error_code", json!(5900)),
        ("/payload/error_code", json!("5901")),
        ("/type", json!("work_result")),
        ("/payload", json!({})),
    ] {
        let changed = changed(&cancel, place, Some(&value)).expect("it is there");
        assert_eq!(read(&changed), None, "{place}");
    }
    let mut nameless = cancel;
    nameless["request_id"] = json!(null);
    nameless["payload"]["error_context"] = json!({});
    assert_eq!(read(&nameless), None);
}

#[test]
fn a_sign_of_life_needs_a_name_and_a_status() {
    let heartbeat = golden("work_status-heartbeat_busy");
    let (report, sign) = Sign::read(heartbeat.to_string().as_bytes(), &[]);
    let sign = sign.expect("it is one");
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!((sign.presence, sign.agent_type.as_deref()), (Presence::Busy, Some("infra")));
    assert!(sign.current_task_id.is_some() && sign.resources.is_some() && sign.registration.is_none());
    let lone = json!({"agent_id": "a", "status": "offline"});
    for place in ["agent_type", "current_task_id", "resources", "timestamp"] {
        for wrong in [None, Some(json!(null)), Some(json!([7]))] {
            let place = format!("/payload/{place}");
            let text = changed(&heartbeat, &place, wrong.as_ref()).expect("it is there").to_string();
            assert!(Sign::read(text.as_bytes(), &[]).1.is_some(), "{text}");
        }
    }
    for place in ["/payload/agent_id", "/payload/status"] {
        let text = changed(&heartbeat, place, Some(&json!(7))).expect("it is there").to_string();
        assert_eq!(Sign::read(text.as_bytes(), &[]).1, None, "{text}");
    }
    let text = changed(&heartbeat, "/payload", Some(&lone)).expect("it is there").to_string();
    let (report, sign) = Sign::read(text.as_bytes(), &[]);
    assert_eq!(sign.expect("it is one").presence, Presence::Offline);
    assert!(!report.is_valid(), "what is missing is reported");
    assert_eq!(Sign::read(golden("work_status-minimal").to_string().as_bytes(), &[]).1, None);
}

fn registration() -> Value {
    json!({"agent_id": "infra-1", "agent_type": "infra", "supported_versions": ["1.0", "2.0"], "work_types": ["deploy"]})
}

fn registered(object: &Value) -> Result<Registration, Vec<(&'static str, String)>> {
    let (report, registration) = Registration::read(object.to_string().as_bytes(), &["gpu"]);
    registration.ok_or_else(|| {
        assert!(!report.is_valid());
        report.findings.into_iter().map(|finding| (finding.clause.id, finding.pointer)).collect()
    })
}

#[test]
fn a_registration_says_who_speaks_what_and_takes_which_work() {
    let read = registered(&registration()).expect("it is whole");
    assert_eq!((&*read.agent_id, &*read.agent_type, read.base_url.as_deref()), ("infra-1", "infra", None));
    assert_eq!((read.work_types.join(","), read.concurrency), ("deploy".to_owned(), None));
    let version = read.version().expect("1.0 is common");
    let answer: Value = serde_json::from_str(&read.answer(version, 30)).expect("JSON");
    assert_eq!(answer, json!({"protocol_version": "1.0", "heartbeat_seconds": 30, "agent_id": "infra-1"}));
    let mut more = registration();
    more["base_url"] = json!("https://infra.example:8443/agents/1");
    (more["concurrency"], more["agent_type"], more["unknown"]) = (json!(4), json!("gpu"), json!({}));
    let read = registered(&more).expect("it is whole");
    assert_eq!((read.base_url.as_deref(), read.concurrency), (more["base_url"].as_str(), Some(4)));
    for null in ["base_url", "concurrency"] {
        more[null] = json!(null);
        assert!(registered(&more).is_ok(), "{null}");
    }
    more["supported_versions"] = json!(["2.0", "nonsense"]);
    let refused = registered(&more).expect("it can be read").version().expect_err("there is none in common");
    assert!(refused.to_string().contains("\"nonsense\""), "{refused}");
}

#[test]
fn a_registration_that_cannot_be_used_says_where() {
    for missing in ["agent_id", "agent_type", "supported_versions", "work_types"] {
        let mut object = registration();
        object.as_object_mut().expect("an object").remove(missing);
        assert_eq!(registered(&object), Err(vec![("MSG-11", format!("/{missing}"))]));
    }
    let long = "x".repeat(AGENT_ID_BYTES_MAX + 1);
    for (member, value, clause) in [
        ("agent_id", json!(""), "MSG-11"),
        ("agent_id", json!(long), "MSG-11"),
        ("agent_id", json!("a\nb"), "MSG-11"),
        ("agent_id", json!(" a"), "MSG-11"),
        ("agent_id", json!(7), "MSG-11"),
        ("agent_type", json!("Infra"), "MSG-1.4"),
        ("supported_versions", json!([]), "MSG-11"),
        ("supported_versions", json!("1.0"), "MSG-11"),
        ("work_types", json!([""]), "MSG-11"),
        ("work_types", json!(["x".repeat(WORK_BYTES_MAX + 1)]), "MSG-11"),
        ("work_types", json!(["a\u{1b}[2Jb"]), "MSG-11"),
        ("work_types", json!(null), "MSG-11"),
        ("concurrency", json!(0), "MSG-11"),
        ("concurrency", json!(CONCURRENCY_MAX + 1), "MSG-11"),
        ("concurrency", json!("4"), "MSG-11"),
        ("base_url", json!("ftp://host"), "MSG-11.5"),
        ("base_url", json!("http://"), "MSG-11.5"),
        ("base_url", json!("http:///path"), "MSG-11.5"),
        ("base_url", json!("http://user:secret@host"), "MSG-11.5"),
        ("base_url", json!("http://host/?token=x"), "MSG-11.5"),
        ("base_url", json!("http://host/#x"), "MSG-11.5"),
        ("base_url", json!("http://host/a b"), "MSG-11.5"),
        ("base_url", json!(7), "MSG-11.5"),
    ] {
        let mut object = registration();
        object[member] = value.clone();
        let found = registered(&object).expect_err("it is wrong");
        assert_eq!(found[0].0, clause, "{member} {value}");
        assert!(found[0].1.starts_with(&format!("/{member}")), "{member} {value}: {}", found[0].1);
    }
    for broken in ["", "[]", "{", r#"{"agent_id": "a", "agent_id": "b"}"#] {
        let (report, read) = Registration::read(broken.as_bytes(), &[]);
        assert!(read.is_none() && !report.is_valid(), "{broken}");
    }
}

/// MSG-11.2: over a queue the same fields stand among the custom fields of a heartbeat.
#[test]
fn a_heartbeat_may_bring_a_registration() {
    let mut heartbeat = golden("work_status-heartbeat");
    heartbeat["x_custom_fields"] = registration();
    heartbeat["x_custom_fields"]["auth"] = json!("anybody's");
    let (_, sign) = Sign::read(heartbeat.to_string().as_bytes(), &[]);
    let object = sign.and_then(|sign| sign.registration).expect("there is one");
    let (report, registration) = Registration::read(object.bytes(), &[]);
    assert_eq!(registration.map(|read| read.agent_id), Some("infra-1".to_owned()), "{report:?}");
}

#[test]
fn errors_to_agents_have_the_context_of_their_row() {
    let work: Uuid = TASK.parse().expect("a UUID");
    let notice = Notice {
        version: pick(SPOKEN, SPOKEN).expect("it is spoken"),
        message_id: Uuid::nil(),
        to_agent: "infra",
        timestamp: "2026-01-19T04:21:04Z",
        trace_id: REQUEST.parse().expect("a UUID"),
        work,
    };
    let all = [
        (notice.cancelled(), 5901),
        (notice.invalid("a gap \"here\"", Some("payload.step.output_chunk")), 5003),
        (notice.invalid("a gap", None), 5003),
        (notice.over_limit("too long", "output_bytes_max", 10, 11), 5005),
    ];
    for (text, code) in all {
        let report = read(text.as_bytes(), &Options { kind: Some(Kind::MessageError), ..Options::default() }).report;
        assert!(report.findings.is_empty(), "{report:?} in {text}");
        let message: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(message["payload"]["error_code"], code);
        assert_eq!(
            (&message["request_id"], &message["payload"]["error_context"]["task_id"]),
            (&json!(TASK), &json!(TASK))
        );
    }
    let cancel = Cancel::read(notice.cancelled().as_bytes()).expect("it cancels");
    assert_eq!(cancel, Cancel { request_id: Some(TASK.to_owned()), task_id: Some(TASK.to_owned()) });
}
