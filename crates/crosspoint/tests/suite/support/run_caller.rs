//! Callers of the run door: one request, one answer or one stream. Every answer is judged by the contract's own
//! validator.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use crosspoint_contracts::{Kind, Options, read};
use serde_json::{Value, json};

use crate::support::conformity;
use crate::support::server::{Answer, Server, chunk, head};

pub(crate) const SYNC: &str = "/agents/run/sync";
pub(crate) const STREAM: &str = "/agents/run/stream";

pub(crate) fn request(request_id: &str, task_type: &str, inputs: &Value) -> String {
    json!({"request_id": request_id, "task_type": task_type, "inputs": inputs}).to_string()
}

/// Checks that a document has no finding, warnings included.
#[track_caller]
pub(crate) fn faultless(document: &[u8], kind: Kind) {
    let findings = read(document, &Options { kind: Some(kind), ..Options::default() }).report.findings;
    assert!(findings.is_empty(), "{}\n{findings:#?}", String::from_utf8_lossy(document));
}

impl Server {
    /// Runs, and returns the answer, which is a document of the contract whatever its status.
    #[track_caller]
    pub(crate) fn run_sync(&self, body: &str) -> Answer {
        let answer = self.post(SYNC, body);
        faultless(&answer.body, Kind::RunResponse);
        answer
    }

    /// Runs, and returns the events up to the end.
    pub(crate) fn run_stream(&self, body: &str) -> Vec<(String, Value)> {
        Following::begin(self, body).rest()
    }

    /// The job of a request, once it is in this state.
    pub(crate) fn run_in_state(&self, request_id: &str, state: &str) -> Value {
        crate::support::server::until(state, || {
            let jobs = self.get(&format!("/api/v1/jobs?door=run&state={state}")).json();
            jobs["jobs"].as_array()?.iter().find(|job| job["request_id"] == request_id).cloned()
        })
    }
}

/// A caller that follows a run.
pub(crate) struct Following {
    reader: BufReader<TcpStream>,
    head: Vec<(String, String)>,
    /// Everything that came.
    text: Vec<u8>,
    /// How much of it was returned as events.
    told: usize,
    ended: bool,
}

impl Following {
    /// Asks for the stream of a run, and reads the head of the answer.
    pub(crate) fn begin(server: &Server, body: &str) -> Following {
        let mut stream = server.connect();
        let head = head("POST", STREAM, &[], body.len());
        stream.write_all((head + body).as_bytes()).expect("it can be sent");
        Following::of(stream)
    }

    /// Reads the head of a streamed answer over this connection.
    pub(crate) fn of(stream: TcpStream) -> Following {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        while !lines.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            reader.read_exact(&mut byte).expect("there is a head");
            lines.push(byte[0]);
        }
        let lines = String::from_utf8(lines).expect("it is text");
        assert!(lines.starts_with("HTTP/1.1 200 OK\r\n"), "{lines}");
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let head: Vec<_> = lines.lines().filter_map(header).collect();
        let following = Following { reader, head, text: Vec::new(), told: 0, ended: false };
        // RUN-122
        assert_eq!(following.header("content-type"), Some("text/event-stream"));
        following
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn job(&self) -> String {
        let place = self.header("location").expect("it says where the job is");
        place.strip_prefix("/api/v1/jobs/").expect("it is a job").to_owned()
    }

    /// The next event; `None` at the end, and `Err` if the connection broke.
    pub(crate) fn try_next(&mut self) -> Result<Option<(String, Value)>, ()> {
        loop {
            let rest = std::str::from_utf8(&self.text[self.told..]).expect("it is UTF-8");
            if let Some(end) = rest.find("\n\n") {
                let block = rest[..end].to_owned();
                self.told += end + 2;
                if block == ":" {
                    continue;
                }
                return Ok(Some(event(&block)));
            }
            match chunk(&mut self.reader).ok_or(())? {
                Some(more) => self.text.extend(more),
                None => {
                    self.ended = true;
                    return Ok(None);
                }
            }
        }
    }

    /// The next event, which must come.
    #[track_caller]
    pub(crate) fn next(&mut self) -> (String, Value) {
        self.try_next().expect("the connection holds").expect("there is another event")
    }

    /// Reads up to the next comment, skipping events.
    pub(crate) fn comment(&mut self) {
        while !self.text.ends_with(b":\n\n") {
            let more = chunk(&mut self.reader).expect("the connection holds").expect("it goes on");
            self.text.extend(more);
        }
    }

    /// All remaining events, once the server has closed the stream. The whole stream is checked against the contract.
    pub(crate) fn rest(mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.try_next().expect("the connection holds") {
            events.push(event);
        }
        assert!(self.ended);
        // RUN-6.3: then the server closes.
        let mut after = Vec::new();
        self.reader.read_to_end(&mut after).expect("it is closed");
        assert_eq!(after, b"");
        faultless(&self.text, Kind::RunStream);
        conformity::check("POST", STREAM, &Answer { status: 200, headers: self.head, body: self.text });
        events
    }
}

fn event(block: &str) -> (String, Value) {
    let field = |name: &str| block.lines().filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
    let name = field("event: ").join("");
    (name, serde_json::from_str(&field("data: ").join("\n")).expect("the data is JSON"))
}
