//! The agent of the run contract: a service with a stream.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::ledger::Ledger;
use super::{blob, own_members, raw_outputs, seen, spelled, text};
use crate::support::wire::{self, After, Asked};

pub(super) fn start(ledger: Arc<Ledger>) -> SocketAddr {
    let agent = Agent { ledger, busy: Mutex::default() };
    wire::listen(move |asked, stream| match (asked.method(), asked.target()) {
        ("POST", "/agents/run/stream") => agent.run(asked, stream),
        ("GET", "/health" | "/health/ready") => reply(stream, "200 OK", &json!({"status": "ok"})),
        _ => reply(stream, "404 Not Found", &json!({"status": "error"})),
    })
}

struct Agent {
    ledger: Arc<Ledger>,
    /// Cells that were once told that there is no room.
    busy: Mutex<BTreeSet<String>>,
}

impl Agent {
    fn run(&self, asked: &Asked, stream: &mut TcpStream) -> After {
        let request = asked.json();
        let input = &request["inputs"];
        let cell = text(input, "cell");
        self.ledger.note(&cell, seen("new", &text(&request, "request_id"), asked, request.clone()));
        match text(input, "do").as_str() {
            "fail" if input["status"] != 200 => {
                let status = format!("{} Refused", input["status"]);
                reply(stream, &status, &failed(&request))
            }
            "again" if self.busy.lock().expect("no thread panics with it").insert(cell) => {
                reply(stream, "503 Service Unavailable", &json!({"status": "busy"}))
            }
            _ => self.stream(&request, stream),
        }
    }

    fn stream(&self, request: &Value, stream: &mut TcpStream) -> After {
        let input = &request["inputs"];
        let (cell, wanted) = (text(input, "cell"), text(input, "do"));
        let started = json!({"request_id": request["request_id"], "task_type": request["task_type"]});
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        wire::send(stream, head.as_bytes());
        say(stream, "started", &started);
        if ["progress", "die", "hold"].contains(&wanted.as_str()) {
            say(stream, "progress", &json!({"percent": 40, "step": "Half-way", "own": own_members()}));
        }
        match wanted.as_str() {
            "silent" | "hold" => {
                if wire::until_gone(stream) {
                    let id = text(request, "request_id");
                    let told = super::Seen { what: "told", id, trace: String::new(), document: Value::Null };
                    self.ledger.note(&cell, told);
                }
                After::Close
            }
            "die" => {
                self.ledger.until_released(&cell);
                After::Close
            }
            other => {
                if other == "progress" {
                    self.ledger.until_released(&cell);
                }
                say(stream, "final", &last(other, request));
                wire::send(stream, &wire::chunk(""));
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

fn say(stream: &mut TcpStream, name: &str, data: &Value) {
    wire::send(stream, &wire::chunk(&format!("event: {name}\ndata: {}\n\n", spelled(data))));
}

fn reply(stream: &mut TcpStream, status: &str, body: &Value) -> After {
    wire::send(stream, &wire::json(status, body));
    After::Keep
}
