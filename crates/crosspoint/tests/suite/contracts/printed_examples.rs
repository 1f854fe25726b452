//! Every complete example that a contract prints works as it is printed. A request is taken at the door of a server
//! and at the port of a function that is an agent. An answer is taken from an agent, and its caller gets it whole.
//!
//! The examples are the files of testdata with `printed` in their names. The run contract prints tables and no
//! documents, so all documents of run are among them.

use std::fs;
use std::net::SocketAddr;

use crosspoint_agent::{Agent, Context, Failure};
use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::functions::serve;
use crate::support::documents::faultless;
use crate::support::message_caller::kind_of;
use crate::support::message_post::{ENDPOINT, Posted};
use crate::support::program::root;
use crate::support::scripted_agent::{ScriptedAgent, configuration};
use crate::support::server::{Answer, Server, exchange};

const CONTRACTS: [&str; 4] = ["run", "task", "message", "workflow"];

/// The printed documents of a contract whose file names begin so: name of the file and text.
fn printed(contract: &str, beginning: &str) -> Vec<(String, String)> {
    let directory = root().join("testdata").join(contract);
    let names = fs::read_dir(&directory).expect("it is there").map(|entry| entry.expect("it can be read").file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().expect("UTF-8")).collect();
    names.retain(|name| name.starts_with(beginning) && (contract == "run" || name.contains("printed")));
    names.sort();
    assert!(!names.is_empty(), "{contract} has no {beginning}");
    let text = |name: &String| fs::read_to_string(directory.join(name)).expect("it is UTF-8");
    names.iter().map(|name| (format!("{contract}/{name}"), text(name))).collect()
}

fn requests(contract: &str) -> Vec<(String, String)> {
    let beginning = match contract {
        "message" => "work_request-",
        "workflow" => "input-",
        _ => "request-",
    };
    printed(contract, beginning)
}

/// What a request asks for: the name of its work, and its input.
fn asked(contract: &str, request: &Value) -> (String, Value) {
    let (work, input) = match contract {
        "run" => (&request["task_type"], &request["inputs"]),
        "task" => (&request["type"], &request["payload"]),
        "message" => (&request["payload"]["work_type"], &request["payload"]["parameters"]),
        _ => (&request["task"]["action"], &request["task"]["params"]),
    };
    (work.as_str().expect("a name").to_owned(), if input.is_null() { json!({}) } else { input.clone() })
}

/// The agent that a request is for, if it names one.
fn addressee(request: &Value) -> String {
    request["routing"]["target"].as_str().unwrap_or("any-agent").to_owned()
}

/// Sends a request as it stands. Its answer is a document of the contract without a fault.
fn sent(address: SocketAddr, contract: &str, text: &str) -> Answer {
    let request: Value = serde_json::from_str(text).expect("it is JSON");
    let path = match contract {
        "run" => "/agents/run/sync".to_owned(),
        "task" => "/tasks?wait=60".to_owned(),
        "message" => format!("{ENDPOINT}?wait=60"),
        _ => format!("/agents/{}/envelope", addressee(&request)),
    };
    let answer = exchange(address, "POST", &path, &[], text.as_bytes()).expect("it answers");
    let kind = match contract {
        "run" => Kind::RunResponse,
        "task" => Kind::TaskResponse,
        "message" => kind_of(&answer.json()),
        _ => Kind::WorkflowOutput,
    };
    faultless(&answer.body, kind);
    answer
}

/// Checks that the answer is that of an echo to this request.
fn is_echo(name: &str, contract: &str, request: &Value, answer: &Answer) {
    assert_eq!(answer.status, 200, "{name}: {answer:?}");
    let answer = &answer.json();
    let (_, input) = asked(contract, request);
    let (went_well, id, echoed) = match contract {
        "run" => (answer["ok"] == true, answer["request_id"] == request["request_id"], answer["outputs"].clone()),
        "task" => (answer["status"] == "completed", answer["id"] == request["id"], answer["result"].clone()),
        "message" => {
            let payload = &answer["payload"];
            let output = payload["output"].as_str().unwrap_or_else(|| panic!("{name}: {answer}"));
            let is_same = answer["request_id"] == request["request_id"]
                && payload["task_id"] == request["payload"]["task_id"]
                && answer["trace_id"] == request["trace_id"];
            (payload["status"] == "success", is_same, serde_json::from_str(output).expect("it is JSON"))
        }
        _ => {
            let outputs = answer["x_crosspoint"].get("outputs").cloned();
            (answer["success"] == true, true, outputs.unwrap_or_else(|| json!({})))
        }
    };
    assert!(went_well && id, "{name}: {answer}");
    assert_eq!(echoed, input, "{name}: {answer}");
}

#[test]
fn every_printed_request_is_taken_at_the_door_and_answered() {
    for contract in CONTRACTS {
        for (name, text) in requests(contract) {
            let request: Value = serde_json::from_str(&text).expect("it is JSON");
            let (work, _) = asked(contract, &request);
            let agent = addressee(&request);
            let server = Server::configured(&format!(
                "[[agent]]\nname = {agent:?}\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [{work:?}]\ntype = \"infra\"\n"
            ));
            is_echo(&name, contract, &request, &sent(server.address(), contract, &text));
        }
    }
}

async fn echo(input: Value, _: Context) -> Result<Value, Failure> {
    Ok(input)
}

#[test]
fn every_printed_request_is_taken_by_a_function_and_answered() {
    for contract in CONTRACTS {
        for (name, text) in requests(contract) {
            let request: Value = serde_json::from_str(&text).expect("it is JSON");
            let (work, _) = asked(contract, &request);
            let agent = Agent::new(&addressee(&request)).agent_type("infra").on(&work, echo).forgetful();
            let (address, _running) = serve(agent);
            is_echo(&name, contract, &request, &sent(address, contract, &text));
        }
    }
}

