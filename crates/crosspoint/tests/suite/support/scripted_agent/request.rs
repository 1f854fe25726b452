//! A request to a scripted agent, as it came.

use std::io::BufRead;

use serde_json::Value;

use super::Names;

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The bytes up to the empty line, with it.
    pub(crate) head: String,
    pub(crate) method: String,
    /// The agent that it is for, where one listener stands for many; else empty.
    pub(crate) agent: String,
    /// With its query, and without the agent's name.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    /// How many requests with this method and path the agent has had before.
    pub(crate) turn: usize,
}

impl Request {
    /// Reads one request; `None` if the connection ends first.
    pub(super) fn read(stream: &mut impl BufRead, names: Names) -> Option<Request> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut words = head.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (agent, path) = match names {
            Names::Absent => (String::new(), target),
            Names::InPaths => {
                let (agent, path) = target.strip_prefix('/')?.split_once('/').unwrap_or((&target, ""));
                (agent.to_owned(), format!("/{path}"))
            }
        };
        let mut request = Request { head, method, agent, path, body: Vec::new(), turn: 0 };
        assert_eq!(request.header("transfer-encoding"), None, "a request has a length");
        let length = request.header("content-length").map_or(0, |length| length.parse().expect("a length is a number"));
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// A request like those that an agent will get, to find out how long its answer is.
    pub(crate) fn sample(path: &str, body: &Value) -> Request {
        Request {
            head: String::new(),
            method: "POST".to_owned(),
            agent: String::new(),
            path: path.to_owned(),
            body: body.to_string().into_bytes(),
            turn: 0,
        }
    }

    pub(super) fn is_like(&self, other: &Request) -> bool {
        (&self.method, &self.agent, &self.path) == (&other.method, &other.agent, &other.path)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a request is JSON")
    }

    /// The id of the work in its contract: `request_id` of a run, `id` of a task.
    pub(crate) fn id(&self) -> String {
        if let Some(rest) = self.path.strip_prefix("/tasks/") {
            return rest.split(['/', '?']).next().unwrap_or_default().to_owned();
        }
        let body = self.json();
        let id = body["request_id"].as_str().or(body["id"].as_str());
        id.expect("a request has an id").to_owned()
    }
}
