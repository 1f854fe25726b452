//! The agent of the run contract: a service with a stream.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::ledger::Ledger;
use super::{blob, own_members, raw_outputs, seen, spelled, text};
use crate::support::scripted_agent::{After, CHUNKED_STREAM_HEAD, Connection, Request, ScriptedAgent, chunk};

pub(super) fn start(ledger: Arc<Ledger>) -> ScriptedAgent {
    let agent = Agent { ledger, busy: Mutex::default() };
    ScriptedAgent::start(move |asked, connection| match (&*asked.method, &*asked.path) {
        ("POST", "/agents/run/stream") => agent.run(asked, connection),
        ("GET", "/health" | "/health/ready") => connection.json(200, &json!({"status": "ok"})),
        _ => connection.json(404, &json!({"status": "error"})),
    })
}

struct Agent {
    ledger: Arc<Ledger>,
    /// Cells that were once told that there is no room.
    busy: Mutex<BTreeSet<String>>,
}

impl Agent {
    fn run(&self, asked: &Request, connection: &mut Connection) -> After {
        let request = asked.json();
        let input = &request["inputs"];
        let cell = text(input, "cell");
        self.ledger.note(&cell, seen("new", &text(&request, "request_id"), asked, request.clone()));
        match text(input, "do").as_str() {
            "fail" if input["status"] != 200 => {
                let status = input["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                connection.json(status.expect("a status"), &failed(&request))
            }
            "again" if self.busy.lock().expect("no thread panics with it").insert(cell) => {
                connection.json(503, &json!({"status": "busy"}))
            }
            _ => self.stream(&request, connection),
        }
    }

    fn stream(&self, request: &Value, connection: &mut Connection) -> After {
        let input = &request["inputs"];
        let (cell, wanted) = (text(input, "cell"), text(input, "do"));
        let started = json!({"request_id": request["request_id"], "task_type": request["task_type"]});
        connection.send(CHUNKED_STREAM_HEAD);
        say(connection, "started", &started);
        if ["progress", "die", "hold"].contains(&wanted.as_str()) {
            say(connection, "progress", &json!({"percent": 40, "step": "Half-way", "own": own_members()}));
        }
        match wanted.as_str() {
            "silent" | "hold" => {
                let after = connection.until_gone();
                let id = text(request, "request_id");
                let told = super::Seen { what: "told", id, trace: String::new(), document: Value::Null };
                self.ledger.note(&cell, told);
                after
            }
            "die" => {
                self.ledger.until_released(&cell);
                After::Close
            }
            other => {
                if other == "progress" {
                    self.ledger.until_released(&cell);
                }
                say(connection, "final", &last(other, request));
                connection.send(chunk(""));
                After::Keep
            }
        }
    }
}

fn last(wanted: &str, request: &Value) -> Value {
    let mut response = json!({
        "request_id": request["request_id"], "task_type": request["task_type"], "status": "ok", "ok": true,
        "outputs": request["inputs"], "artifacts": [], "provenance": {}, "usage": {}, "warnings": [],
    });
    match wanted {
        "fail" => return failed(request),
        "big" => response["outputs"] = json!({"blob": blob()}),
        "artifacts" => response["artifacts"] = json!(["report.md"]),
        "own" => {
            response["own"] = own_members();
            response["usage"] = json!({"tokens": 812});
            response["provenance"] = json!({"model": "m-1"});
            response["warnings"] = json!(["a little salty"]);
            response["grounding"] = json!({"chunks": [], "citations": ["Smith 2020"]});
        }
        "raw" => response["outputs"] = raw_outputs(&request["inputs"]),
        "break" => response["outputs"] = json!(7),
        _ => {}
    }
    response
}

fn failed(request: &Value) -> Value {
    let input = &request["inputs"];
    json!({
        "request_id": request["request_id"], "task_type": request["task_type"], "status": "error", "ok": false,
        "outputs": {}, "artifacts": [], "provenance": {}, "usage": {}, "warnings": [],
        "error": {"code": input["code"], "message": input["message"], "details": {"own": own_members()}},
    })
}

fn say(connection: &mut Connection, name: &str, data: &Value) {
    connection.send(chunk(format!("event: {name}\ndata: {}\n\n", spelled(data))));
}
