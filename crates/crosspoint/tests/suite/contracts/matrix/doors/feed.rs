//! A stream of events that is read as it comes.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::calls::opened;
use crate::support::server::{Answer, PATIENCE, chunk};

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) name: String,
    data: String,
}

/// The stream so far.
pub(super) struct Feed(Arc<Shared>);

#[derive(Default)]
struct Shared {
    read: Mutex<Read>,
    changed: Condvar,
}

#[derive(Default)]
struct Read {
    text: String,
    ended: bool,
}

impl Feed {
    /// Begins to read a stream; `Err` is an answer that is not a stream.
    pub(super) fn open(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&'static str, String)],
        body: &str,
    ) -> Result<Feed, Answer> {
        let mut stream = opened(address, method, path, headers, body);
        let head = stream.fill_buf().map(|bytes| String::from_utf8_lossy(bytes).to_ascii_lowercase());
        let head = head.expect("it answers");
        let head = head.split("\r\n\r\n").next().unwrap_or_default();
        if !head.contains("content-type: text/event-stream") {
            return Err(Answer::read(&mut stream).expect("it answers"));
        }
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        let length = head.len() + 4;
        stream.consume(length);
        let shared = Arc::new(Shared::default());
        let kept = shared.clone();
        thread::spawn(move || {
            while let Some(Some(bytes)) = chunk(&mut stream) {
                kept.change(|read| read.text += &String::from_utf8(bytes).expect("events are whole UTF-8"));
            }
            kept.change(|read| read.ended = true);
        });
        Ok(Feed(shared))
    }

    pub(super) fn until(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Event {
        let found = |read: &Read| events(&read.text).into_iter().find(&wanted);
        let (found, text) = self.0.wait(|read| match found(read) {
            Some(event) => Some(Some(event)),
            None => read.ended.then_some(None),
        });
        found.flatten().unwrap_or_else(|| panic!("waited in vain for {what} in: {text}"))
    }

    /// The whole text, once the stream has ended.
    pub(super) fn whole(&self) -> String {
        let (ended, text) = self.0.wait(|read| read.ended.then_some(()));
        assert!(ended.is_some(), "it does not end: {text}");
        text
    }
}

impl Event {
    pub(super) fn data(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {}", self.data))
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Read)) {
        change(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until `look` returns a value, and returns it with the text so far.
    fn wait<T>(&self, mut look: impl FnMut(&Read) -> Option<T>) -> (Option<T>, String) {
        let end = Instant::now() + PATIENCE;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = look(&read) {
                return (Some(found), read.text.clone());
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else { return (None, read.text.clone()) };
            read = self.changed.wait_timeout(read, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The events of a text, as the server writes them: line feeds, one line of data.
pub(super) fn events(text: &str) -> Vec<Event> {
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let blocks = whole.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    blocks.map(event).collect()
}

fn event(block: &str) -> Event {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    Event { name: field("event:"), data: field("data:") }
}
