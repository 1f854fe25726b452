//! The example of the workflow contract does what it says.

use std::fs;

use serde_json::json;

use crate::support::program::root;
use crate::support::server::Server;

#[test]
fn the_example_agent_validates_a_spec() {
    let example = root().join("examples/workflow");
    let read = |name: &str| fs::read_to_string(example.join(name)).expect("it is there");
    let server = Server::configured(&read("crosspoint.toml"));
    for name in ["agent.py", "spec.md"] {
        fs::copy(example.join(name), server.directory().join(name)).expect("it can be copied");
    }
    let answer = server.give("validator", &read("envelope.json"));
    let envelope = answer.json();
    assert_eq!((answer.status, &envelope["success"]), (200, &json!(true)), "{envelope}");
    assert_eq!(envelope["summary"], "Validated spec.md. Found 1 gaps.");
    assert_eq!((&envelope["recommendation"], &envelope["notes"]), (&json!("retry"), &json!(["Round 1: 1 gaps"])));
    assert_eq!(envelope["artifacts"][0]["path"], "gaps.md");
    fs::remove_file(server.directory().join("spec.md")).expect("it is there");
    let missing = server.give("validator", &read("envelope.json")).json();
    assert_eq!((&missing["success"], &missing["recommendation"]), (&json!(false), &json!("escalate")), "{missing}");
    let job = server.job_of(&answer);
    assert_eq!(job["violations"], json!(null), "{job}");
}
