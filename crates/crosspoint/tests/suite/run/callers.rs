//! Callers of the run door that misbehave: slow ones, loud ones, some that leave at any moment, a crowd that waits, and
//! a flood of nonsense. Each is refused or disconnected, and all other callers are served.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::program::root;
use crate::support::run_caller::{STREAM, SYNC, faultless, request};
use crate::support::server::{Answer, Server, head, until};

/// Checks a refusal, which is a document of the contract.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (status, &json!(code)), "{answer:?}");
    faultless(&answer.body, Kind::RunResponse);
}

/// Checks that the server still serves requests.
#[track_caller]
fn serves(server: &Server, request_id: &str) {
    let body = request(request_id, "echo", &json!({"n": 1}));
    assert_eq!(server.run_sync(&body).json()["outputs"], json!({"n": 1}));
    assert_eq!(server.run_stream(&body).pop().expect("an end").0, "final");
}

/// Number of sockets of the server: each connection is one.
fn sockets(server: &Server) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs");
    let is_socket = |file: &PathBuf| fs::read_link(file).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    files.flatten().map(|entry| entry.path()).filter(is_socket).count()
}

/// Time between two bytes of a slow caller.
const DRIP: Duration = Duration::from_millis(20);

#[test]
fn slow_bodies_are_given_up_and_delay_no_other_caller() {
    let server = Server::configured("[limits]\nbody_seconds = 2\n");
    let body = request("slow", "echo", &json!({"text": "x".repeat(500)}));
    let mut slow: Vec<TcpStream> = [SYNC, STREAM]
        .iter()
        .cycle()
        .take(100)
        .map(|path| {
            let mut stream = server.connect();
            stream.write_all(head("POST", path, &[], body.len()).as_bytes()).expect("it can be sent");
            stream
        })
        .collect();
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        let body = &body;
        scope.spawn(move || {
            // One byte at a time, and never all of them, for as long as the others are served.
            for byte in &body.as_bytes()[..body.len() - 1] {
                slow.iter_mut().for_each(|stream| drop(stream.write_all(&[*byte])));
                if is_done.recv_timeout(DRIP) == Ok(()) {
                    break;
                }
            }
            for stream in slow {
                refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 408, "TIMEOUT");
            }
        });
        for number in 0..20 {
            serves(&server, &format!("good-{number}"));
        }
        done.send(()).expect("the slow callers wait");
    });
    assert_eq!(server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len), Some(20));
}

#[test]
fn bodies_over_the_limit_are_refused_however_they_come() {
    let server = Server::configured("[limits]\nbody_bytes = 10000\n");
    for path in [SYNC, STREAM] {
        // A body that is announced and never sent.
        let mut stream = server.connect();
        stream.write_all(head("POST", path, &[], 1 << 40).as_bytes()).expect("it can be sent");
        refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 413, "VALIDATION_ERROR");
        // A body that is sent, and much larger than allowed.
        let body = request("large", "echo", &json!({"text": "x".repeat(3 << 20)}));
        refused(&server.post(path, &body), 413, "VALIDATION_ERROR");
        // A body that is not announced and never ends.
        let mut stream = server.connect();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it can be sent");
        for _ in 0..11 {
            stream.write_all(format!("3e8\r\n{}\r\n", "x".repeat(1000)).as_bytes()).expect("it can be sent");
        }
        refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 413, "VALIDATION_ERROR");
        serves(&server, path);
    }
}

#[test]
fn callers_may_leave_at_every_byte_of_a_request() {
    let server = Server::start();
    let sockets_before = sockets(&server);
    for path in [SYNC, STREAM] {
        let body = request(path, "slow_echo", &json!({"seconds": 0.05}));
        let whole = head("POST", path, &[], body.len()) + &body;
        for end in 0..=whole.len() {
            let mut stream = server.connect();
            stream.write_all(&whole.as_bytes()[..end]).expect("it can be sent");
            match end % 3 {
                0 => drop(stream),
                // The caller says that it will send nothing more, and still listens.
                1 => stream.shutdown(Shutdown::Write).expect("it can be shut"),
                // The caller leaves while it is being answered.
                _ => drop(stream.shutdown(Shutdown::Both)),
            }
        }
        assert_eq!(server.run_sync(&body).json()["ok"], true);
    }
    until("nothing is left of them", || (sockets(&server) <= sockets_before).then_some(()));
    serves(&server, "after");
    let jobs = server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(jobs, Some(3), "whole requests are runs, and each is one");
    assert!(!server.log().contains("panic"), "{}", server.log());
}

