//! Agents that die, repeat or contradict themselves, and speak of what is not theirs.

use serde_json::json;

use crate::support::message_post::{Posted, error, failed, new_id, pulling, result, status};
use crate::support::misbehaving_agents::{clauses, one_outcome};
use crate::support::program::{crosspoint, transcript};
use crate::support::scripted_agent::{After, unused_address};
use crate::support::server::{Server, until};

#[test]
fn an_agent_that_dies_over_its_work_is_given_it_again_when_it_is_back() {
    let address = unused_address();
    let agent = Posted::at(address, |_, connection| connection.until_gone());
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.5"));
    let id = server.begin("helper");
    let first = agent.request(1);
    // It is gone with everything that it had.
    drop(agent);
    server.in_state(&id, "retrying");
    let back = Posted::at(address, |request, connection| connection.json(200, &result(request, "done")));
    let job = server.over(&id);
    assert_eq!(job["outcome"]["outputs"], "done", "{job:#}");
    assert_eq!(back.request(1)["request_id"], first["request_id"]);
    one_outcome(&server, &id, "died");
}

#[test]
fn an_agent_that_drops_its_connection_is_unavailable_and_is_told_to_stop() {
    for after in [After::Close, After::Reset] {
        let agent = Posted::answering(move |_, _| after);
        let server = Server::configured(&agent.configuration("helper", ""));
        let job = server.done("helper", &json!({}));
        let failure = &job["outcome"]["failure"];
        assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("unknown")), "{job:#}");
        // Nothing says that it has stopped.
        assert_eq!(agent.cancelled(1)["request_id"], job["id"]);
    }
}

#[test]
fn an_agent_that_takes_its_work_and_dies_is_a_timeout() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.3"));
    let id = server.begin_once("helper");
    agent.request(1);
    drop(agent);
    let failure = server.over(&id)["outcome"]["failure"].clone();
    let said = "The agent gave no sign of life for 0.3 s (silence_seconds).";
    assert_eq!((&failure["code"], &failure["message"]), (&json!("timeout"), &json!(said)));
}

#[test]
fn the_same_result_again_is_fine() {
    let agent = Posted::saying(|request| result(request, "done"));
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.ended(&id);
    // Sent again as it was, and written again: the ids of messages and their times are not what came of the work.
    let first = result(&request, "done");
    let mut later = first.clone();
    (later["message_id"], later["timestamp"]) = (json!(new_id()), json!("2026-01-19T05:00:00Z"));
    for message in [&first, &first, &later] {
        server.takes(message);
    }
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], clauses(&job)), (&json!("done"), vec![]), "{job:#}");
    one_outcome(&server, &id, "twice");
}

#[test]
fn the_same_failure_again_is_fine() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let message = failed(&agent.request(1), "no disk left");
    server.takes(&message);
    server.takes(&message);
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["failure"]["code"], clauses(&job)), (&json!("agent_failed"), vec![]), "{job:#}");
}

#[test]
fn a_result_that_differs_from_the_first_is_on_record_and_the_first_counts() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    for second in [result, failed] {
        let id = server.begin("helper");
        let request =
            until("the request", || agent.had("work_request").into_iter().find(|request| request["request_id"] == *id));
        server.takes(&result(&request, "first"));
        server.takes(&second(&request, "second"));
        let job = server.on_record(&id, "ALL-9.3");
        assert_eq!(job["outcome"]["outputs"], "first", "{job:#}");
        assert_eq!(clauses(&job), ["ALL-9.3"], "{job:#}");
        one_outcome(&server, &id, "differs");
    }
}

#[test]
fn a_status_after_the_result_is_on_record_and_the_agent_is_told_that_the_work_is_over() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", "type = \"infra\""));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.takes(&result(&request, "done"));
    let told = server.hears(&status(&request, 99));
    let document = told.json();
    assert_eq!((told.status, &document["type"]), (200, &json!("error")), "{document:#}");
    assert_eq!(document["payload"]["error_code"], 5901, "{document:#}");
    assert_eq!(document["payload"]["error_context"]["task_id"], json!(id), "{document:#}");
    assert_eq!((&document["request_id"], &document["to_agent"]), (&json!(id), &json!("infra")), "{document:#}");
    let job = server.on_record(&id, "ALL-9.3");
    assert_eq!((&job["outcome"]["outputs"], clauses(&job)), (&json!("done"), vec!["ALL-9.3".to_owned()]), "{job:#}");
}

#[test]
fn a_success_that_comes_after_its_attempt_was_given_up_ends_the_job() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.3"));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.in_state(&id, "retrying");
    // It is not hung, and not to be told to stop: it is asked again.
    server.takes(&status(&request, 50));
    assert!(server.job(&id)["outcome"].is_null());
    server.takes(&result(&request, "late"));
    let job = server.over(&id);
    assert_eq!(job["outcome"]["outputs"], "late", "{job:#}");
    assert!(agent.had("error").is_empty(), "{:?}", agent.had("error"));
    one_outcome(&server, &id, "late");
}

