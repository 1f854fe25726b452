//! Run agents that send too little, too slowly, or too much: the clocks end the job, and the server's memory does not
//! grow.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::misbehaving_agents::{Case, Setup, clauses, peak_mib};
use crate::support::scripted_agent::{After, CHUNKED_STREAM_HEAD, Connection, Request, STREAM_HEAD, chunk};

/// Time between two bytes of a slow agent, which is far less than it may be silent.
const DRIP: Duration = Duration::from_millis(20);

/// Most memory of a server, in MiB, whatever an agent sends: an idle server, two answers of the longest default length,
/// each a few times over while it is gathered, and what an allocator keeps.
const MEMORY_MAX_MIB: u64 = 384;

/// Amount that an agent tries to send, in MiB; `CROSSPOINT_BODY_MIB` sets more.
const BODY_MIB: u64 = 1024;

fn body_bytes() -> u64 {
    let asked = std::env::var("CROSSPOINT_BODY_MIB").ok().and_then(|mib| mib.parse().ok());
    asked.unwrap_or(BODY_MIB) << 20
}

#[test]
fn silence_ends_an_attempt_and_any_byte_is_life() {
    static CASES: [Case; 5] = [
        Case { name: "continues_on", keys: QUIET, script: continues_on, ends: "timeout", clause: Some("ALL-4") },
        Case { name: "silent", keys: QUIET, script: silent, ends: "timeout", clause: Some("ALL-4") },
        Case { name: "falls_silent", keys: QUIET, script: falls_silent, ends: "timeout", clause: Some("ALL-4") },
        Case { name: "drips", keys: "silence_seconds = 2", script: drips, ends: "completed", clause: None },
        Case { name: "comments", keys: "silence_seconds = 2", script: comments, ends: "completed", clause: None },
    ];
    let setup = Setup::start("run", &CASES);
    setup.run_all();
    for case in &CASES {
        assert_eq!(
            setup.scripted.requests_of(case.name).iter().filter(|asked| asked.turn > 1).count(),
            0,
            "{}",
            case.name
        );
    }
}

const QUIET: &str = "silence_seconds = 1";

fn silent(_: &Request, connection: &mut Connection) -> After {
    connection.until_gone()
}

fn falls_silent(asked: &Request, connection: &mut Connection) -> After {
    connection.send(STREAM_HEAD.to_owned() + &asked.started() + &asked.progress(50));
    connection.until_gone()
}

/// Sends only interim answers, which mean nothing.
fn continues_on(_: &Request, connection: &mut Connection) -> After {
    while connection.send_after(DRIP, "HTTP/1.1 100 Continue\r\n\r\n") {}
    After::Close
}

/// Sends one byte after the other, for longer than it may be silent.
fn drips(asked: &Request, connection: &mut Connection) -> After {
    connection.send(STREAM_HEAD);
    connection.drip(&(asked.started() + &asked.final_event(&asked.agent)), DRIP);
    After::Close
}

/// Sends nothing but comments, for longer than it may be silent.
fn comments(asked: &Request, connection: &mut Connection) -> After {
    connection.send(STREAM_HEAD.to_owned() + &asked.started());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) && connection.send_after(DRIP, ": still here\n\n") {}
    connection.send(asked.final_event(&asked.agent));
    After::Close
}

#[test]
fn an_agent_that_never_comes_to_an_end_is_ended_by_the_total_time() {
    static CASES: [Case; 4] = [
        Case { name: "silent_body", keys: SHORT, script: silent_body, ends: "timeout", clause: Some("ALL-4.2") },
        Case { name: "drips_on", keys: SHORT, script: drips_on, ends: "timeout", clause: Some("ALL-4.2") },
        Case { name: "comments_on", keys: SHORT, script: comments_on, ends: "timeout", clause: Some("ALL-4.2") },
        Case { name: "drips_a_body", keys: SHORT, script: drips_a_body, ends: "timeout", clause: Some("ALL-4.2") },
    ];
    let setup = Setup::start("run", &CASES);
    for one in setup.run_all() {
        let message = &one.job["outcome"]["failure"]["message"];
        assert_eq!(message, "The job took longer than it was allowed in all.", "{}", one.name);
    }
}

const SHORT: &str = "silence_seconds = 2\ntotal_seconds = 3";