#[test]
fn callers_may_leave_at_every_byte_of_a_stream() {
    let server = Server::start();
    let body = request("r", "slow_echo", &json!({"seconds": 0.3}));
    let whole = head("POST", STREAM, &[], body.len()) + &body;
    let sockets_before = sockets(&server);
    let read_up_to = |bytes: usize| {
        let mut stream = server.connect();
        stream.write_all(whole.as_bytes()).expect("it can be sent");
        let mut read = Vec::new();
        stream.take(bytes as u64).read_to_end(&mut read).expect("it is read");
        read.len()
    };
    // While the run is under way, and when it has ended.
    thread::scope(|scope| {
        for end in (0..400).step_by(10) {
            scope.spawn(move || read_up_to(end));
        }
    });
    assert_eq!(server.run_sync(&body).status, 200);
    let length = read_up_to(usize::MAX);
    assert!(length > 300, "{length}");
    for end in 0..=length {
        assert_eq!(read_up_to(end), end);
    }
    until("nothing is left of them", || (sockets(&server) <= sockets_before).then_some(()));
    let jobs = server.get("/api/v1/jobs").json()["jobs"].as_array().cloned().expect("a list");
    assert_eq!((jobs.len(), &jobs[0]["attempts"]), (1, &json!(1)), "it was one run, begun once");
    assert!(!server.log().contains("panic"), "{}", server.log());
}

/// More than the system buffers for a caller that does not read.
const LONG_BYTES: usize = 6 << 20;

/// A caller that asks for much and reads nothing keeps neither a connection nor the outcome for ever.
#[test]
fn a_caller_that_takes_nothing_of_a_stream_loses_the_connection() {
    let server = Server::configured("[limits]\nwrite_seconds = 0.5\n");
    let body = request("r", "echo", &json!({"text": "x".repeat(LONG_BYTES)}));
    let sockets_before = sockets(&server);
    let mut stream = server.connect();
    stream.write_all((head("POST", STREAM, &[], body.len()) + &body).as_bytes()).expect("it can be sent");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("it is answered");
    assert_eq!(&status, b"HTTP/1.1 200");
    until("the connection is closed", || (sockets(&server) <= sockets_before).then_some(()));
    serves(&server, "after");
    let jobs = server.get("/api/v1/jobs").json();
    let kept = jobs["jobs"].as_array().and_then(|jobs| jobs.iter().find(|job| job["request_id"] == "r")).cloned();
    let bytes = kept.expect("it is there")["outcome"]["bytes"].as_u64();
    assert!(bytes >= Some(LONG_BYTES as u64), "the outcome is there all the same: {bytes:?}");
}

const CROWD: usize = 10_000;

/// Most memory of the server for the whole crowd, in KiB.
const CROWD_KIB_MAX: u64 = 200 << 10;

#[test]
fn ten_thousand_streams_that_wait_take_less_than_200_mb_and_each_has_its_end() {
    let files = CROWD as u64 + 500;
    let allowed = rlimit::increase_nofile_limit(files).unwrap_or_default();
    assert!(
        allowed >= files,
        "this test needs {files} open files, and the system allows {allowed}: raise `ulimit -Hn`"
    );
    let mut server = Server::configured(&format!(
        "[server]\nlog = \"warn\"\ndrain_seconds = 60\n[limits]\nconnections = {}\n",
        CROWD + 100
    ));
    let mut crowd: Vec<(String, TcpStream, Vec<u8>)> = Vec::with_capacity(CROWD);
    while crowd.len() < CROWD {
        let begun = crowd.len();
        for number in begun..begun + 250 {
            let id = format!("idle-{number}");
            let body = request(&id, "ask", &json!({"prompt": "How long?"}));
            let mut stream = server.connect();
            stream.write_all((head("POST", STREAM, &[], body.len()) + &body).as_bytes()).expect("it can be sent");
            crowd.push((id, stream, Vec::new()));
        }
        for (_, stream, text) in &mut crowd[begun..] {
            read_until(stream, text, b"\"question\"");
        }
    }
    let kib = resident_kib(&server);
    assert!(kib < CROWD_KIB_MAX, "{CROWD} streams that wait take {kib} KiB");
    // Other callers are served, and so is any of the crowd.
    serves(&server, "beside");
    let job = server.get("/api/v1/jobs?state=waiting&limit=1").json()["jobs"][0].clone();
    server.cancel(job["id"].as_str().expect("an id"));
    server.signal("TERM");
    let mut ends = [0, 0];
    for (id, mut stream, mut text) in crowd {
        stream.read_to_end(&mut text).expect("it is closed");
        let events = unframed(&text);
        faultless(&events, Kind::RunStream);
        let events = String::from_utf8(events).expect("it is text");
        assert_eq!(events.matches("event: final\n").count(), 1, "{id}: {events}");
        assert!(events.contains(&format!("\"request_id\":\"{id}\"")), "{events}");
        ends[usize::from(events.contains("\"CANCELLED\""))] += 1;
    }
    assert_eq!(ends, [CROWD - 1, 1], "one was cancelled, and the server stopped under the others");
    assert_eq!(server.wait().code(), Some(0));
}

