//! What callers of the message door say about their work beside it: how long it may take, how much memory it may use,
//! and how urgent it is.

use std::fs;

use serde_json::{Value, json};

use crate::support::message_post::{pulling, result};
use crate::support::message_sender::{asking, sample};
use crate::support::programs::{bash, python};
use crate::support::server::{Server, until};

fn hinting(work: &str, hints: Value) -> Value {
    let mut request = asking(work, &json!({}));
    request["payload"]["hints"] = hints;
    request
}

/// MSG-6.2: the agent may be silent as long as its caller says, beyond what it may otherwise.
#[test]
fn an_agent_may_be_silent_as_long_as_its_caller_allows() {
    let server = Server::configured(&pulling("infra", "work = [\"dig\"]\nsilence_seconds = 0.2\n"));
    let (patient, other) = (hinting("dig", json!({"max_duration_seconds": 300})), hinting("dig", json!({})));
    assert_eq!((server.say(&patient).status, server.say(&other).status), (202, 202));
    let given: Vec<Value> = (0..2).map(|_| server.pulled("infra")).collect();
    // Both agents are silent. Only the attempt without the hint is given up.
    until("it is given up", || {
        let job = server.job_of_message(&other);
        (job["attempts"].as_u64() > Some(1) || job["state"] == "retrying").then_some(())
    });
    let job = server.job_of_message(&patient);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("running"), &json!(1)), "{job}");
    let request = given.iter().find(|given| given["request_id"] == job["id"]).expect("the agent has it");
    assert_eq!(request["payload"]["hints"], json!({"max_duration_seconds": 300}), "hints are handed on");
    server.takes(&result(request, "done"));
    assert_eq!(server.outcome_of(&patient).payload()["output"], "done");
}

/// MSG-6.5: a program is stopped where it uses more memory than its request allows, whatever it may use otherwise.
#[test]
fn a_program_may_use_no_more_memory_than_its_request_allows() {
    let script = "
try:
    kept = bytearray(400 << 20)
    print('had it')
except MemoryError:
    print('was refused')
";
    let server = Server::configured(&python("burst", script, "memory_mb = 2000"));
    let output = |hints: Value| server.outcome_of(&hinting("burst", hints)).payload()["output"].clone();
    assert_eq!(output(json!({"max_memory_mb": 100})), "was refused\n");
    assert_eq!(output(json!({"max_memory_mb": 1500})), "had it\n");
    assert_eq!(output(json!({})), "had it\n");
    assert_eq!(output(json!({"max_memory_mb": 0})), "had it\n", "0 is no limit");
}

#[test]
fn a_request_allows_no_more_memory_than_the_configuration() {
    let script = "
try:
    kept = bytearray(400 << 20)
    print('had it')
except MemoryError:
    print('was refused')
";
    let server = Server::configured(&python("burst", script, "memory_mb = 100"));
    let said = server.outcome_of(&hinting("burst", json!({"max_memory_mb": 100_000})));
    assert_eq!(said.payload()["output"], "was refused\n", "{:?}", said.answer);
}

/// MSG-16: a later dialect has `priority` in the envelope, 5 the most urgent.
#[test]
fn urgent_work_of_the_later_dialect_goes_first() {
    let one_at_a_time = "type = \"infra\"\nconcurrency = 1\n";
    let script = "while [ ! -e go ]; do sleep 0.01; done; cat > /dev/null; echo \"$CROSSPOINT_JOB_ID\" >> order";
    let server = Server::configured(&bash("dig", script, one_at_a_time));
    let with = |priority: Option<u32>| {
        let mut request = asking("dig", &json!({}));
        if let Some(priority) = priority {
            request["priority"] = json!(priority);
        }
        let said = server.message("", &[], &request.to_string());
        assert_eq!(said.status, 202, "{:?}", said.answer);
        request
    };
    let first = with(None);
    server.in_state(server.job_of_message(&first)["id"].as_str().expect("an id"), "running");
    let requests = [with(Some(1)), with(None), with(Some(5)), with(Some(4))];
    fs::write(server.directory().join("go"), "").expect("it can be written");
    let job = |request: &Value| server.job_of_message(request)["id"].as_str().expect("an id").to_owned();
    let wanted = [&first, &requests[2], &requests[3], &requests[1], &requests[0]].map(job);
    let order = until("all are done", || {
        let text = fs::read_to_string(server.directory().join("order")).ok()?;
        (text.lines().count() == 5).then_some(text)
    });
    assert_eq!(order.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_looseness_is_accepted_and_said() {
    let server = Server::configured(&sample("echo", "dig", ""));
    let mut request = asking("dig", &json!({}));
    request["priority"] = json!(5);
    request["timestamp"] = json!("2026-01-19T04:21:04");
    let said = server.outcome_of(&request);
    let warnings = said.document["x_custom_fields"]["x_crosspoint"]["warnings"].to_string();
    assert!(warnings.contains("MSG-16") && warnings.contains("MSG-2.2"), "{}", said.document);
}
