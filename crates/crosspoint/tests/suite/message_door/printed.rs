//! The complete example of the contract, sent as it is printed, and the rows of its table of errors.

use std::fs;

use serde_json::{Value, json};

use crate::run::examples::valid;
use crate::support::message_post::{pulling, result};
use crate::support::message_sender::{PRINTED, sample};
use crate::support::program::root;
use crate::support::server::Server;

/// What an agent does with the printed request: it gives back the parameters.
const OUTPUT: &str = r#"{"playbook":"deploy_kuma.yml","extra_vars":{"version":"1.4.0"}}"#;

fn printed() -> Value {
    serde_json::from_str(PRINTED).expect("it is JSON")
}

fn server() -> Server {
    Server::configured(&sample("echo", "run_playbook", ""))
}

#[test]
fn the_request_of_the_examples_is_the_printed_one() {
    let kept = fs::read(root().join("testdata/message/work_request-printed.json")).expect("it is there");
    assert_eq!(serde_json::from_slice::<Value>(&kept).expect("it is JSON"), printed());
}

#[test]
fn the_printed_request_runs_through_to_a_result_on_the_same_connection() {
    let server = server();
    let said = server.message("?wait=60", &[], PRINTED);
    assert_eq!((said.status, said.kind()), (200, "work_result"), "{:?}", said.answer);
    valid("message.work_result", &said.answer.body);
    said.answers(&printed());
    let payload = said.payload();
    assert_eq!((&payload["status"], &payload["exit_code"]), (&json!("success"), &json!(0)), "{payload}");
    let output: Value = serde_json::from_str(payload["output"].as_str().expect("a text")).expect("it is JSON");
    assert_eq!(output, serde_json::from_str::<Value>(OUTPUT).expect("it is JSON"), "{payload}");
    assert!(payload["resources_used"]["duration_seconds"].is_u64(), "{payload}");
    let job = server.job_of_message(&printed());
    let location = format!("/api/v1/jobs/{}", job["id"].as_str().expect("an id"));
    assert_eq!(said.answer.header("location"), Some(location.as_str()));
    assert_eq!((&job["door"], &job["work"]), (&json!("message"), &json!("run_playbook")), "{job}");
}

/// MSG-17: the agent has not even asked for the work when the request is answered.
#[test]
fn the_printed_request_without_a_wait_is_accepted_and_told_when_it_is_sent_again() {
    let server = Server::configured(&pulling("infra-1", "work = [\"run_playbook\"]\ntype = \"infra\"\n"));
    let accepted = server.message("", &[], PRINTED);
    assert_eq!((accepted.status, accepted.kind()), (202, "work_status"), "{:?}", accepted.answer);
    valid("message.work_status", &accepted.answer.body);
    accepted.answers(&printed());
    let given = server.pulled("infra-1");
    assert_eq!(given["payload"]["parameters"], printed()["payload"]["parameters"], "{given}");
    server.takes(&result(&given, "Deployment completed successfully."));
    let said = server.message("", &[], PRINTED);
    assert_eq!((said.status, said.kind()), (200, "work_result"), "{:?}", said.answer);
    valid("message.work_result", &said.answer.body);
    said.answers(&printed());
    assert_eq!((&said.payload()["output"], server.job_count()), (&json!("Deployment completed successfully."), 1));
}

#[test]
fn the_printed_request_sent_again_gets_the_same_answer_and_the_work_is_not_repeated() {
    let server = server();
    let first = server.message("?wait=60", &[], PRINTED);
    for query in ["?wait=60", "?wait=0", ""] {
        let again = server.message(query, &[], PRINTED);
        assert_eq!((again.status, again.answer.text()), (200, first.answer.text()), "{query}");
    }
    assert_eq!((server.job_count(), &server.job_of_message(&printed())["attempts"]), (1, &json!(1)));
}

/// The request comes in the spelling of other programs: other spaces, another order, other letters of ids.
#[test]
fn the_printed_request_in_another_spelling_is_the_same_request() {
    let server = server();
    let first = server.message("?wait=60", &[], PRINTED);
    let mut members: Vec<(String, Value)> = printed().as_object().expect("an object").clone().into_iter().collect();
    members.reverse();
    let backwards: Vec<String> = members.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    let again = server.message("?wait=60", &[], &format!("{{{}}}", backwards.join(" ,\n")));
    assert_eq!(again.answer.text(), first.answer.text());
    assert_eq!(server.job_count(), 1);
}
