//! Ten times as much as each limit allows, of those who ask too often, are too slow, or send a head that is too long:
//! the memory stays within its bounds, and another client is served meanwhile. What one address may have at a time is
//! in `each_address.rs`, and bodies, jobs and connections are in `overload.rs`.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};

use crate::native::each_address::{MEMORY_MAX_MIB, asked_from, connected_from};
use crate::native::metrics::refusals;
use crate::support::misbehaving_agents::peak_mib;
use crate::support::server::{Answer, PATIENCE, Server, head, until};
use crate::support::tokens::{self, with};

/// Checks that another client is served, and how much memory was taken so far.
#[track_caller]
fn is_well(server: &Server, memory_max_mib: u64) {
    assert_eq!(asked_from(server, 2, "/health/ready").status, 200);
    let peak = peak_mib(server);
    assert!(peak < memory_max_mib, "{peak} MiB");
}

/// Connections over each of which the beginning of a request was sent.
fn begun(server: &Server, count: usize, text: &str) -> Vec<TcpStream> {
    let begin = |_| {
        let mut stream = server.connect();
        stream.write_all(text.as_bytes()).expect("it can be sent");
        stream
    };
    (0..count).map(begin).collect()
}

/// How many of the answers have this status. Connections that are closed without an answer do not count.
fn answered(streams: Vec<TcpStream>, status: u16) -> usize {
    let answers = streams.into_iter().filter_map(|stream| Answer::read(&mut BufReader::new(stream)));
    answers.filter(|answer| answer.status == status).count()
}

#[test]
fn an_address_that_asks_ten_times_too_often() {
    let server = Server::configured("[limits]\nrequests_per_address = 20\n");
    // 20 in a second, and 40 at once.
    let since = Instant::now();
    let refused = (0..600).filter(|_| server.fetch("/health").status == 429).count();
    let allowed = 40 + usize::try_from(since.elapsed().as_secs() + 1).expect("it is small") * 20;
    assert!(refused + allowed >= 600, "{refused} in {:?}", since.elapsed());
    is_well(&server, MEMORY_MAX_MIB);
}

#[test]
fn a_token_that_asks_ten_times_too_often() {
    let server = Server::configured("[limits]\nrequests_per_token = 20\n");
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let since = Instant::now();
    let asks = |token: &str| with(&server, Some(token), "GET", "/api/v1/jobs", "").status;
    let refused = (0..600).filter(|_| asks(&planner) == 429).count();
    let allowed = 40 + usize::try_from(since.elapsed().as_secs() + 1).expect("it is small") * 20;
    assert!(refused + allowed >= 600, "{refused} in {:?}", since.elapsed());
    assert_eq!(asks(&admin), 200, "each token is counted by itself");
    is_well(&server, MEMORY_MAX_MIB);
}

