//! What the HTTP status of an agent means where it sends no document: the same for every contract that is spoken over
//! HTTP (RUN-5). Its words reach the caller (ALL-11).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::agent::{failure, id};
use crate::support::bridge_caller::new_id;
use crate::support::message_caller::{self, MESSAGES};
use crate::support::scripted_agent::{After, ScriptedAgent};
use crate::support::server::Server;

const CONTRACTS: [&str; 3] = ["run", "task", "message"];

/// Statuses, and what each leads to: code and repeat.
const ROWS: &[(&[u16], (&str, &str))] = &[
    (&[401, 403, 407], ("unavailable", "never")),
    (&[404, 405], ("unsupported", "never")),
    (&[408, 425], ("unavailable", "unknown")),
    (&[429], ("resource_limit", "safe")),
    (&[503], ("unavailable", "safe")),
    (&[400, 402, 406, 410, 413, 415, 422, 451], ("invalid", "never")),
    (&[500, 501, 502, 504, 599], ("agent_failed", "never")),
];

/// Agents of these contracts that answer every request for work with the status in their name.
fn refusing(statuses: &[u16], body: fn(u16) -> String, keys: &str) -> (ScriptedAgent, Server) {
    let scripted = ScriptedAgent::start_many(move |request, connection| {
        if request.method == "GET" {
            return connection.json(404, &json!({}));
        }
        let status: u16 = request.agent.rsplit('-').next().and_then(|status| status.parse().ok()).expect("a status");
        connection.whole(status, "application/json", body(status))
    });
    let names = CONTRACTS.iter().flat_map(|contract| statuses.iter().map(move |status| (contract, status)));
    let agents = names.map(|(contract, status)| scripted.agent(contract, &format!("{contract}-{status}"), keys));
    let server = Server::with(&agents.collect::<String>(), &["--log", "debug"]);
    (scripted, server)
}

fn detail(status: u16) -> String {
    json!({"detail": format!("hush, because of {status}")}).to_string()
}

#[test]
fn every_status_without_a_document_has_one_meaning_in_every_contract() {
    let all: Vec<u16> = ROWS.iter().flat_map(|(statuses, _)| statuses.iter().copied()).collect();
    // Repeats are wanted wherever they make sense, so that it shows where they do not.
    let (scripted, server) = refusing(&all, detail, "repeatable = true");
    for (contract, (statuses, expected)) in CONTRACTS.iter().flat_map(|name| ROWS.iter().map(move |row| (name, row))) {
        for status in *statuses {
            let work = format!("{contract}-{status}");
            let is_repeated = [408, 425, 429, 503].contains(status);
            let limits = if is_repeated { json!({"attempts": 1}) } else { json!({}) };
            let job = server.submit(&json!({"work": work, "limits": limits}).to_string());
            let job = server.ended(&id(&job));
            assert_eq!((failure(&job), &job["attempts"]), (*expected, &json!(1)), "{work}: {job}");
            let found = &job["outcome"]["failure"];
            assert_eq!(found["message"], format!("hush, because of {status}"), "{work}: {job}");
            assert_eq!(found["details"]["answer"], detail(*status), "{work}: {job}");
            assert!(!job["violations"].to_string().contains("hush"), "{work}: {job}");
            let posts = scripted.requests_of(&work).iter().filter(|request| request.method == "POST").count();
            let has_asked_for_sync = *contract == "run" && [404, 405, 501].contains(status);
            assert_eq!(posts, 1 + usize::from(has_asked_for_sync), "{work}");
        }
    }
    assert!(!server.log().contains("hush"), "an agent's words are never logged");
}

#[test]
fn callers_of_every_door_see_why() {
    let (_scripted, server) = refusing(&[422], detail, "");
    for contract in CONTRACTS {
        let work = format!("{contract}-422");
        let run = json!({"request_id": work, "task_type": work}).to_string();
        let run = server.post("/agents/run/sync", &run).json();
        let task = json!({"id": work, "type": work, "payload": {}}).to_string();
        let task = server.post("/tasks?wait=60", &task).json();
        for error in [&run["error"], &task["error"]] {
            assert_eq!(error["message"], "hush, because of 422", "{error}");
            assert_eq!(error["details"]["answer"], detail(422), "{error}");
        }
        let message = server.message_result(&message_caller::request(&new_id(), &work, &json!({})));
        let error = &message["payload"];
        assert_eq!((&error["error_code"], &error["error_message"]), (&json!(5003), &json!("hush, because of 422")));
        assert_eq!(error["error_context"]["answer"], detail(422), "{message}");
    }
}

