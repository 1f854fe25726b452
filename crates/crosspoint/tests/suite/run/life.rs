//! Runs outlive their callers, their connections and the server: a caller that asks again gets the same run.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::run_caller::{Following, SYNC, request};
use crate::support::server::{Server, head, until};

const ASK: &str = r#"{"request_id":"r","task_type":"ask","inputs":{"prompt":"?"}}"#;

fn answer(server: &Server, job: &Value) {
    let id = job["id"].as_str().expect("an id");
    assert_eq!(server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "yes"}"#).status, 200);
}

#[test]
fn a_caller_that_joins_in_the_middle_is_told_how_far_it_is_and_then_on() {
    let server = Server::start();
    let body = request("r", "slow_echo", &json!({"seconds": 20}));
    let mut first = Following::begin(&server, &body);
    assert_eq!(first.next().0, "started");
    let reached = until("it goes on", || first.next().1["percent"].as_f64().filter(|percent| *percent >= 10.0));
    // The first caller leaves in the middle.
    let job = first.job();
    drop(first);
    let mut second = Following::begin(&server, &body);
    assert_eq!((second.job(), second.next().0.as_str()), (job.clone(), "started"));
    let (name, data) = second.next();
    assert_eq!(name, "progress");
    assert!(data["percent"].as_f64().is_some_and(|percent| percent >= reached), "{data}");
    let further = second.next();
    assert!(further.1["percent"].as_f64() > data["percent"].as_f64(), "{further:?}");
    server.cancel(&job);
    let events = second.rest();
    let (last, _) = events.split_last().expect("there is an end");
    assert_eq!((last.0.as_str(), &last.1["error"]["code"]), ("final", &json!("CANCELLED")));
    assert_eq!(server.job(&job)["attempts"], 1, "it was begun once");
}

