//! One orchestrator behind another: whatever the first speaks, the second is an agent like any other.

use serde_json::{Value, json};

use crate::live::{Server, until};

/// A server with sample agents, and one before it that reaches them in this contract.
fn chained(contract: &str) -> (Server, Server) {
    let behind = Server::start();
    let agent = |work: &str| {
        let url = behind.url();
        format!("[[agent]]\nname = \"east-{work}\"\ncontract = \"{contract}\"\nurl = \"{url}\"\nwork = [\"{work}\"]\n")
    };
    let before = Server::configured(&["echo", "slow_echo", "ask", "fail"].map(agent).concat());
    (before, behind)
}

fn run(server: &Server, id: &str, work: &str, inputs: &Value) -> Value {
    let body = json!({"request_id": id, "task_type": work, "inputs": inputs, "tenant": 7});
    server.post("/agents/run/sync", &body.to_string()).json()
}

#[test]
fn work_goes_through_two_orchestrators_and_comes_back_under_the_callers_id() {
    for contract in ["run", "task"] {
        let (before, behind) = chained(contract);
        let echoed = run(&before, "Łódź/1", "echo", &json!({"a": [1, 2.50]}));
        assert_eq!(
            (&echoed["request_id"], &echoed["outputs"]),
            (&json!("Łódź/1"), &json!({"a": [1, 2.50]})),
            "{contract}: {echoed}"
        );
        // The same id from a caller of the second is another's.
        let other = run(&behind, "Łódź/1", "echo", &json!({"b": 1}));
        assert_eq!(other["outputs"], json!({"b": 1}), "{contract}: {other}");
        let again = run(&before, "Łódź/1", "echo", &json!({"a": [1, 2.50]}));
        assert_eq!(again["outputs"], echoed["outputs"], "a repeat is answered by the first");
        let failed = run(&before, "2", "fail", &json!({"message": "no luck"}));
        assert_eq!(
            (&failed["status"], &failed["error"]["message"]),
            (&json!("error"), &json!("no luck")),
            "{contract}: {failed}"
        );
        assert_eq!(failed["error"]["details"]["repeat"], "never", "{contract}: {failed}");
        let slow = run(&before, "3", "slow_echo", &json!({"seconds": 0.2}));
        assert_eq!(slow["status"], "ok", "{contract}: {slow}");
        let first = before.get("/api/v1/jobs?work=echo").json()["jobs"][0].clone();
        let second = behind.get("/api/v1/jobs?work=echo").json()["jobs"][1].clone();
        assert_eq!(second["request_id"], first["id"], "the second knows the job of the first");
        assert_eq!(first["attempts"], 1);
    }
}

#[test]
fn a_question_goes_up_through_two_orchestrators_and_the_answer_down() {
    let (before, behind) = chained("task");
    let task = json!({"id": "t-1", "type": "ask", "payload": {"prompt": "Ship it?"}});
    assert_eq!(before.post("/tasks", &task.to_string()).status, 202);
    let asked = until("it is asked", || {
        let task = before.get("/tasks/t-1?wait=5").json();
        (task["status"] == "input_required").then_some(task)
    });
    assert_eq!(asked["inputRequest"]["prompt"], "Ship it?");
    assert_eq!(before.post("/tasks/t-1/input", r#"{"input": "yes"}"#).status / 100, 2);
    let done = until("it has ended", || {
        let task = before.get("/tasks/t-1?wait=5").json();
        (task["status"] == "completed").then_some(task)
    });
    assert_eq!((&done["id"], &done["result"]), (&json!("t-1"), &json!({"answer": "yes"})), "{done}");
    drop(behind);
}
