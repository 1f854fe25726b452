//! The schemas of works (TASK-10), at every door and with every sort of agent.

use std::fs;

use serde_json::{Value, json};

use crate::support::bridge_caller;
use crate::support::message_agent::{self, Work};
use crate::support::message_caller;
use crate::support::message_puller::{self, MessagePuller};
use crate::support::programs::bash;
use crate::support::run_caller;
use crate::support::scripted_agent::configuration;
use crate::support::server::Server;
use crate::support::task_caller;
use crate::support::workers::Worker;

const ECHO: &str = "[[agent]]\nname = \"echo\"\ncontract = \"builtin\"\nwork = [\"w\"]\n";

/// Says nothing of the input: no message may.
const SECRET: &str = "s3cr3t";

/// Starts a server with these schemas of a work.
fn server(agents: &str, work: &str, schemas: &[(&str, Value)]) -> Server {
    let mut server = Server::configured(agents);
    server.stop();
    set(&server, agents, work, schemas);
    server.restart();
    server
}

fn set(server: &Server, agents: &str, work: &str, schemas: &[(&str, Value)]) {
    let mut toml = format!("{agents}\n[[work]]\nname = \"{work}\"\n");
    for (key, schema) in schemas {
        fs::write(server.directory().join(format!("{key}.json")), schema.to_string()).expect("it can be written");
        toml += &format!("{key} = \"{key}.json\"\n");
    }
    server.configure(&toml);
}

fn query() -> Value {
    json!({
        "type": "object", "required": ["query"],
        "properties": {"query": {"type": "string"}, "limit": {"maximum": 9}},
    })
}

#[test]
fn input_that_does_not_match_is_refused_at_every_door_with_its_place() {
    let server = server(ECHO, "w", &[("input_schema", query())]);
    let wrong = json!({"query": 7, "note": SECRET});
    let native = server.post("/api/v1/jobs", &json!({"work": "w", "input": wrong}).to_string());
    assert_eq!(native.status, 400);
    let error = &native.json()["error"];
    assert_eq!((&error["at"], &error["clause"]), (&json!("/input/query"), &json!("TASK-10")), "{error}");
    assert_eq!((&error["code"], &error["message"]), (&json!("invalid"), &json!("it must be a string")));

    let run = server.run_sync(&run_caller::request("r", "w", &wrong));
    assert_eq!((run.status, &run.json()["error"]["code"]), (400, &json!("VALIDATION_ERROR")));
    assert_eq!(run.json()["error"]["details"]["at"], "/inputs/query", "{}", run.text());
    assert_eq!(run.json()["error"]["details"]["clause"], "TASK-10");
    let found = &run.json()["error"]["details"]["findings"][0];
    assert_eq!((&found["pointer"], &found["line"]), (&json!("/inputs/query"), &json!(1)), "{found}");
    assert_ne!(found["column"], 1, "the place of the value itself: {found}");

    let task = server.task("POST", "/tasks", &[], &task_caller::request("t", "w", &wrong));
    let error = &task.document["error"];
    assert_eq!((task.word(), &error["code"]), ("failed", &json!("INVALID_FIELD_TYPE")), "{error}");
    assert_eq!(
        (&error["details"]["at"], &error["details"]["field"]),
        (&json!("/payload/query"), &json!("payload.query"))
    );
    assert_eq!(error["details"]["clause"], "TASK-10");

    let bridge = bridge_caller::request(&bridge_caller::new_id(), "w", SECRET);
    let bridge = server.ask(&bridge);
    assert_eq!(bridge.status, 400, "{}", bridge.text());
    let refused = bridge_caller::response(&bridge);
    assert_eq!((&refused["status"], &refused["error_type"]), (&json!("error"), &json!("invalid_request")), "{refused}");
    assert!(bridge.text().contains("TASK-10") && bridge.text().contains("`query` is missing"), "{}", bridge.text());

    let message = message_caller::request(&bridge_caller::new_id(), "w", &wrong);
    let message = server.send_message("", &message);
    assert_eq!(message.status, 400, "{}", message.text());
    let error = &message.json()["payload"];
    let context = &error["error_context"];
    assert_eq!((&error["error_code"], &context["clause"]), (&json!(5003), &json!("TASK-10")), "{error}");
    assert_eq!(context["at"], "/payload/parameters/query", "{error}");
    assert_eq!(context["field_name"], "payload.parameters.query", "{error}");

    for answer in [&native, &run, &task.answer, &bridge, &message] {
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
    }
    assert!(!server.log().contains(SECRET));
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "none of them is a job");
}