#[test]
fn a_success_that_comes_after_the_job_has_failed_changes_nothing() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.3"));
    let id = server.begin_once("helper");
    let request = agent.request(1);
    assert_eq!(server.over(&id)["outcome"]["failure"]["code"], "timeout");
    server.takes(&result(&request, "too late"));
    let job = server.on_record(&id, "ALL-9.3");
    assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job:#}");
}

#[test]
fn messages_about_work_that_nobody_knows_are_refused() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    server.begin("helper");
    let mut request = agent.request(1);
    request["request_id"] = json!(new_id());
    request["payload"]["task_id"] = json!(new_id());
    for message in [result(&request, "?"), status(&request, 1), error(&request, 5002, &json!({}))] {
        let answer = server.hears(&message);
        assert_eq!((answer.status, &answer.json()["payload"]["error_code"]), (404, &json!(5003)), "{answer:?}");
    }
}

#[test]
fn messages_about_work_of_another_contract_are_refused_and_change_nothing() {
    let server = Server::configured(
        "[[agent]]\nname = \"ask\"\ncontract = \"builtin\"\n[[agent]]\nname = \"echo\"\ncontract = \"builtin\"\n",
    );
    let id = server.begin("ask");
    server.in_state(&id, "waiting");
    let request = json!({"to_agent": "code", "trace_id": new_id(), "request_id": id, "payload": {"task_id": id}});
    for message in [result(&request, "forged"), status(&request, 1), failed(&request, "forged")] {
        assert_eq!(server.hears(&message).status, 404);
    }
    assert_eq!(server.job(&id)["state"], "waiting");
}

#[test]
fn the_acknowledgement_of_another_agent_says_nothing() {
    let server = Server::configured(&(pulling("one", "") + &pulling("two", "")));
    server.polled("agent=one");
    let id = server.begin("one");
    let given = server.pulled("one");
    server.polled(&format!("agent=two&ack={}", given["message_id"].as_str().expect("an id")));
    assert!(server.polled("agent=two").is_empty(), "it is not given what is another's");
    assert_eq!(server.job(&id)["state"], "running");
    server.takes(&result(&given, "done"));
}

#[test]
fn the_same_result_again_after_output_in_chunks_is_fine() {
    const BLOCK: usize = 262_144;
    let text: String = (0..5 * BLOCK).map(|at| char::from(b'a' + (at / 7 % 26) as u8)).collect();
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    for start in (0..text.len()).step_by(BLOCK) {
        let mut message = status(&request, 50);
        message["payload"]["step"]["output"] = json!(text[start..start + BLOCK]);
        message["payload"]["step"]["output_chunk"] =
            json!(format!("bytes {start}-{} of {}", start + BLOCK, text.len()));
        server.takes(&message);
    }
    // The result has its last megabyte.
    let message = result(&request, &text[BLOCK..]);
    for _ in 0..3 {
        server.takes(&message);
    }
    let job = server.job(&id);
    assert_eq!((&job["state"], clauses(&job)), (&json!("completed"), vec![]), "{}", job["violations"]);
    server.takes(&failed(&request, "another"));
    assert_eq!(clauses(&server.on_record(&id, "ALL-9.3")), ["ALL-9.3"]);
}

/// The author of the agent looks at the answer first. The result counts, so it must not be sent again.
#[test]
fn a_result_that_breaks_the_contract_is_answered_with_what_is_wrong_with_it() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let mut reply = result(&agent.request(1), "done");
    reply["payload"]["status"] = json!("done");
    reply["payload"].as_object_mut().expect("an object").remove("output");
    let answer = server.hears(&reply);
    let payload = &answer.json()["payload"];
    assert_eq!((answer.status, &payload["error_code"]), (200, &json!(5003)), "{answer:?}");
    let findings = payload["error_context"]["findings"].as_array().expect("a list");
    let places: Vec<&str> = findings.iter().filter_map(|finding| finding["pointer"].as_str()).collect();
    assert_eq!(places, ["/payload/output", "/payload/status"], "{payload:#}");
    assert_eq!(payload["error_context"]["repeat"], "never");
    assert_eq!(server.job(&id)["outcome"]["failure"]["code"], "broken_contract", "it is on disk");
}

#[test]
fn a_silent_agent_that_answered_with_no_message_is_a_timeout_that_says_so() {
    let agent = Posted::answering(|_, connection| connection.whole(200, "text/plain", "OK"));
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.3"));
    let job = server.submit(r#"{"work": "helper", "limits": {"attempts": 2}}"#);
    let id = job["id"].as_str().expect("an id");
    let job = server.over(id);
    let failure = &job["outcome"]["failure"];
    assert_eq!(failure["code"], "timeout", "{job:#}");
    let card = transcript(&mut crosspoint(&["jobs", "show", id, "--server", &server.url()]));
    assert!(card.contains("MSG-17  the answer to a work_request is no message (2 times)\n"), "{card}");
    let said = "The agent answered the request with a body that is no message, and gave no sign of life for 0.3 s";
    assert!(failure["message"].as_str().is_some_and(|message| message.starts_with(said)), "{failure}");
}
