//! An agent that is a script over a bare socket: it sends any bytes it is told to, so that it can break every rule
//! there is.
//!
//! One listener plays many agents: the first part of a path names the script, the rest is what the contract asks for.
//! So each agent of a configuration has the same port and its own base path, and its own breaker too.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

/// What a script does with one request.
pub(crate) type Script = fn(&Asked, &mut Wire) -> After;

/// The head of a stream that ends with its connection.
pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The head of a stream that comes in chunks.
pub(crate) const CHUNKED_STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Some scripts, and the requests that they got.
pub(crate) struct Scripted {
    address: SocketAddr,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    connections: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
    stopped: AtomicBool,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Without the script's name.
    pub(crate) path: String,
    /// The script that it is for.
    pub(crate) script: String,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// How many requests with this method and path the script has had before.
    pub(crate) turn: usize,
}

/// The connection that a script answers on.
pub(crate) struct Wire {
    stream: TcpStream,
    /// Number of bytes that were taken.
    pub(crate) written: u64,
}

/// What happens to the connection afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may come on it.
    Keep,
    /// It is closed in order.
    Close,
    /// It is torn off: the other side gets a reset.
    Reset,
}

impl Scripted {
    /// Starts to play these scripts. Each connection has a thread of its own.
    pub(crate) fn start(script: impl Fn(&Asked, &mut Wire) -> After + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let heard = Arc::new(Heard::default());
        let (kept, script) = (heard.clone(), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if kept.stopped.load(Ordering::SeqCst) {
                    break;
                }
                kept.connections.fetch_add(1, Ordering::SeqCst);
                let (kept, script) = (kept.clone(), script.clone());
                thread::spawn(move || serve(stream, &kept, &*script));
            }
        });
        Scripted { address, heard }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The configuration of an agent that reaches one of the scripts, and takes work of the script's name.
    pub(crate) fn agent(&self, contract: &str, script: &str, keys: &str) -> String {
        let url = format!("http://{}/{script}", self.address);
        format!("[[agent]]\nname = \"{script}\"\ncontract = \"{contract}\"\nurl = \"{url}\"\n{keys}\n")
    }

    pub(crate) fn connections(&self) -> usize {
        self.heard.connections.load(Ordering::SeqCst)
    }

    /// The requests that one script has had so far.
    pub(crate) fn asked(&self, script: &str) -> Vec<Asked> {
        self.heard.lock().iter().filter(|asked| asked.script == script).cloned().collect()
    }

    pub(crate) fn all_asked(&self) -> Vec<Asked> {
        self.heard.lock().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.heard.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

impl Heard {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request, and counts those like it.
    fn note(&self, mut asked: Asked) -> Asked {
        let mut all = self.lock();
        let same =
            |other: &&Asked| (&other.method, &other.script, &other.path) == (&asked.method, &asked.script, &asked.path);
        asked.turn = all.iter().filter(same).count();
        all.push(asked.clone());
        asked
    }
}

fn serve(stream: TcpStream, heard: &Heard, script: &dyn Fn(&Asked, &mut Wire) -> After) {
    let _ = stream.set_nodelay(true);
    let Ok(reading) = stream.try_clone() else { return };
    let mut reading = BufReader::new(reading);
    let mut wire = Wire { stream, written: 0 };
    while let Some(asked) = Asked::read(&mut reading) {
        let asked = heard.note(asked);
        match script(&asked, &mut wire) {
            After::Keep => {}
            After::Close => return,
            After::Reset => return wire.tear(),
        }
    }
}

impl Asked {
    /// Reads one request; `None` if the connection ends first.
    fn read(stream: &mut impl BufRead) -> Option<Asked> {
        let first = line(stream)?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let (script, path) = target.strip_prefix('/')?.split_once('/').unwrap_or((target, ""));
        let mut headers = Vec::new();
        loop {
            let line = line(stream)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (script, path) = (script.to_owned(), format!("/{path}"));
        let mut asked = Asked { method, path, script, headers, body: Vec::new(), turn: 0 };
        let length = asked.header("content-length").map_or(0, |length| length.parse().expect("a length is a number"));
        assert_eq!(asked.header("transfer-encoding"), None, "a request has a length");
        asked.body.resize(length, 0);
        stream.read_exact(&mut asked.body).ok()?;
        Some(asked)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a request is JSON")
    }

    /// Whether the caller asks for a stream.
    pub(crate) fn wants_stream(&self) -> bool {
        self.path == "/agents/run/stream"
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

    /// One event of a stream, with the request's id in it.
    pub(crate) fn event(&self, name: &str, mut data: Value) -> String {
        if data.get("request_id").is_none() {
            data["request_id"] = json!(self.id());
        }
        event(name, &data)
    }

    /// A correct first event.
    pub(crate) fn started(&self) -> String {
        self.event("started", json!({"task_type": self.script}))
    }

    /// A correct event in between.
    pub(crate) fn progress(&self, percent: u32) -> String {
        self.event("progress", json!({"percent": percent, "step": "on the way"}))
    }

    /// A correct last event, with `{"by": NAME}` as its outputs.
    pub(crate) fn finale(&self, by: &str) -> String {
        event("final", &self.response(by))
    }

    /// A correct response, with `{"by": NAME}` as its outputs.
    pub(crate) fn response(&self, by: &str) -> Value {
        json!({
            "request_id": self.id(), "task_type": self.script, "status": "ok", "ok": true, "outputs": {"by": by},
            "artifacts": [], "provenance": {}, "usage": {}, "warnings": [],
        })
    }

    pub(crate) fn task(&self, status: &str) -> Value {
        json!({"id": self.id(), "status": status})
    }

    /// A task that has ended well, with `{"by": NAME}` as its result.
    pub(crate) fn completed(&self, by: &str) -> Value {
        json!({
            "id": self.id(), "status": "completed", "result": {"by": by},
            "metadata": {"startedAt": "2025-01-05T10:30:00Z", "completedAt": "2025-01-05T10:30:02Z", "duration_ms": 2000},
        })
    }
}

pub(crate) fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// A whole answer with a length.
pub(crate) fn answer(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// One chunk of an answer in chunks; an empty one is the last.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

impl Wire {
    /// Sends some bytes; `false` if the other side takes no more.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let mut rest = bytes.as_ref();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) | Err(_) => return false,
                Ok(taken) => {
                    self.written += taken as u64;
                    rest = &rest[taken..];
                }
            }
        }
        true
    }

    /// Answers with JSON, and keeps the connection.
    pub(crate) fn json(&mut self, status: &str, body: &Value) -> After {
        self.send(answer(status, "application/json", body.to_string().as_bytes()));
        After::Keep
    }

    /// Answers with a stream that ends with its connection.
    pub(crate) fn stream(&mut self, events: &[String]) -> After {
        self.send(STREAM_HEAD.to_owned() + &events.concat());
        After::Close
    }

    /// Sends one byte after the other, `apart` from each other; `false` if the other side takes no more.
    pub(crate) fn drip(&mut self, bytes: &str, apart: Duration) -> bool {
        bytes.as_bytes().chunks(1).all(|byte| {
            thread::sleep(apart);
            self.send(byte)
        })
    }

    /// Sends the same bytes again and again, until the other side takes no more or `at_most` bytes were sent. Then
    /// waits for the end before anything more is sent.
    pub(crate) fn flood(&mut self, bytes: &[u8], at_most: u64) {
        while self.written < at_most && self.send(bytes) {}
    }

    /// Says nothing until the other side has closed the connection.
    pub(crate) fn until_gone(&mut self) -> After {
        let mut rest = [0; 1024];
        while matches!(self.stream.read(&mut rest), Ok(1..)) {}
        After::Close
    }

    fn tear(self) {
        // Without lingering, the system drops what was not sent, and sends a reset instead of an end.
        let _ = set_socket_linger(&self.stream, Some(Duration::ZERO));
    }
}

fn line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    Some(line.strip_suffix("\r\n")?.to_owned())
}

#[test]
fn a_script_can_end_a_connection_in_order_or_tear_it_off() {
    let scripted = Scripted::start(|asked, wire| {
        wire.send("half an ans");
        if asked.script == "torn" { After::Reset } else { After::Close }
    });
    for (path, ends) in [("/closed/x", Ok(())), ("/torn/x", Err(ErrorKind::ConnectionReset))] {
        let mut stream = TcpStream::connect(scripted.address()).expect("it listens");
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).expect("it can be asked");
        let mut said = String::new();
        let ended = stream.read_to_string(&mut said).map(|_| ()).map_err(|error| error.kind());
        assert_eq!((ended, said.as_str()), (ends, "half an ans"), "{path}");
    }
    let asked: Vec<String> = scripted.all_asked().into_iter().map(|asked| asked.script + &asked.path).collect();
    assert_eq!((asked, scripted.connections()), (vec!["closed/x".to_owned(), "torn/x".to_owned()], 2));
}
