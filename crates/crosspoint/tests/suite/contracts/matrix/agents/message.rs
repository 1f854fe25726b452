//! The agents of the message contract: one that is sent its work, and one that asks for it. The first says what it can
//! in its answer; everything else is sent to the server.
//!
//! They never do the same request twice: what comes again is answered again, or goes on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use crosspoint_contracts::Contract;
use serde_json::{Value, json};

use super::super::cases::CASES;
use super::super::doors::Door;
use super::super::ledger::{Ledger, Seen};
use super::{Kind, NO_LISTENER, Purpose, QUIET_KEYS, blob, name, own_members, text};
use crate::support::message_agent::{Work, taken};
use crate::support::message_caller::sent_to;
use crate::support::message_puller::{self, MessagePuller};
use crate::support::scripted_agent::{self, After, Connection, Request, ScriptedAgent};

/// Both manners of getting work.
const KINDS: [Kind; 2] = [Kind::Pushed, Kind::Pulled];

/// Cases that have agents of their own, because their failures would open the breaker for others (MSG-7), and what is
/// configured for these agents.
const ALONE: [(&str, &str); 4] = [
    ("death on the way", QUIET_KEYS),
    ("silence", QUIET_KEYS),
    ("timeout, said by it", ""),
    ("unavailable, said by it", ""),
];

/// The name of the agent of a case at a door.
pub(in super::super) fn name_for(kind: Kind, case: &str, door: Door) -> String {
    if ALONE.iter().any(|(alone, _)| *alone == case) {
        return format!("{}-{}-{}", kind.name(), door.name(), case.replace([' ', ','], "_"));
    }
    name(kind, door, Purpose::Plain)
}

pub(super) fn configuration(url: &str, door: Door) -> String {
    let of_kind = |kind: Kind| {
        let agent = |name: &str, keys: &str, url: &str| {
            let keys = format!("concurrency = 64\n{keys}");
            if kind == Kind::Pushed {
                scripted_agent::configuration(name, "message", url, &keys)
            } else {
                message_puller::configuration(name, &keys)
            }
        };
        let alone = ALONE.iter().map(|(case, keys)| agent(&name_for(kind, case, door), keys, url));
        let plain = agent(&name(kind, door, Purpose::Plain), "", url);
        alone.chain([plain, agent(&name(kind, door, Purpose::Away), "", NO_LISTENER)]).collect::<String>()
    };
    KINDS.map(of_kind).concat()
}

/// The agents of both manners, which share what they know.
pub(super) struct Agents {
    pushed: ScriptedAgent,
    agent: Arc<Agent>,
    pulled: Mutex<Vec<MessagePuller>>,
}

impl Agents {
    pub(super) fn start(ledger: Arc<Ledger>) -> Agents {
        let agent = Arc::new(Agent { ledger, server: OnceLock::new(), works: Mutex::default() });
        let known = agent.clone();
        let pushed = ScriptedAgent::start(move |asked, connection| known.asked(asked, connection));
        Agents { pushed, agent, pulled: Mutex::default() }
    }

    pub(super) fn url(&self) -> String {
        self.pushed.url()
    }

    /// Tells the agents where the server is. Those that pull begin to, except for those that are away.
    pub(super) fn serve(&self, server: SocketAddr) {
        self.agent.server.set(server).expect("there is one server");
        for door in Door::ALL {
            let cases = CASES.iter().map(|(case, _)| name_for(Kind::Pulled, case, door));
            let mut names: Vec<String> = cases.collect();
            names.sort();
            names.dedup();
            names.iter().for_each(|name| self.pull(name));
        }
    }

    /// Lets the agent come that was away.
    pub(super) fn come(&self, door: Door) {
        self.pull(&name(Kind::Pulled, door, Purpose::Away));
    }

