//! Agents of the run contract, over the scripted agent: correct responses and streams, and streams that a test writes
//! piece by piece.

use std::cell::RefCell;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::support::scripted_agent::{
    After, CHUNKED_STREAM_HEAD, Connection, Request, ScriptedAgent, chunk, configuration, event,
};
use crate::support::server::PATIENCE;

impl Request {
    /// Whether the caller asks for a stream.
    pub(crate) fn wants_stream(&self) -> bool {
        self.path == "/agents/run/stream"
    }

    /// One event of a stream, with the request's id in it.
    pub(crate) fn event(&self, name: &str, mut data: Value) -> String {
        if data.get("request_id").is_none() {
            data["request_id"] = json!(self.id());
        }
        event(name, &data)
    }

    /// A correct first event.
    pub(crate) fn started(&self) -> String {
        self.event("started", json!({"task_type": self.json()["task_type"]}))
    }

    /// A correct event in between.
    pub(crate) fn progress(&self, percent: u32) -> String {
        self.event("progress", json!({"percent": percent, "step": "on the way"}))
    }

    /// A correct last event, with `{"by": NAME}` as its outputs.
    pub(crate) fn final_event(&self, by: &str) -> String {
        event("final", &self.response(json!({"by": by})))
    }

    /// A correct response.
    pub(crate) fn response(&self, outputs: Value) -> Value {
        let mut response = json!({
            "request_id": self.id(), "task_type": self.json()["task_type"], "status": "ok", "ok": true,
            "artifacts": [], "provenance": {}, "usage": {}, "warnings": [],
        });
        response["outputs"] = outputs;
        response
    }

    /// A correct stream, without progress.
    pub(crate) fn stream(&self, outputs: Value) -> String {
        self.started() + &event("final", &self.response(outputs))
    }
}

impl ScriptedAgent {
    /// The configuration of the only agent here, called `far`, with further keys.
    pub(crate) fn far(&self, keys: &str) -> String {
        configuration("far", "run", &self.url(), keys)
    }
}

/// An agent whose streams are open until the test ends them.
pub(crate) fn held_streams() -> (ScriptedAgent, Calls) {
    let (sender, calls) = mpsc::channel();
    let agent = ScriptedAgent::start(move |request, connection| {
        let (ending, ended) = mpsc::channel();
        connection.send(CHUNKED_STREAM_HEAD);
        let call = Call { request: request.clone(), connection: RefCell::new(connection.shared()), ending };
        if sender.send(call).is_err() {
            return After::Close;
        }
        ended.recv().unwrap_or_else(|_| {
            connection.send(chunk(""));
            After::Keep
        })
    });
    (agent, Calls(calls))
}

/// The calls that an agent with held streams has had.
pub(crate) struct Calls(mpsc::Receiver<Call>);

impl Calls {
    /// Waits for the next call.
    pub(crate) fn next(&self) -> Call {
        self.0.recv_timeout(PATIENCE).expect("a call comes")
    }

    /// Whether there is no call, for when no more can come.
    pub(crate) fn none(&self) -> bool {
        self.0.try_recv().is_err()
    }
}

/// A call whose stream the test writes. The stream ends in order when this is dropped.
pub(crate) struct Call {
    pub(crate) request: Request,
    connection: RefCell<Connection>,
    ending: mpsc::Sender<After>,
}

impl Call {
    pub(crate) fn say(&self, text: impl AsRef<[u8]>) {
        assert!(self.connection.borrow_mut().send(chunk(text)), "the caller is there");
    }

    /// The agent dies: the connection ends in the middle of the stream.
    pub(crate) fn die(self) {
        self.ending.send(After::Close).expect("the agent waits");
    }

    /// Waits until the caller has closed the connection.
    pub(crate) fn closed(&self) {
        self.connection.borrow_mut().until_gone();
    }
}
