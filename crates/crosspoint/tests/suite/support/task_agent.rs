//! An agent of the task contract that the test controls, over the scripted agent, so that it can misbehave.
//!
//! By default it keeps tasks as the contract says: a posted task is pending, and then has the state that the test sets.
//! Each request goes first to the test's own function, which may answer in any other way.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent, configuration};
use crate::support::server::until;

pub(crate) struct TaskAgent {
    scripted: ScriptedAgent,
    tasks: Arc<Tasks>,
}

/// The tasks that the agent knows, by their ids.
#[derive(Default)]
struct Tasks(Mutex<BTreeMap<String, Value>>);

/// A request to the agent, as the contract reads it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// `post`, `look`, `input`, `cancel`, or the path of anything else.
    pub(crate) what: String,
    /// The task's id; empty if the path has none.
    pub(crate) id: String,
    pub(crate) query: String,
    pub(crate) body: Value,
    pub(crate) request: Request,
}

/// How the agent answers.
pub(crate) enum Reply {
    /// As the contract says.
    Kept,
    Json(u16, Value),
    /// Exactly these bytes, and then the connection is closed.
    Bytes(Vec<u8>),
    /// The connection is closed without an answer.
    Close,
    /// No answer, until the caller disconnects.
    Hang,
}

impl TaskAgent {
    /// An agent that keeps to the contract.
    pub(crate) fn start() -> TaskAgent {
        TaskAgent::answering(|_| Reply::Kept)
    }

    /// An agent that first asks this function how to answer.
    pub(crate) fn answering(answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> TaskAgent {
        TaskAgent::at(SocketAddr::from(([127, 0, 0, 1], 0)), answer)
    }

    /// The same at an address, which may be that of an agent that is gone.
    pub(crate) fn at(address: SocketAddr, answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> TaskAgent {
        let tasks = Arc::<Tasks>::default();
        let known = tasks.clone();
        let scripted = ScriptedAgent::at(address, move |request, connection| {
            let call = Call::read(request);
            answer(&call).send(connection, || known.kept(&call))
        });
        TaskAgent { scripted, tasks }
    }

    /// An agent that completes every task at once, with the given result.
    pub(crate) fn simple(result: impl Fn(&Value) -> Value + Send + Sync + 'static) -> TaskAgent {
        TaskAgent::answering(move |call| match &*call.what {
            "post" => Reply::Json(200, completed(&call.body["id"], &result(&call.body))),
            _ => Reply::Kept,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.scripted.address()
    }

    /// The configuration of this agent, for work of the same name.
    pub(crate) fn configuration(&self, name: &str, keys: &str) -> String {
        configuration(name, "task", &self.scripted.url(), keys)
    }

    /// From now on the task has this state; the id is filled in.
    pub(crate) fn stands(&self, id: &str, mut document: Value) {
        document["id"] = json!(id);
        self.tasks.lock().insert(id.to_owned(), document);
    }

    /// The agent no longer knows the task.
    pub(crate) fn forget(&self, id: &str) {
        self.tasks.lock().remove(id);
    }

    /// All requests of one kind, in order.
    pub(crate) fn asked(&self, what: &str) -> Vec<Call> {
        self.scripted.requests().iter().map(Call::read).filter(|call| call.what == what).collect()
    }

    /// Waits until there were `count` requests of this kind, and returns the last of these.
    pub(crate) fn awaited(&self, what: &str, count: usize) -> Call {
        until(what, || self.asked(what).into_iter().nth(count - 1))
    }

    /// Waits for two more polls: the second one began after this call.
    pub(crate) fn looked_again(&self) {
        let before = self.asked("look").len();
        self.awaited("look", before + 2);
    }
}

impl Reply {
    fn send(self, connection: &mut Connection, kept: impl FnOnce() -> (u16, Value)) -> After {
        match self {
            Reply::Kept => {
                let (status, document) = kept();
                connection.json(status, &document)
            }
            Reply::Json(status, document) => connection.json(status, &document),
            Reply::Bytes(bytes) => {
                connection.send(bytes);
                After::Close
            }
            Reply::Close => After::Close,
            Reply::Hang => connection.until_gone(),
        }
    }
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer that the contract asks for.
    fn kept(&self, call: &Call) -> (u16, Value) {
        let mut tasks = self.lock();
        if call.what == "post" {
            let id = call.body["id"].as_str().expect("an id").to_owned();
            let known = tasks.entry(id.clone()).or_insert_with(|| json!({"id": id, "status": "pending"}));
            return (202, known.clone());
        }
        let Some(task) = tasks.get_mut(&call.id) else {
            return (404, failed(&json!(call.id), "INVALID_FIELD_VALUE", true));
        };
        // A test that was told of this request may have set what comes of it already. A task that has ended stays so
        // (TASK-3.2), and only one that asks goes on when it is answered.
        let (asks, has_ended) = (task["status"] == "input_required", is_end(&task["status"]));
        match &*call.what {
            "input" if asks => *task = json!({"id": call.id, "status": "in_progress"}),
            "cancel" if !has_ended => *task = json!({"id": call.id, "status": "cancelled"}),
            _ => {}
        }
        (200, task.clone())
    }
}

fn is_end(status: &Value) -> bool {
    matches!(status.as_str(), Some("completed" | "failed" | "cancelled"))
}

impl Call {
    fn read(request: &Request) -> Call {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (what, id) = match (&*request.method, &parts[..]) {
            ("POST", ["tasks"]) => ("post", ""),
            ("GET", ["tasks", id]) => ("look", *id),
            ("POST", ["tasks", id, what @ ("input" | "cancel")]) => (*what, *id),
            _ => (path, ""),
        };
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let (what, id, query) = (what.to_owned(), id.to_owned(), query.to_owned());
        Call { what, id, query, body, request: request.clone() }
    }
}

impl Request {
    /// The task of this request, in this state.
    pub(crate) fn task(&self, status: &str) -> Value {
        json!({"id": self.id(), "status": status})
    }

    /// The task of this request, which has ended well, with `{"by": NAME}` as its result.
    pub(crate) fn completed(&self, by: &str) -> Value {
        json!({
            "id": self.id(), "status": "completed", "result": {"by": by},
            "metadata": {"startedAt": "2025-01-05T10:30:00Z", "completedAt": "2025-01-05T10:30:02Z", "duration_ms": 2000},
        })
    }
}

/// A completed task with all recommended members.
pub(crate) fn completed(id: &Value, result: &Value) -> Value {
    json!({"id": id, "status": "completed", "result": result, "metadata": {"agent": "tested", "duration_ms": 1}})
}

pub(crate) fn failed(id: &Value, code: &str, recoverable: bool) -> Value {
    let error = json!({"code": code, "message": "It went wrong.", "details": {"n": 7}, "recoverable": recoverable});
    json!({"id": id, "status": "failed", "error": error, "metadata": {"agent": "tested"}})
}

/// A task that asks a person.
pub(crate) fn asking(prompt: &str) -> Value {
    json!({"status": "input_required", "inputRequest": {"prompt": prompt}})
}
