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

/// The head of a document that ends with its connection.
const DOCUMENT_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";

/// The room for answers, in MiB, and most memory of the server: an idle one, the room, and the one answer that may go
/// on without room, a few times over while they are gathered. Without a limit it is over 400 MiB.
const ROOM_MIB: usize = 8;
const MEMORY_MAX_MIB: u64 = 192;

/// Sends much of an outcome, as an event or as a document, and then nothing more.
fn endless(asked: &Request, connection: &mut Connection) -> After {
    match &*asked.agent {
        "short" => return connection.stream(&[asked.started(), asked.final_event("short")]),
        "document" if asked.wants_stream() => return connection.json(404, &json!({})),
        "document" => connection.send(DOCUMENT_HEAD.to_owned() + "{\"request_id\": \""),
        _ => connection.send(STREAM_HEAD.to_owned() + &asked.started() + "event: final\ndata: \""),
    };
    connection.flood(&[b'a'; 1 << 16], (SENT_MIB as u64) << 20);
    connection.until_gone()
}

#[test]
fn answers_without_an_end_share_their_room_and_others_are_answered() {
    let scripted = ScriptedAgent::start_many(endless);
    let agents = ["event", "document", "short"].map(|name| scripted.agent("run", name, "total_seconds = 60"));
    let server = Server::configured(&format!("[limits]\nanswers_bytes = {}\n{}", ROOM_MIB << 20, agents.concat()));
    let submit = |work: &str| server.submit(&json!({"work": work}).to_string())["id"].as_str().map(str::to_owned);
    let works = ["event", "document"].into_iter().cycle().take(ANSWERS);
    let jobs: Vec<String> = works.map(|work| submit(work).expect("an id")).collect();
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
