//! What the codes of agents' errors mean: which are repeated, how often and when, and what callers are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::message_post::{ENDPOINT, Posted, error, pushed, result, work_request};
use crate::support::misbehaving_agents::{clauses, one_outcome};
use crate::support::scripted_agent::{After, Request, ScriptedAgent};
use crate::support::server::{Server, within};

/// A row of the contract's table of errors.
struct Row {
    code: u32,
    /// The context that an agent gives with it.
    context: fn() -> Value,
    is_repeated: bool,
    /// The failure of the job, and whether its caller may send it again.
    fails: (&'static str, &'static str),
    /// The code that a caller of the message contract gets.
    told: u32,
    task_code: &'static str,
}

const ROWS: [Row; 6] = [
    Row {
        code: 5001,
        context: || json!({"attempted_retries": 2, "last_attempt": "2026-01-19T04:21:04Z"}),
        is_repeated: true,
        fails: ("timeout", "unknown"),
        told: 5001,
        task_code: "TIMEOUT",
    },
    Row {
        code: 5002,
        context: || json!({"agent_id": "behind", "last_heartbeat": null}),
        is_repeated: true,
        fails: ("unavailable", "unknown"),
        told: 5002,
        task_code: "AGENT_UNAVAILABLE",
    },
    Row {
        code: 5003,
        context: || json!({"validation_error": "no such playbook", "field_name": "playbook"}),
        is_repeated: false,
        fails: ("invalid", "never"),
        told: 5003,
        task_code: "INVALID_INPUT",
    },
    // The caller cannot mend our token: it is told that the agent is unavailable, and the operator is told the rest.
    Row {
        code: 5004,
        context: || json!({"agent_id": "e5004", "token_status": "expired"}),
        is_repeated: false,
        fails: ("unavailable", "never"),
        told: 5002,
        task_code: "AGENT_UNAVAILABLE",
    },
    Row {
        code: 5005,
        context: || json!({"limit_name": "gpu_vram_mb", "available": 128, "required": 512}),
        is_repeated: true,
        fails: ("resource_limit", "unknown"),
        told: 5005,
        task_code: "AGENT_BUSY",
    },
    Row {
        code: 5006,
        context: || json!({"work_type_requested": "e5006", "supported_types": ["dig"]}),
        is_repeated: false,
        fails: ("unsupported", "never"),
        told: 5006,
        task_code: "CAPABILITY_NOT_FOUND",
    },
];

impl Row {
    fn work(&self) -> String {
        format!("e{}", self.code)
    }
}

/// When the agent of each work was asked.
type Times = Mutex<BTreeMap<String, Vec<Instant>>>;

/// One agent for each row, which always answers with its error, and a server that has them all.
fn failing() -> (ScriptedAgent, Server, Arc<Times>) {
    let times = Arc::<Times>::default();
    let noted = times.clone();
    let scripted = ScriptedAgent::start_many(move |asked, connection| {
        if asked.path != ENDPOINT || asked.json()["type"] != "work_request" {
            return connection.whole(200, "application/json", "");
        }
        noted.lock().expect("nobody panics").entry(asked.agent.clone()).or_default().push(Instant::now());
        let row = ROWS.iter().find(|row| row.work() == asked.agent).expect("the path names a row");
        connection.json(200, &error(&asked.json(), row.code, &(row.context)()))
    });
    let agent = |row: &Row| pushed(&row.work(), &format!("{}/{}", scripted.url(), row.work()), "");
    let server = Server::configured(&ROWS.iter().map(agent).collect::<String>());
    (scripted, server, times)
}

#[test]
fn three_codes_are_repeated_three_times_with_one_request_id_and_callers_get_every_code() {
    let (scripted, server, times) = failing();
    thread::scope(|scope| {
        for row in &ROWS {
            let (server, scripted, times) = (&server, &scripted, &times);
            scope.spawn(move || {
                let request = work_request(&row.work(), &json!({}));
                let answer = server.work_answer(&request).json();
                let payload = &answer["payload"];
                assert_eq!(
                    (&answer["type"], &payload["error_code"]),
                    (&json!("error"), &json!(row.told)),
                    "{answer:#}"
                );
                assert_eq!(answer["request_id"], request["request_id"], "{answer:#}");
                let sent: Vec<Value> = scripted.requests_of(&row.work()).iter().map(Request::json).collect();
                let count = if row.is_repeated { 4 } else { 1 };
                assert_eq!(sent.len(), count, "{}: {answer:#}", row.code);
                let mut ids: Vec<String> = sent.iter().map(|one| one["message_id"].to_string()).collect();
                ids.dedup();
                assert_eq!(ids.len(), count, "every sending has an id of its own");
                assert!(sent.iter().all(|one| one["request_id"] == sent[0]["request_id"]), "{sent:?}");
                assert!(sent.iter().all(|one| one["trace_id"] == sent[0]["trace_id"]), "{sent:?}");
                assert!(sent.iter().all(|one| one["payload"] == sent[0]["payload"]), "{sent:?}");
                let times = times.lock().expect("nobody panics")[&row.work()].clone();
                for (pair, least) in times.windows(2).zip([1, 2, 4]) {
                    let pause = pair[1].duration_since(pair[0]);
                    assert!(pause >= Duration::from_secs(least), "{}: {pause:?}", row.code);
                }
            });
        }
    });
    for row in &ROWS {
        let jobs = server.get(&format!("/api/v1/jobs?work={}", row.work())).json();
        let id = jobs["jobs"][0]["id"].as_str().expect("there is a job");
        assert_eq!(server.job(id)["attempts"], if row.is_repeated { 4 } else { 1 }, "{}", row.code);
        one_outcome(&server, id, &row.work());
    }
}

