//! "Implementation Checklist" of the contract, line by line, for what this server sends.

use serde_json::{Value, json};

use crate::support::message_post::{ENDPOINT, error, new_id, pulling, pushed, result};
use crate::support::message_sender::{Said, asking, cancelling, sample};
use crate::support::programs::bash;
use crate::support::scripted_agent::unused_address;
use crate::support::server::{Server, until};

/// One message of every sort that callers and agents are sent. Each was read without a finding.
fn every_message() -> Vec<Value> {
    let server = Server::configured(&(pulling("infra", "work = [\"dig\"]\n") + &sample("ask", "approve", "")));
    let (done, cancelled) = (asking("dig", &json!({})), asking("dig", &json!({})));
    let mut messages = Vec::new();
    let mut keep = |said: Said| messages.push(said.document);
    keep(server.say(&done));
    let given = server.pulled("infra");
    server.takes(&result(&given, "done"));
    keep(server.outcome_of(&done));
    keep(server.say(&cancelled));
    let unwanted = server.pulled("infra");
    keep(server.say(&cancelling(&cancelled)));
    let told = server.pulled("infra");
    keep(server.say(&asking("nobody_does_this", &json!({}))));
    keep(server.message("", &[], "{"));
    keep(server.message("?wait=soon", &[], &done.to_string()));
    keep(server.message("?wait=0.1", &[], &asking("approve", &json!({})).to_string()));
    messages.extend([given, unwanted, told]);
    messages
}

const ENVELOPE: [&str; 10] = [
    "protocol_version",
    "message_id",
    "from_agent",
    "to_agent",
    "timestamp",
    "trace_id",
    "request_id",
    "type",
    "payload",
    "x_custom_fields",
];

#[test]
fn all_messages_use_the_envelope_with_the_protocol_version_and_iso_8601_timestamps() {
    let messages = every_message();
    assert_eq!(messages.len(), 11);
    for message in &messages {
        assert!(ENVELOPE.iter().all(|field| message.get(field).is_some()), "{message}");
        assert_eq!(message["protocol_version"], "1.0", "{message}");
        let timestamp = message["timestamp"].as_str().expect("a text");
        assert!(timestamp.ends_with('Z') && timestamp.as_bytes()[10] == b'T', "{message}");
    }
    let mut ids: Vec<&str> = messages.iter().filter_map(|message| message["message_id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), messages.len(), "every message has an id of its own");
}

#[test]
fn error_codes_are_in_the_range_5001_to_5999() {
    let errors = every_message().into_iter().filter(|message| message["type"] == "error");
    let codes: Vec<u64> = errors.filter_map(|message| message["payload"]["error_code"].as_u64()).collect();
    assert_eq!(codes, [5901, 5006, 5003, 5003, 5901]);
}

#[test]
fn retries_have_the_same_request_id_and_are_idempotent() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\n"));
    let request = asking("dig", &json!({"depth": 2}));
    assert_eq!(server.say(&request).status, 202);
    let first = server.pulled("infra");
    server.takes(&error(&first, 5002, &json!({"agent_id": "infra", "last_heartbeat": null})));
    let second = server.pulled("infra");
    for same in ["request_id", "trace_id", "payload", "from_agent", "to_agent"] {
        assert_eq!(first[same], second[same], "{same}");
    }
    assert_ne!(first["message_id"], second["message_id"]);
    server.takes(&result(&second, "done"));
    assert_eq!(server.outcome_of(&request).payload()["output"], "done");
    assert_eq!(server.job_of_message(&request)["attempts"], 2);
}

#[test]
fn the_circuit_breaker_opens_after_5_failures() {
    let server = Server::configured(&pushed("infra", &format!("http://{}", unused_address()), "work = [\"dig\"]\n"));
    let breaker = || server.agent("infra")["breaker"].clone();
    assert_eq!(breaker()["state"], "closed");
    for _ in 0..5 {
        assert_eq!(server.say(&asking("dig", &json!({}))).status, 202);
    }
    until("it is open", || (breaker()["state"] == "open").then_some(()));
    // New work is accepted, and waits.
    let request = asking("dig", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let job = server.job_of_message(&request);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job}");
}

/// The default is in the configuration's page; the agents' own tests have the clock.
#[test]
fn timeouts_are_configurable_and_told_as_5001() {
    let toml = pulling("infra", "work = [\"dig\"]\nsilence_seconds = 0.2\ntotal_seconds = 0.5\n");
    let server = Server::configured(&toml);
    let request = asking("dig", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    server.pulled("infra");
    assert_eq!(server.outcome_of(&request).code(), Some(5001));
}

/// MSG-9, MSG-17.4: a caller that pulls gets a long output in blocks, and the end of it with the result.
#[test]
fn large_payloads_are_chunked_in_blocks_of_256_kb() {
    let script = "printf 'é%.0s' {1..600000}";
    let caller = "[[caller]]\nname = \"upstream\"\n";
    let server = Server::configured(&(bash("print", script, "") + caller));
    let request = asking("print", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let mut text = String::new();
    let (mut acks, mut end) = (String::new(), None);
    while end.is_none() {
        for message in server.polled(&format!("agent=upstream&wait=60&max=10&ack={acks}")) {
            acks = message["message_id"].as_str().expect("an id").to_owned();
            match message["payload"]["step"]["output_chunk"].as_str() {
                Some(chunk) => {
                    let output = message["payload"]["step"]["output"].as_str().expect("a text");
                    assert!(output.len() <= 262_144, "{chunk}");
                    assert_eq!(chunk, format!("bytes {}-{} of 1200000", text.len(), text.len() + output.len()));
                    text += output;
                }
                None if message["type"] == "work_result" => end = Some(message),
                None => {}
            }
        }
    }
    let output = end.as_ref().and_then(|end| end["payload"]["output"].as_str()).expect("a text");
    assert_eq!((text.len(), output.len()), (1_200_000, 1 << 20));
    assert!(text.ends_with(output));
    // A caller that waits on the same connection has it whole.
    let whole = server.post(&format!("{ENDPOINT}?wait=60"), &request.to_string()).json();
    assert_eq!(whole["payload"]["output"].as_str(), Some(text.as_str()));
}

#[test]
fn full_trace_ids_go_from_the_caller_to_the_agent_and_back() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\n"));
    let mut request = asking("dig", &json!({}));
    let trace = new_id().to_uppercase();
    request["trace_id"] = json!(trace);
    let accepted = server.say(&request);
    let given = server.pulled("infra");
    server.takes(&result(&given, "done"));
    let done = server.outcome_of(&request);
    assert_eq!((&accepted.document["trace_id"], &done.document["trace_id"]), (&json!(trace), &json!(trace)));
    let digits = |id: &Value| id.as_str().expect("a text").to_lowercase().replace('-', "");
    assert_eq!(digits(&given["trace_id"]), digits(&json!(trace)), "{given}");
}
