//! What the agents answer: every document that an agent may send, whole, broken, spoiled, with a wrong status, cut off,
//! and never ending. Each is the answer of an agent of its own, so that no breaker is in the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::corpus;
use super::ledger::Ledger;
use crate::support::message_post::new_id;
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent};

/// One answer of one agent.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) contract: &'static str,
    kind: &'static str,
    status: u16,
    /// What follows the status line: words and headers.
    head: String,
    body: Body,
    pub(crate) end: End,
}

#[derive(Clone)]
enum Body {
    Document(Value),
    /// Not JSON, or not a document of the contract.
    Text(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// The connection ends in the middle of the answer.
    Cut,
    /// The answer never ends.
    Never,
}

/// The kinds that agents answer with, by contract. Agents of the bridge answer in files.
const KINDS: [(&str, &str); 6] = [
    ("run", "run.stream"),
    ("run", "run.response"),
    ("task", "task.response"),
    ("message", "message.work_result"),
    ("message", "message.work_status"),
    ("message", "message.error"),
];

/// All answers, by the names of the agents that give them.
pub(crate) fn all(ledger: &Ledger) -> BTreeMap<String, Script> {
    let mut scripts = Vec::new();
    for (contract, kind) in KINDS {
        let whole = |document: Value| Script::of(ledger, contract, kind, Body::Document(document));
        scripts.extend(corpus::golden(kind).iter().map(|(_, document)| whole(ledger.plant(kind, document))));
        scripts.extend(ledger.spoiled(kind, &corpus::full(kind)).into_iter().map(whole));
        scripts.extend(ways(&whole(ledger.plant(kind, &corpus::full(kind)))));
    }
    for (contract, kind) in [("run", "run.response"), ("task", "task.response"), ("message", "message.work_result")] {
        for (file, text) in corpus::broken(contract) {
            let kind = if file.ends_with("sse") { "run.stream" } else { kind };
            let body = match corpus::document(&text) {
                Some(document) => Body::Document(ledger.plant(kind, &document)),
                None => Body::Text(ledger.plant_text(kind, &text)),
            };
            scripts.push(Script::of(ledger, contract, kind, body));
        }
    }
    scripts.into_iter().enumerate().map(|(number, script)| (format!("agent-{number}"), script)).collect()
}

/// The same answer with other statuses and other ends.
fn ways(whole: &Script) -> Vec<Script> {
    let statuses = [202, 204, 302, 400, 401, 404, 409, 418, 429, 500, 503];
    let by_status = statuses.map(|status| Script { status, ..whole.clone() });
    let by_end = [End::Cut, End::Never].map(|end| Script { end, ..whole.clone() });
    by_status.into_iter().chain(by_end).collect()
}

impl Script {
    fn of(ledger: &Ledger, contract: &'static str, kind: &'static str, body: Body) -> Script {
        let canary = |what: &str| ledger.text("the head of an answer", what);
        let head = format!(
            "{}\r\nx-note: {}\r\nlocation: /{}\r\nretry-after: {}\r\nserver: {}",
            canary("reason"),
            canary("x-note"),
            canary("location"),
            canary("retry-after"),
            canary("server"),
        );
        Script { contract, kind, status: 200, head, body, end: End::Whole }
    }

    /// Whether the job of this answer ends by itself only when its time is over.
    pub(crate) fn is_open(&self) -> bool {
        let is_status = self.kind == "message.work_status" || (self.contract == "message" && self.status < 300);
        self.end == End::Never || is_status
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.kind == "run.stream"
    }

    fn answer(&self, request: &Request, connection: &mut Connection) -> After {
        let body = match &self.body {
            Body::Text(text) => text.clone(),
            Body::Document(document) => written(self.kind, &addressed(self.kind, document, request)),
        };
        let content_type = if self.is_stream() { "text/event-stream" } else { "application/json" };
        let head = format!("HTTP/1.1 {} {}\r\ncontent-type: {content_type}\r\n", self.status, self.head);
        if self.status == 204 {
            connection.send(head + "\r\n");
            return After::Close;
        }
        connection.send(format!("{head}content-length: {}\r\n\r\n", body.len()));
        let half = (0..=body.len() / 2).rev().find(|end| body.is_char_boundary(*end)).unwrap_or(0);
        match self.end {
            End::Whole => connection.send(body),
            End::Cut | End::Never => connection.send(&body[..half]),
        };
        if self.end == End::Never { connection.until_gone() } else { After::Close }
    }
}

/// The caller who plants. It is told how its work ended, too.
pub(crate) const OWNER: &str = "owner";

/// All agents behind one address.
///
/// A caller that is told listens there, too: it fails the first time.
pub(crate) fn agents(ledger: &Ledger, scripts: &BTreeMap<String, Script>) -> ScriptedAgent {
    let scripts = Arc::new(scripts.clone());
    let refusal = json!({"detail": ledger.text("a caller that is told", "the answer to a callback")});
    ScriptedAgent::start_many(move |request, connection| match scripts.get(&request.agent) {
        // What is asked later ends the work: the state of a task, an answer to its question, a cancellation.
        Some(script) if script.contract == "task" && request.path.split('?').next() != Some("/tasks") => {
            connection.json(200, &json!({"id": request.id(), "status": "completed", "result": {}}))
        }
        Some(script) => script.answer(request, connection),
        None if request.agent == OWNER && request.turn > 0 => connection.whole(200, "application/json", ""),
        None => connection.json(500, &refusal),
    })
}

fn written(kind: &str, document: &Value) -> String {
    if kind == "run.stream" { corpus::stream(document) } else { document.to_string() }
}

/// The document, about the work of this request. What is spoiled stays so.
fn addressed(kind: &str, document: &Value, request: &Request) -> Value {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    about(kind, document, &asked)
}

/// The document, as an answer to this one.
pub(crate) fn about(kind: &str, document: &Value, asked: &Value) -> Value {
    let mut answer = document.clone();
    let mut set = |pointer: &str, value: Value| {
        if let Some(place) = answer.pointer_mut(pointer).filter(|place| place.is_string()) {
            *place = value;
        }
    };
    match kind {
        "task.response" => set("/id", asked["id"].clone()),
        "run.stream" => {
            for index in 0..document.as_array().map_or(0, Vec::len) {
                for name in ["request_id", "task_type"] {
                    set(&format!("/{index}/data/{name}"), asked[name].clone());
                }
            }
        }
        "message.work_result" | "message.work_status" | "message.error" => {
            set("/message_id", json!(new_id()));
            set("/request_id", asked["request_id"].clone());
            set("/trace_id", asked["trace_id"].clone());
            set("/payload/task_id", asked["payload"]["task_id"].clone());
            if document["from_agent"] == "infra" {
                set("/from_agent", asked["to_agent"].clone());
            }
        }
        _ => set("/request_id", asked["request_id"].clone()),
    }
    answer
}
