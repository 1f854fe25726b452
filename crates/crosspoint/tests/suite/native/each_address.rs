//! What one address or one caller may have: ten times as much of it is refused, costs little memory, and keeps no other
//! client out.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::json;

use crate::native::metrics::refusals;
use crate::support::misbehaving_agents::peak_mib;
use crate::support::run_caller::{STREAM, SYNC, request};
use crate::support::server::{Answer, Server, head, until};

/// Most memory of a server with these limits, in MiB: that of an idle one, and as much again.
pub(super) const MEMORY_MAX_MIB: u64 = 96;

/// Connections of one address that are too many. The system queues as many for a server. Callers that had to wait until
/// all of them were told, which takes 2 s for 64 of them, would wait for longer than they do here.
const CROWD: usize = 900;
const OTHERS_PATIENCE: Duration = Duration::from_secs(20);

/// One path of each door. What comes back there is checked against the description of the API.
const DOORS: [&str; 5] = [SYNC, "/tasks", "/api/agent/message", "/api/v1/bridge", "/api/v1/jobs"];

/// A connection from another address of this machine: 127.0.0.N.
pub(super) fn connected_from(server: &Server, n: u8) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, n), 0)).expect("all of 127/8 is ours");
    connect(&socket, &server.address()).expect("it listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(OTHERS_PATIENCE)).expect("a socket can have a timeout");
    stream
}

/// What a caller at another address is answered.
pub(super) fn asked_from(server: &Server, n: u8, path: &str) -> Answer {
    let mut stream = connected_from(server, n);
    stream.write_all(head("GET", path, &[], 0).as_bytes()).expect("it can be sent");
    Answer::read(&mut BufReader::new(stream)).expect("it is answered")
}

#[track_caller]
fn is_too_much(answer: &Answer) {
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!((&error["code"], &error["repeat"]), (&json!("resource_limit"), &json!("safe")), "{error}");
}

#[test]
fn an_address_has_so_many_connections_and_others_are_served() {
    let server = Server::configured("[limits]\nconnections_per_address = 16\n");
    let held: Vec<TcpStream> = (0..16).map(|_| server.connect()).collect();
    is_too_much(&server.get("/health"));
    // None of them sends anything or leaves.
    let crowd: Vec<TcpStream> = (0..CROWD).map(|_| server.connect()).collect();
    for n in 2..10 {
        assert_eq!(asked_from(&server, n, "/health").status, 200);
    }
    let told = crowd.into_iter().filter_map(|stream| Answer::read(&mut BufReader::new(stream)));
    let told = told.inspect(is_too_much).count();
    assert!(told >= 32, "{told} were told");
    drop(held);
    // Until then a refused connection may be closed without an answer: 64 are answered at a time.
    until("there is a place again", || server.try_request("GET", "/health", &[], b"").filter(|it| it.status == 200));
    assert!(refusals(&server, "connections_per_address") >= CROWD as f64);
    assert!(peak_mib(&server) < MEMORY_MAX_MIB, "{} MiB", peak_mib(&server));
}

#[test]
fn an_address_that_asks_too_often_is_refused_before_its_body_is_read() {
    let server = Server::configured("[limits]\nrequests_per_address = 1\n");
    let answer = until("it is refused", || Some(server.get("/health")).filter(|answer| answer.status != 200));
    is_too_much(&answer);
    // Only the head is sent. The answer has the shape of the door.
    let answer = until("it is refused there too", || {
        let mut stream = server.connect();
        stream.write_all(head("POST", SYNC, &[], 2).as_bytes()).expect("it can be sent");
        stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket can have a timeout");
        Answer::read(&mut BufReader::new(stream)).filter(|answer| answer.status == 429)
    });
    assert_eq!((answer.header("retry-after"), &answer.json()["error"]["code"]), (Some("1"), &json!("RESOURCE_LIMIT")));
    for path in DOORS {
        let refused = |answer: &Answer| answer.status == 429 && answer.header("retry-after") == Some("1");
        until(path, || Some(server.post(path, "{}")).filter(refused));
    }
    for n in 2..10 {
        assert_eq!(asked_from(&server, n, "/health").status, 200);
    }
    let page = asked_from(&server, 10, "/metrics").text();
    let count =
        page.lines().find_map(|line| line.strip_prefix("crosspoint_refusals_total{limit=\"requests_per_address\"} "));
    assert!(count.and_then(|count| count.parse().ok()).is_some_and(|count: f64| count >= 2.0), "{count:?}");
}