#[test]
fn a_request_of_the_bridge_is_told_the_member_of_its_own_document() {
    let schema = json!({"properties": {"prompt": {"maxLength": 5}, "context": {"required": ["topic"]}}});
    let server = server(ECHO, "w", &[("input_schema", schema)]);
    let mut request = bridge_caller::request(&bridge_caller::new_id(), "w", "too long");
    let text = server.ask(&request).text();
    assert!(text.contains("\"/prompt\""), "{text}");
    request["prompt"] = json!("short");
    request["context"] = json!({"other": 1});
    let text = server.ask(&request).text();
    assert!(text.contains("\"/context/topic\"") && text.contains("`topic` is missing"), "{text}");
    request["context"] = json!({"topic": "t"});
    assert_eq!(server.response_to(&request)["status"], "success");
}

/// What travelled in carried members has no place that the requester knows.
#[test]
fn a_carried_input_is_compared_too() {
    let server = server(ECHO, "w", &[("input_schema", query())]);
    let carried = bridge_caller::carrying(&bridge_caller::new_id(), "w", &json!({"limit": 7}));
    let text = server.ask(&carried).text();
    assert!(text.contains("`query` is missing") && !text.contains("/query"), "{text}");
    let carried = bridge_caller::carrying(&bridge_caller::new_id(), "w", &json!({"query": "q"}));
    assert_eq!(server.response_to(&carried)["status"], "success");
}

#[test]
fn input_that_is_left_out_or_has_many_mistakes_is_told_so_within_limits() {
    let server = server(ECHO, "w", &[("input_schema", query())]);
    let without = server.run_sync(&json!({"request_id": "r", "task_type": "w"}).to_string());
    assert_eq!(without.json()["error"]["details"]["at"], "/inputs/query", "{}", without.text());
    let native = server.post("/api/v1/jobs", &json!({"work": "w"}).to_string());
    assert_eq!(native.json()["error"]["at"], "/input/query");
    let both = server.post("/api/v1/jobs", &json!({"work": "w", "input": {"limit": 10}}).to_string()).json();
    let places: Vec<&Value> =
        both["error"]["mistakes"].as_array().expect("a list").iter().map(|one| &one["at"]).collect();
    assert_eq!(places.len(), 2, "{both}");
    assert!(places.contains(&&json!("/input/limit")), "{both}");
    let good = server.run_sync(&run_caller::request("r", "w", &json!({"query": "q"})));
    assert_eq!((good.status, &good.json()["outputs"]), (200, &json!({"query": "q"})));
    // A work without schemas takes anything.
    let list = json!({"items": {"type": "string"}, "type": "array"});
    let many = self::server(ECHO, "w", &[("input_schema", list)]);
    let refused = many.post("/api/v1/jobs", &json!({"work": "w", "input": vec![1; 5_000]}).to_string()).json();
    assert_eq!(refused["error"]["mistakes"].as_array().map(Vec::len), Some(20), "{refused}");
}

/// A document of a megabyte is looked at away from the threads that serve, and its mistake has its place all the same.
#[test]
fn a_long_input_is_compared_too() {
    let server = server(ECHO, "w", &[("input_schema", query())]);
    let long = "x".repeat(1 << 20);
    let body = |query: Value| json!({"work": "w", "input": {"note": long, "query": query}}).to_string();
    let refused = server.post("/api/v1/jobs", &body(json!(7)));
    assert_eq!((refused.status, &refused.json()["error"]["at"]), (400, &json!("/input/query")));
    assert_eq!(server.post("/api/v1/jobs?wait=60", &body(json!("q"))).json()["state"], "completed");
}

