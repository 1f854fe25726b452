//! Programs that ask people.

use serde_json::{Value, json};

use crate::support::programs::{bash, nothing_runs_for, violations};
use crate::support::server::{Server, until};

/// Asks twice, the second question holding the first answer, and returns both.
const ASKS_TWICE: &str = r#"
read -r input
echo '@crosspoint {"ask": {"prompt": "Name?", "schema": {"type": "string"}}}'
read -r name
echo "@crosspoint {\"ask\": {\"prompt\": \"Really?\", \"default\": $name}}"
read -r really
echo "{\"input\": $input, \"name\": $name, \"really\": $really}"
"#;

/// Waits for a question, and returns it.
fn asked(server: &Server, id: &str, prompt: &str) -> Value {
    until(prompt, || Some(server.job(id)["question"].clone()).filter(|question| question["prompt"] == prompt))
}

fn answer(server: &Server, id: &str, answer: &Value) {
    let answered = server.post(&format!("/api/v1/jobs/{id}/answer"), &json!({"input": answer}).to_string());
    assert_eq!(answered.status, 200, "{answered:?}");
}

#[test]
fn two_questions_in_sequence_are_shown_and_answered_over_stdin() {
    let server = Server::configured(&bash("asks", ASKS_TWICE, "ask = true"));
    let id = server.submit(r#"{"work": "asks", "input": {"n": 1}}"#)["id"].as_str().expect("an id").to_owned();
    let question = asked(&server, &id, "Name?");
    assert_eq!(question["schema"], json!({"type": "string"}));
    answer(&server, &id, &json!("Ada\nLovelace"));
    assert_eq!(asked(&server, &id, "Really?")["default"], "Ada\nLovelace");
    answer(&server, &id, &json!({"yes": true}));
    let outputs = server.ended(&id)["outcome"]["outputs"].clone();
    assert_eq!(outputs, json!({"input": {"n": 1}, "name": "Ada\nLovelace", "really": {"yes": true}}));
}

#[test]
fn no_question_is_asked_twice_when_the_server_is_killed_in_between() {
    let mut server = Server::configured(&bash("asks", ASKS_TWICE, "ask = true"));
    let id = server.begin("asks");
    asked(&server, &id, "Name?");
    server.kill();
    nothing_runs_for(&id);
    server.restart();
    asked(&server, &id, "Name?");
    answer(&server, &id, &json!("Ada"));
    asked(&server, &id, "Really?");
    server.kill();
    server.restart();
    // The program runs again and asks both, but a person is only asked the question that was not answered.
    asked(&server, &id, "Really?");
    answer(&server, &id, &json!(true));
    let job = server.ended(&id);
    assert_eq!(job["outcome"]["outputs"], json!({"input": {}, "name": "Ada", "really": true}));
    assert_eq!(job["attempts"], 3);
    let events = server.get(&format!("/api/v1/jobs/{id}/events")).text();
    assert_eq!(events.matches("event: answer").count() + events.matches("event:answer").count(), 2, "{events}");
}

#[test]
fn a_program_that_may_not_ask_is_told_how_it_may() {
    let script = r#"echo '@crosspoint {"ask": {"prompt": "Name?"}}'; sleep 60"#;
    let server = Server::configured(&bash("asks", script, ""));
    let job = server.done("asks", &json!({}));
    let failure = &job["outcome"]["failure"];
    assert_eq!(failure["code"], "broken_contract", "{job}");
    assert!(failure["message"].as_str().is_some_and(|message| message.contains("set ask = true")), "{job}");
    nothing_runs_for(job["id"].as_str().expect("an id"));
}

#[test]
fn a_program_that_ends_while_a_person_is_asked_does_not_wait_for_the_answer() {
    let script = r#"echo '@crosspoint {"ask": {"prompt": "Name?"}}'; while [ ! -e go ]; do sleep 0.05; done; exit 4"#;
    let server = Server::configured(&bash("asks", script, "ask = true"));
    let id = server.begin("asks");
    server.in_state(&id, "waiting");
    std::fs::write(server.directory().join("go"), "").expect("it can be written");
    let job = server.ended(&id);
    assert_eq!(job["outcome"]["failure"]["details"]["exit_code"], 4, "{job}");
    assert!(violations(&job).is_empty());
}

#[test]
fn cancelling_while_a_person_is_asked_ends_the_program() {
    let server = Server::configured(&bash("asks", ASKS_TWICE, "ask = true"));
    let id = server.begin("asks");
    asked(&server, &id, "Name?");
    server.cancel(&id);
    nothing_runs_for(&id);
}
