//! Which requests are the same, what they get, and what is told of a job that has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::{Value, json};

use crate::support::{Answer, Served, scratch};

type Doing = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// A handler that counts its calls, and in the first of them stays until it is told to stop, if its input says so.
fn counting(calls: &Arc<AtomicU32>) -> impl Fn(Value, Context) -> Doing + Send + Sync + use<> {
    let calls = calls.clone();
    move |input, context| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if input["stays"] == json!(true) && call == 0 {
                context.cancelled().await;
            }
            Ok(json!({"call": call}))
        })
    }
}

fn run(served: &Served, id: &str, inputs: &str) -> Answer {
    let request =
        format!(r#"{{"request_id":"{id}","task_type":"count","inputs":{inputs},"budgets":{{"max_seconds":1}}}}"#);
    served.post("/agents/run/sync", &request)
}

const TASKS: [&str; 3] = [
    "550e8400-e29b-41d4-a716-446655440040",
    "550e8400-e29b-41d4-a716-446655440041",
    "550e8400-e29b-41d4-a716-446655440042",
];

fn task(served: &Served, id: &str, key: Option<&str>) -> Answer {
    let headers = key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
    let task = json!({"id": id, "type": "count", "payload": {}}).to_string();
    served.ask("POST", "/tasks?wait=30", &task, &headers)
}

#[test]
fn numbers_that_are_equal_are_the_same_input() {
    let calls = Arc::new(AtomicU32::new(0));
    let served = Served::start(Agent::new("counter").on("count", counting(&calls)).forgetful());
    for same in [r#"{"n":1,"m":2}"#, r#"{"n":1.0,"m":2}"#, r#"{"m":20e-1,"n":1e0}"#] {
        let answer = run(&served, "r-1", same);
        assert_eq!((answer.status, &answer.json()["outputs"]), (200, &json!({"call": 0})), "{same}");
    }
    for other in [r#"{"n":1.5,"m":2}"#, r#"{"n":-1,"m":2}"#, r#"{"n":10,"m":2}"#, r#"{"n":"1","m":2}"#] {
        assert_eq!(run(&served, "r-1", other).status, 409, "{other}");
    }
}

#[test]
fn a_request_that_names_two_jobs_is_a_conflict() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("repeats"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    task(&served, TASKS[0], Some("key-0"));
    task(&served, TASKS[1], None);
    let check = |served: &Served| {
        assert_eq!(task(served, TASKS[1], Some("key-0")).status, 409, "one is named by the key, another by the id");
        assert_eq!(task(served, TASKS[2], Some("key-0")).json()["result"]["call"], 0, "the key names one");
        assert_eq!(task(served, TASKS[1], Some("key-1")).json()["result"]["call"], 1, "the id names one");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    };
    check(&served);
    served.stop();
    check(&Served::start(agent()));
}

/// ALL-1: what a repeat came with is a name of its job, also in the store, and where a proxy drops the header.
#[test]
fn an_id_that_came_with_a_known_key_is_the_jobs_from_then_on() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("repeats"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    task(&served, TASKS[0], Some("key-0"));
    task(&served, TASKS[1], Some("key-0"));
    let is_known = |served: &Served, id: &str| {
        assert_eq!(served.get(&format!("/tasks/{id}")).json()["id"], id);
        assert_eq!(task(served, id, None).json()["result"]["call"], 0, "it is no new work");
        let other = json!({"id": id, "type": "count", "payload": {"n": 1}}).to_string();
        assert_eq!(served.ask("POST", "/tasks", &other, "").status, 409, "with another payload");
    };
    is_known(&served, TASKS[1]);
    served.stop();
    let served = Served::start(agent());
    is_known(&served, TASKS[1]);
    // Now only the store has the answer.
    task(&served, TASKS[2], Some("key-0"));
    task(&served, TASKS[2], Some("key-2"));
    is_known(&served, TASKS[2]);
    served.stop();
    let served = Served::start(agent());
    TASKS.iter().for_each(|id| is_known(&served, id));
    let native = "idempotency-key: key-2\r\n";
    let run = r#"{"request_id":"r","task_type":"count","inputs":{}}"#;
    assert_eq!(served.ask("POST", "/agents/run/sync", run, native).json()["outputs"]["call"], 0);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_job_gets_so_many_names_and_no_more() {
    let calls = Arc::new(AtomicU32::new(0));
    let path = scratch("repeats");
    for agent in [Agent::new("counter").forgetful(), Agent::new("counter").answers(&path)] {
        let served = Served::start(agent.on("count", counting(&calls)));
        let id = |number: usize| format!("550e8400-e29b-41d4-a716-4466554{number:05}");
        for number in 0..=64 {
            assert_eq!(task(&served, &id(number), Some("key-0")).status, 200, "{number}");
        }
        let refused = task(&served, &id(65), Some("key-0"));
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("INVALID_FIELD_VALUE")));
        assert_eq!(task(&served, &id(64), Some("key-0")).status, 200, "it has that one");
        served.stop();
    }
    let served = Served::start(Agent::new("counter").on("count", counting(&calls)).answers(&path));
    let id = "550e8400-e29b-41d4-a716-446655400065";
    assert_eq!(task(&served, id, Some("key-0")).status, 409, "nor where only the store has it");
}

