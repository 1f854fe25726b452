//! Callers that wait at the message door, whose wait runs out, and work that waits for a person (ALL-5, MSG-17).

use serde_json::json;

use crate::support::message_post::{pulling, status};
use crate::support::message_sender::{asking, sample};
use crate::support::server::{Server, until};

#[test]
fn a_wait_that_runs_out_is_202_with_a_status_and_the_work_goes_on() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\ntype = \"infra\"\n"));
    let request = asking("dig", &json!({}));
    let said = server.message("?wait=0.1", &[], &request.to_string());
    assert_eq!((said.status, said.kind()), (202, "work_status"), "{:?}", said.answer);
    said.answers(&request);
    let payload = said.payload();
    assert_eq!((&payload["status"], &payload["progress_percent"]), (&json!("running"), &json!(0)), "{payload}");
    let given = server.pulled("infra");
    server.takes(&status(&given, 40));
    let shown = until("the progress is shown", || {
        let said = server.message("?wait=0", &[], &request.to_string());
        Some(said).filter(|said| said.payload()["progress_percent"] == 40)
    });
    assert_eq!((shown.status, &shown.payload()["step"]["name"]), (202, &json!("Dig")), "{:?}", shown.answer);
    shown.answers(&request);
    server.takes(&crate::support::message_post::result(&given, "done"));
    assert_eq!(server.outcome_of(&request).payload()["output"], "done");
}

#[test]
fn work_that_waits_for_a_person_is_paused_with_the_question_and_goes_on_with_the_answer() {
    let server = Server::configured(&sample("ask", "approve", ""));
    let request = asking("approve", &json!({"prompt": "Ship it?"}));
    let said = until("it asks", || {
        let said = server.message("?wait=0.2", &[], &request.to_string());
        Some(said).filter(|said| said.payload()["status"] == "paused")
    });
    assert_eq!((said.status, said.kind()), (202, "work_status"), "{:?}", said.answer);
    said.answers(&request);
    let carried = &said.document["x_custom_fields"]["x_crosspoint"];
    assert!(carried.to_string().contains("Ship it?"), "{carried}");
    let path = said.answer.header("location").expect("it names the job").to_owned();
    assert_eq!(server.post(&format!("{path}/answer"), r#"{"input": "yes"}"#).status, 200);
    let done = server.outcome_of(&request);
    assert_eq!((done.kind(), &done.payload()["output"]), ("work_result", &json!(r#"{"answer":"yes"}"#)));
}

#[test]
fn a_wait_that_is_longer_than_the_server_allows_is_refused() {
    let server = Server::configured(&(sample("ask", "approve", "") + "[server]\nwait_seconds_max = 0.1\n"));
    let request = asking("approve", &json!({}));
    let said = server.message("?wait=60", &[], &request.to_string());
    assert_eq!((said.status, said.code()), (400, Some(5003)), "{:?}", said.answer);
    said.answers(&request);
    assert_eq!((server.job_count(), server.message("?wait=0.1", &[], &request.to_string()).status), (0, 202));
}

/// A status that tells the same has the same id: it is the same message.
#[test]
fn a_status_that_is_asked_for_again_is_the_same_message() {
    let server = Server::configured(&sample("ask", "approve", ""));
    let request = asking("approve", &json!({}));
    let paused = || {
        until("it asks", || {
            let said = server.say(&request);
            Some(said).filter(|said| said.payload()["status"] == "paused")
        })
    };
    let (first, again) = (paused(), paused());
    assert_eq!(first.answer.text(), again.answer.text());
}
