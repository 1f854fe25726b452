//! One orchestrator behind another: for any contract that the first speaks, the second is an agent like any other.

use std::fs;

use serde_json::{Value, json};

use crate::support::bridge_caller::{new_id, request};
use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE};
use crate::support::bridge_watcher::{Watcher, watched};
use crate::support::message_caller;
use crate::support::scripted_agent::{configuration, unused_address};
use crate::support::server::{Server, until};

/// A server with sample agents, and a server before it that reaches them in this contract. In the message contract the
/// first is told later, like any caller.
fn chained(contract: &str) -> (Server, Server) {
    let address = unused_address();
    let caller = format!("[[caller]]\nname = \"west\"\ncallback = \"http://{address}\"\n");
    let behind = Server::configured(if contract == "message" { &caller } else { "" });
    let agent =
        |work: &str| configuration(&format!("east-{work}"), contract, &behind.url(), &format!("work = [\"{work}\"]\n"));
    let agents = ["echo", "slow_echo", "ask", "fail"].map(agent).concat();
    (Server::listening(&address.to_string(), &agents, &[]), behind)
}

fn run(server: &Server, id: &str, work: &str, inputs: &Value) -> Value {
    let body = json!({"request_id": id, "task_type": work, "inputs": inputs, "tenant": 7});
    server.post("/agents/run/sync", &body.to_string()).json()
}

