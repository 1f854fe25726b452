//! What agents of the message contract say, read into what the engine understands (ALL-11).

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::exchange::Lack;
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_exchange::reply::{self, Meaning, Reply};
use serde_json::{Value, json};

use crate::made::{JOB, REQUEST, TASK};

fn read(kind: Kind, message: &Value) -> Result<Reply, Lack> {
    reply::read(kind, &Bytes::from(message.to_string())).map_err(|unreadable| unreadable.lack)
}

fn errors(reply: &Reply) -> Vec<&'static str> {
    let errors = reply.report.findings.iter().filter(|finding| finding.level == Level::Error);
    errors.map(|finding| finding.clause.id).collect()
}

fn failure(reply: Result<Reply, Lack>) -> Option<Failure> {
    match reply.ok()?.meaning {
        Meaning::Ended(result) => result.err().map(|failed| failed.failure),
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => None,
    }
}

fn is_success(reply: Result<Reply, Lack>) -> bool {
    matches!(reply.map(|reply| reply.meaning), Ok(Meaning::Ended(Ok(_))))
}

fn envelope(message_type: &str, payload: &Value) -> Value {
    json!({
        "protocol_version": "1.0", "message_id": TASK, "from_agent": "code", "to_agent": "orchestrator",
        "timestamp": "2027-01-15T08:00:02Z", "trace_id": REQUEST, "request_id": JOB,
        "type": message_type, "payload": payload
    })
}

/// A result is read with no more than its status and its output; whatever it lacks is on record.
#[test]
fn a_bare_result_is_a_result() {
    let bare = json!({"payload": {"status": "success", "output": "done"}});
    let reply = read(Kind::WorkResult, &bare).expect("it says enough");
    assert!(errors(&reply).contains(&"MSG-1") && errors(&reply).contains(&"MSG-109"), "{:?}", reply.report);
    assert!(errors(&reply).contains(&"MSG-3.5"), "{:?}", reply.report);
    assert!(is_success(Ok(reply)));
    assert!(is_success(read(Kind::WorkResult, &json!({"payload": {"status": "completed", "output": "done"}}))));
    let failed = json!({"type": "work_result", "payload": {"status": "failed"}});
    assert_eq!(failure(read(Kind::WorkResult, &failed)), Some(Failure::AgentFailed));
    let cancelled = json!({"type": "work_result", "payload": {"status": "cancelled"}});
    assert_eq!(failure(read(Kind::WorkResult, &cancelled)), Some(Failure::Cancelled));
    let nothing = json!({"type": "work_result", "payload": {"status": "success"}});
    assert_eq!(read(Kind::WorkResult, &nothing).err(), Some(Lack::Output));
    let unsaid = json!({"type": "work_result", "payload": {"status": "done", "output": ""}});
    assert_eq!(read(Kind::WorkResult, &unsaid).err(), Some(Lack::Mark));
}

#[test]
fn a_bare_status_is_progress() {
    for payload in
        [json!({"status": "running"}), json!({"status": "paused"}), json!({"step": {"name": "x"}}), json!({})]
    {
        for message in [json!({"type": "work_status", "payload": payload}), json!({"payload": {"status": "running"}})] {
            let reply = read(Kind::WorkStatus, &message).expect("it says enough");
            assert!(matches!(reply.meaning, Meaning::Running(_)), "{message}");
        }
    }
    let step = json!({"status": "running", "progress_percent": "40", "step": {"name": "sorting", "number": null}});
    let reply = read(Kind::WorkStatus, &envelope("work_status", &step)).expect("it says enough");
    let Meaning::Running(progress) = reply.meaning else { panic!("it runs") };
    assert_eq!(
        (progress.percent, progress.step.map(|step| step.get().to_owned())),
        (None, Some("\"sorting\"".to_owned()))
    );
}

#[test]
fn a_bare_error_is_a_failure() {
    for (payload, expected) in [
        (json!({"error_code": 5001}), Failure::Timeout),
        (json!({"error_code": 5002, "error_context": null}), Failure::Unavailable),
        (json!({"error_code": 5901, "error_message": 7}), Failure::Cancelled),
        (json!({"error_code": 7}), Failure::AgentFailed),
        (json!({"error_code": "5001"}), Failure::AgentFailed),
    ] {
        for message in [json!({"type": "error", "payload": payload}), json!({"payload": payload})] {
            assert_eq!(failure(read(Kind::MessageError, &message)), Some(expected), "{message}");
        }
    }
    assert_eq!(failure(read(Kind::MessageError, &json!({"type": "error"}))), Some(Failure::AgentFailed));
}