#[test]
fn a_thousand_heads_that_never_end() {
    let server = Server::configured("[limits]\nheader_seconds = 1\n");
    let slow = begun(&server, 1_000, "GET /health HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
    is_well(&server, MEMORY_MAX_MIB);
    assert_eq!(answered(slow, 408), 1_000);
    assert_eq!(refusals(&server, "header_seconds"), 1_000.0);
    is_well(&server, MEMORY_MAX_MIB);
}

/// The bodies that are being read have room for a tenth of these.
#[test]
fn bodies_that_never_end_and_are_ten_times_what_there_is_room_for() {
    let server = Server::configured("[limits]\nbody_seconds = 1\nbody_bytes = 100000\nbodies_bytes = 2000000\n");
    let text = head("POST", "/api/v1/jobs", &[], 100_000) + &" ".repeat(50_000);
    let slow = begun(&server, 400, &text);
    is_well(&server, MEMORY_MAX_MIB);
    let (late, crowded) = slow.into_iter().fold((0, 0), |(late, crowded), stream| {
        match Answer::read(&mut BufReader::new(stream)).map(|answer| answer.status) {
            Some(408) => (late + 1, crowded),
            Some(503) => (late, crowded + 1),
            other => panic!("{other:?}"),
        }
    });
    assert!(late > 0 && crowded > 0 && late + crowded == 400, "{late} and {crowded}");
    assert_eq!(
        (refusals(&server, "body_seconds"), refusals(&server, "bodies_bytes")),
        (f64::from(late), f64::from(crowded))
    );
    until("there is room", || (server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status == 200).then_some(()));
    is_well(&server, MEMORY_MAX_MIB);
}

const DOCUMENT_BYTES: usize = 6 << 20;
const READERS: usize = 100;

/// Room for a tenth of the answers. An answer takes some more memory while it is made, and for a moment after it was
/// let go; all of them would be 600 MiB, and as much again.
const UNSENT_BYTES: usize = READERS / 10 * DOCUMENT_BYTES;
const READERS_MEMORY_MAX_MIB: u64 = MEMORY_MAX_MIB + 6 * (UNSENT_BYTES >> 20) as u64;

/// A connection that takes little before its caller reads.
fn narrow(server: &Server) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    set_socket_recv_buffer_size(&socket, 4096).expect("it can be set");
    connect(&socket, &server.address()).expect("it listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket can have a timeout");
    stream
}

#[test]
fn readers_that_take_nothing() {
    let server = Server::configured(&format!("[limits]\nwrite_seconds = 3\nunsent_bytes = {UNSENT_BYTES}\n"));
    let body = format!(r#"{{"work":"ask","padding":"{}"}}"#, "x".repeat(DOCUMENT_BYTES));
    let job = server.submit(&body)["id"].as_str().expect("an id").to_owned();
    let asked = head("GET", &format!("/api/v1/jobs/{job}/document"), &[], 0);
    let readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut stream = narrow(&server);
            stream.write_all(asked.as_bytes()).expect("it can be sent");
            stream
        })
        .collect();
    is_well(&server, READERS_MEMORY_MAX_MIB);
    // A reader at another address has its answer, although all room is taken.
    let mut fair = connected_from(&server, 9);
    fair.write_all(asked.as_bytes()).expect("it can be sent");
    let answer = Answer::read(&mut BufReader::new(fair)).expect("it is answered");
    assert_eq!((answer.status, answer.text().len()), (200, body.len()));
    // The metrics are asked for while the readers still hold on.
    until("most are cut off at once", || (refusals(&server, "unsent_bytes") >= 0.9 * READERS as f64).then_some(()));
    let cut = || refusals(&server, "unsent_bytes") + refusals(&server, "write_seconds");
    until("the others are cut off in time", || (cut() >= READERS as f64).then_some(()));
    for mut reader in readers {
        let mut rest = Vec::new();
        let ended = reader.read_to_end(&mut rest);
        assert!(ended.is_err() || rest.len() < DOCUMENT_BYTES, "{} bytes came", rest.len());
    }
    is_well(&server, READERS_MEMORY_MAX_MIB);
}

#[test]
fn heads_that_are_ten_times_too_long() {
    let server = Server::configured("[limits]\nurl_bytes = 200\nheader_bytes = 1000\n");
    let url = head("GET", &format!("/health?{}", "x".repeat(2_000)), &[], 0);
    let header = head("GET", "/health", &[("x-filled", &"x".repeat(10_000))], 0);
    for (text, status, limit) in [(url, 414, "url_bytes"), (header, 431, "header_bytes")] {
        let long = begun(&server, 500, &text);
        is_well(&server, MEMORY_MAX_MIB);
        assert_eq!(answered(long, status), 500, "{limit}");
        assert_eq!(refusals(&server, limit), 500.0);
    }
    // Far longer than what is buffered of a head, and without an end: the server stops reading.
    let endless = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx-filled: {}", "x".repeat(640 << 10));
    let long: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = server.connect();
            let _ = stream.write_all(endless.as_bytes());
            stream
        })
        .collect();
    is_well(&server, MEMORY_MAX_MIB);
    drop(long);
}