#[test]
fn output_that_does_not_match_is_recorded_and_the_outcome_stands() {
    let schema = || [("output_schema", json!({"required": ["answer"], "properties": {"answer": {"type": "string"}}}))];
    let recorded = |job: &Value| -> Vec<(String, String)> {
        let list = job["violations"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| (one["clause"].to_string(), one["what"].to_string())).collect()
    };
    let agents =
        [("built in", ECHO.to_owned()), ("a program", bash("p", "read -r line; echo \"$line\"", "work = [\"w\"]"))];
    for (sort, agents) in agents {
        let server = server(&agents, "w", &schema());
        let job = server.done("w", &json!({"answer": "a"}));
        assert!(recorded(&job).is_empty(), "{sort}: {job}");
        let job = server.done("w", &json!({"answer": {SECRET: SECRET}}));
        assert_eq!(
            (&job["state"], &job["outcome"]["outputs"]["answer"][SECRET]),
            (&json!("completed"), &json!(SECRET))
        );
        let found = recorded(&job);
        assert_eq!(found.len(), 1, "{sort}: {found:?}");
        assert!(found[0].0.contains("TASK-10") && found[0].1.contains("/properties/answer/type"), "{sort}: {found:?}");
        assert!(!found[0].1.contains(SECRET), "{sort}: {found:?}");
    }
    of_messages(&recorded);
    let server = server(ECHO, "joined", &schema());
    let _worker = Worker::joined(&server, "joined", &[], &["sh", "-c", "read -r line; echo \"$line\""]);
    let job = server.done("joined", &json!({"other": 1}));
    let found = recorded(&job);
    assert_eq!((&job["state"], found.len()), (&json!("completed"), 1), "{job}");
    assert!(found[0].1.contains("`answer` is missing"), "{found:?}");
}

/// An agent of messages gives a text, however it is reached.
fn of_messages(recorded: &dyn Fn(&Value) -> Vec<(String, String)>) {
    let schema = [("output_schema", json!({"type": "string", "maxLength": 7}))];
    let said = |work: &Work| work.done(work.parameters()["say"].as_str().expect("it is said"));
    let pushed = message_agent::answering(move |work| Some(said(work)));
    let configured = configuration("pushed", "message", &pushed.url(), "work = [\"w\"]");
    for how in ["pushed", "pulled", "registered"] {
        let agents = match how {
            "pushed" => configured.clone(),
            "pulled" => message_puller::configuration(how, "work = [\"w\"]"),
            _ => String::new(),
        };
        let server = server(&agents, "w", &schema);
        if how == "registered" {
            message_puller::register(&server, how, "w");
        }
        let _puller = MessagePuller::answering(&server, how, said);
        assert!(recorded(&server.done("w", &json!({"say": "short"}))).is_empty(), "{how}");
        let job = server.done("w", &json!({"say": format!("{SECRET}, {SECRET}")}));
        let found = recorded(&job);
        assert_eq!((&job["state"], found.len()), (&json!("completed"), 1), "{how}: {job}");
        assert!(found[0].0.contains("TASK-10") && !found[0].1.contains(SECRET), "{how}: {found:?}");
    }
}

/// A schema that became stricter is about new work: a caller that asks for an old job again still gets it (ALL-1).
#[test]
fn a_repeat_of_an_accepted_request_gets_its_job_whatever_the_schema_says_now() {
    let mut server = server(ECHO, "w", &[("input_schema", json!({}))]);
    let first = server.run_sync(&run_caller::request("r", "w", &json!({"query": 7})));
    assert_eq!(first.status, 200);
    server.kill();
    set(&server, ECHO, "w", &[("input_schema", query())]);
    server.restart();
    let again = server.run_sync(&run_caller::request("r", "w", &json!({"query": 7})));
    assert_eq!((again.status, &again.body), (200, &first.body));
    let other = server.run_sync(&run_caller::request("r", "w", &json!({"query": 8})));
    assert_eq!(other.status, 409, "another input under the same key is a conflict, as ever");
    assert_eq!(server.run_sync(&run_caller::request("new", "w", &json!({"query": 7}))).status, 400);
}
