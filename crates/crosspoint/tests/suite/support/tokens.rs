//! Tokens of a server, and requests that come with them.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::support::program::{crosspoint, stdout};
use crate::support::server::{Answer, PATIENCE, Server, head};

/// Makes a token, by a request with the token `by`; without it on a server that is still open.
pub(crate) fn create(server: &Server, by: Option<&str>, body: &Value) -> String {
    let answer = with(server, by, "POST", "/api/v1/tokens", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["token"].as_str().expect("a token").to_owned()
}

/// Makes a server closed, and returns the token of its administrator.
pub(crate) fn closed(server: &Server) -> String {
    create(server, None, &json!({"name": "ops", "for": "admin"}))
}

/// Makes the token of a caller.
pub(crate) fn caller(server: &Server, admin: &str, name: &str) -> String {
    create(server, Some(admin), &json!({"name": name, "for": "caller"}))
}

/// Makes the token of an agent of this name.
pub(crate) fn agent(server: &Server, admin: &str, name: &str) -> String {
    create(server, Some(admin), &json!({"name": name, "for": "agent"}))
}

/// One request with a token.
pub(crate) fn with(server: &Server, token: Option<&str>, method: &str, path: &str, body: &str) -> Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
    server.request(method, path, &headers, body.as_bytes())
}

/// One request over the socket in the server's data directory.
pub(crate) fn private(server: &Server, token: Option<&str>, method: &str, path: &str, body: &str) -> Answer {
    let mut stream = UnixStream::connect(server.data().join("server.sock")).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket can have a timeout");
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
    let head = head(method, path, &headers, body.len());
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("it can be sent");
    Answer::read(&mut BufReader::new(stream)).expect("it answers")
}

/// A closed server with two callers, and their tokens.
pub(crate) struct Two {
    pub(crate) server: Server,
    pub(crate) admin: String,
    pub(crate) one: String,
    pub(crate) other: String,
}

impl Two {
    pub(crate) fn on(server: Server) -> Two {
        let admin = closed(&server);
        let (one, other) = (caller(&server, &admin, "one"), caller(&server, &admin, "other"));
        Two { server, admin, one, other }
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> Value {
        with(&self.server, Some(token), "GET", path, "").json()
    }

    pub(crate) fn submit(&self, token: &str, work: &str, input: &Value) -> String {
        let body = json!({"work": work, "input": input}).to_string();
        let job = with(&self.server, Some(token), "POST", "/api/v1/jobs", &body).json();
        job["id"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned()
    }
}

/// The entries of the audit, as they are exported.
pub(crate) fn audit(server: &Server) -> Vec<Value> {
    let text = stdout(crosspoint(&["store", "export", "--audit", "--data"]).arg(server.data()));
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON"));
    lines.filter(|line: &Value| line["kind"] == "audit").collect()
}

impl Server {
    /// Makes a token for admin, with which the tests ask the API from now on. The server has callers with
    /// tokens, so it is made while the server is away.
    pub(crate) fn operated(mut self) -> Server {
        self.stop();
        let mut command = crosspoint(&["token", "create", "tests", "--for", "admin", "--data"]);
        let token = stdout(command.arg(self.data()));
        self.operator = Some(token.trim().to_owned());
        self.restart();
        self
    }
}
