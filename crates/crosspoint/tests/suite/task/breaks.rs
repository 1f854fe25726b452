//! Task agents whose connection breaks, at every byte of an answer. A task that the agent has is found again by its id.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use crate::support::misbehaving_agents::one_outcome;
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent, answer};
use crate::support::server::Server;

/// Number of callers at once. They mostly wait for the next poll.
const CALLERS: usize = 32;

/// One in this many tasks that are cut short is also lost.
const LOST_STEP: usize = 8;

/// Which answer is cut.
const WHATS: [&str; 3] = [
    // The answer to the post, of an agent that has the task.
    "post", // The first answer to a poll.
    "poll", // The answer to the post, of an agent that then does not know the task.
    "lost",
];

fn whole(asked: &Request) -> Vec<u8> {
    answer(200, "application/json", asked.completed("it").to_string().as_bytes())
}

/// Sends this much of the answer, and resets or closes the connection.
fn cut(connection: &mut Connection, bytes: &[u8], how: &Value) -> After {
    let at = usize::try_from(how["at"].as_u64().expect("a number")).expect("it fits");
    connection.send(&bytes[..at.min(bytes.len())]);
    // A whole answer promises that the connection stays open. An agent that closes it just as the next request goes out
    // would make the result unknown.
    if at >= bytes.len() {
        return After::Keep;
    }
    if how["reset"] == true { After::Reset } else { After::Close }
}

/// The post says what is to be cut, which is remembered by the task's id.
fn scripted() -> ScriptedAgent {
    let taken: Mutex<BTreeMap<String, Value>> = Mutex::default();
    ScriptedAgent::start_many(move |asked: &Request, connection: &mut Connection| {
        let mut taken = taken.lock().expect("no thread panics with it");
        if asked.path == "/tasks" {
            let how = asked.json()["payload"].clone();
            taken.insert(asked.id(), how.clone());
            drop(taken);
            return match how["what"].as_str() {
                Some("poll") => connection.json(202, &asked.task("pending")),
                _ => cut(connection, &whole(asked), &how),
            };
        }
        let how = taken.get(&asked.id()).cloned().expect("it was posted");
        drop(taken);
        match how["what"].as_str() {
            Some("poll") if asked.turn == 0 => cut(connection, &whole(asked), &how),
            Some("lost") => connection.json(404, &json!({})),
            _ => connection.json(200, &asked.completed("it")),
        }
    })
}

#[test]
fn a_task_whose_answer_breaks_off_at_any_byte_is_found_again_and_posted_once() {
    let sample = Request::sample("/tasks", &json!({"id": "00000000-0000-4000-8000-000000000000"}));
    let all = whole(&sample).len();
    let cuts = WHATS.iter().flat_map(|what| {
        let cut = move |at: usize, reset: bool| json!({"what": what, "at": at, "reset": reset});
        // It takes a while to be sure that a task is lost, and it is the same wherever the answer was cut.
        let steps = if *what == "lost" { LOST_STEP } else { 1 };
        (0..=all).rev().step_by(steps).flat_map(move |at| [cut(at, true), cut(at, false)])
    });
    let cuts: Vec<Value> = cuts.collect();
    let scripted = scripted();
    // Each place where tasks are lost has its own agent: an agent that loses five in a row is given no more.
    let lost = (0..=all).rev().step_by(LOST_STEP).map(|at| scripted.agent("task", &format!("lost{at}"), ""));
    let agents: String = lost.chain([scripted.agent("task", "breaks", "concurrency = 64")]).collect();
    let server = Server::configured(&agents);
    let next = Mutex::new(cuts.iter());
    let came: Mutex<BTreeMap<String, usize>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while let Some(how) = { next.lock().expect("no thread panics with it").next() } {
                    let ended = judge(&server, how, all);
                    *came.lock().expect("no thread panics with it").entry(ended).or_default() += 1;
                }
            });
        }
    });
    let mut table = format!("\n{} answers cut\n", cuts.len());
    for (ended, count) in came.into_inner().expect("no thread panics with it") {
        table += &format!("{ended:<30} {count}\n");
    }
    let _ = std::io::stdout().lock().write_all(table.as_bytes());
    let mut posts: BTreeMap<String, usize> = BTreeMap::new();
    for asked in scripted.requests().iter().filter(|asked| asked.path == "/tasks") {
        *posts.entry(asked.id()).or_default() += 1;
    }
    assert_eq!(posts.len(), cuts.len());
    assert!(posts.values().all(|times| *times == 1), "{posts:?}");
}

fn judge(server: &Server, how: &Value, all: usize) -> String {
    let is_lost = how["what"] == "lost";
    let work = if is_lost { format!("lost{}", how["at"]) } else { "breaks".to_owned() };
    let body = json!({"work": work, "input": how, "limits": {"attempts": 1}});
    let job = server.post("/api/v1/jobs?wait=60", &body.to_string()).json();
    one_outcome(server, job["id"].as_str().expect("an id"), &job.to_string());
    let outcome = &job["outcome"];
    if is_lost && how["at"] != all {
        let failure = &outcome["failure"];
        assert!(["broken_contract", "unavailable"].map(Value::from).contains(&failure["code"]), "{how}: {job}");
        assert_eq!(failure["repeat"], "unknown", "the work may have begun: {how}: {job}");
        return format!("lost, {}", failure["code"].as_str().unwrap_or_default());
    }
    assert_eq!((&outcome["status"], &outcome["outputs"]), (&json!("completed"), &json!({"by": "it"})), "{how}: {job}");
    format!("{}, completed", how["what"].as_str().unwrap_or_default())
}