/// An agent whose process died over the work cannot know how much of it was done (MSG-8). It says so in its details,
/// where our own doors say it, and then the job does not say that it knows. An agent cannot say that a repeat is safe.
#[test]
fn an_agent_that_does_not_know_whether_it_did_the_work_is_believed() {
    let repeat = |reply: Result<Reply, Lack>| match reply.expect("it is read").meaning {
        Meaning::Ended(Err(failed)) => failed.repeat,
        Meaning::Ended(Ok(_)) | Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => panic!("it failed"),
    };
    for (said, understood) in [("unknown", Some(Repeat::Unknown)), ("never", None), ("safe", None), ("", None)] {
        let details = json!({"repeat": said});
        let error = json!({"code": "INTERRUPTED", "message": "It died.", "details": details});
        let run = json!({"request_id": JOB, "status": "error", "ok": false, "outputs": {}, "error": error});
        assert_eq!(repeat(read(Kind::RunResponse, &run)), understood, "{run}");
        let mut error = error;
        error["recoverable"] = json!(false);
        let task = json!({"id": JOB, "status": "failed", "error": error});
        assert_eq!(repeat(read(Kind::TaskResponse, &task)), understood, "{task}");
        let mut result = envelope("work_result", &json!({"task_id": JOB, "status": "failed", "output": "It died."}));
        result["x_custom_fields"] = json!({"x_crosspoint": {"from": "message.work_result", "details": details}});
        assert_eq!(repeat(read(Kind::WorkResult, &result)), understood, "{result}");
    }
}

/// MSG-16: read, with a warning and no error.
#[test]
fn the_later_dialect_is_read_with_a_warning() {
    let result = json!({"task_id": JOB, "status": "completed", "output": "done", "duration_ms": 1_500,
        "agent_id": "x", "resources_used": {"anything": true}, "error_message": null});
    let mut message = envelope("work_result", &result);
    message["priority"] = json!(3);
    let reply = read(Kind::WorkResult, &message).expect("it is read");
    assert!(errors(&reply).is_empty() && !reply.report.findings.is_empty(), "{:?}", reply.report);
    let Meaning::Ended(Ok(success)) = reply.meaning else { panic!("it is a success") };
    assert_eq!(success.usage.map(|usage| usage.get().to_owned()), Some(r#"{"duration_seconds":1.5}"#.to_owned()));
    let error = envelope("error", &json!({"error_code": 1234, "error_message": "own", "context": {}}));
    let reply = read(Kind::MessageError, &error).expect("it is read");
    assert!(errors(&reply).is_empty() && !reply.report.findings.is_empty(), "{:?}", reply.report);
    assert_eq!(failure(Ok(reply)), Some(Failure::AgentFailed));
}

/// ALL-11: an optional member of any type is a warning, and is not used.
#[test]
fn optional_members_of_the_wrong_type_are_warnings() {
    for (place, kind) in [("x_custom_fields", Kind::WorkResult), ("priority", Kind::WorkResult)] {
        for wrong in [json!(null), json!([1]), json!("x")] {
            let payload = json!({"task_id": JOB, "status": "success", "exit_code": 0, "output": "done",
                "resources_used": {"duration_seconds": 1, "gpu_vram_mb": wrong, "cpu_time_ms": wrong}});
            let mut message = envelope("work_result", &payload);
            message[place] = wrong;
            let reply = read(kind, &message).expect("it is read");
            assert!(errors(&reply).is_empty() && !reply.report.findings.is_empty(), "{message}: {:?}", reply.report);
            assert!(is_success(Ok(reply)));
        }
    }
}

#[test]
fn the_id_of_a_reply_is_that_of_its_task_before_that_of_its_request() {
    let id = |kind, message: &Value| read(kind, message).expect("it is read").request_id;
    let result = envelope("work_result", &json!({"task_id": TASK, "status": "success", "output": ""}));
    assert_eq!(id(Kind::WorkResult, &result).as_deref(), Some(TASK));
    let error =
        envelope("error", &json!({"error_code": 5900, "error_message": "", "error_context": {"task_id": TASK}}));
    assert_eq!(id(Kind::MessageError, &error).as_deref(), Some(TASK));
    let error = envelope("error", &json!({"error_code": 5900, "error_message": "", "error_context": {}}));
    assert_eq!(id(Kind::MessageError, &error).as_deref(), Some(JOB));
}

#[test]
fn types_that_the_operator_added_break_nothing() {
    let payload = json!({"task_id": JOB, "status": "success", "exit_code": 0, "output": "",
        "resources_used": {"duration_seconds": 1}});
    let mut message = envelope("work_result", &payload);
    message["from_agent"] = json!("gpu");
    let bytes = Bytes::from(message.to_string());
    let plain = reply::read(Kind::WorkResult, &bytes).expect("it is read");
    assert_eq!(errors(&plain), ["MSG-1.4"]);
    let known = reply::read_of(Kind::WorkResult, &bytes, &["gpu".into()]).expect("it is read");
    assert!(known.report.findings.is_empty(), "{:?}", known.report);
}
