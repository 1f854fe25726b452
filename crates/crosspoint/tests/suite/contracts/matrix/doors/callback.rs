//! A caller of the message contract that is told later: the server sends messages to an address of the caller, where
//! they are kept here.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::calls::shallow;
use crate::support::message_caller::{PLANNER, faults};
use crate::support::scripted_agent::ScriptedAgent;
use crate::support::server::PATIENCE;

/// The address of the caller.
pub(in super::super) struct Callback {
    listener: ScriptedAgent,
    pub(super) told: Arc<Told>,
}

/// What the caller was told, by the id of its request.
#[derive(Default)]
pub(super) struct Told {
    messages: Mutex<BTreeMap<String, Vec<Value>>>,
    changed: Condvar,
}

impl Callback {
    pub(in super::super) fn start() -> Callback {
        let told = Arc::<Told>::default();
        let kept = told.clone();
        let listener = ScriptedAgent::start(move |request, connection| {
            let text = String::from_utf8(request.body.clone()).expect("a message is UTF-8");
            kept.keep(serde_json::from_str(&shallow(&text)).expect("a message is JSON"));
            connection.whole(204, "application/json", "")
        });
        Callback { listener, told }
    }

    /// The configuration of the caller. Because there is another one, only a sender that says so is taken for it.
    pub(in super::super) fn configuration(&self) -> String {
        let url = self.listener.url();
        let caller = |name: &str| format!("[[caller]]\nname = \"{name}\"\ncallback = \"{url}\"\n");
        format!("[server]\nagent_types = [\"{PLANNER}\"]\n{}{}", caller(PLANNER), caller("another"))
    }
}

impl Told {
    fn keep(&self, message: Value) {
        let id = message["request_id"].as_str().expect("a message has an id").to_owned();
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.entry(id).or_default().push(message);
        self.changed.notify_all();
    }

    /// Waits until one of the messages about a request has what is looked for.
    pub(super) fn until<T>(&self, id: &str, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        let found = |all: &[Value]| all.iter().find_map(&look);
        self.wait(id, found).unwrap_or_else(|all| panic!("waited in vain for {what} in: {all:?}"))
    }

    /// The message that ends the work, with the whole text: a long one comes in blocks before it (MSG-9).
    pub(super) fn outcome(&self, id: &str) -> Value {
        let ended = |all: &[Value]| {
            let end = all.iter().position(|message| message["type"] != "work_status")?;
            Some((all[..end].to_vec(), all[end].clone()))
        };
        let (before, mut last) = self.wait(id, ended).unwrap_or_else(|all| panic!("it does not end: {all:?}"));
        for message in before.iter().chain([&last]) {
            let found = faults(message.to_string().as_bytes());
            assert!(found.is_empty(), "{found:?} in {message}");
        }
        let is_block = |message: &&Value| message["payload"]["step"]["output_chunk"].is_string();
        let blocks = before.iter().filter(is_block);
        let text: String = blocks.filter_map(|message| message["payload"]["step"]["output"].as_str()).collect();
        if !text.is_empty() {
            let end = last["payload"]["output"].as_str().expect("a result has a text");
            assert!(end.len() <= 1 << 20 && text.ends_with(end), "it keeps the end of the text");
            last["payload"]["output"] = json!(text);
        }
        last
    }

    fn wait<T>(&self, id: &str, look: impl Fn(&[Value]) -> Option<T>) -> Result<T, Vec<Value>> {
        let end = Instant::now() + PATIENCE;
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let all = messages.get(id).map(Vec::as_slice).unwrap_or_default();
            if let Some(found) = look(all) {
                return Ok(found);
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else { return Err(all.to_vec()) };
            messages = self.changed.wait_timeout(messages, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
