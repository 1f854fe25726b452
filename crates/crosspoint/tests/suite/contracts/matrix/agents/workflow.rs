//! The agents of the workflow contract: a program, and a service behind a whole address. Their `summary` is the text of
//! what they return.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::doors::Door;
use super::super::ledger::{Ledger, Seen};
use super::{Kind, NO_LISTENER, Purpose, blob, name, own_members, seen, text};
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent, configuration as service};

const SCRIPT: &str = include_str!("workflow.py");

/// The configuration of both sorts at one door.
pub(super) fn configuration(url: &str, python: &str, door: Door) -> String {
    let program = |purpose, argv: &[&str], keys: &str| {
        let name = name(Kind::Program, door, purpose);
        format!("[[agent]]\nname = \"{name}\"\ncontract = \"workflow\"\nexec = {}\n{keys}\n", json!(argv))
    };
    let python = [python, "-I", "-S", "workflow.py"];
    let place = format!("{url}/envelope");
    let service = |purpose, url: &str, keys: &str| {
        service(&name(Kind::Service, door, purpose), "workflow", url, &format!("concurrency = 64\n{keys}"))
    };
    [
        program(Purpose::Plain, &python, "concurrency = 8\n"),
        program(Purpose::Quiet, &python, "silence_seconds = 2\n"),
        program(Purpose::Strict, &python, "output_bytes = 10000\n"),
        program(Purpose::Away, &["./nothing-is-here"], ""),
        service(Purpose::Plain, &place, ""),
        // An answer in one piece shows no life, so only the total time ends it.
        service(Purpose::Quiet, &place, "total_seconds = 2\n"),
        service(Purpose::Away, NO_LISTENER, ""),
    ]
    .concat()
}

pub(super) fn write_files(directory: &Path) {
    fs::write(directory.join("workflow.py"), SCRIPT).expect("it can be written");
}

/// Starts the service.
pub(super) fn start(ledger: Arc<Ledger>) -> ScriptedAgent {
    let agent = Agent { ledger, busy: Mutex::default() };
    ScriptedAgent::start(move |asked, connection| match (&*asked.method, &*asked.path) {
        ("POST", "/envelope") => agent.run(asked, connection),
        ("GET", "/health" | "/health/ready") => connection.json(200, &json!({"status": "ok"})),
        _ => connection.json(404, &json!({})),
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
        let input = &request["task"]["params"];
        let (cell, wanted) = (text(input, "cell"), text(input, "do"));
        // An envelope has no id.
        self.ledger.note(&cell, seen("new", "", asked, request.clone()));
        match wanted.as_str() {
            "again" if self.busy.lock().expect("no thread panics with it").insert(cell.clone()) => {
                connection.json(503, &json!({"status": "busy"}))
            }
            "silent" | "hold" => {
                let after = connection.until_gone();
                let told = Seen { what: "told", id: String::new(), trace: String::new(), document: Value::Null };
                self.ledger.note(&cell, told);
                after
            }
            "die" => {
                self.ledger.until_released(&cell);
                After::Close
            }
            "fail" => {
                let status = input["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                connection.json(status.expect("a status"), &failed(input))
            }
            other => {
                if other == "progress" {
                    self.ledger.until_released(&cell);
                }
                connection.whole(200, "application/json", succeeded(other, input))
            }
        }
    }
}

fn failed(input: &Value) -> Value {
    json!({"success": false, "summary": input["message"], "artifacts": [], "recommendation": "escalate"})
}

fn succeeded(wanted: &str, input: &Value) -> String {
    let given = if wanted == "big" { json!({"blob": blob()}) } else { input.clone() };
    let mut output =
        json!({"success": true, "summary": given.to_string(), "artifacts": [], "recommendation": "proceed"});
    match wanted {
        "artifacts" => {
            output["artifacts"] = json!([{"path": "report.md", "operation": "create", "content": "# Report"}]);
        }
        "own" => {
            output["own"] = own_members();
            output["notes"] = json!(["a little salty"]);
        }
        "break" => output["summary"] = Value::Null,
        "raw" => output["raw"] = json!("@raw"),
        _ => {}
    }
    // As it is spelled, because no `Value` could hold it.
    output.to_string().replace("\"@raw\"", &text(input, "raw"))
}
