//! The same for the message contract: an agent that answers on the connection of its request, and one that pulls.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::Asked;

const ID: &str = "550e8400-e29b-41d4-a716-446655440003";

fn envelope(id: &str, kind: &str, payload: &str, own: &str) -> String {
    format!(
        r#"{{"protocol_version":"1.0","message_id":"{id}","from_agent":"code","to_agent":"code","timestamp":"2026-01-19T04:21:04Z","trace_id":"{ID}","request_id":"{id}","type":"{kind}","payload":{payload},"x_custom_fields":{{"own":"{own}"}}}}"#
    )
}

fn request() -> String {
    let parameters = "i".repeat(5_000);
    let payload = format!(r#"{{"task_id":"{ID}","work_type":"T","parameters":{{"i":"{parameters}"}},"hints":{{}}}}"#);
    envelope(ID, "work_request", &payload, "")
}

/// An agent's result: a long output, and another long member.
fn result(id: &str) -> String {
    let output = "o".repeat(9_000);
    let resources = r#"{"duration_seconds":1,"gpu_vram_mb":0,"cpu_time_ms":0}"#;
    let payload = format!(
        r#"{{"task_id":"{id}","status":"success","exit_code":0,"output":"{output}","resources_used":{resources}}}"#
    );
    envelope(id, "work_result", &payload, &"p".repeat(3_000))
}

/// Returns the id of the request in what an agent was sent.
fn id_in(text: &str) -> Option<&str> {
    text.split_once("\"request_id\":\"")?.1.split('"').next()
}

/// Answers one pushed request with its result.
async fn pushed(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let asked = super::message(&mut stream).await;
    let answer = result(id_in(&asked).expect("an id"));
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
    stream.write_all([head, answer].concat().as_bytes()).await.expect("it is read");
}

/// An agent's word on the way, with something that it printed.
fn status(id: &str) -> String {
    let step = r#"{"number":1,"name":"first","output":"printed"}"#;
    let payload = format!(r#"{{"task_id":"{id}","status":"running","progress_percent":50,"step":{step}}}"#);
    envelope(id, "work_status", &payload, "")
}

/// Asks for one request, and posts something about it, and at last its result.
async fn pulls(server: SocketAddr, on_the_way: &[fn(&str) -> String]) {
    let mut stream = TcpStream::connect(server).await.expect("it listens");
    let poll = format!("GET /api/agent/messages?agent=far&wait=20 HTTP/1.1\r\nhost: {server}\r\n\r\n");
    stream.write_all(poll.as_bytes()).await.expect("it can be asked");
    let asked = super::message(&mut stream).await;
    let id = id_in(&asked).expect("an id");
    for message in on_the_way.iter().chain(&[result as fn(&str) -> String]) {
        let (mut stream, message) = (TcpStream::connect(server).await.expect("it listens"), message(id));
        let head = format!("POST /api/agent/message HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{message}", message.len());
        stream.write_all(request.as_bytes()).await.expect("it is read");
        let answered = super::message(&mut stream).await;
        assert!(answered.starts_with("HTTP/1.1 204"), "{answered}");
    }
}

fn agent_via(via: &str) -> String {
    format!("[[agent]]\nname = \"far\"\ncontract = \"message\"\nvia = \"{via}\"\nwork = [\"T\"]\n")
}

/// From the message door to a message agent and back. The request is scanned to see what it is, when it is read, and
/// when it is handed on. The agent's result is scanned to see what it is about, when it is read, and without its output
/// when it is written for the caller, wherever it came. The caller's answer is not scanned at all.
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_scanned_where_they_come_in_and_not_by_every_hand() {
    for is_pushed in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let via = if is_pushed { format!("push:http://{address}") } else { "pull".to_owned() };
        let toml = agent_via(&via);
        let agent = |server| {
            tokio::spawn(async move { if is_pushed { pushed(listener).await } else { pulls(server, &[]).await } });
        };
        let name = format!("scans-message-{is_pushed}");
        let Asked { told, scans, .. } =
            super::asked(&name, &toml, "/api/agent/message?wait=20", &request(), agent).await;
        assert!(told.contains(&"o".repeat(9_000)) && told.contains(&"p".repeat(3_000)), "all of it reaches the caller");
        let count = |bytes: usize| scans.iter().filter(|scanned| **scanned == bytes).count();
        let about = format!("{via}: {scans:?}");
        let (request, result_bytes) = (count(request().len()), result(ID).len());
        assert!((1..=3).contains(&request), "the request, {about}");
        // The caller's answer is as long as the agent's result, and would be counted here.
        let answer = count(result_bytes) + count(result_bytes - 9_000);
        assert!((1..=3).contains(&answer), "the agent's result, {about}");
        assert_eq!(scans.len(), request + answer, "and nothing else, {about}");
    }
}

/// The file in which output is put together is made for an attempt that prints something, and for no other. It is gone
/// when the attempt is over.
#[tokio::test(flavor = "multi_thread")]
async fn only_attempts_that_print_have_a_file_and_none_leaves_it() {
    for (on_the_way, left) in [(&[] as &'static [fn(&str) -> String], None), (&[status], Some(0))] {
        let agent = |server| drop(tokio::spawn(async move { pulls(server, on_the_way).await }));
        let name = format!("left-{}", on_the_way.len());
        let asked = super::asked(&name, &agent_via("pull"), "/api/agent/message?wait=20", &request(), agent).await;
        assert_eq!(asked.left, left, "{} on the way", on_the_way.len());
    }
}
