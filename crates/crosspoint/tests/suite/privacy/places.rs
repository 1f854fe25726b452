//! Where canaries must not be: the log, metrics, answers to others, the system's list of processes, and the audit.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::corpus;
use super::doors::{DOORS, with_id};
use super::ledger::{Found, Ledger};
use super::site::Site;
use crate::support::program::{crosspoint, stdout};
use crate::support::programs::children_of;

/// How many ids of each door another caller uses, too.
const SAME_IDS: usize = 5;

/// Answers to another caller, to agents that had nothing to do with the work, and to everybody.
pub(crate) fn others(site: &Site) -> Vec<Found> {
    let mut found = Vec::new();
    let mut look = |token: Option<&str>, who: &str, method: &str, path: &str, body: &str| {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        let answer = site.server.exchange(method, path, &headers, body.as_bytes()).expect("it answers");
        let place = format!("the answer to {who} at {method} {path}");
        found.extend(site.ledger.found(&place, &format!("{:?}", answer.headers)));
        found.extend(site.ledger.found(&place, &String::from_utf8_lossy(&answer.body)));
        answer
    };
    let jobs = site.jobs();
    assert!(jobs.len() > 100, "the jobs of the owner are missing");
    for job in jobs.iter().step_by(20) {
        let (id, request_id) = (job["id"].as_str().unwrap_or_default(), job["request_id"].as_str().unwrap_or_default());
        for what in ["", "/document", "/output", "/events"] {
            look(Some(&site.other), "another", "GET", &format!("/api/v1/jobs/{id}{what}"), "");
        }
        for what in ["cancel", "answer", "retry"] {
            look(Some(&site.other), "another", "POST", &format!("/api/v1/jobs/{id}/{what}"), "{\"input\": 1}");
        }
        look(Some(&site.other), "another", "GET", &format!("/tasks/{id}"), "");
        // Its own work, under the same id: an agent whose answers are planted would say them to it, too.
        let same = json!({"work": "echo", "request_id": request_id, "input": {"mine": 1}});
        let accepted = look(Some(&site.other), "another", "POST", "/api/v1/jobs", &same.to_string()).json();
        if let Some(id) = accepted["id"].as_str() {
            look(Some(&site.other), "another", "GET", &format!("/api/v1/jobs/{id}/events?follow=false"), "");
        }
    }
    // The ids of the owner's requests, at the doors where they came in.
    for (kind, path, door) in DOORS {
        let of_door: Vec<&str> =
            jobs.iter().filter(|job| job["door"] == door).filter_map(|job| job["request_id"].as_str()).collect();
        assert!(!of_door.is_empty(), "no job came in at {door}");
        for id in of_door.into_iter().take(SAME_IDS) {
            let same = with_id(kind, &corpus::full(kind), "echo", id).to_string();
            look(Some(&site.other), "another", "POST", path, &same);
            look(Some(&site.other), "another", "GET", &format!("/tasks/{id}"), "");
        }
    }
    for path in ["/api/v1/jobs", "/api/v1/jobs?state=failed", "/api/v1/jobs/nothing", "/nowhere", "/api/v1/bridge"] {
        look(Some(&site.other), "another", "GET", path, "");
    }
    for path in ["/api/v1/jobs", "/tasks", "/agents/run/sync", "/api/agent/message", "/api/v1/bridge"] {
        look(Some(&site.other), "another", "POST", path, "{}");
        look(None, "a client without a token", "POST", path, "{}");
    }
    for path in ["/health", "/health/ready", "/openapi.json"] {
        look(None, "a client without a token", "GET", path, "");
    }
    look(Some(&site.agents["idle"]), "an idle agent", "GET", "/api/agent/messages?agent=idle", "");
    let joining = json!({"session": "7c9e6679-7425-40de-944b-e07fc1f90ae8", "work": ["nothing"]}).to_string();
    look(Some(&site.agents["idle"]), "an idle agent", "POST", "/api/v1/agents/idle/join", &joining);
    for path in ["/metrics", "/api/v1/agents", "/api/v1/agents/program", "/api/v1/callers", "/api/v1/tokens"] {
        look(Some(&site.admin), "those who administer", "GET", path, "");
    }
    found
}

/// The arguments of the server's processes.
pub(crate) fn system(site: &Site) -> Vec<Found> {
    let input = json!({"out": [], "end": "hang", "text": site.ledger.text("the input of a running program", "/text")});
    let id = site.begin("program", &input, 20.0);
    let running = crate::support::server::until("it runs", || {
        let running = crate::support::programs::alive_for(&id);
        (!running.is_empty()).then_some(running)
    });
    let server = site.server.pid();
    let all = [server].into_iter().chain(children_of(server)).chain(running);
    let arguments = all.map(|pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    let arguments: Vec<String> = arguments.map(|one| String::from_utf8_lossy(&one).into_owned()).collect();
    site.ask("POST", &format!("/api/v1/jobs/{id}/cancel"), "");
    site.ledger.found("the arguments of processes", &arguments.join("\n"))
}

/// What a server has left: its log, its audit, and tokens in its files.
pub(crate) fn left(ledger: &Ledger, log: &str, data: &Path) -> Vec<Found> {
    assert!(!log.contains("lines of the log were dropped"), "the log is not whole");
    let mut found = ledger.found("the log", log);
    let audit = stdout(crosspoint(&["store", "export", "--audit", "--data"]).arg(data));
    assert!(audit.lines().count() > 100, "the audit is missing");
    found.extend(ledger.found("the audit", &audit));
    for entry in fs::read_dir(data).expect("it can be listed").flatten().filter(|entry| entry.path().is_file()) {
        let bytes = fs::read(entry.path()).expect("it can be read");
        let text = String::from_utf8_lossy(&bytes);
        let place = format!("the file {:?}", entry.file_name());
        found.extend(ledger.tokens_in(&text).into_iter().map(|kind| Found {
            kind,
            pointer: String::new(),
            place: place.clone(),
            line: String::new(),
        }));
    }
    found
}
