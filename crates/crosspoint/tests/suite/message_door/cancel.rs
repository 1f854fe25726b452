//! A caller's `error` 5901 cancels its work (MSG-19).

use serde_json::json;

use crate::run::examples::valid;
use crate::support::message_post::{new_id, pulling};
use crate::support::message_sender::{asking, cancelling, sample};
use crate::support::server::Server;

fn server() -> Server {
    Server::configured(&(sample("ask", "approve", "") + &sample("echo", "dig", "")))
}

#[test]
fn an_error_5901_with_the_request_id_cancels_the_work() {
    let server = server();
    let request = asking("approve", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let said = server.say(&cancelling(&request));
    assert_eq!((said.status, said.kind(), said.code()), (200, "error", Some(5901)), "{:?}", said.answer);
    valid("message.error", &said.answer.body);
    assert_eq!(server.job_of_message(&request)["state"], "cancelled");
    // The outcome of the work is that it was cancelled, for whoever asks.
    let told = server.outcome_of(&request);
    assert_eq!(told.code(), Some(5901), "{:?}", told.answer);
    told.answers(&request);
    let again = server.say(&cancelling(&request));
    assert_eq!((again.status, again.code()), (200, Some(5901)), "{:?}", again.answer);
}

#[test]
fn an_error_5901_with_another_request_id_finds_the_work_by_its_task_id() {
    let server = server();
    let request = asking("approve", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let mut cancel = cancelling(&request);
    cancel["request_id"] = json!(new_id());
    let said = server.say(&cancel);
    assert_eq!((said.status, said.code()), (200, Some(5901)), "{:?}", said.answer);
    assert_eq!(server.job_of_message(&request)["state"], "cancelled");
}

/// A sender that gives every message a request id of its own names the work in the context.
#[test]
fn an_error_5901_may_name_the_request_in_its_context() {
    let server = server();
    let request = asking("approve", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let mut cancel = cancelling(&request);
    cancel["request_id"] = json!(new_id());
    cancel["payload"]["error_context"] = json!({"request_id": request["request_id"]});
    assert_eq!(server.say(&cancel).code(), Some(5901));
    assert_eq!(server.job_of_message(&request)["state"], "cancelled");
}

#[test]
fn work_that_has_ended_stays_as_it_is_and_the_answer_says_how() {
    let server = server();
    let request = asking("dig", &json!({"depth": 2}));
    let done = server.outcome_of(&request);
    let said = server.say(&cancelling(&request));
    assert_eq!((said.status, said.kind()), (200, "work_result"), "{:?}", said.answer);
    assert_eq!(said.payload(), done.payload());
    assert_eq!(server.job_of_message(&request)["state"], "completed");
}

#[test]
fn unknown_work_is_not_found() {
    let server = server();
    let request = asking("dig", &json!({}));
    let said = server.say(&cancelling(&request));
    assert_eq!((said.status, said.code()), (404, Some(5003)), "{:?}", said.answer);
    assert_eq!((&said.document["request_id"], server.job_count()), (&request["request_id"], 0));
    // Another error, a status and a result that are about nothing are not found either.
    let mut other = cancelling(&request);
    other["payload"]["error_code"] = json!(5900);
    assert_eq!(server.say(&other).status, 404);
}

#[test]
fn only_5901_cancels() {
    let server = server();
    let request = asking("approve", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    for code in [5001, 5900, 5902] {
        let mut error = cancelling(&request);
        error["payload"]["error_code"] = json!(code);
        let said = server.say(&error);
        assert_eq!((said.status, said.code()), (404, Some(5003)), "{code}: {:?}", said.answer);
    }
    assert_ne!(server.job_of_message(&request)["state"], "cancelled");
}

#[test]
fn an_agent_that_has_the_work_is_told_that_it_is_cancelled() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\ntype = \"infra\"\n"));
    let request = asking("dig", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let given = server.pulled("infra");
    assert_eq!(server.say(&cancelling(&request)).code(), Some(5901));
    let told = server.pulled("infra");
    valid("message.error", told.to_string().as_bytes());
    assert_eq!(told["payload"]["error_code"], 5901, "{told}");
    for id in ["request_id", "trace_id"] {
        assert_eq!(told[id], given[id], "{told}");
    }
    assert_eq!(told["payload"]["error_context"]["task_id"], given["payload"]["task_id"], "{told}");
    assert_eq!((&told["from_agent"], &told["to_agent"]), (&json!("orchestrator"), &json!("infra")), "{told}");
}