#[test]
fn every_code_of_an_agent_is_one_failure_and_its_context_is_kept() {
    let (_scripted, server, _) = failing();
    for row in &ROWS {
        let job = server.done(&row.work(), &json!({"n": 7}));
        let failure = &job["outcome"]["failure"];
        let found = (failure["code"].as_str().expect("a code"), failure["repeat"].as_str().expect("a word"));
        assert_eq!(found, row.fails, "{}: {job:#}", row.code);
        assert_eq!(failure["message"], "It went wrong.", "{}", row.code);
        let said = &job["outcome"]["said"]["document"]["payload"];
        assert_eq!((&said["error_code"], &said["error_context"]), (&json!(row.code), &(row.context)()), "{job:#}");
        assert!(clauses(&job).is_empty(), "{job:#}");
        // A caller of another contract has all of it, too.
        let mut task = json!({"id": format!("t-{}", row.code), "type": row.work(), "payload": {}});
        task["retryPolicy"] = json!({"maxAttempts": 1});
        let task = server.post("/tasks?wait=60", &task.to_string()).json();
        assert_eq!(task["error"]["code"], row.task_code, "{}: {task:#}", row.code);
        let text = task.to_string();
        let context = (row.context)();
        for (name, value) in context.as_object().expect("an object") {
            assert!(text.contains(&format!("{}:{value}", json!(name))), "{}: {name} in {task:#}", row.code);
        }
    }
    let refused = server.agent("e5004");
    assert!(refused["token_refused_since"].is_string(), "{refused:#}");
    for row in ROWS.iter().filter(|row| row.code != 5004) {
        assert!(server.agent(&row.work()).get("token_refused_since").is_none(), "{}", row.code);
    }
    assert!(server.log().contains("the agent wants a token"), "the operator is told");
}

#[test]
fn a_caller_of_the_same_contract_gets_the_context_of_the_row() {
    let (_scripted, server, _) = failing();
    for row in ROWS.iter().filter(|row| !row.is_repeated) {
        let answer = server.work_answer(&work_request(&row.work(), &json!({}))).json();
        let context = &answer["payload"]["error_context"];
        match row.code {
            5004 => assert_eq!((&context["agent_id"], &context["last_heartbeat"]), (&json!("e5004"), &Value::Null)),
            _ => {
                for (name, value) in (row.context)().as_object().expect("an object") {
                    assert_eq!(&context[name], value, "{}: {answer:#}", row.code);
                }
            }
        }
    }
}

#[test]
fn a_code_beyond_the_table_is_the_agents_own_failure() {
    for (code, failure) in [(5007, "agent_failed"), (5901, "cancelled"), (5903, "conflict"), (5900, "internal")] {
        let agent = Posted::saying(move |request| error(request, code, &json!({"n": 7})));
        let server = Server::configured(&agent.configuration("helper", ""));
        let job = server.done("helper", &json!({}));
        let found = job["outcome"]["failure"]["code"].as_str().or(job["outcome"]["status"].as_str());
        assert_eq!(found, Some(failure), "{code}: {job:#}");
        assert_eq!(job["outcome"]["said"]["document"]["payload"]["error_context"], json!({"n": 7}), "{job:#}");
    }
}

#[test]
fn work_that_is_repeated_and_then_done_has_one_outcome() {
    let agent = Posted::answering({
        let turn = Mutex::new(0);
        move |request, connection| {
            let mut turn = turn.lock().expect("nobody panics");
            *turn += 1;
            match *turn {
                1 => connection
                    .json(200, &error(request, 5005, &json!({"limit_name": "n", "available": 0, "required": 1}))),
                _ => connection.json(200, &result(request, "at last")),
            }
        }
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let job = server.over(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("at last"), &json!(2)), "{job:#}");
    assert_eq!(agent.had("error"), Vec::<Value>::new(), "it is not told to stop what it gets again");
    one_outcome(&server, &id, "repeated");
}

#[test]
fn an_agent_that_asks_for_a_longer_pause_gets_it() {
    let agent = Posted::answering(|_, connection| {
        connection.send("HTTP/1.1 503 Service Unavailable\r\nretry-after: 50\r\ncontent-length: 0\r\n\r\n");
        After::Keep
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let job = server.in_state(&id, "retrying");
    assert!(job["stuck"]["reason"].as_str().expect("a reason").contains("attempt 1 ended with unavailable"), "{job:#}");
    // Without it the next attempt would be due after a second.
    let again = within(Duration::from_secs(4), || (agent.had("work_request").len() > 1).then_some(()));
    assert!(again.is_none(), "{:#}", server.job(&id));
}
