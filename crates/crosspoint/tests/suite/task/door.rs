//! The task door: simple, polling, questions, cancel, repeats, and ids as their callers spell them.

use serde_json::{Value, json};

use crate::support::programs::bash;
use crate::support::server::{Server, until};
use crate::support::task_caller::{encoded, request};

/// An agent that does one job at a time.
pub(crate) const ONE: &str =
    "[[agent]]\nname = \"one\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\nwork = [\"w\"]\nconcurrency = 1\n";

const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";

#[test]
fn a_caller_that_waits_gets_the_result_and_a_repeat_gets_the_same() {
    let server = Server::start();
    let body = format!(r#"{{"id":"{UUID}","type":"echo","payload":{{"b":[1,2.50],"a":"\u0041"}}}}"#);
    let task = server.submit_task("?wait=60", &body);
    assert_eq!((task.status, task.word()), (200, "completed"), "{:?}", task.answer);
    assert!(task.answer.text().contains(r#""result":{"b":[1,2.50],"a":"\u0041"}"#), "as it was written");
    assert_eq!(task.answer.header("location"), Some(&*format!("/tasks/{UUID}")));
    assert_eq!((task.answer.header("preference-applied"), task.warnings()), (None, Value::Null));
    let metadata = &task.document["metadata"];
    assert_eq!((&metadata["agent"], &metadata["retryCount"]), (&json!("echo"), &json!(0)));
    assert!(metadata["startedAt"].is_string() && metadata["completedAt"].is_string(), "{metadata}");
    assert!(metadata["duration_ms"].is_u64(), "{metadata}");
    // The same payload spelled differently, in another envelope.
    let again =
        format!(r#"{{"payload":{{"a":"A","b":[1,2.5]}},"id":"{UUID}","type":"echo","context":{{"priority":"low"}}}}"#);
    assert_eq!(server.submit_task("", &again).answer.text(), task.answer.text());
    assert_eq!(server.poll(UUID).answer.text(), task.answer.text());
    assert_eq!(server.job_of_task(UUID)["priority"], "normal", "it is the first that counts");
}

#[test]
fn a_caller_that_polls_sees_it_pending_in_progress_and_completed() {
    let server = Server::configured(ONE);
    server.post("/api/v1/agents/one/drain", "");
    let task = server.submit_task("", &request(UUID, "w", &json!({"seconds": 0.3})));
    assert_eq!((task.status, task.word()), (202, "pending"));
    assert_eq!(task.answer.header("location"), Some(&*format!("/tasks/{UUID}")));
    assert_eq!(server.poll(UUID).word(), "pending");
    server.post("/api/v1/agents/one/drain", r#"{"drained":false}"#);
    let mut seen = vec!["pending".to_owned()];
    let mut steps = Vec::new();
    let last = until("it ends", || {
        let task = server.poll(UUID);
        steps.push(task.document["metadata"]["x_crosspoint"]["percent"].clone());
        seen.push(task.word().to_owned());
        Some(task).filter(|task| task.word() == "completed")
    });
    seen.dedup();
    assert_eq!(seen, ["pending", "in_progress", "completed"]);
    assert!(steps.iter().any(Value::is_number), "progress is shown on the way: {steps:?}");
    assert_eq!(last.document["result"], json!({"seconds": 0.3}));
    assert_eq!(server.poll(UUID).answer.text(), last.answer.text(), "a finished task never changes");
}

#[test]
fn a_poll_that_waits_is_answered_when_it_has_ended() {
    let server = Server::start();
    server.submit_task("", &request(UUID, "slow_echo", &json!({"seconds": 0.2})));
    let task = server.settled(UUID);
    assert_eq!((task.status, task.word()), (200, "completed"));
    // A wait that is over before the task is.
    let other = request("other", "slow_echo", &json!({"seconds": 600}));
    let task = server.submit_task("?wait=0.05", &other);
    assert_eq!((task.status, task.word()), (202, "in_progress"));
    let task = server.task("GET", "/tasks/other?wait=0.05", &[], "");
    assert_eq!((task.status, task.word()), (200, "in_progress"));
}

#[test]
fn the_prefer_header_waits_too_as_far_as_is_allowed_and_the_query_wins() {
    let server = Server::configured("[server]\nwait_seconds_max = 1\n");
    let post = |id: &str, query: &str, prefer: &str| {
        let body = request(id, "slow_echo", &json!({"seconds": 600}));
        server.task("POST", &format!("/tasks{query}"), &[("prefer", prefer)], &body)
    };
    let applied = |prefer: &str, query: &str| {
        let task = post(prefer, query, prefer);
        assert_eq!((task.status, task.word()), (202, "in_progress"), "{:?}", task.answer);
        task.answer.header("preference-applied").map(str::to_owned)
    };
    assert_eq!(applied("respond-async, wait=100", ""), Some("wait=1".to_owned()));
    assert_eq!(applied("wait=0", ""), Some("wait=0".to_owned()));
    assert_eq!(applied("wait=1", "?wait=0.1"), None);
    assert_eq!(applied("wait=soon", ""), None, "what cannot be read is no preference");
    let refused = post("x", "?wait=2", "wait=1");
    assert_eq!((refused.status, &refused.document["error"]["code"]), (400, &json!("INVALID_INPUT")));
    let ended = request("quick", "echo", &json!({}));
    let task = server.task("POST", "/tasks", &[("prefer", "wait=1")], &ended);
    assert_eq!((task.status, task.answer.header("preference-applied")), (200, Some("wait=1")));
    let task = server.task("GET", "/tasks/quick", &[("prefer", "wait=1")], "");
    assert_eq!((task.status, task.answer.header("preference-applied")), (200, Some("wait=1")));
}

/// Asks twice, and returns both answers.
const ASKS_TWICE: &str = r#"
read -r input
echo '@crosspoint {"ask": {"prompt": "Name?", "schema": {"type": "string"}, "more": [1]}}'
read -r name
echo '@crosspoint {"ask": {"prompt": "Really?"}}'
read -r really
echo "{\"name\": $name, \"really\": $really}"
"#;

#[test]
fn a_caller_that_waits_is_asked_and_the_answer_goes_down() {
    let server = Server::configured(&bash("asks", ASKS_TWICE, "ask = true"));
    let path = format!("/tasks/{UUID}/input");
    let early = server.task("POST", &path, &[], r#"{"input":1}"#);
    assert_eq!((early.status, &early.document["error"]["code"]), (404, &json!("INVALID_FIELD_VALUE")));
    // These waits would last longer than the test waits, if the question did not end them.
    let task = server.submit_task("?wait=300", &request(UUID, "asks", &json!({})));
    assert_eq!((task.status, task.word()), (202, "input_required"));
    let asked = json!({"prompt": "Name?", "schema": {"type": "string"}, "more": [1]});
    assert_eq!(task.document["inputRequest"], asked);
    assert_eq!(server.settled(UUID).document["inputRequest"], asked);
    let task = server.task("POST", &format!("{path}?wait=300"), &[], r#"{"input":"Ada\n"}"#);
    assert_eq!((task.status, &task.document["inputRequest"]["prompt"]), (202, &json!("Really?")));
    let task = server.task("POST", &path, &[("prefer", "wait=300")], r#"{"input":{"yes":true}}"#);
    assert_eq!((task.status, task.word()), (200, "completed"));
    assert_eq!(task.document["result"], json!({"name": "Ada\n", "really": {"yes": true}}));
    let late = server.task("POST", &path, &[], r#"{"input":{"yes":true}}"#);
    assert_eq!((late.status, &late.document["error"]["code"]), (409, &json!("INVALID_INPUT")));
    assert_eq!(late.document["error"]["details"]["clause"], "TASK-3.2");
    assert_eq!(server.poll(UUID).answer.text(), task.answer.text());
}

#[test]
fn an_answer_without_a_question_is_refused_and_changes_nothing() {
    let server = Server::start();
    server.submit_task("", &request(UUID, "slow_echo", &json!({"seconds": 600})));
    let refused = server.task("POST", &format!("/tasks/{UUID}/input"), &[], r#"{"input":1}"#);
    let error = &refused.document["error"];
    assert_eq!((refused.status, &error["code"]), (409, &json!("INVALID_INPUT")));
    assert_eq!((&error["details"]["clause"], &error["details"]["repeat"]), (&json!("TASK-4.3"), &json!("never")));
    assert_eq!((&refused.document["id"], server.poll(UUID).word()), (&json!(UUID), "in_progress"));
    // An answer may wait for its result, or not.
    server.submit_task("?wait=60", &request("asks", "ask", &json!({})));
    let answered = server.task("POST", "/tasks/asks/input", &[], r#"{"input":null}"#);
    assert!([200, 202].contains(&answered.status), "{:?}", answered.answer);
    assert_eq!(server.settled("asks").document["result"], json!({"answer": null}));
}

#[test]
fn a_task_is_cancelled_once_and_one_that_has_ended_is_not() {
    let server = Server::start();
    for (id, work) in [("running", "slow_echo"), ("asking", "ask")] {
        server.submit_task("", &request(id, work, &json!({"seconds": 600})));
        let task = server.task("POST", &format!("/tasks/{id}/cancel"), &[], "");
        assert_eq!((task.status, task.word()), (200, "cancelled"), "{:?}", task.answer);
        let again = server.task("POST", &format!("/tasks/{id}/cancel"), &[], "");
        assert_eq!((again.status, again.answer.text()), (200, task.answer.text()));
        assert_eq!(server.poll(id).answer.text(), task.answer.text());
        let late = server.task("POST", &format!("/tasks/{id}/input"), &[], r#"{"input":1}"#);
        assert_eq!((late.status, &late.document["error"]["details"]["clause"]), (409, &json!("TASK-3.2")));
        let repeat = server.submit_task("", &request(id, work, &json!({"seconds": 600})));
        assert_eq!((repeat.status, repeat.word()), (200, "cancelled"), "a repeat is the same task, also then");
    }
    let done = server.submit_task("?wait=60", &request("done", "echo", &json!({})));
    let refused = server.task("POST", "/tasks/done/cancel", &[], "");
    assert_eq!((refused.status, &refused.document["error"]["code"]), (409, &json!("INVALID_INPUT")));
    assert_eq!(server.poll("done").document["result"], done.document["result"]);
}

#[test]
fn a_failure_is_told_with_its_code_and_whether_to_repeat() {
    let server = Server::start();
    for (failure, code, recoverable, repeat) in [
        ("timeout", "TIMEOUT", true, "unknown"),
        ("unavailable", "AGENT_UNAVAILABLE", true, "unknown"),
        ("invalid", "INVALID_INPUT", true, "never"),
        ("unauthenticated", "UNAUTHENTICATED", true, "never"),
        ("resource_limit", "AGENT_BUSY", true, "unknown"),
        ("unsupported", "CAPABILITY_NOT_FOUND", false, "never"),
        ("agent_failed", "INTERNAL_ERROR", false, "never"),
        ("delegation", "DELEGATION_FAILED", false, "never"),
        ("internal", "INTERNAL_ERROR", true, "unknown"),
    ] {
        // One attempt is enough here, even for failures that are retried. A breaker that they may have opened is
        // closed.
        let body = json!({"id": failure, "type": "fail", "payload": {"failure": failure, "message": "m"}, "retryPolicy": {"maxAttempts": 1}});
        server.post("/api/v1/agents/fail/breaker", r#"{"state":"closed"}"#);
        let task = server.submit_task("?wait=60", &body.to_string());
        assert_eq!((task.status, task.word()), (200, "failed"), "{:?}", task.answer);
        let error = &task.document["error"];
        assert_eq!((&error["code"], &error["recoverable"]), (&json!(code), &json!(recoverable)), "{failure}");
        assert_eq!((&error["message"], &error["details"]["repeat"]), (&json!("m"), &json!(repeat)), "{failure}");
    }
}

#[test]
fn ids_are_those_of_the_caller_byte_for_byte() {
    let server = Server::start();
    let long = "é".repeat(256);
    for id in [
        "a/b",
        "../x",
        "..",
        "a b",
        "a%2Fb",
        "%",
        "?wait=1",
        "#",
        "a+b",
        "Łódź",
        "\u{1F600}",
        "\"quoted\"",
        "back\\slash",
        "new\nline",
        "\u{0}",
        "\u{7f}",
        "'",
        "<>",
        "input",
        "events",
        " ",
        "e\u{301}",
        "é",
        "{id}",
        "*",
        ";x=1",
        &long,
    ] {
        let payload = json!({"for": id});
        let task = server.submit_task("?wait=60", &request(id, "echo", &payload));
        assert_eq!((&task.document["id"], &task.document["result"]), (&json!(id), &payload));
        let place = task.answer.header("location").expect("a place").to_owned();
        assert!(place.is_ascii() && !place[7..].contains(['/', '?', '#', ' ']), "{place}");
        let found = server.task("GET", &place, &[], "");
        assert_eq!((found.status, &found.document["id"], &found.document["result"]), (200, &json!(id), &payload));
        assert_eq!(server.poll(id).document["id"], id);
        let cancelled = server.task("POST", &format!("{place}/cancel"), &[], "");
        assert_eq!((cancelled.status, &cancelled.document["id"]), (409, &json!(id)));
        assert_eq!(server.job_of_task(id)["request_id"], id);
        assert_eq!(task.warnings(), json!(["TASK-102: `id` is not a UUID"]));
    }
    // Escapes are a spelling of an id, not a part of it.
    let task = server.submit_task("", r#"{"id":"\u0141\u00f3d\u017a","type":"echo","payload":{"for":"Łódź"}}"#);
    assert_eq!((task.status, &task.document["id"]), (200, &json!("Łódź")), "it is the task of before");
    let unknown = server.task("GET", &format!("/tasks/{}", encoded("never/seen")), &[], "");
    assert_eq!((unknown.status, &unknown.document["id"]), (404, &json!("never/seen")));
}

#[test]
fn unknown_members_are_kept_and_are_no_mistake() {
    let server = Server::start();
    let body = format!(
        r#"{{"id":"{UUID}","more":{{"x":1.0}},"type":"echo","payload":{{"q":1}},"context":{{"tenant":7,"user":"u"}},"routing":{{"hop":1}}}}"#
    );
    let task = server.submit_task("?wait=60", &body);
    assert_eq!((task.status, task.warnings()), (200, Value::Null));
    let job = server.job_of_task(UUID)["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.get(&format!("/api/v1/jobs/{job}/document")).text(), body);
}

#[test]
fn an_idempotency_key_is_the_key_and_the_task_is_still_known_by_its_id() {
    let server = Server::start();
    let post = |key: Option<&str>, id: &str, n: u32| {
        let headers: Vec<(&str, &str)> = key.into_iter().map(|key| ("idempotency-key", key)).collect();
        server.task("POST", "/tasks?wait=60", &headers, &request(id, "echo", &json!({"n": n})))
    };
    let first = post(Some("k1"), "a", 1);
    assert_eq!((first.status, &first.document["id"]), (200, &json!("a")));
    assert_eq!(server.poll("a").document["result"], json!({"n": 1}));
    let repeat = post(Some("k1"), "b", 1);
    assert_eq!(
        (repeat.status, &repeat.document["id"]),
        (200, &json!("b")),
        "it is the task of that key, under the caller's own id"
    );
    assert_eq!(repeat.answer.header("location"), Some("/tasks/a"));
    assert_eq!(post(Some("k1"), "a", 2).status, 409);
    // No two tasks have one id, whatever key came with them.
    assert_eq!(post(Some("k2"), "a", 1).answer.text(), first.answer.text());
    assert_eq!(post(None, "a", 1).answer.text(), first.answer.text());
    let other = post(Some("k2"), "a", 3);
    assert_eq!((other.status, &other.document["error"]["details"]["field"]), (409, &json!("payload")));
    assert_eq!(post(None, "a", 3).status, 409);
    assert_eq!(server.job_of_task("a")["state"], "completed");
    // The keys of other doors are separate, except for the header.
    let native = server.submit(r#"{"work":"echo","request_id":"a","input":{"n":9}}"#);
    assert_eq!(native["door"], "native");
    let native =
        server.request("POST", "/api/v1/jobs", &[("idempotency-key", "k1")], br#"{"work":"echo","input":{"n":1}}"#);
    assert_eq!(native.json()["request_id"], "a");
    // A job from another door is found by the job's id.
    let run = r#"{"request_id":"r","task_type":"echo","inputs":{"n":7}}"#;
    assert_eq!(server.request("POST", "/agents/run/sync", &[("idempotency-key", "k3")], run.as_bytes()).status, 200);
    let joined = post(Some("k3"), "c", 7);
    assert_eq!(
        (joined.status, &joined.document["id"], &joined.document["result"]),
        (200, &json!("c"), &json!({"n": 7}))
    );
    let place = joined.answer.header("location").expect("it is somewhere").to_owned();
    assert_eq!(server.get(&place).json()["result"], json!({"n": 7}));
    // So is a job that is tried again.
    let job = server.job_of_task("a")["id"].as_str().expect("an id").to_owned();
    let again = server.post(&format!("/api/v1/jobs/{job}/retry"), "").json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.get(&format!("/tasks/{again}?wait=60")).json()["status"], "completed");
}

/// ALL-1: a proxy drops the header of a repeat, and the work is not done again.
#[test]
fn an_id_that_came_with_a_known_key_is_the_tasks_from_then_on() {
    let mut server = Server::start();
    let post = |server: &Server, key: Option<&str>, id: &str, n: u32| {
        let headers: Vec<(&str, &str)> = key.into_iter().map(|key| ("idempotency-key", key)).collect();
        server.task("POST", "/tasks?wait=60", &headers, &request(id, "echo", &json!({"n": n})))
    };
    post(&server, Some("Z"), "U1", 1);
    let run = r#"{"request_id":"r","task_type":"echo","inputs":{"n":1}}"#;
    assert_eq!(server.request("POST", "/agents/run/sync", &[("idempotency-key", "K")], run.as_bytes()).status, 200);
    for (key, id) in [("Z", "U2"), ("K", "U10")] {
        assert_eq!((post(&server, Some(key), id, 1).status, server.poll(id).document["id"].clone()), (200, json!(id)));
    }
    let check = |server: &Server| {
        for id in ["U1", "U2", "U10"] {
            let shown = server.poll(id);
            assert_eq!((&shown.document["id"], shown.word()), (&json!(id), "completed"));
            let events = server.get(&format!("/tasks/{id}/events"));
            assert!((events.status, events.text().contains(&format!(r#""id":"{id}""#))) == (200, true), "{events:?}");
            let cancelled = server.task("POST", &format!("/tasks/{id}/cancel"), &[], "{}");
            assert_eq!((cancelled.status, &cancelled.document["id"]), (409, &json!(id)), "it has ended");
            let repeat = post(server, None, id, 1).document;
            assert_eq!((&repeat["id"], &repeat["result"]), (&json!(id), &json!({"n": 1})));
            assert_eq!(repeat["metadata"]["completedAt"], shown.document["metadata"]["completedAt"]);
            assert_eq!(post(server, None, id, 2).status, 409, "with another payload");
        }
        assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(2));
        let two = post(server, Some("K"), "U2", 1);
        let message = "this Idempotency-Key is that of one task, and this id that of another";
        assert_eq!((two.status, &two.document["error"]["message"]), (409, &json!(message)));
    };
    check(&server);
    server.kill();
    server.restart();
    check(&server);
}

#[test]
fn what_was_accepted_is_polled_on_after_the_server_was_killed() {
    let mut server = Server::start();
    server.submit_task("?wait=60", &request("done", "echo", &json!({"n": 1})));
    server.submit_task("?wait=60", &request("asks", "ask", &json!({"prompt": "?"})));
    server.task("POST", "/tasks", &[("idempotency-key", "k")], &request("slow", "slow_echo", &json!({"seconds": 0.5})));
    let done = server.poll("done").answer.text();
    server.kill();
    server.restart();
    assert_eq!(server.poll("done").answer.text(), done);
    let slow = server.settled("slow");
    assert_eq!((slow.word(), &slow.document["result"]), ("completed", &json!({"seconds": 0.5})));
    assert_eq!(server.settled("asks").word(), "input_required");
    let answered = server.task("POST", "/tasks/asks/input?wait=60", &[], r#"{"input":"yes"}"#);
    assert_eq!(answered.document["result"], json!({"answer": "yes"}));
    let repeat = server.submit_task("", &request("done", "echo", &json!({"n": 1})));
    assert_eq!((repeat.status, repeat.word()), (200, "completed"));
    let conflict = server.task("POST", "/tasks", &[], &request("slow", "slow_echo", &json!({"seconds": 1})));
    assert_eq!(conflict.status, 409, "ids are known over a restart, also of those that came with a header");
}
