//! An agent of the run contract, and of the message contract, in a process of its own, as cheap as possible: written by
//! hand and in one thread, so that the way to it is measured and not the agent.
//!
//! It answers at once with its inputs as its outputs, at both endpoints of the run contract; and a `work_request` with
//! its text as the output of a `work_result`, on the same connection. Work of the name `PROGRESS` is a stream that
//! sends a progress event every `PERIOD`, with the time at which it was written.

use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crosspoint_contracts::json::{Tape, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::machine::monotonic_ns;
use crate::message_agent;

/// The work that is done at once, and the work that takes time.
pub(crate) const WORK: &str = "bench";
pub(crate) const PROGRESS: &str = "bench_progress";

/// Time between two progress events.
pub(crate) const PERIOD: Duration = Duration::from_millis(200);

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const STREAM_END: &str = "0\r\n\r\n";

/// Serves until it is killed. Prints the address that it listens on.
pub(crate) fn run(address: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.expect("nobody else listens there");
        println!("{}", listener.local_addr().expect("it is bound"));
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("it is a socket");
            tokio::spawn(serve(stream));
        }
    });
}

/// The process, which is killed when this is dropped.
pub(crate) struct Agent {
    child: Child,
    pub(crate) address: String,
}

/// Starts this program as such an agent.
pub(crate) fn start() -> Agent {
    let this = std::env::current_exe().expect("this program has a file");
    let mut command = Command::new(this);
    command.args(["--run-agent", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut address = String::new();
    let printed = child.stdout.take().expect("it prints to us");
    std::io::BufReader::new(printed).read_line(&mut address).expect("it says where it listens");
    Agent { child, address: address.trim().to_owned() }
}

impl Agent {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves one connection, request after request, until the caller leaves.
async fn serve(mut stream: TcpStream) {
    let mut buffer = Vec::with_capacity(1 << 14);
    loop {
        match stream.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while let Some((head, whole)) = request(&buffer) {
            if answer(&mut stream, &buffer[..head], &buffer[head..whole]).await.is_err() {
                return;
            }
            buffer.drain(..whole);
        }
    }
}

/// Where the body of the first request begins and ends, once all of it is there.
fn request(buffer: &[u8]) -> Option<(usize, usize)> {
    if buffer.starts_with(b"GET ") {
        let end = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        return Some((end, end));
    }
    crate::load::extent(buffer).filter(|(_, whole)| buffer.len() >= *whole)
}

async fn answer(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> std::io::Result<()> {
    if head.starts_with(b"GET ") {
        return stream.write_all(json(r#"{"status":"ok"}"#).as_bytes()).await;
    }
    let tape = Tape::scan(body).expect("it is JSON");
    let root = tape.root().expect("it is something");
    if head.starts_with(b"POST /api/agent/message ") {
        return stream.write_all(json(&message_agent::result(root)).as_bytes()).await;
    }
    let member = |name| root.get(name).map_or("{}", Value::source);
    let (id, work, inputs) = (member("request_id"), member("task_type"), member("inputs"));
    if !head.starts_with(b"POST /agents/run/stream ") {
        return stream.write_all(json(&result(id, work, inputs)).as_bytes()).await;
    }
    let started = chunk("started", &format!(r#"{{"request_id":{id},"task_type":{work}}}"#));
    let last = chunk("final", &result(id, work, inputs));
    if work.trim_matches('"') != PROGRESS {
        return stream.write_all([STREAM_HEAD, &started, &last, STREAM_END].concat().as_bytes()).await;
    }
    let events = root.get("inputs").and_then(|inputs| inputs.get("events")).map_or("0", Value::source);
    stream.write_all([STREAM_HEAD, &started].concat().as_bytes()).await?;
    progress(stream, id, events.parse().expect("a number of events")).await?;
    stream.write_all([&last, STREAM_END].concat().as_bytes()).await
}

async fn progress(stream: &mut TcpStream, id: &str, events: usize) -> std::io::Result<()> {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.tick().await;
    for event in 1..=events {
        ticks.tick().await;
        let percent = event * 100 / (events + 1);
        let now = monotonic_ns();
        let data = format!(r#"{{"request_id":{id},"percent":{percent},"step":"{now}"}}"#);
        stream.write_all(chunk("progress", &data).as_bytes()).await?;
    }
    Ok(())
}

/// A result with all members that the contract recommends.
fn result(id: &str, work: &str, outputs: &str) -> String {
    format!(
        r#"{{"request_id":{id},"task_type":{work},"status":"ok","ok":true,"outputs":{outputs},"artifacts":[],"provenance":{{}},"usage":{{}},"warnings":[]}}"#
    )
}

fn json(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// An event as one chunk of a body of unknown length.
fn chunk(name: &str, data: &str) -> String {
    let event = format!("event: {name}\ndata: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}
