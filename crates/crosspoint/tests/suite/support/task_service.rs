//! An agent of the task contract that the test controls: over bare sockets, so that it can misbehave.
//!
//! By default it keeps tasks as the contract says: a posted task is pending, and then has the state that the test sets.
//! Each request goes first to the test's own function, which may answer in any other way.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::server::until;

pub(crate) struct TaskServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    tasks: Mutex<BTreeMap<String, Value>>,
    calls: Mutex<Vec<Call>>,
    answer: Box<dyn Fn(&Call) -> Reply + Send + Sync>,
    closed: AtomicBool,
}

/// A request to the agent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// `post`, `look`, `input`, `cancel`, or the path of anything else.
    pub(crate) what: String,
    /// The task's id; empty if the path has none.
    pub(crate) id: String,
    pub(crate) query: String,
    /// Names are in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// How the agent answers.
pub(crate) enum Reply {
    /// As the contract says.
    Kept,
    Json(u16, Value),
    /// Exactly these bytes, and then the connection is closed.
    Bytes(Vec<u8>),
    /// The connection is closed without an answer.
    Close,
    /// No answer, until the caller disconnects.
    Hang,
}

impl TaskServer {
    /// An agent that keeps to the contract.
    pub(crate) fn start() -> TaskServer {
        TaskServer::answering(|_| Reply::Kept)
    }

    /// An agent that first asks this function how to answer.
    pub(crate) fn answering(answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> TaskServer {
        TaskServer::at("127.0.0.1:0".parse().expect("an address"), answer)
    }

    /// The same at an address, which may be that of an agent that is gone.
    pub(crate) fn at(address: SocketAddr, answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> TaskServer {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared {
            tasks: Mutex::default(),
            calls: Mutex::default(),
            answer: Box::new(answer),
            closed: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.closed.load(Ordering::Relaxed) {
                    return;
                }
                let serving = accepting.clone();
                thread::spawn(move || serving.serve(&stream));
            }
        });
        TaskServer { address, shared }
    }

    /// An agent that completes every task at once, with the given result.
    pub(crate) fn simple(result: impl Fn(&Value) -> Value + Send + Sync + 'static) -> TaskServer {
        TaskServer::answering(move |call| match &*call.what {
            "post" => Reply::Json(200, completed(&call.body["id"], &result(&call.body))),
            _ => Reply::Kept,
        })
    }

    /// The configuration of this agent, for work of the same name.
    pub(crate) fn configuration(&self, name: &str, keys: &str) -> String {
        let url = format!("http://{}", self.address);
        format!("[[agent]]\nname = \"{name}\"\ncontract = \"task\"\nurl = \"{url}\"\n{keys}\n")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the task has this state; the id is filled in.
    pub(crate) fn stands(&self, id: &str, mut document: Value) {
        document["id"] = json!(id);
        self.shared.tasks.lock().expect("nobody panicked").insert(id.to_owned(), document);
    }

    /// The agent no longer knows the task.
    pub(crate) fn forget(&self, id: &str) {
        self.shared.tasks.lock().expect("nobody panicked").remove(id);
    }

    /// All requests of one kind, in order.
    pub(crate) fn asked(&self, what: &str) -> Vec<Call> {
        let calls = self.shared.calls.lock().expect("nobody panicked");
        calls.iter().filter(|call| call.what == what).cloned().collect()
    }

    /// Waits until there were `count` requests of this kind, and returns the last of these.
    pub(crate) fn awaited(&self, what: &str, count: usize) -> Call {
        until(what, || self.asked(what).into_iter().nth(count - 1))
    }

    /// Waits for two more polls: the second one began after this call.
    pub(crate) fn looked_again(&self) {
        let before = self.asked("look").len();
        self.awaited("look", before + 2);
    }
}

impl Drop for TaskServer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which then sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(call) = call(&mut reader) {
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            self.calls.lock().expect("nobody panicked").push(call.clone());
            let (status, document) = match (self.answer)(&call) {
                Reply::Kept => self.kept(&call),
                Reply::Json(status, document) => (status, document),
                Reply::Bytes(bytes) => {
                    let mut stream = stream;
                    let _ = stream.write_all(&bytes);
                    return;
                }
                Reply::Close => return,
                Reply::Hang => {
                    let _ = io::copy(&mut reader, &mut io::sink());
                    return;
                }
            };
            let mut stream = stream;
            if stream.write_all(&http(status, &document.to_string())).is_err() {
                return;
            }
        }
    }

    /// The answer that the contract asks for.
    fn kept(&self, call: &Call) -> (u16, Value) {
        let mut tasks = self.tasks.lock().expect("nobody panicked");
        if call.what == "post" {
            let id = call.body["id"].as_str().expect("an id").to_owned();
            let known = tasks.entry(id.clone()).or_insert_with(|| json!({"id": id, "status": "pending"}));
            return (202, known.clone());
        }
        let Some(task) = tasks.get_mut(&call.id) else {
            return (404, failed(&json!(call.id), "INVALID_FIELD_VALUE", true));
        };
        match &*call.what {
            "input" => *task = json!({"id": call.id, "status": "in_progress"}),
            "cancel" => *task = json!({"id": call.id, "status": "cancelled"}),
            _ => {}
        }
        (200, task.clone())
    }
}

/// An answer with its HTTP framing.
pub(crate) fn http(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body.as_bytes()].concat()
}

fn call(reader: &mut impl BufRead) -> Option<Call> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (what, id) = match (&*method, &parts[..]) {
        ("POST", ["tasks"]) => ("post", ""),
        ("GET", ["tasks", id]) => ("look", *id),
        ("POST", ["tasks", id, what @ ("input" | "cancel")]) => (*what, *id),
        _ => (path, ""),
    };
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Call { what: what.to_owned(), id: id.to_owned(), query: query.to_owned(), headers, body })
}

/// A completed task with all recommended members.
pub(crate) fn completed(id: &Value, result: &Value) -> Value {
    json!({"id": id, "status": "completed", "result": result, "metadata": {"agent": "tested", "duration_ms": 1}})
}

pub(crate) fn failed(id: &Value, code: &str, recoverable: bool) -> Value {
    let error = json!({"code": code, "message": "It went wrong.", "details": {"n": 7}, "recoverable": recoverable});
    json!({"id": id, "status": "failed", "error": error, "metadata": {"agent": "tested"}})
}

/// A task that asks a person.
pub(crate) fn asking(prompt: &str) -> Value {
    json!({"status": "input_required", "inputRequest": {"prompt": prompt}})
}