/// Opens a stream of events, and reads the status of its answer.
fn streamed(mut stream: TcpStream, path: &str) -> (TcpStream, u16) {
    stream.write_all(head("GET", path, &[], 0).as_bytes()).expect("it can be sent");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("it is answered");
    let status = std::str::from_utf8(&status[9..]).ok().and_then(|status| status.parse().ok());
    (stream, status.expect("a status"))
}

#[test]
fn a_caller_has_so_many_event_streams_and_others_have_theirs() {
    let server = Server::configured("[limits]\nstreams_per_caller = 10\n");
    let job = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/v1/jobs/{job}/events");
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..10 {
        let (stream, status) = streamed(server.connect(), &path);
        assert_eq!(status, 200);
        held.push(stream);
    }
    for _ in 0..100 {
        is_too_much(&server.get(&path));
    }
    assert_eq!(server.get(&format!("/tasks/{job}/events")).status, 429);
    let run = server.post(STREAM, &request("one too many", "echo", &json!({})));
    assert_eq!((run.status, &run.json()["error"]["code"]), (429, &json!("RESOURCE_LIMIT")));
    let jobs = server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(jobs, Some(1), "nothing was done for a caller that was refused");
    let other = streamed(connected_from(&server, 2), &path);
    assert_eq!(other.1, 200);
    assert_eq!(refusals(&server, "streams_per_caller"), 102.0);
    held.pop();
    until("there is a place again", || (streamed(server.connect(), &path).1 == 200).then_some(()));
    assert!(peak_mib(&server) < MEMORY_MAX_MIB, "{} MiB", peak_mib(&server));
}

#[test]
fn a_head_that_is_too_long_is_refused_in_the_shape_of_its_door() {
    let server = Server::configured("[limits]\nurl_bytes = 200\nheader_bytes = 1000\n");
    let long = format!("?{}", "x".repeat(200));
    let answer = server.get(&format!("/health{long}"));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (414, &json!("invalid")));
    let answer = server.get(&format!("/tasks/t{long}"));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (414, &json!("INVALID_INPUT")));
    let filled = "x".repeat(1000);
    let answer = server.request("GET", "/health", &[("x-filled", &filled)], b"");
    assert_eq!((answer.status, &answer.json()["error"]["repeat"]), (431, &json!("never")));
    for path in DOORS {
        assert_eq!(server.request("POST", path, &[("x-filled", &filled)], b"{}").status, 431);
    }
    assert_eq!((refusals(&server, "url_bytes"), refusals(&server, "header_bytes")), (2.0, 6.0));
    assert_eq!(server.get(&format!("/health?{}", "x".repeat(190))).status, 200);
}

/// Sends a request and reads its answer, over a connection that stays open.
fn asked_over(stream: &mut TcpStream) {
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it can be sent");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be shared"));
    assert_eq!(Answer::read(&mut reader).expect("it is answered").status, 200);
}

#[test]
fn an_idle_connection_has_longer_than_a_head() {
    let server = Server::configured("[limits]\nheader_seconds = 0.2\nidle_seconds = 3\n");
    let mut idle = server.connect();
    asked_over(&mut idle);
    let since = Instant::now();
    let mut said = Vec::new();
    idle.read_to_end(&mut said).expect("it is closed");
    assert!(since.elapsed() > Duration::from_secs(2), "{:?}", since.elapsed());
    assert_eq!((said.len(), refusals(&server, "idle_seconds")), (0, 1.0));
    // A head that has begun has only its own time, also on a connection that was used.
    let mut slow = server.connect();
    asked_over(&mut slow);
    slow.write_all(b"GET /health HTTP/1.1\r\nhost: te").expect("it can be sent");
    let answer = Answer::read(&mut BufReader::new(slow)).expect("it is answered");
    assert_eq!(answer.status, 408);
    assert_eq!((refusals(&server, "header_seconds"), refusals(&server, "idle_seconds")), (1.0, 1.0));
}
