//! Too much of anything is refused, in the one shape of refusals, and nothing of it is done.

use std::io::{BufReader, Read, Write};
use std::thread;

use serde_json::{Value, json};

use crate::native::metrics::{measured, refusals};
use crate::support::server::{Answer, Server, head, until};

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, repeat: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!((&error["code"], &error["repeat"]), (&json!(code), &json!(repeat)), "{error}");
    assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
    if [429, 503].contains(&status) {
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
}

fn job_of(bytes: usize) -> String {
    let rest = r#"{"work":"echo","input":""}"#.len();
    format!(r#"{{"work":"echo","input":"{}"}}"#, "x".repeat(bytes - rest))
}

#[test]
fn a_body_that_is_too_large_is_refused_early_and_one_that_just_fits_is_not() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\n");
    assert_eq!(server.post("/api/v1/jobs?wait=60", &job_of(2000)).status, 200);
    refused(&server.post("/api/v1/jobs", &job_of(2001)), 413, "resource_limit", "never");
    // Only the head is sent: the announced length is enough for a refusal.
    let mut stream = server.connect();
    stream.write_all(head("POST", "/api/v1/jobs", &[], 1 << 40).as_bytes()).expect("it can be sent");
    refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 413, "resource_limit", "never");
    // No length is announced, and the end never comes.
    let mut stream = server.connect();
    let head = "POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it can be sent");
    for _ in 0..3 {
        stream.write_all(format!("3e8\r\n{}\r\n", "x".repeat(1000)).as_bytes()).expect("it can be sent");
    }
    refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 413, "resource_limit", "never");
}

#[test]
fn a_caller_that_sends_much_too_much_still_gets_the_answer() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\n");
    refused(&server.post("/api/v1/jobs", &job_of(3_000_000)), 413, "resource_limit", "never");
    refused(&server.post("/api/v1/nothing", &job_of(3_000_000)), 404, "invalid", "never");
    assert_eq!(refusals(&server, "body_bytes"), 1.0);
}

#[test]
fn a_body_in_pieces_is_read_as_one() {
    let server = Server::start();
    let mut stream = server.connect();
    let head = "POST /api/v1/jobs?wait=60 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it can be sent");
    for piece in [r#"{"work":"#, r#""echo","input":["#, "1,2", "]}"] {
        stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).expect("it can be sent");
    }
    stream.write_all(b"0\r\n\r\n").expect("it can be sent");
    let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
    assert_eq!((answer.status, &answer.json()["outcome"]["outputs"]), (200, &json!([1, 2])));
}

/// Looking at every flaw for every member would take hours here.
#[test]
fn many_members_and_many_repeated_names_are_read_in_one_go() {
    let server = Server::start();
    let unknown: String = (0..150_000).map(|n| format!("\"member{n}\":0,")).collect();
    let repeated = vec!["\"a\":0"; 300_000].join(",");
    let body = |input: &str| format!("{{{unknown}\"work\":\"echo\",\"input\":{{{input}}}}}");
    let twice = body(&repeated);
    assert!(twice.len() > 4 << 20, "{}", twice.len());
    refused(&server.post("/api/v1/jobs", &twice), 400, "invalid", "never");
    let once = body("");
    assert_eq!(server.post("/api/v1/jobs?wait=60", &once).status, 200);
    let twice = server.post("/api/v1/jobs", &once.replacen("\"member0\"", "\"member1\"", 1));
    refused(&twice, 400, "invalid", "never");
}

#[test]
fn bodies_that_together_are_too_much_are_refused() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\nbodies_bytes = 2000\n");
    let body = job_of(2000);
    let request = head("POST", "/api/v1/jobs", &[], body.len()) + &body[..1900];
    // The two meet only if the first has been read and the second comes before the first is given up, so this is tried
    // again.
    let (held, answer) = until("there is no room", || {
        let mut held = server.connect();
        held.write_all(request.as_bytes()).expect("it can be sent");
        Some((held, server.post("/api/v1/jobs", &job_of(500)))).filter(|(_, answer)| answer.status >= 400)
    });
    refused(&answer, 503, "unavailable", "safe");
    drop(held);
    assert!(refusals(&server, "bodies_bytes") >= 1.0);
    until("there is room again", || (server.post("/api/v1/jobs", &job_of(2000)).status < 400).then_some(()));
}

#[test]
fn a_body_and_a_head_that_never_come_are_given_up() {
    let server = Server::configured("[limits]\nheader_seconds = 1\nbody_seconds = 1\n");
    let mut stream = server.connect();
    stream.write_all((head("POST", "/api/v1/jobs", &[], 100) + "{").as_bytes()).expect("it can be sent");
    refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 408, "timeout", "safe");
    let mut stream = server.connect();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: te").expect("it can be sent");
    refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 408, "timeout", "safe");
    let mut silent = server.connect();
    let mut said = Vec::new();
    silent.read_to_end(&mut said).expect("it is closed");
    assert_eq!(said, b"", "a caller that said nothing is told nothing");
    assert_eq!((refusals(&server, "body_seconds"), refusals(&server, "header_seconds")), (1.0, 1.0));
}