    fn pull(&self, name: &str) {
        let agent = self.agent.clone();
        let puller = MessagePuller::start(agent.server(), name, move |message| agent.pulled(&message));
        self.pulled.lock().unwrap_or_else(PoisonError::into_inner).push(puller);
    }
}

struct Agent {
    ledger: Arc<Ledger>,
    server: OnceLock<SocketAddr>,
    /// How often the agent had a request, and the cell of it, by its id.
    works: Mutex<BTreeMap<String, (usize, String)>>,
}

impl Agent {
    fn server(&self) -> SocketAddr {
        *self.server.get().expect("it is known before there is work")
    }

    fn works(&self) -> MutexGuard<'_, BTreeMap<String, (usize, String)>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers what was pushed.
    fn asked(self: &Arc<Self>, asked: &Request, connection: &mut Connection) -> After {
        if asked.method == "GET" {
            return connection.json(200, &json!({"status": "ok"}));
        }
        let Some(work) = asked.work() else {
            self.stopped(&asked.json());
            return taken(connection);
        };
        let trace = asked.header("traceparent").unwrap_or_default();
        match self.begin(&work, trace) {
            (0, "again") => connection.json(503, &json!({})),
            (turn, _) => match self.said(&work, turn, Kind::Pushed) {
                Some(message) => {
                    // The next request may come on this connection while the work goes on.
                    let agent = self.clone();
                    thread::spawn(move || agent.go_on(&work, turn));
                    connection.whole(200, "application/json", spelled(&message))
                }
                None => taken(connection),
            },
        }
    }

    /// Hears a message that was pulled.
    fn pulled(&self, message: &Value) {
        let Some(work) = Work::of(message) else { return self.stopped(message) };
        let (turn, wanted) = self.begin(&work, "");
        let said = match (turn, wanted) {
            (0, "again") => Some(work.error(5005, "no room", &context(5005))),
            (turn, _) => self.said(&work, turn, Kind::Pulled),
        };
        let Some(mut said) = said else { return };
        if wanted == "big" {
            self.send_blocks(&work, &mut said);
        }
        sent_to(self.server(), &spelled(&said));
        self.go_on(&work, turn);
    }

    /// Sends a long text in blocks, the last one first, and leaves its end in the result (MSG-9).
    fn send_blocks(&self, work: &Work, result: &mut Value) {
        let pieces = Contract::Message.exchange().pieces.as_ref().expect("it has long texts");
        let text = self::text(&result["payload"], "output");
        for (place, block) in (pieces.split)(&text, 0).iter().flatten().rev() {
            let mut status = work.running(99, "Prints");
            status["payload"]["step"]["output"] = json!(block);
            status["payload"]["step"]["output_chunk"] = json!(place);
            let taken = sent_to(self.server(), &status.to_string());
            assert_eq!(taken.map(|taken| taken.status), Some(204));
        }
        result["payload"]["output"] = json!((pieces.tail)(&text));
    }