/// The printed request of a contract whose printed answers its agents give.
fn request_of(contract: &str) -> String {
    let name = match contract {
        "run" => "request-full.json",
        "task" => "request-printed.json",
        "message" => "work_request-printed.json",
        _ => "input-printed.json",
    };
    fs::read_to_string(root().join("testdata").join(contract).join(name)).expect("it is there")
}

/// The printed answer as an agent gives it that was asked this: the ids are those of the request.
fn filled(contract: &str, text: &str, request: &Value) -> Value {
    let mut answer: Value = serde_json::from_str(text).expect("it is JSON");
    match contract {
        "run" => answer["request_id"] = request["request_id"].clone(),
        "task" => answer["id"] = request["id"].clone(),
        "message" => {
            for id in ["request_id", "trace_id"] {
                answer[id] = request[id].clone();
            }
            answer["message_id"] = json!(uuid::Uuid::new_v4().to_string());
            if answer["payload"].get("task_id").is_some() {
                answer["payload"]["task_id"] = request["payload"]["task_id"].clone();
            }
        }
        _ => {}
    }
    answer
}

/// A server with one agent there for the printed request, which is asked for whole answers.
fn server_of(contract: &str, url: &str) -> (Server, String) {
    let text = request_of(contract);
    let request: Value = serde_json::from_str(&text).expect("it is JSON");
    let (work, _) = asked(contract, &request);
    let more = match contract {
        "run" => "stream = false\n",
        "message" => "type = \"infra\"\n",
        _ => "",
    };
    let keys = format!("work = [{work:?}]\n{more}");
    (Server::configured(&configuration(&addressee(&request), contract, url, &keys)), text)
}

/// Checks that what the agent said of its work is in the answer to the caller: all members that the printed one has.
fn carries(name: &str, contract: &str, answer: &Value, printed: &Value) {
    let names: &[&str] = match contract {
        "run" => &["outputs", "artifacts", "provenance", "usage", "grounding", "error"],
        "task" => &["status", "result", "artifacts", "error"],
        "message" => &["status", "exit_code", "output", "error_code", "error_message", "error_context"],
        _ => &["success", "summary", "artifacts", "notes", "recommendation"],
    };
    let part = if contract == "message" { "/payload" } else { "" };
    let [answered, printed] = [answer, printed].map(|document| document.pointer(part).expect("it is there"));
    for member in names.iter().filter(|member| !printed[**member].is_null()) {
        assert!(has(&answered[member], &printed[member]), "{member} of {name}: {answer}");
    }
}

/// Whether a value is the printed one; a server may add members, such as whether a failure may be repeated.
fn has(value: &Value, printed: &Value) -> bool {
    match printed.as_object() {
        Some(members) => members.iter().all(|(name, member)| has(&value[name], member)),
        None => value == printed,
    }
}

/// The contracts side by side: a failure that may be repeated is repeated, with pauses.
#[test]
fn every_printed_answer_is_taken_from_an_agent_and_reaches_the_caller() {
    std::thread::scope(|threads| {
        for contract in CONTRACTS {
            threads.spawn(move || answers_reach_the_caller(contract));
        }
    });
}

fn answers_reach_the_caller(contract: &'static str) {
    let beginnings: &[&str] = match contract {
        "message" => &["work_result-", "error-"],
        "workflow" => &["output-"],
        _ => &["response-"],
    };
    for (name, text) in beginnings.iter().flat_map(|beginning| printed(contract, beginning)) {
        let answer = text.clone();
        let agent = ScriptedAgent::start(move |request, connection| {
            connection.json(200, &filled(contract, &answer, &request.json()))
        });
        let (server, request) = server_of(contract, &agent.url());
        let said = sent(server.address(), contract, &request).json();
        carries(&name, contract, &said, &serde_json::from_str(&text).expect("it is JSON"));
    }
}

/// All streams of the corpus have the same request id, or one in other letters.
#[test]
fn every_stream_is_taken_from_an_agent_and_its_end_reaches_the_caller() {
    for (name, text) in printed("run", "stream-") {
        let stream = text.clone();
        let agent = ScriptedAgent::start(move |request, connection| {
            let id = request.id();
            connection.events(stream.replace("req-2026-001", &id).replace("anfrage-ü-完", &id))
        });
        let server = Server::configured(&configuration("far", "run", &agent.url(), "work = [\"LIT_RETRIEVAL\"]"));
        let said = sent(server.address(), "run", &request_of("run")).json();
        let is_failure = name.contains("error");
        assert_eq!(said["ok"], json!(!is_failure), "{name}: {said}");
        assert!(is_failure || said["outputs"] != json!({}), "{name}: {said}");
    }
}

/// What an agent says on the way, and then how it ended.
#[test]
fn every_printed_status_is_taken_from_an_agent() {
    let agent = Posted::taking();
    let (server, request) = server_of("message", &agent.url());
    let accepted = server.post(ENDPOINT, &request);
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let given = agent.request(1);
    for (_, text) in printed("message", "work_status-") {
        server.takes(&filled("message", &text, &given));
    }
    let (_, result) = printed("message", "work_result-printed_success").remove(0);
    server.takes(&filled("message", &result, &given));
    let said = sent(server.address(), "message", &request).json();
    carries("the result", "message", &said, &serde_json::from_str(&result).expect("it is JSON"));
    let job = server.job_of(&accepted);
    assert_eq!((&job["progress"]["percent"], &job["violations"]), (&json!(100), &Value::Null), "{job}");
}