#[test]
fn many_follow_one_run_at_both_endpoints_and_all_get_its_one_end() {
    let server = Server::start();
    let streams: Vec<Following> = (0..20).map(|_| Following::begin(&server, ASK)).collect();
    std::thread::scope(|scope| {
        let waits: Vec<_> = (0..5).map(|_| scope.spawn(|| server.run_sync(ASK))).collect();
        answer(&server, &server.run_in_state("r", "waiting"));
        let ends: Vec<Value> = streams.into_iter().map(|one| one.rest().pop().expect("an end").1).collect();
        assert!(ends.iter().all(|end| *end == ends[0] && end["outputs"]["answer"] == "yes"), "{ends:?}");
        for wait in waits {
            assert_eq!(wait.join().expect("it was answered").json(), ends[0]);
        }
    });
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_caller_that_leaves_stops_nothing() {
    let server = Server::start();
    let mut left = server.connect();
    left.write_all((head("POST", SYNC, &[], ASK.len()) + ASK).as_bytes()).expect("it can be sent");
    let job = server.run_in_state("r", "waiting");
    drop(left);
    drop(Following::begin(&server, ASK));
    answer(&server, &job);
    let ended = server.run_sync(ASK);
    assert_eq!((ended.status, &ended.json()["outputs"]), (200, &json!({"answer": "yes"})));
    assert_eq!(server.job(job["id"].as_str().expect("an id"))["attempts"], 1);
}

/// ALL-5.4
#[test]
fn a_wait_that_is_too_long_is_given_up_and_the_run_goes_on() {
    let server = Server::configured("[server]\nsync_wait_seconds = 0.2\n");
    let late = server.run_sync(ASK);
    let (document, job) = (late.json(), server.run_in_state("r", "waiting"));
    let details = &document["error"]["details"];
    assert_eq!((late.status, &document["error"]["code"]), (504, &json!("TIMEOUT")));
    assert_eq!((&document["request_id"], &document["task_type"]), (&json!("r"), &json!("ask")));
    assert_eq!((&details["repeat"], &details["clause"]), (&json!("unknown"), &json!("ALL-5.4")));
    let message = document["error"]["message"].as_str().expect("a text");
    assert!(message.contains(job["id"].as_str().expect("an id")), "it names the job: {message}");
    // A stream waits for as long as it takes.
    let mut following = Following::begin(&server, ASK);
    assert_eq!((following.next().0, following.next().0), ("started".to_owned(), "progress".to_owned()));
    answer(&server, &job);
    assert_eq!(following.rest().pop().expect("an end").1["ok"], true);
    assert_eq!(server.run_sync(ASK).json()["outputs"], json!({"answer": "yes"}));
}

#[test]
fn a_server_that_stops_ends_its_streams_and_waits_and_the_next_goes_on_with_the_runs() {
    let mut server = Server::start();
    let mut following = Following::begin(&server, ASK);
    assert_eq!((following.next().0, following.next().0), ("started".to_owned(), "progress".to_owned()));
    let waits = std::thread::scope(|scope| {
        let wait = scope.spawn(|| server.run_sync(ASK));
        // The call waits once the server counts it among the requests under way. If the stop comes earlier, the call is
        // refused in the same way.
        server.run_in_state("r", "waiting");
        server.signal("TERM");
        wait.join().expect("it was answered")
    });
    let end = following.rest();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    let told = |document: &Value| {
        let error = &document["error"];
        assert_eq!((&document["request_id"], &error["code"]), (&json!("r"), &json!("AGENT_UNAVAILABLE")), "{document}");
        assert!(["unknown", "safe"].contains(&error["details"]["repeat"].as_str().expect("a word")), "{document}");
    };
    // RUN-7: one terminal event in any case, which says how things stand.
    assert_eq!(end.len(), 1, "{end:?}");
    assert_eq!((end[0].0.as_str(), &end[0].1["error"]["details"]["repeat"]), ("final", &json!("unknown")));
    assert_eq!(end[0].1["task_type"], "ask");
    told(&end[0].1);
    assert_eq!((waits.status, waits.header("retry-after")), (503, Some("1")));
    told(&waits.json());
    server.restart();
    let mut again = Following::begin(&server, ASK);
    assert_eq!(again.next().0, "started");
    let asked = until("it asks again", || again.next().1.get("question").cloned());
    assert_eq!(asked, json!({"prompt": "?"}));
    answer(&server, &server.run_in_state("r", "waiting"));
    assert_eq!(again.rest().pop().expect("an end").1["outputs"], json!({"answer": "yes"}));
}

#[test]
fn a_caller_that_comes_while_it_stops_is_told_so_in_the_shape_of_the_contract() {
    let mut server = Server::configured("[server]\ndrain_seconds = 60\n");
    let slow = request("slow", "slow_echo", &json!({"seconds": 2}));
    let mut following = Following::begin(&server, &slow);
    until("it runs", || (following.next().0 == "progress").then_some(()));
    // A caller that is already connected is heard to the end.
    let mut late = server.connect();
    server.signal("TERM");
    assert_eq!(following.rest().pop().expect("an end").1["error"]["code"], "AGENT_UNAVAILABLE");
    let body = request("late", "echo", &json!({}));
    late.write_all((head("POST", SYNC, &[], body.len()) + &body).as_bytes()).expect("it can be sent");
    let answer = crate::support::server::Answer::read(&mut std::io::BufReader::new(late)).expect("it is answered");
    let document = answer.json();
    assert_eq!((answer.status, &document["request_id"]), (503, &json!("late")), "{answer:?}");
    assert_eq!((&document["error"]["details"]["repeat"], answer.header("retry-after")), (&json!("safe"), Some("1")));
    assert_eq!(server.wait().code(), Some(0));
    server.restart();
    assert_eq!(server.run_sync(&slow).json()["ok"], true, "what was under way came to its end");
}

#[test]
fn a_server_that_is_killed_breaks_its_streams_off_and_the_next_goes_on_with_the_runs() {
    let mut server = Server::start();
    let body = request("r", "slow_echo", &json!({"seconds": 2}));
    let mut following = Following::begin(&server, &body);
    until("it runs", || (following.next().0 == "progress").then_some(()));
    server.kill();
    while let Ok(Some((name, _))) = following.try_next() {
        assert_ne!(name, "final", "it was not said that it ended");
    }
    assert!(following.try_next().is_err(), "the stream has no end");
    server.restart();
    let events = server.run_stream(&body);
    let (last, told) = events.split_last().expect("there is an end");
    assert_eq!((told[0].0.as_str(), &last.1["outputs"]), ("started", &json!({"seconds": 2})));
}
