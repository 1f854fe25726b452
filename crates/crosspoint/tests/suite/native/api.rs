//! The native API of a running server: every endpoint.

use serde_json::{Value, json};

use crate::native::refusals::refused;
use crate::support::server::{Answer, Server};

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

#[test]
fn a_job_is_accepted_done_and_shown() {
    let server = Server::start();
    let body = r#"{ "work": "echo", "input": {"b": 1.50, "a": [ "\u00e9" ]}, "request_id": "r-1", "mine": true }"#;
    let answer = server.post("/api/v1/jobs?wait=60", body);
    let job = answer.json();
    assert_eq!((answer.status, &job["state"]), (200, &json!("completed")), "{job}");
    let names: Vec<&String> = job.as_object().expect("it is an object").keys().collect();
    assert_eq!(names.len(), 12, "{job}");
    let order = r#""request_id":"r-1","door":"native","work":"echo","agent":"echo","state":"completed","attempts":1,"priority":"normal","progress":{"percent":null,"step":null},"created_at":""#;
    assert!(answer.text().contains(order), "{}", answer.text());
    // The caller's spelling comes back unchanged.
    assert!(answer.text().contains(r#""outputs":{"b": 1.50, "a": [ "\u00e9" ]},"artifacts":[]}"#), "{}", answer.text());
    let location = format!("/api/v1/jobs/{}", id(&job));
    assert_eq!(answer.header("location"), Some(location.as_str()));
    assert_eq!(server.get(&location).json(), job);
    assert_eq!(server.get(&format!("{location}/document")).text(), body);
}

#[test]
fn a_job_without_input_has_an_empty_one() {
    let server = Server::start();
    let job = server.post("/api/v1/jobs?wait=60", r#"{"work":"echo","request_id":null,"limits":null}"#).json();
    assert_eq!(job["outcome"]["outputs"], json!({}));
    assert_eq!(job["request_id"], job["id"], "a request without a name gets the job's own id");
}

#[test]
fn a_repeat_is_the_same_job_and_other_work_a_conflict() {
    let server = Server::start();
    let first = server.post("/api/v1/jobs?wait=60", r#"{"work":"echo","request_id":"r","input":{"a":1,"b":[2,3]}}"#);
    let again = server.post(
        "/api/v1/jobs?wait=60",
        "{\n \"input\": { \"b\":[2, 3.0], \"a\": 1 },\n \"request_id\": \"\\u0072\", \"work\": \"echo\" }",
    );
    assert_eq!((again.status, again.json()), (200, first.json()), "order and white space do not count");
    for other in [r#"{"work":"echo","request_id":"r","input":{"a":2}}"#, r#"{"work":"ask","request_id":"r"}"#] {
        let error = refused(&server.post("/api/v1/jobs", other), 409, "conflict");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(&id(&first.json()))), "{error}");
        assert_eq!((&error["repeat"], &error["clause"]), (&json!("never"), &json!("ALL-1")));
    }
    let keyed = |key: &str, body: &str| {
        server.request("POST", "/api/v1/jobs", &[("Idempotency-Key", key)], body.as_bytes()).json()
    };
    let job = keyed("k", r#"{"work":"echo","request_id":"r"}"#);
    assert_ne!(job["id"], first.json()["id"], "the header is the key where it is given");
    assert_eq!(keyed("k", r#"{"work":"echo","request_id":"another"}"#)["id"], job["id"]);
    let (one, two) = (server.submit(r#"{"work":"echo"}"#), server.submit(r#"{"work":"echo"}"#));
    assert_ne!(one["id"], two["id"], "without a key each request is a job of its own");
}

#[test]
fn health_is_told() {
    let server = Server::start();
    let health = server.get("/health");
    assert_eq!((health.status, health.json()), (200, json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})));
    let ready = server.get("/health/ready");
    assert_eq!((ready.status, ready.json()), (200, json!({"status": "ready"})));
}

#[test]
fn a_caller_that_waits_gets_the_outcome_and_one_that_does_not_gets_the_job_as_it_is() {
    let server = Server::start();
    let body = r#"{"work":"slow_echo","input":{"seconds":0.3,"message":"hello"}}"#;
    let accepted = server.post("/api/v1/jobs", body);
    assert_eq!(accepted.status, 202);
    let path = format!("/api/v1/jobs/{}", id(&accepted.json()));
    let early = server.get(&format!("{path}?wait=0.01"));
    assert_eq!(early.status, 200);
    let job = server.get(&format!("{path}?wait=60")).json();
    assert_eq!((&job["state"], &job["progress"]["percent"]), (&json!("completed"), &json!(100)));
    assert_eq!(job["progress"]["step"], "Step 10 of 10");
    assert_eq!(job["outcome"]["outputs"]["message"], "hello");
}

#[test]
fn a_question_is_asked_answered_and_asked_no_more() {
    let server = Server::start();
    let job = id(&server.submit(r#"{"work":"ask","input":{"prompt":"Why?"}}"#));
    let waiting = server.in_state(&job, "waiting");
    assert_eq!(waiting["question"], json!({"prompt": "Why?"}));
    assert_eq!(waiting["stuck"]["reason"], "waiting for a person's answer");
    let path = format!("/api/v1/jobs/{job}/answer");
    assert_eq!(refused(&server.post(&path, "{}"), 400, "invalid")["at"], "/input");
    let answered = server.post(&path, r#"{"input": {"because": 1}}"#);
    assert_eq!(answered.status, 200);
    let ended = server.ended(&job);
    assert_eq!(ended["outcome"]["outputs"], json!({"answer": {"because": 1}}));
    refused(&server.post(&path, r#"{"input": "late"}"#), 409, "conflict");
    let other = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":60}}"#));
    server.in_state(&other, "running");
    refused(&server.post(&format!("/api/v1/jobs/{other}/answer"), r#"{"input":1}"#), 409, "conflict");
}

#[test]
fn a_job_is_cancelled_once_and_a_finished_one_is_not() {
    let server = Server::start();
    let job = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":60}}"#));
    let path = format!("/api/v1/jobs/{job}/cancel");
    let cancelled = server.post(&path, "");
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &json!("cancelled")));
    assert_eq!(cancelled.json()["outcome"]["failure"]["code"], "cancelled");
    assert_eq!(server.post(&path, "").json(), cancelled.json(), "a second cancel gets the same");
    let done = server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).json();
    refused(&server.post(&format!("/api/v1/jobs/{}/cancel", id(&done)), ""), 409, "conflict");
}

#[test]
fn failures_are_told_and_can_be_tried_again_as_a_new_job() {
    let server = Server::start();
    let answer = server.post("/api/v1/jobs?wait=60", r#"{"work":"fail","input":{"message":"No \"luck\"."}}"#);
    let job = answer.json();
    assert_eq!((answer.status, &job["state"]), (200, &json!("failed")));
    let failure = json!({"code": "agent_failed", "message": "No \"luck\".", "repeat": "never"});
    assert_eq!(job["outcome"]["failure"], failure);
    let other = server.post("/api/v1/jobs?wait=60", r#"{"work":"fail","input":{"failure":"resource_limit"}}"#).json();
    assert_eq!(other["outcome"]["failure"]["code"], "resource_limit");
    let path = format!("/api/v1/jobs/{}/retry", id(&job));
    let retry = |key: &str| server.request("POST", &path, &[("idempotency-key", key)], b"");
    let again = retry("k");
    assert_eq!((again.status, &again.json()["parent"]), (202, &job["id"]));
    assert_eq!(again.header("location"), Some(format!("/api/v1/jobs/{}", id(&again.json())).as_str()));
    assert_eq!(server.ended(&id(&again.json()))["outcome"], job["outcome"]);
    assert_eq!(id(&retry("k").json()), id(&again.json()), "the key keeps it from happening twice");
    let running = id(&server.submit(r#"{"work":"ask"}"#));
    refused(&server.post(&format!("/api/v1/jobs/{running}/retry"), ""), 409, "conflict");
}

#[test]
fn a_caller_may_allow_repeats_and_limit_output_and_time() {
    let server = Server::start();
    let body = r#"{"work":"fail","input":{"failure":"timeout"},"limits":{"attempts":2}}"#;
    let job = id(&server.submit(body));
    let retrying = server.in_state(&job, "retrying");
    assert!(retrying["stuck"]["reason"].as_str().is_some_and(|why| why.contains("attempt 2 is due at")), "{retrying}");
    let ended = server.ended(&job);
    assert_eq!((&ended["attempts"], &ended["outcome"]["failure"]["repeat"]), (&json!(2), &json!("unknown")));
    let body = r#"{"work":"slow_echo","input":{"seconds":0},"limits":{"output_bytes":20}}"#;
    assert_eq!(server.post("/api/v1/jobs?wait=60", body).json()["outcome"]["failure"]["code"], "resource_limit");
    let body = r#"{"work":"slow_echo","input":{"seconds":600},"limits":{"seconds":0.1}}"#;
    assert_eq!(server.post("/api/v1/jobs?wait=60", body).json()["outcome"]["failure"]["code"], "timeout");
}

/// The events of a stream that has ended: number, name, data.
fn events(answer: &Answer) -> Vec<(u64, String, Value)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{name} in {event}"))
    };
    let text = answer.text();
    let events = text.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
    events
        .map(|event| {
            let data = serde_json::from_str(&field(event, "data: ")).expect("data is JSON");
            (field(event, "id: ").parse().expect("a number"), field(event, "event: "), data)
        })
        .collect()
}

#[test]
fn events_come_in_order_to_the_outcome_and_from_any_of_them_on() {
    let server = Server::start();
    let job = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":0.3}}"#));
    let path = format!("/api/v1/jobs/{job}/events");
    // The job is followed while it happens, and the stream ends by itself.
    let all = events(&server.get(&path));
    let numbers: Vec<u64> = all.iter().map(|event| event.0).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<u64>>());
    let names: Vec<&str> = all.iter().map(|event| event.1.as_str()).collect();
    assert_eq!((names[0], names[1], names.last()), ("accepted", "started", Some(&"completed")));
    assert_eq!(names.iter().filter(|name| **name == "output").count(), 10);
    assert!(names.contains(&"progress"));
    let last = &all[all.len() - 1];
    assert_eq!(last.2["outcome"]["status"], "completed");
    assert_eq!(all[2].2.get("at").map(Value::is_string), Some(true));
    let from =
        |headers: &[(&str, &str)], query: &str| events(&server.request("GET", &format!("{path}{query}"), headers, b""));
    assert_eq!(from(&[], ""), all, "a second reader sees the same");
    assert_eq!(from(&[("Last-Event-ID", "2")], ""), all[2..]);
    assert_eq!(from(&[], "?after=3"), all[3..]);
    assert_eq!(from(&[("Last-Event-ID", "4")], "?after=3"), all[4..], "the header wins");
    assert_eq!(from(&[("Last-Event-ID", &last.0.to_string())], ""), []);
    assert_eq!(from(&[("Last-Event-ID", "4000000000")], ""), []);
    refused(&server.request("GET", &path, &[("Last-Event-ID", "x")], b""), 400, "invalid");
    refused(&server.get(&format!("{path}?after=-1")), 400, "invalid");
}

#[test]
fn text_with_line_breaks_stays_one_event() {
    let server = Server::start();
    let body = "{\"work\":\"echo\",\"input\":{\n\"a\":\n1\n}}";
    let job = server.post("/api/v1/jobs?wait=60", body).json();
    let stream = server.get(&format!("/api/v1/jobs/{}/events?after=2", id(&job))).text();
    let data: String = stream.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let data: Value = serde_json::from_str(&data).expect("the lines together are JSON");
    assert_eq!(data["outcome"]["outputs"], json!({"a": 1}));
}

#[test]
fn agents_are_shown_drained_and_broken_and_jobs_say_why_they_wait() {
    let server = Server::start();
    let agents = server.get("/api/v1/agents").json();
    let names: Vec<&Value> = agents["agents"].as_array().expect("a list").iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["ask", "echo", "fail", "slow_echo"]);
    let echo = json!({"name": "echo", "contract": "builtin", "work": ["echo"], "concurrency": 256, "running": 0,
        "breaker": {"state": "closed", "failures": 0, "until": null}, "drained": false, "configured": true});
    assert_eq!(server.get("/api/v1/agents/echo").json(), echo);
    let tell = |what: &str, body: &str| server.post(&format!("/api/v1/agents/echo/{what}"), body).json();
    assert_eq!(tell("drain", "")["drained"], true);
    let job = id(&server.submit(r#"{"work":"echo"}"#));
    let why = |part: &str| {
        let stuck = server.job(&job)["stuck"].clone();
        assert!(stuck["reason"].as_str().is_some_and(|reason| reason.contains(part)), "{stuck}");
        assert!(stuck["since"].is_string(), "{stuck}");
    };
    why("agent echo is paused by an operator");
    assert_eq!(
        tell("breaker", r#"{"state":"open"}"#)["breaker"],
        json!({"state": "open", "failures": 0, "until": null})
    );
    assert_eq!(tell("drain", r#"{"drained":false}"#)["drained"], false);
    why("agent echo's breaker was opened by an operator");
    assert_eq!(tell("breaker", r#"{"state":"closed"}"#)["breaker"], echo["breaker"]);
    assert_eq!(server.ended(&job)["state"], "completed");
    let wrong =
        |what: &str, body: &str| refused(&server.post(&format!("/api/v1/agents/echo/{what}"), body), 400, "invalid");
    assert_eq!(wrong("drain", r#"{"drained":1}"#)["at"], "/drained");
    assert_eq!(wrong("breaker", r#"{"state":"ajar"}"#)["at"], "/state");
    wrong("breaker", "");
}

#[test]
fn five_silences_open_the_breaker_and_work_waits_for_it() {
    let server = Server::start();
    for _ in 0..5 {
        server.post("/api/v1/jobs?wait=60", r#"{"work":"fail","input":{"failure":"timeout"}}"#);
    }
    let breaker = server.get("/api/v1/agents/fail").json()["breaker"].clone();
    assert_eq!((&breaker["state"], &breaker["failures"]), (&json!("open"), &json!(5)));
    assert!(breaker["until"].is_string(), "{breaker}");
    let job = server.submit(r#"{"work":"fail"}"#);
    let stuck = server.job(&id(&job))["stuck"]["reason"].clone();
    assert!(stuck.as_str().is_some_and(|why| why.contains("agent fail's breaker is open until 2")), "{stuck}");
}

#[test]
fn higher_priorities_go_first() {
    let server = Server::configured(
        "[[agent]]\nname = \"one\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\nwork = [\"w\"]\nconcurrency = 1\n",
    );
    server.post("/api/v1/agents/one/drain", "");
    let body = |priority: &str| format!(r#"{{"work":"w","priority":"{priority}","input":{{"seconds":0.05}}}}"#);
    let jobs = ["low", "normal", "urgent", "high"].map(|priority| server.submit(&body(priority)));
    let shown: Vec<&Value> = jobs.iter().map(|job| &job["priority"]).collect();
    assert_eq!(shown, ["low", "normal", "urgent", "high"]);
    server.post("/api/v1/agents/one/drain", r#"{"drained":false}"#);
    let mut ended: Vec<Value> = jobs.iter().map(|job| server.ended(&id(job))).collect();
    ended.sort_by_key(|job| job["updated_at"].as_str().map(str::to_owned));
    let order: Vec<&Value> = ended.iter().map(|job| &job["priority"]).collect();
    assert_eq!(order, ["urgent", "high", "normal", "low"]);
}

/// All pages of a list.
fn listed(server: &Server, query: &str) -> Vec<String> {
    let (mut ids, mut before) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/api/v1/jobs?{query}{before}")).json();
        ids.extend(page["jobs"].as_array().expect("a list").iter().map(id));
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => return ids,
        }
    }
}

#[test]
fn lists_are_paged_and_filtered() {
    let server = Server::start();
    let submit = |at: usize| match at % 3 {
        0 => id(&server.post("/api/v1/jobs?wait=60", r#"{"work":"fail"}"#).json()),
        1 => id(&server.submit(r#"{"work":"ask"}"#)),
        _ => id(&server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).json()),
    };
    let mut all: Vec<String> = (0..20).map(submit).collect();
    all.reverse();
    let every_third = |first: usize| all.iter().rev().skip(first).step_by(3).rev().cloned().collect::<Vec<String>>();
    for limit in [1, 3, 7, 20, 500] {
        let of = |query: &str| listed(&server, &format!("limit={limit}{query}"));
        assert_eq!(of(""), all, "limit {limit}");
        assert_eq!(of("&state=failed"), every_third(0), "limit {limit}");
        assert_eq!(of("&work=ask"), every_third(1), "limit {limit}");
        assert_eq!(of("&agent=echo&state=completed"), every_third(2), "limit {limit}");
        assert_eq!(of("&door=native&work=no%20such"), Vec::<String>::new());
        assert_eq!(of("&door=task"), Vec::<String>::new());
    }
    for job in every_third(1) {
        server.in_state(&job, "waiting");
    }
    assert_eq!(listed(&server, "state=waiting&limit=2"), every_third(1));
}

#[test]
fn lists_leave_large_outputs_out() {
    let server = Server::start();
    let body = format!(r#"{{"work":"echo","input":"{}"}}"#, "x".repeat(5_000));
    let whole = server.post("/api/v1/jobs?wait=60", &body).json();
    assert_eq!(whole["outcome"]["outputs"].as_str().map(str::len), Some(5_000));
    let outcome = server.get("/api/v1/jobs").json()["jobs"][0]["outcome"].clone();
    assert_eq!((&outcome["status"], &outcome["outputs"]), (&json!("completed"), &Value::Null));
    assert!(outcome["bytes"].as_u64().is_some_and(|bytes| bytes > 5_000), "{outcome}");
}