#[test]
fn more_jobs_than_may_live_are_refused_until_one_ends() {
    let server = Server::configured("[limits]\njobs = 2\njobs_per_work = 2\njobs_per_agent = 2\n");
    let jobs = [1, 2].map(|_| server.submit(r#"{"work":"ask"}"#)["id"].as_str().map(str::to_owned));
    refused(&server.post("/api/v1/jobs", r#"{"work":"echo"}"#), 429, "resource_limit", "safe");
    let repeat = server.post("/api/v1/jobs", r#"{"work":"nothing"}"#);
    assert_eq!(repeat.status, 400, "what would never be accepted is said so");
    server.post(&format!("/api/v1/jobs/{}/cancel", jobs[0].as_deref().expect("an id")), "");
    assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status, 200);
    assert_eq!(refusals(&server, "jobs"), 1.0);
}

#[test]
fn more_requests_than_may_wait_are_refused_and_nothing_of_them_is_done() {
    let server = Server::configured("[limits]\nwaiting = 1\n");
    let mut accepted = 0;
    until("some meet in the queue", || {
        let send = || server.post("/api/v1/jobs", r#"{"work":"ask"}"#);
        let answers: Vec<Answer> = thread::scope(|scope| {
            let senders: Vec<_> = (0..16).map(|_| scope.spawn(send)).collect();
            senders.into_iter().map(|sender| sender.join().expect("it was answered")).collect()
        });
        let (taken, turned): (Vec<Answer>, Vec<Answer>) = answers.into_iter().partition(|answer| answer.status == 202);
        accepted += taken.len();
        for answer in &turned {
            refused(answer, 503, "unavailable", "safe");
        }
        (!turned.is_empty()).then(|| assert_eq!(refusals(&server, "waiting"), turned.len() as f64))
    });
    let listed = server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(listed, Some(accepted.min(500)));
}

#[test]
fn more_connections_than_may_be_are_told_so() {
    let server = Server::configured("[limits]\nconnections = 2\n");
    let held = [server.connect(), server.connect()];
    // The connections may not have been accepted yet when the third comes.
    let answer = until("there is no place", || Some(server.get("/health")).filter(|answer| answer.status != 200));
    refused(&answer, 503, "unavailable", "safe");
    drop(held);
    until("there is a place again", || (server.get("/health").status == 200).then_some(()));
    assert!(refusals(&server, "connections") >= 1.0);
}

#[test]
fn even_a_crowd_is_told_so_and_the_log_counts_it() {
    let mut server = Server::configured("[limits]\nconnections = 1\n");
    let held = server.connect();
    until("there is no place", || (server.get("/health").status == 503).then_some(()));
    // More connections than the server listens to after refusing them. None of them sends anything.
    let crowd: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for stream in crowd {
        refused(&Answer::read(&mut BufReader::new(stream)).expect("it is answered"), 503, "unavailable", "safe");
    }
    drop(held);
    server.stop();
    let counts: Vec<u64> = server.log().lines().filter_map(|line| counted(line, "callers were turned away")).collect();
    assert!(!counts.is_empty() && counts.len() < 100, "{}", server.log());
}

/// The number that a line of the log with this message gives.
fn counted(line: &str, message: &str) -> Option<u64> {
    let (_, rest) = line.split_once("count=").filter(|_| line.contains(message))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_caller_that_takes_nothing_of_an_answer_loses_the_connection() {
    let server = Server::configured("[limits]\nconnections = 1\nwrite_seconds = 0.2\n");
    // More than the system buffers for a caller that does not read.
    let body = format!(r#"{{"work":"ask","padding":"{}"}}"#, "x".repeat(12 << 20));
    let job = server.submit(&body)["id"].as_str().expect("an id").to_owned();
    let mut idle = until("there is a place", || {
        let mut stream = server.connect();
        stream.write_all(head("GET", &format!("/api/v1/jobs/{job}/document"), &[], 0).as_bytes()).ok()?;
        // Only the head is read.
        let mut status = [0; 12];
        stream.read_exact(&mut status).ok()?;
        (&status == b"HTTP/1.1 200").then_some(stream)
    });
    until("its place is free", || (server.get("/health").status == 200).then_some(()));
    let mut rest = Vec::new();
    let ended = idle.read_to_end(&mut rest);
    assert!(ended.is_err() || rest.len() < body.len(), "{} bytes came", rest.len());
    assert_eq!(refusals(&server, "write_seconds"), 1.0);
}

#[test]
fn a_store_that_is_full_refuses_work_and_says_so_and_keeps_what_it_has() {
    let server = Server::configured("[limits]\nstore_bytes = 1000000\n");
    let first = server.post("/api/v1/jobs?wait=60", &job_of(1000)).json();
    let answer = until("it is full", || {
        Some(server.post("/api/v1/jobs", &job_of(100_000))).filter(|answer| ![200, 202].contains(&answer.status))
    });
    refused(&answer, 503, "unavailable", "safe");
    assert!(!answer.text().contains("jobs.db"), "callers are not told where the store is: {}", answer.text());
    let ready = until("it says so", || Some(server.get("/health/ready")).filter(|ready| ready.status == 503)).json();
    assert_eq!((&ready["status"], ready["reason"].is_string()), (&json!("failing"), true));
    assert_eq!(server.get("/health").status, 200);
    assert!(refusals(&server, "store_bytes") >= 1.0);
    assert!(measured(&server, "crosspoint_commits_failed_total", &[]) >= 1.0);
    let shown: Value = server.job(first["id"].as_str().expect("an id"));
    assert_eq!(shown, first);
}

#[test]
fn one_connection_serves_many_requests_and_what_is_no_http_is_refused() {
    let server = Server::start();
    let mut stream = server.connect();
    // Two at once: they are answered in order.
    stream
        .write_all(
            b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\nGET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n",
        )
        .expect("sent");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be shared"));
    for word in ["ok", "ready"] {
        assert_eq!(Answer::read(&mut reader).expect("it is answered").json()["status"], word);
    }
    stream.write_all(b"what is this\r\n\r\n").expect("sent");
    assert_eq!(Answer::read(&mut reader).expect("it is answered").status, 400);
}
