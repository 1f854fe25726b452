//! How work ends, as callers of the message door are told it: the rows of the contract's table of errors that outcomes
//! have, with true values in their context.

use serde_json::{Value, json};

use crate::run::examples::valid;
use crate::support::message_post::{pulling, pushed};
use crate::support::message_sender::{Said, asking, sample};
use crate::support::programs::{bash, python};
use crate::support::scripted_agent::unused_address;
use crate::support::server::Server;

/// The outcome of some work, which is an error.
#[track_caller]
fn failed(server: &Server, request: &Value, code: u64) -> Said {
    let said = server.outcome_of(request);
    assert_eq!((said.kind(), said.code()), ("error", Some(code)), "{:?}", said.answer);
    valid("message.error", &said.answer.body);
    said.answers(request);
    said
}

fn instant(value: &Value) -> &str {
    let text = value.as_str().expect("a time");
    assert!(text.len() >= 20 && text.ends_with('Z') && &text[10..11] == "T", "{text}");
    text
}

#[test]
fn work_that_takes_too_long_is_5001_with_the_retries_and_the_last_attempt() {
    let server = Server::configured(&sample("slow_echo", "slow", "total_seconds = 0.5"));
    let request = asking("slow", &json!({"seconds": 60}));
    let said = failed(&server, &request, 5001);
    let job = server.job_of_message(&request);
    let context = said.context();
    assert_eq!(context["attempted_retries"], 0, "{context}");
    let (last, began) = (instant(&context["last_attempt"]), job["created_at"].as_str().expect("a time"));
    assert!(last >= began && last <= job["updated_at"].as_str().expect("a time"), "{context} of {job}");
}

/// MSG-6: the agent took the work and says nothing. It is tried again, until there is no time left.
#[test]
fn an_agent_that_says_nothing_is_5001_with_as_many_retries_as_there_were() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\nsilence_seconds = 0.2\ntotal_seconds = 2\n"));
    let request = asking("dig", &json!({}));
    std::thread::scope(|scope| {
        let polls = scope.spawn(|| {
            let mut given = 0;
            while given < 2 {
                given += server.polled("agent=infra&wait=60").len();
            }
        });
        let said = failed(&server, &request, 5001);
        polls.join().expect("it was asked twice");
        let job = server.job_of_message(&request);
        assert_eq!(json!(said.context()["attempted_retries"].as_u64().map(|retries| retries + 1)), job["attempts"]);
        assert!(job["attempts"].as_u64() >= Some(2), "{job}");
        assert!(instant(&said.context()["last_attempt"]) > job["created_at"].as_str().expect("a time"), "{job}");
    });
}

#[test]
fn an_agent_that_cannot_be_reached_is_5002_and_named() {
    let server = Server::configured(&pushed(
        "infra-7",
        &format!("http://{}", unused_address()),
        "work = [\"dig\"]\ntotal_seconds = 0.5\n",
    ));
    let request = asking("dig", &json!({}));
    let said = failed(&server, &request, 5002);
    let context = said.context();
    assert_eq!((&context["agent_id"], &context["last_heartbeat"]), (&json!("infra-7"), &Value::Null), "{context}");
    assert_eq!(context["repeat"], "safe", "nothing was begun: {context}");
    let hint = "send it again with a new `request_id` or Idempotency-Key: the old one has this answer";
    assert_eq!(context["hint"], hint, "{context}");
}

#[test]
fn a_program_that_uses_too_much_memory_is_5005_with_the_limit() {
    // Two processes that are each within the limit: their sum counts.
    let script = "
import os, time
os.fork()
kept = []
for _ in range(10):
    kept.append(bytearray(os.urandom(1024)) * 6144)
    time.sleep(0.02)
time.sleep(60)
";
    let server = Server::configured(&python("greedy", script, "memory_mb = 100"));
    let said = failed(&server, &asking("greedy", &json!({})), 5005);
    let context = said.context();
    assert!(said.message().contains("more than the 100 MiB of memory_mb"), "{}", said.message());
    assert_eq!((&context["limit_name"], &context["available"]), (&json!("memory_mb"), &json!(100)), "{context}");
    assert!(context["required"].as_u64() > Some(100), "{context}");
    assert_eq!(context["repeat"], "never", "{context}");
}

#[test]
fn what_an_agent_refuses_is_5003_or_5006_with_what_it_said() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\n"));
    let answered = |code: u64, context: Value| {
        let request = asking("dig", &json!({}));
        assert_eq!(server.say(&request).status, 202);
        let given = server.pulled("infra");
        let payload = json!({"error_code": code, "error_message": "Not so.", "error_context": context});
        let mut reply = crate::support::message_post::about(&given, "error", &payload);
        reply["from_agent"] = json!("infra");
        server.takes(&reply);
        failed(&server, &request, code)
    };
    let invalid = answered(5003, json!({"validation_error": "no spade", "field_name": "spade"}));
    let context = invalid.context();
    assert_eq!(
        (&context["validation_error"], &context["field_name"]),
        (&json!("no spade"), &json!("spade")),
        "{context}"
    );
    assert_eq!(invalid.message(), "Not so.");
    let unsupported = answered(5006, json!({"work_type_requested": "dig", "supported_types": ["rake"]}));
    let context = unsupported.context();
    assert_eq!((&context["work_type_requested"], &context["supported_types"]), (&json!("dig"), &json!(["rake"])));
}

/// An agent's 5004 is about the token that the server presents, and not about the caller's.
#[test]
fn an_agent_that_refuses_our_token_is_5002_without_a_repeat() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\n"));
    let request = asking("dig", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let given = server.pulled("infra");
    let payload = json!({
        "error_code": 5004, "error_message": "Who?", "error_context": {"agent_id": "infra", "token_status": "unknown"},
    });
    server.takes(&crate::support::message_post::about(&given, "error", &payload));
    let said = failed(&server, &request, 5002);
    assert_eq!(said.context()["repeat"], "never", "{}", said.context());
}

#[test]
fn work_that_an_agent_did_without_success_is_a_result_that_failed() {
    let server = Server::configured(&bash("deploy", "echo 'Deployment failed.' >&2; exit 3", ""));
    let request = asking("deploy", &json!({}));
    let said = server.outcome_of(&request);
    valid("message.work_result", &said.answer.body);
    said.answers(&request);
    let payload = said.payload();
    assert_eq!(
        (&payload["status"], &payload["exit_code"]),
        (&json!("failed"), &json!(3)),
        "the program's own: {payload}"
    );
    assert_eq!(payload["output"], "Deployment failed.", "{payload}");
    let details = &said.document["x_custom_fields"]["x_crosspoint"]["details"];
    assert_eq!(details["exit_code"], 3, "{details}");
}

#[test]
fn all_that_an_agent_of_the_contract_gave_reaches_the_caller() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\ntype = \"infra\"\n"));
    let request = asking("dig", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let given = server.pulled("infra");
    let mut result = crate::support::message_post::result(&given, "dug\n");
    result["x_custom_fields"] = json!({"site": "north", "depth": 2.50});
    result["payload"]["resources_used"]["gpu_vram_mb"] = json!(64);
    server.takes(&result);
    let said = server.outcome_of(&request);
    said.answers(&request);
    let mut wanted = result["payload"].clone();
    wanted["task_id"] = request["payload"]["task_id"].clone();
    assert_eq!(said.payload(), &wanted);
    assert_eq!(said.document["x_custom_fields"], result["x_custom_fields"]);
    assert_eq!(said.document["timestamp"], result["timestamp"], "when the agent said it");
}