#[test]
fn words_that_are_no_short_text_are_kept_as_they_are() {
    const PAGE_BYTES: usize = 100_000;
    fn body(status: u16) -> String {
        match status {
            422 => json!({"detail": [{"loc": ["body", "inputs"], "type": "hush"}]}).to_string(),
            502 => "<html><body>hush</body></html>".to_owned(),
            _ => format!("<p>hush{}", "x".repeat(PAGE_BYTES - 7)),
        }
    }
    let (_scripted, server) = refusing(&[422, 502, 500], body, "");
    for (contract, status) in CONTRACTS.iter().flat_map(|contract| [422, 502, 500].map(|status| (contract, status))) {
        let job = server.done(&format!("{contract}-{status}"), &json!({}));
        let found = &job["outcome"]["failure"];
        let (message, kept) = (found["message"].as_str(), found["details"]["answer"].as_str());
        assert!(message.is_some_and(|message| message.contains(&format!("HTTP {status}"))), "{found}");
        let kept = kept.expect("it is kept");
        if status == 500 {
            assert_eq!((kept.len(), &found["details"]["answer_bytes"]), (64 << 10, &json!(PAGE_BYTES)));
        } else {
            assert_eq!(kept, body(status));
        }
    }
    assert!(!server.log().contains("hush"), "an agent's words are never logged");
}

#[test]
fn a_refusal_that_breaks_off_or_is_too_long_says_what_it_said_so_far() {
    let scripted = ScriptedAgent::start_many(|request, connection| {
        if request.method == "GET" {
            return connection.json(404, &json!({}));
        }
        let length = if request.agent.ends_with("long") { 100_000 } else { 5_000 };
        connection.send(format!("HTTP/1.1 422 No\r\ncontent-length: {length}\r\n\r\n<p>not like this"));
        if request.agent.ends_with("long") {
            connection.send("x".repeat(length));
        }
        After::Close
    });
    let names =
        CONTRACTS.iter().flat_map(|contract| ["cut", "long"].map(|how| (*contract, format!("{contract}-{how}"))));
    let names: Vec<(&str, String)> = names.collect();
    let agents = names.iter().map(|(contract, name)| scripted.agent(contract, name, "output_bytes = 10000"));
    let server = Server::configured(&agents.collect::<String>());
    for (_, name) in &names {
        let job = server.done(name, &json!({}));
        assert_eq!(failure(&job), ("invalid", "never"), "{name}: {job}");
        let kept = job["outcome"]["failure"]["details"]["answer"].as_str().expect("it is kept");
        assert!(kept.starts_with("<p>not like this") && kept.len() <= 10_000, "{name}: {kept}");
    }
}

/// An answer that takes no work, with the pause that it asks for.
fn later(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n{headers}\r\n\r\n")
}

#[test]
fn the_pause_that_an_agent_asks_for_is_kept() {
    const PAUSE: Duration = Duration::from_secs(3);
    // Longer than the first pause would be otherwise. The agent's own clock counts for a date.
    const SECONDS: &str = "retry-after: 3";
    const DATE: &str = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:40 GMT";
    let scripted = ScriptedAgent::start_many(|request, connection| {
        let headers = if request.agent.ends_with("date") { DATE } else { SECONDS };
        let status = if request.agent.contains("429") { "429 Slow" } else { "503 Not now" };
        match (request.turn, request.path.as_str()) {
            (0, _) => {
                connection.send(later(status, headers));
                After::Keep
            }
            (_, "/tasks") => connection.json(200, &request.completed("task")),
            (_, MESSAGES) => connection.json(200, &request.work().expect("it is work").done("message")),
            (_, _) => connection.stream(&[request.started(), request.final_event("run")]),
        }
    });
    let names: Vec<(&str, String)> = CONTRACTS
        .iter()
        .flat_map(|contract| ["429-seconds", "429-date", "503-seconds", "503-date"].map(|how| (*contract, how)))
        .map(|(contract, how)| (contract, format!("{contract}-{how}")))
        .collect();
    let server = Server::configured(&names.iter().map(|(how, name)| scripted.agent(how, name, "")).collect::<String>());
    let began = Instant::now();
    let jobs: Vec<String> = names.iter().map(|(_, name)| server.begin(name)).collect();
    for ((_, name), job) in names.iter().zip(&jobs) {
        let job = server.ended(job);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "{name}: {job}");
        assert!(began.elapsed() >= PAUSE, "{name} was asked again too early");
    }
}

#[test]
fn a_pause_beyond_the_jobs_time_fails_it_at_once() {
    let scripted = ScriptedAgent::start_many(|request, connection| {
        let status = if request.agent.contains("429") { "429 Slow" } else { "503 Not now" };
        connection.send(later(status, "retry-after: 3000"));
        After::Keep
    });
    let rows = [("429", "resource_limit"), ("503", "unavailable")];
    let names = CONTRACTS.iter().flat_map(|contract| rows.map(|(status, code)| (*contract, status, code)));
    let names: Vec<(&str, String, &str)> =
        names.map(|(contract, status, code)| (contract, format!("{contract}-{status}"), code)).collect();
    let agents = names.iter().map(|(contract, name, _)| scripted.agent(contract, name, "")).collect::<String>();
    let server = Server::configured(&agents);
    for (_, name, code) in &names {
        let job = server.submit(&json!({"work": name, "limits": {"seconds": 2_000}}).to_string());
        let job: Value = server.ended(&id(&job));
        assert_eq!((failure(&job), &job["attempts"]), ((*code, "safe"), &json!(1)), "{job}");
    }
}