    /// Notes a request. Returns how often it came before, and what is wanted.
    fn begin<'w>(&self, work: &'w Work, trace: &str) -> (usize, &'w str) {
        let wanted = work.parameters()["do"].as_str().unwrap_or_default();
        if work.answer().is_some() {
            self.note(work, "input", trace);
            return (1, wanted);
        }
        self.note(work, "new", trace);
        let mut works = self.works();
        let known = works.entry(work.id()).or_insert_with(|| (0, text(work.parameters(), "cell")));
        known.0 += 1;
        (known.0 - 1, wanted)
    }

    fn note(&self, work: &Work, what: &'static str, trace: &str) {
        let (id, trace) = (work.id(), trace.to_owned());
        self.ledger.note(&text(work.parameters(), "cell"), Seen { what, id, trace, document: work.0.clone() });
    }

    /// Notes that work is no longer wanted (MSG-19).
    fn stopped(&self, message: &Value) {
        let id = text(message, "request_id");
        let known = self.works().get(&id).map(|(_, cell)| cell.clone());
        if let Some(cell) = known.filter(|_| message["payload"]["error_code"] == 5901) {
            let document = message.clone();
            self.ledger.note(&cell, Seen { what: "told", id, trace: String::new(), document });
        }
    }

    /// What is said to a request at once; `None` if nothing is.
    fn said(&self, work: &Work, turn: usize, kind: Kind) -> Option<Value> {
        let input = work.parameters();
        let question = json!({"prompt": "Which pan?", "schema": {"type": "string"}});
        Some(match (text(input, "do").as_str(), work.answer()) {
            (_, Some(answer)) => work.done(&json!({"answer": answer}).to_string()),
            ("silent", None) => return None,
            // One that has died comes back, and has done the work meanwhile.
            ("die", None) if turn > 0 => work.done(&input.to_string()),
            ("progress" | "die" | "hold", None) => work.running(40, "Half-way"),
            ("ask", None) => work.asking(&question),
            ("fail", None) => failed(work, kind),
            ("big", None) => work.done(&json!({"blob": blob()}).to_string()),
            (wanted, None) => with_more(work, wanted),
        })
    }

    /// Goes on with work that takes its time, and says what comes of it.
    fn go_on(&self, work: &Work, turn: usize) {
        let (cell, wanted) = (text(work.parameters(), "cell"), text(work.parameters(), "do"));
        if wanted == "progress" && turn == 0 {
            self.ledger.until_released(&cell);
            sent_to(self.server(), &work.done(&work.parameters().to_string()).to_string());
        }
    }
}

/// A result with what the case is about beside it.
fn with_more(work: &Work, wanted: &str) -> Value {
    let mut result = work.done(&work.parameters().to_string());
    match wanted {
        "artifacts" => {
            let artifact = json!({"at": 0, "name": "report.md", "type": "text/markdown", "content": "# Report"});
            result["x_custom_fields"] = json!({"x_crosspoint": {"from": "task.response", "artifacts": [artifact]}});
        }
        "own" => {
            result["own"] = own_members();
            result["x_custom_fields"] = json!({"cost": 812});
        }
        "raw" => result["x_custom_fields"] = json!({"raw": format!("@raw {}", text(work.parameters(), "raw"))}),
        "break" => result["payload"]["output"] = json!(7),
        _ => {}
    }
    result
}

/// A failure: of the work where it has no code, else an error.
fn failed(work: &Work, kind: Kind) -> Value {
    let input = work.parameters();
    let message = text(input, "message");
    match input["code"].as_i64() {
        Some(code) if code == OWN_CODE && kind == Kind::Pushed => work.failed(3, &message),
        Some(code) => {
            let mut context = context(code);
            context["own"] = own_members();
            work.error(code, &message, &context)
        }
        None => panic!("it is not said how to fail: {input}"),
    }
}

/// A code of an agent of its own. An agent may also say without any code that the work failed.
pub(in super::super) const OWN_CODE: i64 = 5950;

/// The fields that the context of an error must have (MSG-4).
fn context(code: i64) -> Value {
    match code {
        5001 => json!({"attempted_retries": 0, "last_attempt": "2026-01-19T04:21:04Z"}),
        5002 => json!({"agent_id": "far", "last_heartbeat": null}),
        5003 => json!({"validation_error": "no", "field_name": null}),
        5004 => json!({"agent_id": "far", "token_status": "unknown"}),
        5005 => json!({"limit_name": "jobs", "available": 0, "required": 1}),
        5006 => json!({"work_type_requested": "w", "supported_types": []}),
        _ => json!({}),
    }
}

/// A message as it is sent, with the JSON text that no `Value` could hold.
fn spelled(message: &Value) -> String {
    let text = message.to_string();
    let given = &message["x_custom_fields"]["raw"];
    let raw = given.as_str().and_then(|given| given.strip_prefix("@raw "));
    raw.map_or_else(|| text.clone(), |raw| text.replace(&given.to_string(), raw))
}
