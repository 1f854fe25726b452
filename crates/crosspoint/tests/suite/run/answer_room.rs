//! Many agents with long answers at once: they share the room for answers, and others are answered meanwhile.

use std::io::Write;

use serde_json::json;

use crate::native::metrics::refusals;
use crate::support::misbehaving_agents::peak_mib;
use crate::support::scripted_agent::{After, Connection, Request, STREAM_HEAD, ScriptedAgent};
use crate::support::server::{Server, until};

/// How many answers never end.
const ANSWERS: usize = 20;

/// How much of each is sent, in MiB. All of them together are many times the room.
const SENT_MIB: usize = 8;

/// The room for answers, in MiB, and most memory of the server: an idle one, the room, and the one answer that may go
/// on without room, a few times over while they are gathered.
const ROOM_MIB: usize = 8;
const MEMORY_MAX_MIB: u64 = 128;

/// Sends much of an outcome, and then nothing more.
fn endless(asked: &Request, connection: &mut Connection) -> After {
    if asked.agent == "short" {
        return connection.stream(&[asked.started(), asked.final_event("short")]);
    }
    connection.send(STREAM_HEAD.to_owned() + &asked.started() + "event: final\ndata: \"");
    connection.flood(&[b'a'; 1 << 16], (SENT_MIB as u64) << 20);
    connection.until_gone()
}

#[test]
fn answers_without_an_end_share_their_room_and_others_are_answered() {
    let scripted = ScriptedAgent::start_many(endless);
    let long = scripted.agent("run", "long", &format!("concurrency = {ANSWERS}\ntotal_seconds = 60"));
    let short = scripted.agent("run", "short", "");
    let server = Server::configured(&format!("[limits]\nanswers_bytes = {}\n{long}{short}", ROOM_MIB << 20));
    let jobs: Vec<String> =
        (0..ANSWERS).map(|_| server.submit(r#"{"work":"long"}"#)["id"].as_str().expect("an id").to_owned()).collect();
    // All but those that the room is enough for, and the one that goes on without, come to wait.
    let waiting = (ANSWERS - ROOM_MIB / SENT_MIB - 2) as f64;
    until("they wait for room", || (refusals(&server, "answers_bytes") >= waiting).then_some(()));
    for _ in 0..10 {
        let done = server.post("/api/v1/jobs?wait=60", r#"{"work":"short"}"#).json();
        assert_eq!(done["outcome"]["outputs"], json!({"by": "short"}), "{done}");
    }
    let peak = peak_mib(&server);
    let _ = writeln!(std::io::stdout().lock(), "{} MiB were sent, {peak} MiB at the most", ANSWERS * SENT_MIB);
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    // A job that is given up gives its room to others.
    for job in jobs {
        server.post(&format!("/api/v1/jobs/{job}/cancel"), "");
        assert_eq!(server.ended(&job)["outcome"]["status"], "cancelled");
    }
}
