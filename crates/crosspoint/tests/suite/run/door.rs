//! The run door: what callers of the run contract get, at both of its endpoints.

use std::io::Write;

use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::{Kind, run};
use serde_json::{Value, json};

use crate::support::programs::{bash, python};
use crate::support::run_caller::{Following, STREAM, SYNC, faultless, request};
use crate::support::server::{Answer, Server, head};

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_run_is_answered_with_what_came_of_it() {
    let server = Server::start();
    let answer = server.run_sync(&request("r-1", "echo", &json!({"a": [1, 2.50, "é"]})));
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.text(),
        r#"{"request_id":"r-1","task_type":"echo","status":"ok","ok":true,"outputs":{"a":[1,2.5,"é"]},"artifacts":[],"provenance":{},"usage":{},"warnings":[]}"#
    );
    let place = answer.header("location").expect("it says where the job is").to_owned();
    let job = server.get(&place).json();
    assert_eq!((&job["door"], &job["work"], &job["request_id"]), (&json!("run"), &json!("echo"), &json!("r-1")));
    assert_eq!(server.run_sync(&request("r-2", "echo", &json!({}))).json()["outputs"], json!({}));
}

#[test]
fn a_request_without_inputs_is_one_with_none() {
    let server = Server::start();
    assert_eq!(server.run_sync(r#"{"request_id":"r","task_type":"echo"}"#).json()["outputs"], json!({}));
    // So a request with explicit empty inputs is a repeat of it.
    assert_eq!(server.run_sync(r#"{"request_id":"r","task_type":"echo","inputs":{}}"#).status, 200);
}

#[test]
fn a_stream_tells_how_it_goes_and_ends_with_the_very_answer() {
    let server = Server::start();
    let body = request("r-1", "slow_echo", &json!({"seconds": 1, "a": "é"}));
    let events = server.run_stream(&body);
    assert_eq!(events[0], ("started".to_owned(), json!({"request_id": "r-1", "task_type": "slow_echo"})));
    assert_eq!(names(&events).iter().filter(|name| **name == "final").count(), 1);
    let (last, told) = events.split_last().expect("there are events");
    assert_eq!(last.0, "final");
    let steps: Vec<f64> = told[1..]
        .iter()
        .map(|(name, data)| {
            assert_eq!((name.as_str(), &data["request_id"]), ("progress", &json!("r-1")));
            assert!(data["step"].is_string(), "{data}");
            data["percent"].as_f64().expect("a number")
        })
        .collect();
    assert!(steps.len() > 2 && steps.is_sorted() && steps.last() == Some(&100.0), "{steps:?}");
    assert_eq!(last.1, server.run_sync(&body).json(), "asked for again, it is the same");
}

/// Progress just before the end is sent, however fast the end comes.
#[test]
fn the_last_step_is_told_before_the_end() {
    let script = r#"read -r input; echo '@crosspoint {"progress": 40, "step": "Nearly"}'; echo '{"a":1}'"#;
    let server = Server::configured(&bash("fast", script, ""));
    let events = server.run_stream(&request("r", "fast", &json!({})));
    assert_eq!(names(&events), ["started", "progress", "final"]);
    assert_eq!((&events[1].1["percent"], &events[1].1["step"]), (&json!(40), &json!("Nearly")));
    assert_eq!(events[2].1["outputs"], json!({"a": 1}));
    // RUN-10.2: a run that has ended streams only its end.
    assert_eq!(names(&server.run_stream(&request("r", "fast", &json!({})))), ["started", "final"]);
}

#[test]
fn a_question_is_told_as_progress_and_answered_elsewhere() {
    let server = Server::start();
    let body = request("r", "ask", &json!({"prompt": "Ship it?"}));
    let mut first = Following::begin(&server, &body);
    assert_eq!(first.next().0, "started");
    let (name, data) = first.next();
    assert_eq!((name.as_str(), &data["question"]), ("progress", &json!({"prompt": "Ship it?"})));
    // A caller that joins is told the same.
    let mut second = Following::begin(&server, &body);
    assert_eq!((second.next().0, second.next().1), ("started".to_owned(), data));
    let job = first.job();
    assert_eq!(job, second.job());
    server.post(&format!("/api/v1/jobs/{job}/answer"), r#"{"input": "yes"}"#);
    let (first, second) = (first.rest(), second.rest());
    assert_eq!(names(&first), ["final"]);
    assert_eq!(first, second);
    assert_eq!(first[0].1["outputs"], json!({"answer": "yes"}));
}

#[test]
fn each_failure_has_its_code_its_status_and_says_whether_to_repeat() {
    let server = Server::start();
    for failure in Failure::ALL {
        let name = failure.name();
        let body = request(name, "fail", &json!({"failure": name, "message": "No."}));
        let answer = server.run_sync(&body);
        let (code, status) = run::failure::write(failure);
        let document = answer.json();
        assert_eq!(answer.status, status, "{name}");
        assert_eq!((&document["status"], &document["ok"]), (&json!("error"), &json!(false)), "{name}");
        assert_eq!((&document["outputs"], &document["request_id"]), (&json!({}), &json!(name)));
        assert_eq!((&document["error"]["code"], &document["error"]["message"]), (&json!(code), &json!("No.")));
        let job = server.get(answer.header("location").expect("a job")).json();
        assert_eq!(document["error"]["details"]["repeat"], job["outcome"]["failure"]["repeat"], "{name}");
        // A stream reports the failure in its last event, and its status is still 200.
        let events = server.run_stream(&body);
        assert_eq!(names(&events), ["started", "final"], "{name}");
        assert_eq!(events[1].1, document);
    }
}

#[test]
fn a_repeat_is_the_same_run_and_gets_the_same_bytes() {
    let mut server = Server::start();
    let first = server.run_sync(r#"{"request_id":"r","task_type":"echo","inputs":{"a":1,"b":[2]}}"#);
    let place = first.header("location").map(str::to_owned);
    let others = [
        r#"{"request_id":"r","task_type":"echo","inputs":{"a":1,"b":[2]}}"#,
        r#"{ "task_type": "echo", "inputs": {"b": [2], "a": 1}, "request_id": "\u0072", "user_id": "somebody" }"#,
    ];
    for body in others {
        let again = server.run_sync(body);
        assert_eq!((again.status, again.text(), again.header("location")), (200, first.text(), place.as_deref()));
    }
    server.kill();
    server.restart();
    for body in others {
        assert_eq!(server.run_sync(body).text(), first.text(), "also after a crash");
    }
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn one_id_may_cover_several_tasks_and_stages_and_no_two_inputs() {
    let server = Server::start();
    let answers: Vec<Answer> = [
        r#"{"request_id":"r","task_type":"echo","inputs":{"n":1}}"#,
        r#"{"request_id":"r","task_type":"slow_echo","inputs":{"n":2,"seconds":0}}"#,
        r#"{"request_id":"r","task_type":"echo","stage_id":"s","inputs":{"n":3}}"#,
        r#"{"request_id":"r","task_type":"echo","stage_id":"","inputs":{"n":4}}"#,
    ]
    .into_iter()
    .map(|body| server.run_sync(body))
    .collect();
    let numbers: Vec<Value> = answers.iter().map(|answer| answer.json()["outputs"]["n"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    for path in [SYNC, STREAM] {
        let conflict = server.post(path, r#"{"request_id":"r","task_type":"echo","stage_id":"s","inputs":{"n":1}}"#);
        faultless(&conflict.body, Kind::RunResponse);
        let error = conflict.json()["error"].clone();
        assert_eq!((conflict.status, &error["code"]), (409, &json!("CONFLICT")));
        assert_eq!((&error["details"]["repeat"], &error["details"]["clause"]), (&json!("never"), &json!("ALL-1")));
    }
}

/// The header is the key on every door. Each caller is still answered under its own id.
#[test]
fn an_idempotency_key_makes_it_the_same_run_under_ones_own_id() {
    let server = Server::start();
    let key = [("idempotency-key", "k-1")];
    let native = server.request("POST", "/api/v1/jobs?wait=60", &key, br#"{"work":"echo","input":{"a":1}}"#).json();
    for (path, id) in [(SYNC, "r-1"), (SYNC, "r-2"), (STREAM, "r-3")] {
        let answer = server.request("POST", path, &key, request(id, "echo", &json!({"a": 1})).as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        let place = answer.header("location").expect("a job");
        assert_eq!(place, format!("/api/v1/jobs/{}", native["id"].as_str().expect("an id")));
        assert!(answer.text().contains(&format!(r#""request_id":"{id}""#)), "{answer:?}");
        if path == STREAM {
            faultless(&answer.body, Kind::RunStream);
        }
    }
    let other = server.request("POST", SYNC, &key, request("r-4", "echo", &json!({"a": 2})).as_bytes());
    assert_eq!((other.status, &other.json()["request_id"]), (409, &json!("r-4")));
}

#[test]
fn ids_come_back_byte_for_byte_and_the_document_is_kept_as_it_came() {
    let server = Server::start();
    let ids = [
        "ünï-\u{1f600}",
        "  spaces  ",
        "\"quoted\\\"",
        "line\nbreak\r\n\ttab",
        "\u{0}\u{1f}\u{7f}",
        "data: x\n\nevent: final",
        "\u{2028}\u{feff}",
    ];
    for id in ids {
        let body = format!(
            "{{\"request_id\": {}, \"task_type\": \"echo\", \"tenant\": {{\"x\": [1, 2.50]}}, \"inputs\": {{\"id\": {}}}}}",
            json!(id),
            json!(id)
        );
        let answer = server.run_sync(&body);
        let document = answer.json();
        assert_eq!((&document["request_id"], &document["outputs"]["id"]), (&json!(id), &json!(id)));
        let kept = server.get(&format!("{}/document", answer.header("location").expect("a job")));
        assert_eq!(kept.text(), body);
        let events = server.run_stream(&body);
        assert_eq!(names(&events), ["started", "final"], "{id:?}");
        assert!(events.iter().all(|(_, data)| data["request_id"] == id), "{id:?}");
    }
    // Escapes are another spelling of the same id.
    let spelled = server.run_sync(r#"{"request_id":"\u00fcn\u00ef-\ud83d\ude00","task_type":"echo","tenant":{"x":[1,2.50]},"inputs":{"id":"ünï-😀"}}"#);
    assert_eq!((spelled.status, &spelled.json()["request_id"]), (200, &json!("ünï-😀")));
}

#[test]
fn what_is_loose_about_a_request_is_said_among_the_warnings() {
    let server = Server::start();
    let body = "\u{feff}{\"request_id\":\"r\",\"task_type\":\"echo\",\"inputs\":{\"n\":1e999}}";
    // Few readers accept such a number, and the validator of answers does not either.
    let send = |path: &str| {
        let mut stream = server.connect();
        stream.write_all((head("POST", path, &[], body.len()) + body).as_bytes()).expect("it can be sent");
        Answer::read(&mut std::io::BufReader::new(stream)).expect("it is answered")
    };
    let answer = send(SYNC);
    let text = answer.text();
    let warnings = text.split_once(r#""warnings":"#).expect("there are warnings").1.trim_end_matches('}');
    let clauses: Vec<String> = serde_json::from_str(warnings).expect("they are texts");
    assert!(
        clauses.len() == 2 && clauses[0].starts_with("ALL-106: ") && clauses[1].starts_with("ALL-105: "),
        "{clauses:?}"
    );
    // The number passes through unchanged, and the stream still has its one end.
    assert!(answer.text().contains(r#""outputs":{"n":1e999}"#), "{answer:?}");
    let stream = send(STREAM).text();
    assert!(stream.ends_with(&format!("event: final\ndata: {}\n\n", answer.text())), "{stream}");
}

#[test]
fn artifacts_are_named_and_a_text_is_an_output() {
    let script = r#"
import sys
print('@crosspoint {"artifact": {"name": "a.md", "type": "text/markdown", "content": "A"}}')
print("just text")
"#;
    let server = Server::configured(&python("maker", script, ""));
    let document = server.run_sync(&request("r", "maker", &json!({}))).json();
    assert_eq!((&document["artifacts"], &document["status"]), (&json!(["a.md"]), &json!("ok")));
    assert!(document["outputs"]["output"].as_str().is_some_and(|text| text.contains("just text")), "{document}");
}

#[test]
fn the_callers_trace_is_continued() {
    let server = Server::configured(&bash("tracer", r#"read -r input; echo "{\"trace\":\"$TRACEPARENT\"}""#, ""));
    let trace = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
    let answer = server.request("POST", SYNC, &trace, request("r", "tracer", &json!({})).as_bytes()).json();
    let seen = answer["outputs"]["trace"].as_str().expect("a trace").to_owned();
    assert!(seen.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && seen.ends_with("-01"), "{seen}");
    assert!(!seen.contains("00f067aa0ba902b7"), "every hop is a span of its own");
}

/// Two megabytes, which is more than any buffer on the way takes at once.
#[test]
fn long_outputs_come_whole_at_both_endpoints() {
    let server = Server::start();
    let body = request("r", "echo", &json!({"text": "x".repeat(2 << 20)}));
    let answer = server.run_sync(&body);
    assert_eq!(answer.json()["outputs"]["text"].as_str().map(str::len), Some(2 << 20));
    let events = server.run_stream(&body);
    assert_eq!(events[1].1, answer.json());
}

#[test]
fn a_stream_comes_after_other_answers_over_one_connection_and_to_callers_of_old() {
    let server = Server::start();
    let body = request("r", "echo", &json!({}));
    let mut stream = server.connect();
    // All at once: the answers come in order, and the stream is the last.
    let post =
        |path: &str| format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let requests = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n{}{}", post(SYNC), post(STREAM));
    stream.write_all(requests.as_bytes()).expect("it can be sent");
    let mut reader = std::io::BufReader::new(stream);
    let answers: Vec<Answer> = (0..3).map(|_| Answer::read(&mut reader).expect("it is answered")).collect();
    assert_eq!(answers[0].json()["status"], "ok");
    assert_eq!(answers[1].json()["outputs"], json!({}));
    faultless(&answers[2].body, Kind::RunStream);
    // HTTP/1.0 knows no chunks: the end of the connection is the end of the answer.
    let mut old = server.connect();
    old.write_all(head("POST", STREAM, &[], body.len()).replace("HTTP/1.1", "HTTP/1.0").as_bytes()).expect("sent");
    old.write_all(body.as_bytes()).expect("it can be sent");
    let mut whole = String::new();
    std::io::Read::read_to_string(&mut old, &mut whole).expect("it is read");
    let (head, events) = whole.split_once("\r\n\r\n").expect("there is a head");
    assert!(head.starts_with("HTTP/1.1 200") && !head.contains("chunked"), "{head}");
    faultless(events.as_bytes(), Kind::RunStream);
}

/// RUN-6.6. The test waits for the real interval between comments.
#[test]
fn a_stream_in_which_nothing_happens_is_kept_open_by_comments() {
    let server = Server::start();
    let mut following = Following::begin(&server, &request("r", "ask", &json!({})));
    following.comment();
    server.cancel(&following.job());
    let events = following.rest();
    assert_eq!(names(&events), ["started", "progress", "final"]);
    assert_eq!(events[2].1["error"]["code"], "CANCELLED");
}

#[test]
fn health_and_readiness_have_a_word_for_it() {
    let mut server = Server::start();
    for path in ["/health", "/health/ready"] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.json()["status"].is_string()), (200, true));
    }
    server.stop();
}

#[test]
fn the_log_has_ids_works_and_statuses_and_nothing_of_what_was_said() {
    let mut server = Server::with("", &["--log", "debug"]);
    let secret = json!({"x7secret": "x7secret", "message": "x7secret", "prompt": "x7secret"});
    server.run_sync(&request("r-log-1", "echo", &secret));
    server.run_stream(&request("r-log-2", "fail", &secret));
    server.run_sync(r#"{"request_id":"r-log-3","task_type":"nobody","inputs":{"x7secret":1}}"#);
    server.run_sync(r#"{"request_id":"r-log-4","inputs":["x7secret"]"#);
    server.stop();
    let log = server.log();
    assert!(!log.contains("x7secret"), "{log}");
    for (id, status) in [("r-log-1", 200), ("r-log-2", 200), ("r-log-3", 400), ("r-log-4", 400)] {
        let said = format!("request_id=\"{id}\"");
        let line = log.lines().find(|line| line.ends_with(" request") && line.contains(&said));
        let line = line.unwrap_or_else(|| panic!("{id}: {log}"));
        assert!(line.contains(&format!("status={status}")) && line.contains("duration_ms="), "{line}");
    }
    assert!(log.contains("request_id=\"r-log-3\" work=\"nobody\""), "{log}");
}

/// Unknown members are kept and not used, so the caller is told of one that was perhaps meant as the input.
#[test]
fn a_member_that_was_perhaps_meant_as_inputs_is_a_warning() {
    let server = Server::start();
    let slip = json!({"request_id": "slip", "task_type": "echo", "input": {"a": 1}});
    let answer = server.post("/agents/run/sync", &slip.to_string()).json();
    assert_eq!((&answer["status"], &answer["outputs"]), (&json!("ok"), &json!({})), "{answer}");
    let warning = "RUN-101: the request has no `inputs`, but a member `input`, which is kept and not used";
    assert_eq!(answer["warnings"], json!([warning]), "{answer}");
}
