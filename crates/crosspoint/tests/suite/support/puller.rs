//! A worker that speaks the pull side of the API by hand, one call at a time.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::server::{Answer, Server, head};

/// A worker under an agent's name.
pub(crate) struct Puller {
    pub(crate) name: &'static str,
    pub(crate) session: String,
    /// The attempts that it holds, as it lists them.
    pub(crate) holding: Vec<Value>,
}

impl Puller {
    /// A worker that has not joined. The number makes its session.
    pub(crate) fn new(name: &'static str, number: u32) -> Puller {
        Puller { name, session: format!("00000000-0000-4000-8000-{number:012}"), holding: Vec::new() }
    }

    /// A worker that has joined for work of its own name, with the shortest lease there is.
    pub(crate) fn joined(server: &Server, name: &'static str, number: u32) -> Puller {
        let puller = Puller::new(name, number);
        let answer = puller.join(server, json!({"work": [name], "concurrency": 4, "lease_seconds": 5}));
        assert_eq!(answer.status, 200, "{answer:?}");
        puller
    }

    pub(crate) fn join(&self, server: &Server, mut body: Value) -> Answer {
        body["session"] = json!(self.session);
        self.call(server, "join", &body)
    }

    pub(crate) fn call(&self, server: &Server, what: &str, body: &Value) -> Answer {
        server.post(&format!("/api/v1/agents/{}/{what}", self.name), &body.to_string())
    }

    fn taking(&self, room: usize) -> Value {
        json!({"session": self.session, "room": room, "holding": self.holding})
    }

    /// Asks for work, waiting a little if there is none, and holds what it is given.
    pub(crate) fn take(&mut self, server: &Server, room: usize) -> Value {
        let answer = self.call(server, "take?wait=60", &self.taking(room));
        assert_eq!(answer.status, 200, "{answer:?}");
        let ordered = answer.json();
        for job in ordered["jobs"].as_array().expect("a list") {
            self.holding.push(json!({"id": job["id"], "attempt": job["attempt"], "answers": 0}));
        }
        ordered
    }

    /// Asks until there is work: a wait is over after a third of the lease.
    pub(crate) fn take_some(&mut self, server: &Server, room: usize) -> Value {
        crate::support::server::until("there is something", || {
            let ordered = self.take(server, room);
            let some = ["jobs", "stop", "answers"].iter().any(|what| ordered[what] != json!([]));
            some.then_some(ordered)
        })
    }

    /// Asks for work and disconnects before the answer.
    pub(crate) fn take_and_vanish(&self, server: &Server, room: usize) {
        let body = self.taking(room).to_string();
        let path = format!("/api/v1/agents/{}/take?wait=0", self.name);
        let mut stream: TcpStream = server.connect();
        let request = head("POST", &path, &[], body.len()) + &body;
        stream.write_all(request.as_bytes()).expect("it can be sent");
        // The answer is on its way, or about to be, and will not be read.
        let mut one = [0];
        let _ = std::io::Read::read(&mut stream, &mut one);
    }

    /// Reports one thing about an attempt, and returns what the server said to it.
    pub(crate) fn report(&self, server: &Server, id: &Value, attempt: u32, said: &Value) -> String {
        let mut report = said.clone();
        (report["id"], report["attempt"]) = (id.clone(), json!(attempt));
        let answer = self.call(server, "report", &json!({"session": self.session, "reports": [report]}));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["reports"][0].as_str().expect("a word").to_owned()
    }

    /// Reports success, and no longer holds the attempt.
    pub(crate) fn finish(&mut self, server: &Server, id: &Value, attempt: u32) -> String {
        let said = self.report(server, id, attempt, &json!({"result": {"outputs": {"by": self.session}}}));
        self.holding.retain(|held| held["id"] != *id);
        said
    }

    pub(crate) fn leave(&self, server: &Server) {
        assert_eq!(self.call(server, "leave", &json!({"session": self.session})).status, 200);
    }
}
