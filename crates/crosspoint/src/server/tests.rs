//! A server within the test process, because scans are counted per process.

mod message;

use std::net::SocketAddr;
use std::path::PathBuf;

use crosspoint_contracts::json::take_scans;
use crosspoint_engine::core::Mode;
use crosspoint_engine::runtime::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Listener, run};
use crate::agent_side::AgentSide;
use crate::config::{Config, Flags};

/// An agent's answer: long outputs, and another long member.
fn answer(id: &str) -> String {
    let (outputs, provenance) = ("o".repeat(9_000), "p".repeat(3_000));
    format!(
        r#"{{"status":"ok","ok":true,"request_id":{id},"task_type":"T","outputs":{{"o":"{outputs}"}},"provenance":{{"p":"{provenance}"}}}}"#
    )
}

/// Reads one HTTP message to its end, by its length or its last chunk.
async fn message(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let count = stream.read_buf(&mut read).await.expect("it is there");
        let text = String::from_utf8_lossy(&read).into_owned();
        let body = |text: &str| text.split_once("\r\n\r\n").map(|(head, body)| (head.to_lowercase(), body.len()));
        let Some((head, length)) = body(&text) else { continue };
        let wanted = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if count == 0 || wanted.is_some_and(|wanted| length >= wanted) || text.ends_with("\r\n0\r\n\r\n") {
            return text;
        }
    }
}

/// An agent of the run contract, with a stream or without one. It reads only the id.
async fn agent(listener: TcpListener, streams: bool) {
    loop {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        tokio::spawn(async move {
            loop {
                let asked = message(&mut stream).await;
                let Some((_, rest)) = asked.split_once("\"request_id\":") else { return };
                let answer = answer(rest.split(',').next().expect("an id"));
                let reply = match (asked.starts_with("POST /agents/run/stream"), streams) {
                    (true, true) => {
                        let event = format!("event: final\ndata: {answer}\n\n");
                        let (length, kind) = (event.len(), "text/event-stream");
                        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{event}")
                    }
                    (true, false) => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
                    (false, _) => {
                        let (length, kind) = (answer.len(), "application/json");
                        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{answer}")
                    }
                };
                stream.write_all(reply.as_bytes()).await.expect("it is read");
            }
        });
    }
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("crosspoint-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory can be made");
    path
}

/// The result of one run, and the sizes that were scanned for it.
struct Ran {
    request_bytes: usize,
    answer_bytes: usize,
    /// The agent's answer without its outputs, as it is stored.
    stored_bytes: usize,
    told_bytes: usize,
    scans: Vec<usize>,
}

async fn ran(path: &str, streams: bool) -> Ran {
    let agent_listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = agent_listener.local_addr().expect("it is bound");
    tokio::spawn(agent(agent_listener, streams));
    let name = format!("scans-{}-{streams}", path.rsplit('/').next().unwrap_or_default());
    let toml = format!("[[agent]]\nname = \"far\"\ncontract = \"run\"\nurl = \"http://{address}\"\nwork = [\"T\"]\n");
    let body = format!(r#"{{"request_id":"r-1","task_type":"T","inputs":{{"i":"{}"}}}}"#, "i".repeat(5_000));
    let Asked { told, scans, .. } = asked(&name, &toml, path, &body, |_| {}).await;
    assert!(told.contains(&"o".repeat(9_000)) && told.contains(&"p".repeat(3_000)), "all of it reaches the caller");
    // All ids of jobs have the same length.
    let answer_bytes = answer(&format!("\"{}\"", uuid::Uuid::nil())).len();
    let outputs = "{\"o\":\"\"}".len() + 9_000;
    Ran {
        request_bytes: body.len(),
        answer_bytes,
        stored_bytes: answer_bytes - outputs + 2,
        told_bytes: told.len(),
        scans,
    }
}

/// What came of asking a server once.
struct Asked {
    /// The last document that it answered.
    told: String,
    /// The sizes that were scanned for it.
    scans: Vec<usize>,
    /// Number of files of agents' output that were left when it had stopped; `None` if there was never one.
    left: Option<usize>,
}

/// Asks a server with this configuration, which `ready` is told the address of.
async fn asked(name: &str, toml: &str, path: &str, body: &str, ready: impl FnOnce(SocketAddr)) -> Asked {
    let directory = scratch(name);
    let file = directory.join("crosspoint.toml");
    std::fs::write(&file, toml).expect("it can be written");
    let flags = Flags { config: Some(file), data: Some(directory.join("data")), ..Flags::default() };
    std::fs::create_dir_all(directory.join("data")).expect("a directory can be made");
    let config = Config::load(&flags).expect("it can be read");
    let side = AgentSide::new(&config);
    let engine = Engine::start(config.engine(Mode::Serve, &side)).expect("it starts");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let server = listener.local_addr().expect("it is bound");
    let stop = CancellationToken::new();
    let (stopped, settled) = (stop.clone().cancelled_owned(), config.clone());
    let serving =
        tokio::spawn(async move { run(Listener::Tcp(listener).into(), (engine, side), &settled, stopped).await });

    ready(server);
    let head = format!("POST {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n");
    let mut caller = TcpStream::connect(server).await.expect("it listens");
    take_scans();
    let request = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    caller.write_all(request.as_bytes()).await.expect("it can be asked");
    let answered = message(&mut caller).await;
    let scans = take_scans();
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    let told = answered.split_once("\r\n\r\n").expect("a body").1;
    let told = told.rsplit("data: ").next().unwrap_or(told).trim_end_matches(['\r', '\n', '0']).to_owned();
    stop.cancel();
    serving.await.expect("it ends");
    let left = directory.join("data/chunks").read_dir().ok().map(Iterator::count);
    let _ = std::fs::remove_dir_all(directory);
    Asked { told, scans, left }
}

/// From the run door to a run agent and back. The request is scanned when it arrives and when it is handed on. The
/// agent's answer is scanned when it arrives, once more if it is part of a stream, and without its outputs when it is
/// written for the caller. The caller's answer is not scanned at all.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_scanned_where_they_come_in_and_not_by_every_hand() {
    for (path, streams) in [("/agents/run/sync", true), ("/agents/run/sync", false), ("/agents/run/stream", true)] {
        let Ran { request_bytes, answer_bytes, stored_bytes, told_bytes, scans } = ran(path, streams).await;
        let count = |bytes: usize| scans.iter().filter(|scanned| **scanned == bytes).count();
        let about = format!("{path}, {streams}: {scans:?}");
        assert!((1..=2).contains(&count(request_bytes)), "the request, {about}");
        let answer = count(answer_bytes) + count(stored_bytes);
        assert!((1..=3).contains(&answer), "the agent's answer of {answer_bytes}, {about}");
        assert_eq!(count(told_bytes), 0, "the caller's answer of {told_bytes}, {about}");
        assert_eq!(scans.len(), count(request_bytes) + answer, "and nothing else, {about}");
    }
}
