//! An agent of the message contract in another process that pulls its work: written by hand and in one thread.
//!
//! On one connection it asks for messages, as many as there are, and acknowledges those of the answer before. Each
//! result is a POST of its own, on connections that are kept open: the last used first, and a new one if all are busy.
//! An agent that is pushed to is a part of `run_agent`, and makes the same results.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crosspoint_contracts::json::{Tape, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Most messages in one answer, and most jobs that it has at a time.
pub(crate) const CONCURRENCY: usize = 256;

static MADE: AtomicU64 = AtomicU64::new(0);

/// Makes the `work_result` for a `work_request`: the text of its parameters is the output.
pub(crate) fn result(request: Value<'_, '_>) -> String {
    let payload = request.get("payload").expect("it has a payload");
    let text = payload.get("parameters").and_then(|parameters| parameters.get("text")).map_or("\"\"", Value::source);
    let source = |of: Value<'_, '_>, name: &str| of.get(name).expect("it has its ids").source().to_owned();
    let (request_id, trace_id, task_id) =
        (source(request, "request_id"), source(request, "trace_id"), source(payload, "task_id"));
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let message_id = format!("{:08x}-0001-4000-8000-{number:012x}", std::process::id());
    format!(
        r#"{{"protocol_version":"1.0","message_id":"{message_id}","from_agent":"code","to_agent":"orchestrator","timestamp":"2026-01-19T04:21:04Z","trace_id":{trace_id},"request_id":{request_id},"type":"work_result","payload":{{"task_id":{task_id},"status":"success","exit_code":0,"output":{text},"resources_used":{{"duration_seconds":0,"gpu_vram_mb":0,"cpu_time_ms":0}}}},"x_custom_fields":{{}}}}"#
    )
}

/// Pulls and answers for as long as the server runs.
pub(crate) fn run(address: &str, name: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(pull(address, name));
}

/// The process, which is killed when this is dropped.
pub(crate) struct Agent(Child);

/// Starts this program as such an agent.
pub(crate) fn start(address: &str, name: &str) -> Agent {
    let this = std::env::current_exe().expect("this program has a file");
    let child = Command::new(this).args(["--message-agent", address, name]).stdout(Stdio::null()).spawn();
    Agent(child.expect("it starts"))
}

impl Agent {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn pull(address: &str, name: &str) {
    let posts = Arc::new(Posts { address: address.to_owned(), idle: Mutex::default() });
    let mut stream = connected(address).await;
    let mut buffer = Vec::with_capacity(1 << 20);
    let mut acks = String::new();
    loop {
        let request = format!(
            "GET /api/agent/messages?agent={name}&wait=10&max={CONCURRENCY}&ack={acks} HTTP/1.1\r\nhost: localhost\r\n\r\n"
        );
        acks.clear();
        let answer = exchange(&mut stream, &request, &mut buffer).await.unwrap_or_else(|| std::process::exit(0));
        let tape = Tape::scan(&buffer[answer]).expect("it is JSON");
        let messages = tape.root().and_then(|root| root.get("messages")).expect("it has messages");
        for message in messages.items() {
            let id = message.get("message_id").map_or("", Value::source).trim_matches('"');
            acks.push_str(if acks.is_empty() { "" } else { "," });
            acks.push_str(id);
            tokio::spawn(posts.clone().post(result(message)));
        }
    }
}

/// The connections for results.
struct Posts {
    address: String,
    idle: Mutex<Vec<TcpStream>>,
}

impl Posts {
    async fn post(self: Arc<Self>, body: String) {
        let request = format!(
            "POST /api/agent/message HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut buffer = Vec::new();
        loop {
            let idle = self.idle.lock().expect("nobody panics").pop();
            let was_idle = idle.is_some();
            let mut stream = match idle {
                Some(stream) => stream,
                None => connected(&self.address).await,
            };
            let answered = exchange(&mut stream, &request, &mut buffer).await.is_some();
            // The server closes connections that are idle for some seconds. A result may be sent twice.
            if !answered && was_idle {
                continue;
            }
            assert!(!answered || buffer.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&buffer));
            self.idle.lock().expect("nobody panics").push(stream);
            return;
        }
    }
}

async fn connected(address: &str) -> TcpStream {
    // The server has ended, so the agent ends too.
    let Ok(stream) = TcpStream::connect(address).await else { std::process::exit(0) };
    stream.set_nodelay(true).expect("it is a socket");
    stream
}

/// Sends a request, and returns where in the buffer the body of its answer is; `None` if the connection is closed.
async fn exchange(stream: &mut TcpStream, request: &str, buffer: &mut Vec<u8>) -> Option<std::ops::Range<usize>> {
    buffer.clear();
    stream.write_all(request.as_bytes()).await.ok()?;
    loop {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
        // An answer without content has no length.
        if buffer.starts_with(b"HTTP/1.1 204") && buffer.ends_with(b"\r\n\r\n") {
            return Some(buffer.len()..buffer.len());
        }
        if let Some((head, whole)) = crate::load::extent(buffer)
            && buffer.len() >= whole
        {
            return Some(head..whole);
        }
    }
}
