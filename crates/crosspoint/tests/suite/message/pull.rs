//! Agents that ask for their messages (MSG-14).

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::message_post::{pulling, result, status};
use crate::support::misbehaving_agents::clauses;
use crate::support::server::{Server, until, within};

/// A server with one agent that pulls, which has been there.
fn puller(keys: &str) -> Server {
    let server = Server::configured(&pulling("puller", keys));
    assert!(server.polled("agent=puller&max=100").is_empty());
    server
}

/// Begins some jobs, each once the one before is on its way, so that they are in order.
fn begin(server: &Server, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| {
            let id = server.begin("puller");
            server.in_state(&id, "running");
            id
        })
        .collect()
}

fn ids(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["request_id"].as_str().expect("an id")).collect()
}

#[test]
fn a_poll_gets_whole_messages_and_a_reply_ends_the_work() {
    let server = puller("");
    let id = begin(&server, 1).remove(0);
    let given = server.pulled("puller");
    assert_eq!((&given["type"], &given["payload"]["task_id"]), (&json!("work_request"), &json!(id)), "{given:#}");
    server.takes(&status(&given, 30));
    server.takes(&result(&given, "done"));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("done"), &json!(1)), "{job:#}");
    assert!(clauses(&job).is_empty(), "{job:#}");
    assert!(server.polled("agent=puller").is_empty(), "what has ended is not given again");
}

#[test]
fn what_was_given_is_not_given_again_at_once_whether_or_not_it_is_acknowledged() {
    let server = puller("concurrency = 4");
    begin(&server, 4);
    let given = server.polled("agent=puller&max=4");
    assert_eq!(given.len(), 4);
    let text = |at: usize, name: &str| given[at][name].as_str().expect("an id").to_owned();
    // By the message, by the request, and by a reply.
    let acks = format!("agent=puller&max=4&ack={},{},no-id", text(0, "message_id"), text(1, "request_id"));
    assert!(server.polled(&acks).is_empty());
    server.takes(&status(&given[2], 10));
    assert!(server.polled("agent=puller&max=4").is_empty());
    for message in &given {
        server.takes(&result(message, "done"));
    }
}

#[test]
fn an_acknowledgement_is_a_sign_of_life_and_no_work() {
    const SILENCE: Duration = Duration::from_millis(1_500);
    let server = puller("silence_seconds = 1.5");
    let id = server.begin_once("puller");
    let given = server.pulled("puller");
    let has_ended = || server.job(&id)["outcome"].is_object().then_some(());
    assert!(within(SILENCE / 2, has_ended).is_none());
    let acknowledged = Instant::now();
    server.polled(&format!("agent=puller&ack={}", given["message_id"].as_str().expect("an id")));
    let job = server.over(&id);
    assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job:#}");
    assert!(acknowledged.elapsed() >= SILENCE, "{:?}", acknowledged.elapsed());
}

#[test]
fn a_poll_gets_as_many_messages_as_it_takes_the_oldest_first() {
    let server = puller("concurrency = 8");
    let begun = begin(&server, 5);
    let first = server.polled("agent=puller&max=2");
    let second = server.polled("agent=puller&max=100");
    assert_eq!(ids(&first), begun[..2]);
    assert_eq!(ids(&second), begun[2..]);
}

#[test]
fn a_poll_that_waits_gets_work_that_comes_later() {
    let server = puller("");
    thread::scope(|scope| {
        let poll = scope.spawn(|| server.pulled("puller"));
        let id = server.begin("puller");
        let given = poll.join().expect("it is answered");
        assert_eq!(given["request_id"], json!(id));
        server.takes(&result(&given, "done"));
    });
}

#[test]
fn a_poll_that_waits_in_vain_is_answered_with_nothing() {
    let server = puller("");
    let begun = Instant::now();
    assert!(server.polled("agent=puller&wait=0.4").is_empty());
    assert!(begun.elapsed().as_secs_f64() >= 0.4, "{:?}", begun.elapsed());
}

