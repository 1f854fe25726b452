//! Agents that are threads of the test. They forget nothing over their restarts.
//!
//! Those of `run`, `task` and `workflow` have an effect whenever work is handed over, even if they had it before: that
//! nothing is handed over twice is what the server promises. Those of `message` remember request ids (MSG-8).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::ledger::enter;
use crate::support::envelopes::output;
use crate::support::message_agent::{Work, taken};
use crate::support::message_caller::sent_to;
use crate::support::scripted_agent::{After, CHUNKED_STREAM_HEAD, Connection, Request, ScriptedAgent, chunk};
use crate::support::server::{PATIENCE, exchange, within};
use crate::support::task_agent::{completed, failed};

/// What an agent knows by the ids of its work, over all its restarts; cloning shares it.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<BTreeMap<String, Value>>>);

impl Memory {
    /// What is known under an id; the first time, it is found out.
    fn known(&self, id: &str, find_out: impl FnOnce() -> Value) -> Value {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(id.to_owned()).or_insert_with(find_out).clone()
    }

    fn get(&self, id: &str) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

fn well(connection: &mut Connection) -> After {
    connection.json(200, &json!({"status": "ok"}))
}

pub(super) fn run(ledger: &Path) -> ScriptedAgent {
    let ledger = ledger.to_owned();
    ScriptedAgent::start(move |request, connection| {
        if request.method == "GET" {
            return well(connection);
        }
        let number = &request.json()["inputs"]["n"];
        enter(&ledger, number);
        let stream = request.stream(json!({"n": number}));
        connection.send([CHUNKED_STREAM_HEAD.as_bytes(), &chunk(stream), &chunk("")].concat());
        After::Keep
    })
}

/// Tasks with even numbers are completed at once, and the others are polled.
pub(super) fn task(ledger: &Path, memory: &Memory) -> ScriptedAgent {
    let (ledger, memory) = (ledger.to_owned(), memory.clone());
    ScriptedAgent::start(move |request, connection| {
        if request.path.starts_with("/health") {
            return well(connection);
        }
        if request.method == "GET" {
            let id = request.id();
            return match memory.get(&id) {
                Some(task) => connection.json(200, &task),
                None => connection.json(404, &failed(&json!(id), "INVALID_FIELD_VALUE", true)),
            };
        }
        if request.path != "/tasks" {
            return taken(connection);
        }
        let number = &request.json()["payload"]["n"];
        enter(&ledger, number);
        let task = memory.known(&request.id(), || completed(&json!(request.id()), &json!({"n": number})));
        let is_even = number.as_u64().is_some_and(|number| number % 2 == 0);
        if is_even { connection.json(200, &task) } else { connection.json(202, &request.task("in_progress")) }
    })
}

pub(super) fn envelope(ledger: &Path) -> ScriptedAgent {
    let ledger = ledger.to_owned();
    ScriptedAgent::start(move |request, connection| {
        if request.method == "GET" {
            return well(connection);
        }
        enter(&ledger, &request.json()["task"]["params"]["n"]);
        connection.json(200, &output(true, "It is counted.", "proceed"))
    })
}

/// Does work that it has not done, and returns the result.
fn done(work: &Work, ledger: &Path, memory: &Memory) -> Value {
    let number = &work.parameters()["n"];
    memory.known(&work.id(), || {
        enter(ledger, number);
        work.done("It is counted.")
    })
}

pub(super) fn pushed(ledger: &Path, memory: &Memory) -> ScriptedAgent {
    let (ledger, memory) = (ledger.to_owned(), memory.clone());
    ScriptedAgent::start(move |request: &Request, connection| match request.work() {
        Some(work) => connection.json(200, &done(&work, &ledger, &memory)),
        None if request.method == "GET" => well(connection),
        None => taken(connection),
    })
}

/// An agent that asks for its messages, until this is dropped.
pub(super) struct Pulling {
    stopped: Arc<AtomicBool>,
}

impl Pulling {
    pub(super) fn start(address: SocketAddr, name: &'static str, ledger: &Path, memory: &Memory) -> Pulling {
        let stopped = Arc::new(AtomicBool::new(false));
        let (seen, ledger, memory) = (stopped.clone(), ledger.to_owned(), memory.clone());
        thread::spawn(move || pull(address, name, &seen, &(ledger, memory)));
        Pulling { stopped }
    }
}

impl Drop for Pulling {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

fn pull(address: SocketAddr, name: &str, stopped: &Arc<AtomicBool>, how: &(PathBuf, Memory)) {
    let mut acks = String::new();
    while !stopped.load(Ordering::SeqCst) {
        let path = format!("/api/agent/messages?agent={name}&wait=5&max=16&ack={acks}");
        let polled = || exchange(address, "GET", &path, &[], b"").filter(|answer| answer.status == 200);
        let answer = within(PATIENCE, || if stopped.load(Ordering::SeqCst) { Some(None) } else { polled().map(Some) });
        // One that was killed with the answer in its hands does nothing.
        let Some(Some(answer)) = answer.filter(|_| !stopped.load(Ordering::SeqCst)) else { continue };
        let messages = answer.json()["messages"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&str> = messages.iter().filter_map(|message| message["message_id"].as_str()).collect();
        acks = ids.join(",");
        for work in messages.iter().filter_map(Work::of) {
            let (stopped, (ledger, memory)) = (stopped.clone(), how.clone());
            thread::spawn(move || {
                let result = done(&work, &ledger, &memory).to_string();
                let is_over = || stopped.load(Ordering::SeqCst) || is_taken(address, &result);
                let _ = within(PATIENCE, || is_over().then_some(()));
            });
        }
    }
}

fn is_taken(address: SocketAddr, result: &str) -> bool {
    sent_to(address, result).is_some_and(|answer| answer.status < 500)
}
