//! The contract's own examples and its five mistakes, each run once end to end.

use std::fs;

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::bridge_directory::{Directory, PRINTED_ID, success};
use crate::support::documents::faultless;
use crate::support::program::root;

fn example(name: &str) -> String {
    fs::read_to_string(root().join("testdata/bridge").join(name)).expect("it is there")
}

const ASK: [&str; 3] = ["agent-content-enhancer", "--prompt", "Enhance the agent file."];

/// A program as the contract describes it: writes its request and exits with 42. When it is resumed, it shows the
/// response and deletes it.
const REQUESTER: &str = "\
case \" $* \" in
*' --resume '*) [ ! -e .agent-request.json ] && cat .agent-response.json && rm .agent-response.json ;;
*) cp request .agent-request.json; exit 42 ;;
esac
";

#[test]
fn the_printed_request_is_answered_as_the_document_describes() {
    let directory = Directory::temporary();
    directory.write("request", &example("request-full.json"));
    directory.write("requester.sh", REQUESTER);
    let route = "agent-content-enhancer=echo";
    let ended = directory.run_crosspoint(&["bridge", "run", "--agent", route, "--", "sh", "requester.sh"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    faultless(ended.stdout.as_bytes(), Kind::BridgeResponse);
    let response: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_eq!((&response["request_id"], &response["status"]), (&json!(PRINTED_ID), &json!("success")));
    // The second level: the text is itself a document.
    let inner: Value = serde_json::from_str(response["response"].as_str().expect("a text")).expect("it is JSON");
    assert_eq!(inner["prompt"], "Enhance the agent file.\nReturn JSON.");
    assert!(ended.stdout.starts_with("{\n  \"request_id\": "), "it is laid out with two spaces");
    assert_eq!(directory.bridge_files(), [""; 0], "nothing is left");
}

/// BRIDGE-9: the requester has its own fallback.
#[test]
fn a_request_to_an_unknown_agent_is_answered_with_an_error() {
    let directory = Directory::temporary();
    directory.write("request", &example("request-full.json"));
    directory.write("requester.sh", REQUESTER);
    let ended = directory.run_crosspoint(&["bridge", "run", "--", "sh", "requester.sh"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    faultless(ended.stdout.as_bytes(), Kind::BridgeResponse);
    let response: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_eq!((&response["status"], &response["response"]), (&json!("error"), &Value::Null));
}

#[test]
fn the_printed_success_is_taken() {
    let directory = Directory::temporary();
    directory.ask(&ASK);
    directory.respond(&example("response-printed_success.json"));
    let printed: Value = serde_json::from_str(&example("response-printed_success.json")).expect("it is JSON");
    let ended = directory.ask(&[&ASK[..], &["--inner", "json"]].concat());
    assert_eq!((ended.code, ended.stdout.trim_end()), (0, printed["response"].as_str().expect("a text")));
}

#[test]
fn the_printed_error_is_an_answer() {
    let directory = Directory::temporary();
    directory.ask(&ASK);
    directory.respond(&example("response-printed_error.json"));
    let ended = directory.ask(&ASK);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert_eq!(
        ended.stderr,
        "error: the agent agent-content-enhancer failed: Agent execution timeout after 120 seconds [timeout]\nhint: crosspoint jobs list shows the job, and jobs show what its agent printed\n"
    );
}

/// The mistakes in the order of the document, each with its clause and a word of the hint.
fn mistakes() -> [(&'static str, Value, &'static str, &'static str); 5] {
    let with = |name: &str, value: Value| {
        let mut response = success(PRINTED_ID, "{\"sections\": []}");
        response[name] = value;
        response
    };
    let without = |response: &mut Value, name: &str| {
        response.as_object_mut().expect("an object").remove(name);
    };
    let mut misnamed = with("result", json!("{\"sections\": []}"));
    without(&mut misnamed, "response");
    let mut incomplete = success(PRINTED_ID, "{\"sections\": []}");
    for name in ["version", "error_message", "error_type", "created_at", "duration_seconds", "metadata"] {
        without(&mut incomplete, name);
    }
    [
        ("result instead of response", misnamed, "BRIDGE-2", "Rename `result` to `response`"),
        ("an object", with("response", json!({"sections": []})), "BRIDGE-1.2", "json.dumps(output)"),
        ("not encoded", with("response", json!(["sections"])), "BRIDGE-1.2", "JSON-encode it"),
        ("missing fields", incomplete, "BRIDGE-1", "Add \"duration_seconds\": 1.0"),
        ("quoted number", with("duration_seconds", json!("1.0")), "BRIDGE-6", "without quotes"),
    ]
}

#[test]
fn each_mistake_in_a_response_is_refused_with_its_clause_and_kept() {
    for (mistake, response, clause, hint) in mistakes() {
        let directory = Directory::temporary();
        directory.ask(&ASK);
        directory.respond(&response.to_string());
        let kept = directory.read(".agent-response.json");
        for _ in 0..2 {
            let ended = directory.ask(&ASK);
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{mistake}");
            let said = format!("error[{clause}]: ");
            assert!(ended.stderr.contains(&said) && ended.stderr.contains(hint), "{mistake}: {}", ended.stderr);
            assert_eq!(directory.read(".agent-response.json"), kept, "{mistake}: it is kept as it is");
            assert!(!directory.has(".agent-request.json"), "{mistake}: it is not asked again");
        }
    }
}

/// The original program loaded any file it found. A driver sets the file aside and has the request answered.
#[test]
fn each_mistake_that_a_driver_finds_is_set_aside_and_the_request_is_answered() {
    for (mistake, response, ..) in mistakes() {
        let directory = Directory::temporary();
        directory.write(".agent-response.json", &response.to_string());
        directory.write("request", &example("request-full.json"));
        directory.write("requester.sh", REQUESTER);
        let route = "agent-content-enhancer=echo";
        let ended = directory.run_crosspoint(&["bridge", "run", "--agent", route, "--", "sh", "requester.sh"]);
        assert_eq!(ended.code, 0, "{mistake}: {}", ended.stderr);
        assert!(ended.stdout.contains("\"status\": \"success\""), "{mistake}: {}", ended.stdout);
        assert_eq!(directory.read(".agent-response.json.stale-1"), response.to_string(), "{mistake}");
        assert!(ended.stderr.contains("stale-1"), "{mistake}: it is reported: {}", ended.stderr);
    }
}

#[test]
fn the_answer_to_another_request_is_refused_and_both_ids_are_said() {
    let directory = Directory::temporary();
    directory.ask(&ASK);
    let id = directory.respond("");
    directory.write(".agent-response.json", &success(PRINTED_ID, "stale").to_string());
    let ended = directory.ask(&ASK);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    let said = format!("(BRIDGE-4.3): expected request_id {id}, found \"{PRINTED_ID}\"");
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    assert_eq!(directory.read(".agent-response.json"), success(PRINTED_ID, "stale").to_string());
}