#[test]
fn polls_that_wait_at_the_same_time_get_different_work_at_the_same_time() {
    let server = puller("concurrency = 8");
    thread::scope(|scope| {
        let polls: Vec<_> = (0..3).map(|_| scope.spawn(|| server.pulled("puller"))).collect();
        until("all wait", || (server.agent("puller")["concurrency"] == 3).then_some(()));
        let mut begun: Vec<String> = (0..3).map(|_| server.begin("puller")).collect();
        let given: Vec<Value> = polls.into_iter().map(|poll| poll.join().expect("it is answered")).collect();
        let mut found: Vec<String> = ids(&given).into_iter().map(str::to_owned).collect();
        begun.sort();
        found.sort();
        assert_eq!(found, begun, "each of them once, although none of them has ended");
    });
}

#[test]
fn an_agent_gets_no_more_work_than_it_asks_for() {
    let server = puller("concurrency = 8");
    server.polled("agent=puller&max=2");
    let begun: Vec<String> = (0..4).map(|_| server.begin("puller")).collect();
    server.in_state(&begun[1], "running");
    let first = server.polled("agent=puller&max=2");
    assert_eq!(ids(&first), begun[..2]);
    for id in &begun[2..] {
        let job = server.job(id);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job:#}");
    }
    // It asks for more beside what it has.
    let third = server.pulled("puller");
    assert_eq!(third["request_id"], json!(begun[2]));
    assert_eq!(server.job(&begun[3])["state"], "queued");
}

#[test]
fn many_polls_at_once_get_every_message_once() {
    const JOBS: usize = 40;
    let server = puller("concurrency = 100");
    let given = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while given.lock().expect("nobody panics").len() < JOBS {
                    let some = server.polled("agent=puller&max=3&wait=0.2");
                    given.lock().expect("nobody panics").extend(some);
                }
            });
        }
        for _ in 0..JOBS {
            server.begin("puller");
        }
    });
    let given = given.into_inner().expect("nobody panics");
    let mut found = ids(&given);
    found.sort_unstable();
    found.dedup();
    assert_eq!((given.len(), found.len()), (JOBS, JOBS));
}

#[test]
fn polls_are_refused_that_name_no_agent_or_ask_for_nonsense() {
    let server = puller("");
    for (query, status, code) in [
        ("agent=nobody", 404, 5003),
        ("agent=", 400, 5003),
        ("", 400, 5003),
        ("agent=puller&max=0", 400, 5003),
        ("agent=puller&max=1001", 400, 5003),
        ("agent=puller&wait=-1", 400, 5003),
        ("agent=puller&what=1", 400, 5003),
    ] {
        let refused = server.get(&format!("/api/agent/messages?{query}"));
        let found = (refused.status, &refused.json()["payload"]["error_code"]);
        assert_eq!(found, (status, &json!(code)), "{query}: {refused:?}");
    }
}

#[test]
fn a_poll_whose_agent_vanishes_loses_nothing() {
    let mut server = puller("");
    let id = begin(&server, 1).remove(0);
    // It was given, and never arrived. The next start gives it again at once; without one it comes after 30 s.
    drop(server.polled("agent=puller"));
    server.kill();
    server.restart();
    let again = server.pulled("puller");
    assert_eq!(again["request_id"], json!(id));
    server.takes(&result(&again, "done"));
}

#[test]
fn a_server_that_stops_answers_polls_that_wait() {
    let mut server = puller("");
    let address = server.address();
    let poll = thread::spawn(move || {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        let head =
            "GET /api/agent/messages?agent=puller&wait=60 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("it can be asked");
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    });
    until("it waits", || (server.agent("puller")["concurrency"] == 1).then_some(()));
    assert!(server.stop().success());
    let text = poll.join().expect("it ends").expect("it is answered");
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("retry-after") && text.contains("5002"), "{text}");
}