/// An agent that answers in one piece cannot show that it is alive: only the total time counts.
fn silent_body(asked: &Request, connection: &mut Connection) -> After {
    if asked.wants_stream() {
        return connection.json(404, &json!({}));
    }
    connection.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{");
    connection.until_gone()
}

fn drips_on(asked: &Request, connection: &mut Connection) -> After {
    connection.send(STREAM_HEAD.to_owned() + &asked.started());
    while connection.drip(&asked.progress(1), DRIP) {}
    After::Close
}

fn comments_on(asked: &Request, connection: &mut Connection) -> After {
    connection.send(STREAM_HEAD.to_owned() + &asked.started());
    while connection.drip(":\n", DRIP) {}
    After::Close
}

fn drips_a_body(asked: &Request, connection: &mut Connection) -> After {
    if asked.wants_stream() {
        return connection.json(405, &json!({}));
    }
    connection.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    while connection.drip("1\r\n \r\n", DRIP) {}
    After::Close
}

/// Number of bytes that the floods of one test have sent to servers.
static FLOODED: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_stream_that_never_ends_is_ended_by_the_total_time_and_costs_no_memory() {
    static CASES: [Case; 2] = [
        Case {
            name: "progress_for_ever",
            keys: TIMED,
            script: progress_for_ever,
            ends: "timeout",
            clause: Some("ALL-4.2"),
        },
        Case {
            name: "events_for_ever",
            keys: TIMED,
            script: events_for_ever,
            ends: "timeout",
            clause: Some("ALL-4.2"),
        },
    ];
    let setup = Setup::start("run", &CASES);
    let ended = setup.run_all();
    let peak = peak_mib(&setup.server);
    let sent = FLOODED.load(Ordering::SeqCst) >> 20;
    let _ = writeln!(std::io::stdout().lock(), "{sent} MiB of events, {peak} MiB at the most");
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    for one in &ended {
        let id = one.job["id"].as_str().expect("an id");
        let events = setup.server.get(&format!("/api/v1/jobs/{id}/events")).text();
        // Ten per second are shown, and some more on a slow machine. Very many more were sent.
        let shown = events.matches("event: progress").count();
        assert!(shown < 200, "{}: {shown} events of progress", one.name);
        assert!(clauses(&one.job).len() <= 100, "{}", one.name);
    }
}

const TIMED: &str = "total_seconds = 3";

fn progress_for_ever(asked: &Request, connection: &mut Connection) -> After {
    let many: String = (0..100).map(|percent| asked.progress(percent)).collect();
    flood(connection, STREAM_HEAD.to_owned() + &asked.started(), many.as_bytes(), u64::MAX)
}

/// None of these events means anything, and each breaks a rule.
fn events_for_ever(asked: &Request, connection: &mut Connection) -> After {
    let many = "event: progress\ndata: {\n\nevent: final\ndata: {}\n\n".repeat(100);
    flood(connection, STREAM_HEAD.to_owned() + &asked.started(), many.as_bytes(), u64::MAX)
}

fn flood(connection: &mut Connection, head: String, bytes: &[u8], at_most: u64) -> After {
    connection.send(head);
    connection.flood(bytes, at_most);
    FLOODED.fetch_add(connection.written, Ordering::SeqCst);
    After::Close
}

#[test]
fn what_is_too_long_is_not_read_to_its_end() {
    // With this limit all agents at once cost little. One agent has the default limit.
    const LITTLE: &str = "output_bytes = 1000000";
    const LONG: Option<&str> = Some("ALL-145");
    static CASES: [Case; 7] = [
        Case { name: "long_body", keys: LITTLE, script: long_body, ends: "resource_limit", clause: LONG },
        Case {
            name: "long_chunked_body",
            keys: LITTLE,
            script: long_chunked_body,
            ends: "resource_limit",
            clause: LONG,
        },
        Case { name: "one_long_line", keys: LITTLE, script: one_long_line, ends: "resource_limit", clause: LONG },
        Case { name: "one_long_name", keys: LITTLE, script: one_long_name, ends: "resource_limit", clause: LONG },
        Case { name: "many_long_lines", keys: LITTLE, script: many_long_lines, ends: "resource_limit", clause: LONG },
        Case { name: "one_long_line_too_many", keys: "", script: one_long_line, ends: "resource_limit", clause: LONG },
        Case { name: "long_refusal", keys: LITTLE, script: long_refusal, ends: "agent_failed", clause: LONG },
    ];
    let setup = Setup::start("run", &CASES);
    setup.run_all();
    let peak = peak_mib(&setup.server);
    let (sent, wanted) = (FLOODED.load(Ordering::SeqCst) >> 20, (body_bytes() >> 20) * 2 * CASES.len() as u64);
    let _ = writeln!(std::io::stdout().lock(), "{sent} of {wanted} MiB were taken, {peak} MiB at the most");
    assert!(sent < wanted, "they were read to their end");
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
}

fn long_body(asked: &Request, connection: &mut Connection) -> After {
    if asked.wants_stream() {
        return connection.json(501, &json!({}));
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{{\"request_id\": \"",
        body_bytes()
    );
    flood(connection, head, &[b'a'; 1 << 16], body_bytes())
}

fn long_chunked_body(asked: &Request, connection: &mut Connection) -> After {
    if asked.wants_stream() {
        return connection.json(501, &json!({}));
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    flood(connection, head, &chunk([b' '; 1 << 16]), body_bytes())
}

fn one_long_line(asked: &Request, connection: &mut Connection) -> After {
    flood(
        connection,
        STREAM_HEAD.to_owned() + &asked.started() + "event: final\ndata: \"",
        &[b'a'; 1 << 16],
        body_bytes(),
    )
}

fn one_long_name(asked: &Request, connection: &mut Connection) -> After {
    flood(connection, STREAM_HEAD.to_owned() + &asked.started() + "event: ", &[b'a'; 1 << 16], body_bytes())
}

/// One event of many lines, in chunks.
fn many_long_lines(asked: &Request, connection: &mut Connection) -> After {
    let line = "data: ".to_owned() + &"1,".repeat(1 << 15) + "\n";
    let head = CHUNKED_STREAM_HEAD.to_owned();
    connection.send(head);
    connection.send(chunk((asked.started() + "event: final\ndata: [\n").as_bytes()));
    flood(connection, String::new(), &chunk(line.as_bytes()), body_bytes())
}

fn long_refusal(_: &Request, connection: &mut Connection) -> After {
    let head = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".to_owned();
    flood(connection, head, &[b'a'; 1 << 16], body_bytes())
}