#[test]
fn work_goes_through_two_orchestrators_and_comes_back_under_the_callers_id() {
    for contract in ["run", "task", "message"] {
        let (before, behind) = chained(contract);
        let echoed = run(&before, "Łódź/1", "echo", &json!({"a": [1, 2.50]}));
        assert_eq!(
            (&echoed["request_id"], &echoed["outputs"]),
            (&json!("Łódź/1"), &json!({"a": [1, 2.50]})),
            "{contract}: {echoed}"
        );
        // The same id from a caller of the second server is another job.
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

/// A request of the message contract is addressed to a type of agents, which is no agent to anybody on the way.
#[test]
fn messages_go_through_two_orchestrators_in_any_contract() {
    for contract in ["run", "task", "message"] {
        let (before, behind) = chained(contract);
        for to in ["orchestrator", "infra"] {
            let mut asked = message_caller::request(&new_id(), "echo", &json!({"a": [1, 2.50]}));
            (asked["to_agent"], asked["tenant"]) = (json!(to), json!(7));
            let result = before.message_result(&asked);
            let payload = &result["payload"];
            let given = (&payload["status"], &payload["output"]);
            assert_eq!(given, (&json!("success"), &json!("{\"a\":[1,2.5]}")), "{contract}: {result}");
        }
        let failing = message_caller::request(&new_id(), "fail", &json!({"failure": "invalid", "message": "no luck"}));
        let error = &before.message_result(&failing)["payload"];
        assert_eq!((&error["error_code"], &error["error_message"]), (&json!(5003), &json!("no luck")), "{contract}");
        assert_eq!(behind.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(3), "{contract}");
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

/// The same over files: each agent of the first server has a directory, and the driver of all of them hands the
/// requests in to the second server. The first keeps requesters' files in `room`, which has a driver of its own.
struct Filed {
    before: Server,
    behind: Server,
    _drivers: [(Watcher, Directory); 2],
}

impl Filed {
    fn start() -> Filed {
        let behind = Server::start();
        let works = ["echo", "slow_echo", "ask", "fail"];
        let agent = |work: &str| {
            format!("[[agent]]\nname = \"east-{work}\"\ncontract = \"bridge\"\ndir = \"{work}\"\nwork = [\"{work}\"]\n")
        };
        let before = Server::configured(&works.map(agent).concat());
        let directories = works.map(|work| before.directory().join(work));
        let room = before.directory().join("room");
        directories.iter().chain([&room]).for_each(|directory| fs::create_dir_all(directory).expect("it can be made"));
        let drivers = [watched(&behind, &directories), watched(&before, &[room])];
        Filed { before, behind, _drivers: drivers }
    }

    /// The response that a requester of the first server gets.
    fn answered(&self, asked: &Value) -> Value {
        let room = Directory::at(self.before.directory().join("room"));
        room.leave(REQUEST, asked);
        serde_json::from_str(&room.take_response(REQUEST, RESPONSE)).expect("JSON")
    }
}

#[test]
fn work_goes_through_two_orchestrators_by_files_and_every_member_comes_back() {
    let chain = Filed::start();
    let (before, behind) = (&chain.before, &chain.behind);
    let echoed = run(before, "Łódź/1", "echo", &json!({"a": [1, 2.50], "ä": null}));
    assert_eq!(
        (&echoed["request_id"], &echoed["outputs"]),
        (&json!("Łódź/1"), &json!({"a": [1, 2.50], "ä": null})),
        "{echoed}"
    );
    let task = json!({"id": new_id(), "type": "echo", "payload": {"prompt": "p", "context": {"k": []}}});
    let done = before.post("/tasks?wait=60", &task.to_string()).json();
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &task["payload"]), "{done}");
    let native = before.done("echo", &json!({"n": {"deep": [true]}}));
    assert_eq!(native["outcome"]["outputs"], json!({"n": {"deep": [true]}}), "{native}");
    // The second server is asked the same as the first, under the id of the first server's job.
    let first = before.get("/api/v1/jobs?work=echo&door=run").json()["jobs"][0].clone();
    let second = behind.get("/api/v1/jobs?door=bridge").json()["jobs"].as_array().cloned().expect("a list");
    let second = second.iter().find(|job| job["request_id"] == first["id"]).expect("it is there");
    let path = format!("/api/v1/jobs/{}/document", second["id"].as_str().expect("an id"));
    let document = behind.fetch(&path).json();
    assert_eq!(document["context"]["x_crosspoint"]["fields"]["run"]["/tenant"], 7, "{document}");
    assert_eq!(first["attempts"], 1);
}

#[test]
fn requesters_and_failures_go_through_two_orchestrators_by_files() {
    let chain = Filed::start();
    let before = &chain.before;
    let mut asked = request(&new_id(), "echo", "Größe?");
    (asked["context"], asked["own"]) = (json!({"files": ["a.md", 2.50]}), json!({"kept": true}));
    let answer = chain.answered(&asked);
    assert_eq!((&answer["request_id"], &answer["status"]), (&asked["request_id"], &json!("success")), "{answer}");
    let inner: Value = serde_json::from_str(answer["response"].as_str().expect("a text")).expect("JSON");
    assert_eq!(inner, json!({"prompt": "Größe?", "context": {"files": ["a.md", 2.50]}}), "{answer}");
    let failed = run(before, "2", "fail", &json!({"failure": "unauthenticated", "message": "no luck, ä"}));
    let error = &failed["error"];
    // The token that an agent refuses is ours, and not the caller's.
    assert_eq!((&error["code"], &error["message"]), (&json!("AGENT_UNAVAILABLE"), &json!("no luck, ä")), "{failed}");
    assert_eq!(error["details"]["repeat"], "never", "{failed}");
    let slow = run(before, "3", "slow_echo", &json!({"seconds": 0.2}));
    assert_eq!(slow["status"], "ok", "{slow}");
    // ALL-5: a question stays where it is asked, and the files wait.
    let begun = before.begin("ask");
    let waiting = until("it asks", || {
        let jobs = chain.behind.get("/api/v1/jobs?work=ask").json()["jobs"].clone();
        jobs.as_array()?.iter().find(|job| job["state"] == "waiting").cloned()
    });
    let path = format!("/api/v1/jobs/{}/answer", waiting["id"].as_str().expect("an id"));
    chain.behind.post(&path, r#"{"input": "yes"}"#);
    assert_eq!(before.ended(&begun)["outcome"]["outputs"], json!({"answer": "yes"}));
}