fn resident_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn read_until(stream: &mut TcpStream, text: &mut Vec<u8>, wanted: &[u8]) {
    let mut some = [0; 1024];
    while !text.windows(wanted.len()).any(|window| window == wanted) {
        let read = stream.read(&mut some).expect("it is read");
        assert!(read > 0, "it ended early: {}", String::from_utf8_lossy(text));
        text.extend_from_slice(&some[..read]);
    }
}

/// The body of an answer in chunks.
fn unframed(text: &[u8]) -> Vec<u8> {
    Answer::read(&mut BufReader::new(text)).expect("it is whole").body
}

/// Nonsense documents of every kind. None of them is a request.
fn nonsense() -> Vec<Vec<u8>> {
    let good = request("flood", "echo", &json!({"text": "é\n", "n": [1, 2.5, null, {"a": true}]}));
    let mut all: Vec<Vec<u8>> = (0..good.len()).map(|end| good.as_bytes()[..end].to_vec()).collect();
    for at in 0..good.len() {
        // No control character is allowed in JSON except white space.
        let mut bytes = good.clone().into_bytes();
        bytes[at] = 0x01;
        all.push(bytes);
    }
    let nested =
        |levels: usize| format!("{{\"request_id\":\"r\",\"task_type\":\"echo\",\"inputs\":{}", "[".repeat(levels));
    all.extend([nested(100), nested(128), nested(100_000)].map(String::into_bytes));
    all.push(format!("{{{}}}", vec!["\"request_id\":1"; 5_000].join(",")).into_bytes());
    all.push(vec![0xff; 1_000]);
    let broken = fs::read_dir(root().join("testdata/broken/all")).expect("it is there");
    let files: Vec<PathBuf> = broken.flatten().map(|entry| entry.path()).collect();
    all.extend(
        files
            .iter()
            .filter(|file| file.extension().is_some_and(|end| end == "json"))
            .map(|file| fs::read(file).expect("it can be read")),
    );
    all
}

#[test]
fn a_flood_of_nonsense_is_refused_piece_by_piece_and_the_rest_is_served() {
    let server = Server::start();
    let (nonsense, next) = (nonsense(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for caller in 0..4 {
            let (server, nonsense, next) = (&server, &nonsense, &next);
            scope.spawn(move || {
                while let Some(body) = nonsense.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let path = if caller % 2 == 0 { SYNC } else { STREAM };
                    let answer = server.request("POST", path, &[], body);
                    assert!((400..500).contains(&answer.status), "{answer:?}");
                    let document: Value = answer.json();
                    assert_eq!((&document["ok"], &document["outputs"]), (&json!(false), &json!({})));
                    assert!(document["error"]["details"]["clause"].is_string(), "{document}");
                    faultless(&answer.body, Kind::RunResponse);
                }
            });
        }
        for number in 0.. {
            serves(&server, &format!("good-{number}"));
            if next.load(Ordering::Relaxed) >= nonsense.len() {
                break;
            }
        }
    });
    assert_eq!(server.get("/health/ready").status, 200);
    assert!(!server.log().contains("panic"), "{}", server.log());
}