#[test]
fn work_that_took_too_long_is_done_again_unless_it_is_done_at_most_once() {
    for at_most_once in [false, true] {
        let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("repeats"));
        let agent = Agent::new("counter").answers(&path);
        let agent = match at_most_once {
            true => agent.at_most_once("count", counting(&calls)),
            false => agent.on("count", counting(&calls)),
        };
        let served = Served::start(agent);
        let first = run(&served, "r-1", r#"{"stays":true}"#).json();
        assert_eq!(first["error"]["code"], "TIMEOUT", "{first}");
        let again = run(&served, "r-1", r#"{"stays":true}"#).json();
        match at_most_once {
            true => assert_eq!(again["error"]["code"], "TIMEOUT", "{again}"),
            false => assert_eq!(again["outputs"], json!({"call": 1}), "{again}"),
        }
    }
}

#[test]
fn work_whose_time_is_over_before_its_turn_is_not_begun() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("repeats"));
    async fn waits(_: Value, context: Context) -> Result<Value, Failure> {
        context.cancelled().await;
        Ok(json!({}))
    }
    let agent = Agent::new("counter").at_most_once("count", counting(&calls)).on("wait", waits);
    let served = Served::start(agent.concurrency(1).answers(&path));
    let stays = json!({"id": TASKS[0], "type": "wait", "payload": {}}).to_string();
    assert_eq!(served.post("/tasks", &stays).status, 202);
    let late = run(&served, "r-1", "{}").json();
    assert_eq!((&late["error"]["code"], &late["error"]["details"]["repeat"]), (&json!("TIMEOUT"), &json!("safe")));
    served.post(&format!("/tasks/{}/cancel", TASKS[0]), "{}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(run(&served, "r-1", "{}").json()["outputs"], json!({"call": 0}), "nothing was done, so it is done");
}

#[test]
fn a_task_that_has_ended_is_shown_after_a_restart() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("repeats"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    let done = task(&served, TASKS[0], None).json();
    assert_eq!(done["status"], "completed", "{done}");
    let shown = served.get(&format!("/tasks/{}", TASKS[0])).json();
    served.stop();
    let served = Served::start(agent());
    assert_eq!(served.get(&format!("/tasks/{}", TASKS[0])).json(), shown);
    assert_eq!(served.get(&format!("/tasks/{}", TASKS[1])).status, 404);
    let ended = served.post(&format!("/tasks/{}/cancel", TASKS[0]), "{}");
    assert_eq!(ended.status, 409, "{ended:?}");
    assert_eq!(task(&served, TASKS[0], None).json()["result"], done["result"]);
}

/// MSG-17: an answer on the connection of a request has that request's ids.
#[test]
fn a_message_that_joins_a_job_is_answered_with_its_own_ids() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("repeats"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    let message = |request: &str, trace: &str, task: &str| {
        json!({
            "protocol_version": "1.0", "message_id": TASKS[0], "request_id": request, "trace_id": trace,
            "from_agent": "orchestrator", "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z",
            "type": "work_request", "x_custom_fields": {},
            "payload": {"task_id": task, "work_type": "count", "parameters": {}, "hints": {}},
        })
        .to_string()
    };
    let key = "idempotency-key: k\r\n";
    let run = json!({"request_id": "r-1", "task_type": "count", "inputs": {}}).to_string();
    assert_eq!(served.ask("POST", "/agents/run/sync", &run, key).status, 200);
    let [a, b, c] = TASKS;
    let mut ids = std::collections::BTreeSet::new();
    let mut check = |served: &Served| {
        for (request, trace, task) in [(a, a, a), (b, b, b), (b, c, c)] {
            let body = message(request, trace, task);
            let said = served.ask("POST", "/api/agent/message?wait=30", &body, key).json();
            let found = [&said["request_id"], &said["trace_id"], &said["payload"]["task_id"], &said["from_agent"]];
            assert_eq!(found, [request, trace, task, "code"], "{said}");
            let again = served.ask("POST", "/api/agent/message?wait=30", &body, key).json();
            assert_eq!(again, said, "the same request has the same answer");
            ids.insert(said["message_id"].to_string());
        }
    };
    check(&served);
    served.stop();
    check(&Served::start(agent()));
    assert_eq!((ids.len() % 3, calls.load(Ordering::SeqCst)), (0, 1), "three requests have three answers");
}
