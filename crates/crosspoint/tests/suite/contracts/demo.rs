//! A sixth contract, made of new files and its lines on the lists: it is validated and translated, has a door and
//! agents, and works with every other contract.
//!
//! Its files are in `tests/demo` of this crate and of the contracts, and in `docs/adding-a-contract.md`. `scripts/test`
//! builds them in.

use serde_json::{Value, json};

use crate::support::program::{crosspoint, root, stdout};
use crate::support::scripted_agent::{ScriptedAgent, configuration};
use crate::support::server::Server;

/// An agent of the demo contract: it counts the letters of its input, and fails if there are none.
fn agent() -> ScriptedAgent {
    ScriptedAgent::start(|request, connection| {
        let asked = request.json();
        let letters = asked["input"]["text"].as_str().unwrap_or_default().len();
        let output = if letters > 0 { json!({"letters": letters}) } else { json!({"why": "no text"}) };
        connection.json(200, &json!({"id": asked["id"], "ok": letters > 0, "output": output, "own": 7}))
    })
}

fn started() -> (ScriptedAgent, Server) {
    let agent = agent();
    let echo = "[[agent]]\nname = \"echo\"\ncontract = \"builtin\"\nwork = [\"echo\"]\n";
    let counter = configuration("counter", "demo", &agent.url(), "work = [\"count\"]");
    let server = Server::configured(&(counter + echo));
    (agent, server)
}

fn post(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let answer = server.exchange("POST", path, &[], body.to_string().as_bytes()).expect("it answers");
    (answer.status, serde_json::from_slice(&answer.body).expect("it is JSON"))
}

#[test]
fn its_documents_are_validated_and_translated() {
    let validate = |document: &str| crosspoint(&["validate", "-"]).write_stdin(document).output().expect("it starts");
    let good = validate(r#"{"id": "q-1", "work": "count", "input": {}}"#);
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    let bad = validate(r#"{"id": "q-1", "ok": "yes", "output": {}}"#);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stdout).contains("DEMO-104"), "{bad:?}");
    let ask = r#"{"id": "q-1", "work": "count", "input": {"text": "abc"}, "tenant": 7}"#;
    for (contract, work) in [("run", "task_type"), ("task", "type"), ("message", "payload"), ("bridge", "agent_name")] {
        let other = stdout(crosspoint(&["translate", "-", "--to", contract]).write_stdin(ask));
        let other_json: Value = serde_json::from_str(&other).expect("it is JSON");
        assert!(!other_json[work].is_null(), "{contract}: {other}");
        let back = stdout(crosspoint(&["translate", "-", "--to", "demo"]).write_stdin(other));
        assert_eq!(serde_json::from_str::<Value>(&back).ok(), serde_json::from_str(ask).ok(), "by way of {contract}");
    }
}

#[test]
fn its_callers_reach_any_agent_and_its_agents_any_caller() {
    let (_agent, server) = started();
    let text = json!({"text": "abc"});
    let (status, told) = post(&server, "/demo", &json!({"id": "q-1", "work": "count", "input": text}));
    assert_eq!(
        (status, &told["id"], &told["ok"], &told["output"]),
        (200, &json!("q-1"), &json!(true), &json!({"letters": 3}))
    );
    assert_eq!(told["own"], 7, "unknown members come through");
    let (_, told) = post(&server, "/demo", &json!({"id": "q-2", "work": "echo", "input": text}));
    assert_eq!((&told["ok"], &told["output"]), (&json!(true), &text));
    let (_, told) = post(&server, "/demo", &json!({"id": "q-3", "work": "count"}));
    assert_eq!(
        (&told["ok"], &told["output"]),
        (&json!(false), &json!({"why": "no text"})),
        "an agent fails in its own words"
    );
    // Callers of the other contracts, and of the native API.
    let (_, told) =
        post(&server, "/agents/run/sync", &json!({"request_id": "r-1", "task_type": "count", "inputs": text}));
    assert_eq!((&told["status"], &told["outputs"]), (&json!("ok"), &json!({"letters": 3})));
    let (_, told) = post(&server, "/tasks?wait=20", &json!({"id": "t-1", "type": "count", "payload": text}));
    assert_eq!((&told["status"], &told["result"]), (&json!("completed"), &json!({"letters": 3})));
    let (_, told) = post(&server, "/api/v1/jobs?wait=20", &json!({"work": "count", "input": text}));
    assert_eq!(told["outcome"]["outputs"], json!({"letters": 3}));
    assert_eq!(told["outcome"]["said"]["kind"], "demo.answer");
    let listed = server.exchange("GET", "/api/v1/jobs?door=demo", &[], b"").expect("it answers");
    let listed: Value = serde_json::from_slice(&listed.body).expect("it is JSON");
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_repeat_is_the_same_job_and_what_is_refused_is_refused_in_its_shape() {
    let (_agent, server) = started();
    let ask = |body: &Value| post(&server, "/demo", body);
    let first = ask(&json!({"id": "q-1", "work": "count", "input": {"text": "abc"}}));
    assert_eq!(ask(&json!({"id": "q-1", "work": "count", "input": {"text": "abc"}})), first);
    for (body, status) in [
        (json!({"id": "q-1", "work": "count", "input": {"text": "other"}}), 409),
        (json!({"id": "q-2", "work": "unknown"}), 400),
        (json!({"id": "q-3", "input": {}}), 400),
        (json!({"id": "x".repeat(600), "work": "count"}), 400),
    ] {
        let (refused, told) = ask(&body);
        assert_eq!((refused, &told["ok"], &told["id"]), (status, &json!(false), &body["id"]), "{told}");
        assert!(
            told["x_crosspoint"]["message"].is_string() && told["x_crosspoint"]["details"]["hint"].is_string(),
            "{told}"
        );
    }
}

/// The code on the page is the code that is built here.
#[test]
fn the_page_that_says_how_to_add_a_contract_is_true() {
    let page = std::fs::read_to_string(root().join("docs/adding-a-contract.md")).expect("it is there");
    let mut shown = 0;
    for (folder, files) in [
        ("crates/crosspoint-contracts/tests/demo", &["demo", "clause", "wire", "read", "map", "exchange", "entry"][..]),
        ("crates/crosspoint/tests/demo", &["demo_door", "demo"]),
    ] {
        for file in files {
            let code = std::fs::read_to_string(root().join(folder).join(format!("{file}.rs"))).expect("it is there");
            assert!(page.contains(&format!("```rust\n{code}```")), "{folder}/{file}.rs is not on the page as it is");
            shown += 1;
        }
    }
    assert_eq!(shown, page.matches("```rust\n//!").count(), "the page shows a file that is not built");
}
