//! The agent of the task contract: it answers at once where it can, else it is polled, with `wait` (TASK-4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::ledger::Ledger;
use super::{blob, own_members, raw_outputs, seen, spelled, text};
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent};

/// Longest time that a poll is held, so that callers are answered within any silence.
const HELD_AT_MOST: Duration = Duration::from_secs(1);

pub(super) fn start(ledger: Arc<Ledger>) -> ScriptedAgent {
    let agent = Agent { ledger, tasks: Mutex::default(), busy: Mutex::default() };
    ScriptedAgent::start(move |asked, connection| agent.answer(asked, connection))
}

struct Agent {
    ledger: Arc<Ledger>,
    tasks: Mutex<BTreeMap<String, Task>>,
    /// Cells that were once told that there is no room.
    busy: Mutex<BTreeSet<String>>,
}

#[derive(Clone)]
struct Task {
    request: Value,
    /// What ends it from outside: the answer that it waits for, or a cancel.
    came: Option<Came>,
}

#[derive(Clone)]
enum Came {
    Input(Value),
    Cancel,
}

impl Agent {
    fn answer(&self, asked: &Request, connection: &mut Connection) -> After {
        let path = asked.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (&*asked.method, parts.as_slice()) {
            ("POST", ["tasks"]) => self.take(asked, connection),
            ("GET", ["tasks", id]) => self.poll(id, asked, connection),
            ("POST", ["tasks", id, "input"]) => {
                let answer = asked.json();
                self.come(id, "input", asked, answer.clone(), Came::Input(answer["input"].clone()), connection)
            }
            ("POST", ["tasks", id, "cancel"]) => self.come(id, "told", asked, Value::Null, Came::Cancel, connection),
            ("GET", ["health"] | ["health", "ready"]) => reply(connection, 200, &json!({"status": "ok"})),
            _ => reply(connection, 404, &json!({})),
        }
    }

    fn take(&self, asked: &Request, connection: &mut Connection) -> After {
        let request = asked.json();
        let (id, cell) = (text(&request, "id"), text(&request["payload"], "cell"));
        self.ledger.note(&cell, seen("new", &id, asked, request.clone()));
        if text(&request["payload"], "do") == "again"
            && self.busy.lock().expect("no thread panics with it").insert(cell.clone())
        {
            return reply(connection, 503, &json!({}));
        }
        let task = Task { request, came: None };
        self.lock().insert(id, task.clone());
        let document = task.shown(false);
        let ended = ["completed", "failed", "cancelled"].contains(&text(&document, "status").as_str());
        reply(connection, if ended { 200 } else { 202 }, &document)
    }

    fn poll(&self, id: &str, asked: &Request, connection: &mut Connection) -> After {
        let Some(task) = self.lock().get(id).cloned() else { return reply(connection, 404, &json!({})) };
        let (cell, wanted) = (text(&task.request["payload"], "cell"), text(&task.request["payload"], "do"));
        if wanted == "silent" {
            return connection.until_gone();
        }
        let held = if asked.path.contains("wait=") { HELD_AT_MOST } else { Duration::ZERO };
        let released = self.ledger.released(&cell, held);
        if wanted == "die" && released {
            return After::Close;
        }
        reply(connection, 200, &task.shown(released))
    }

    /// Gives a task an answer or a cancel from outside.
    fn come(
        &self,
        id: &str,
        what: &'static str,
        asked: &Request,
        document: Value,
        came: Came,
        connection: &mut Connection,
    ) -> After {
        let task = self.lock().get_mut(id).map(|task| {
            task.came = Some(came);
            task.clone()
        });
        let Some(task) = task else { return reply(connection, 404, &json!({})) };
        self.ledger.note(&text(&task.request["payload"], "cell"), seen(what, id, asked, document));
        reply(connection, 200, &task.shown(false))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.tasks.lock().expect("no thread panics with it")
    }
}

impl Task {
    fn shown(&self, released: bool) -> Value {
        let payload = &self.request["payload"];
        match (text(payload, "do").as_str(), &self.came) {
            (_, Some(Came::Cancel)) => json!({"id": self.request["id"], "status": "cancelled", "metadata": metadata()}),
            ("ask", Some(Came::Input(answer))) => self.completed(&json!({"answer": answer})),
            ("ask", None) => {
                let question = json!({"prompt": "Which pan?", "schema": {"type": "string"}});
                json!({"id": self.request["id"], "status": "input_required", "inputRequest": question})
            }
            ("silent", _) => json!({"id": self.request["id"], "status": "pending"}),
            ("die" | "hold", _) => self.under_way(),
            ("progress", _) if !released => self.under_way(),
            ("fail", _) => self.failed(),
            ("break", _) => json!({"id": self.request["id"], "status": "completed", "result": 7}),
            ("raw", _) => self.completed(&raw_outputs(payload)),
            ("big", _) => self.completed(&json!({"blob": blob()})),
            (wanted, _) => self.with_more(wanted),
        }
    }

    fn under_way(&self) -> Value {
        let carried = json!({"from": "task.response", "percent": 40, "step": "Half-way"});
        json!({"id": self.request["id"], "status": "in_progress", "metadata": {"x_crosspoint": carried}})
    }

    fn completed(&self, result: &Value) -> Value {
        json!({"id": self.request["id"], "status": "completed", "result": result, "metadata": metadata()})
    }

    fn with_more(&self, wanted: &str) -> Value {
        let mut document = self.completed(&self.request["payload"]);
        if wanted == "artifacts" {
            document["artifacts"] = json!([{"name": "report.md", "type": "text/markdown", "content": "# Report"}]);
        }
        if wanted == "own" {
            document["own"] = own_members();
            document["metadata"]["cost"] = json!(812);
        }
        document
    }

    fn failed(&self) -> Value {
        let (id, payload) = (&self.request["id"], &self.request["payload"]);
        if payload["code"] == "CANCELLED" {
            return json!({"id": id, "status": "cancelled", "metadata": metadata()});
        }
        let error = json!({
            "code": payload["code"], "message": payload["message"], "details": {"own": own_members()},
            "recoverable": payload["recoverable"],
        });
        json!({"id": id, "status": "failed", "error": error, "metadata": metadata()})
    }
}

fn metadata() -> Value {
    json!({"startedAt": "2025-01-05T10:30:00Z", "completedAt": "2025-01-05T10:30:02Z", "duration_ms": 2000})
}

fn reply(connection: &mut Connection, status: u16, body: &Value) -> After {
    connection.whole(status, "application/json", spelled(body))
}
