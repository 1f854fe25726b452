//! Agents of the message contract that ask for their work (MSG-14), and send what they have to say.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::support::server::{Answer, exchange};

/// An agent that asks until this is dropped, or until there is no server.
pub(crate) struct MessagePuller {
    stopped: Arc<AtomicBool>,
}

impl MessagePuller {
    /// Asks in this name. Each message is heard in a thread of its own, so that work may take its time.
    pub(crate) fn start(
        address: SocketAddr,
        name: &str,
        hear: impl Fn(Value) + Send + Sync + 'static,
    ) -> MessagePuller {
        let stopped = Arc::new(AtomicBool::new(false));
        let (seen, hear, name) = (stopped.clone(), Arc::new(hear), name.to_owned());
        thread::spawn(move || {
            let mut acks = String::new();
            while !seen.load(Ordering::SeqCst) {
                let Some(answer) = polled(address, &name, &acks) else { return };
                let messages = answer.json()["messages"].as_array().cloned().unwrap_or_default();
                let ids: Vec<&str> = messages.iter().filter_map(|message| message["message_id"].as_str()).collect();
                acks = ids.join(",");
                for message in messages {
                    let hear = hear.clone();
                    thread::spawn(move || hear(message));
                }
            }
        });
        MessagePuller { stopped }
    }
}

impl Drop for MessagePuller {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

/// One poll; `None` if there is no server.
fn polled(address: SocketAddr, name: &str, acks: &str) -> Option<Answer> {
    let path = format!("/api/agent/messages?agent={name}&wait=5&max=64&ack={acks}");
    exchange(address, "GET", &path, &[], b"")
}

/// The configuration of an agent that asks for its work, which is of its name.
pub(crate) fn configuration(name: &str, keys: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"message\"\nvia = \"pull\"\n{keys}\n")
}
