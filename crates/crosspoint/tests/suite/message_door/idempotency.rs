//! "Idempotency (Essential!)" of the contract, line by line, with this server as the agent of its caller; and what
//! makes a repeat the same job (ALL-1, MSG-8).

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::support::message_post::{ENDPOINT, new_id};
use crate::support::message_sender::{asking, sample};
use crate::support::programs::bash;
use crate::support::server::{Server, head, until};

/// A server whose program leaves a line for each time that it is run.
fn counting() -> Server {
    Server::configured(&bash("count", "echo run >> runs; echo done", "type = \"infra\""))
}

fn runs(server: &Server) -> usize {
    fs::read_to_string(server.directory().join("runs")).unwrap_or_default().lines().count()
}

#[test]
fn lines_1_to_4_a_request_id_that_was_seen_gets_the_cached_result_and_no_second_execution() {
    let server = counting();
    let request = asking("count", &json!({}));
    let first = server.outcome_of(&request);
    assert_eq!((first.payload()["output"].as_str(), runs(&server)), (Some("done\n"), 1));
    for _ in 0..3 {
        assert_eq!(server.outcome_of(&request).answer.text(), first.answer.text());
    }
    assert_eq!((runs(&server), server.job_count()), (1, 1));
}

#[test]
fn lines_5_and_6_after_a_network_error_the_same_request_id_gets_the_result() {
    let server = Server::configured(&bash("count", "echo run >> runs; sleep 0.5; echo done", "type = \"infra\""));
    let request = asking("count", &json!({}));
    let body = request.to_string();
    let mut leaving = server.connect();
    let sent = head("POST", &format!("{ENDPOINT}?wait=60"), &[], body.len()) + &body;
    leaving.write_all(sent.as_bytes()).expect("it can be sent");
    until("it is a job", || (server.job_count() == 1).then_some(()));
    drop(leaving);
    let said = server.outcome_of(&request);
    assert_eq!((said.kind(), said.payload()["output"].as_str()), ("work_result", Some("done\n")));
    assert_eq!((runs(&server), server.job_count()), (1, 1));
}

#[test]
fn the_cached_result_survives_a_crash() {
    let mut server = counting();
    let request = asking("count", &json!({}));
    let first = server.outcome_of(&request);
    server.kill();
    server.restart();
    assert_eq!(server.outcome_of(&request).answer.text(), first.answer.text());
    assert_eq!(runs(&server), 1);
}

#[test]
fn two_that_send_the_same_request_at_once_get_the_same_answer() {
    let server = counting();
    let request = asking("count", &json!({}));
    let answers: Vec<String> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..8).map(|_| scope.spawn(|| server.outcome_of(&request).answer.text())).collect();
        senders.into_iter().map(|sender| sender.join().expect("it was answered")).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!((runs(&server), server.job_count()), (1, 1));
}

#[test]
fn a_retry_with_another_message_id_and_time_is_the_same_work() {
    let server = counting();
    let request = asking("count", &json!({"a": 1, "b": [2.0, "x"]}));
    let first = server.outcome_of(&request);
    let mut retry = request.clone();
    retry["message_id"] = json!(new_id());
    retry["timestamp"] = json!("2026-01-19T04:30:00+01:00");
    retry["x_custom_fields"] = json!({"try": 2});
    retry["payload"]["parameters"] = json!({"b": [2, "x"], "a": 1.0});
    retry["payload"]["hints"] = json!({"max_duration_seconds": 5});
    let again = server.outcome_of(&retry);
    assert_eq!((again.answer.text(), runs(&server)), (first.answer.text(), 1));
}

/// MSG-17: the answer on the connection of a repeat has the ids of the repeat.
#[test]
fn a_repeat_with_other_task_and_trace_ids_is_the_same_work() {
    let server = counting();
    let request = asking("count", &json!({}));
    server.outcome_of(&request);
    let mut retry = request.clone();
    (retry["trace_id"], retry["payload"]["task_id"]) = (json!(new_id()), json!(new_id()));
    let again = server.outcome_of(&retry);
    assert_eq!(again.document["request_id"], request["request_id"]);
    assert_eq!(again.document["trace_id"], retry["trace_id"]);
    assert_eq!(again.payload()["task_id"], retry["payload"]["task_id"]);
    assert_eq!((runs(&server), server.job_count()), (1, 1));
}

#[test]
fn the_same_request_id_with_other_parameters_or_other_work_is_5903() {
    let server = Server::configured(&(sample("echo", "dig", "") + &sample("echo", "fill", "")));
    let request = asking("dig", &json!({"depth": 1}));
    let first = server.outcome_of(&request);
    let mut others = [request.clone(), request.clone(), request.clone(), request.clone()];
    others[0]["payload"]["parameters"] = json!({"depth": 2});
    others[1]["payload"]["parameters"] = json!({});
    others[2]["payload"]["work_type"] = json!("fill");
    others[3]["payload"].as_object_mut().expect("an object").remove("parameters");
    for other in &others {
        let said = server.message("?wait=60", &[], &other.to_string());
        assert_eq!((said.status, said.code()), (409, Some(5903)), "{:?}", said.answer);
        said.answers(other);
        assert_eq!(said.context()["repeat"], "never", "{}", said.context());
    }
    assert_eq!((server.outcome_of(&request).answer.text(), server.job_count()), (first.answer.text(), 1));
}

#[test]
fn an_idempotency_key_stands_in_for_the_request_id() {
    let server = counting();
    let (one, other) = (asking("count", &json!({})), asking("count", &json!({})));
    let send =
        |key: &str, request: &Value| server.message("?wait=60", &[("idempotency-key", key)], &request.to_string());
    let first = send("k", &one);
    let again = send("k", &other);
    assert_eq!((first.status, again.status, runs(&server)), (200, 200, 1));
    assert_eq!(again.document["request_id"], other["request_id"], "each caller has its own id back");
    // The request id alone does not count beside the header.
    assert_eq!(send("l", &one).status, 200);
    assert_eq!((runs(&server), server.job_count()), (2, 2));
    let mut another = other.clone();
    another["payload"]["parameters"] = json!({"n": 1});
    let conflict = send("k", &another);
    assert_eq!((conflict.status, conflict.code()), (409, Some(5903)), "{:?}", conflict.answer);
}
