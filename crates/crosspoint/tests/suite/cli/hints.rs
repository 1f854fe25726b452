//! Hints that list works or agents: only some of them, however many there are and however long their names.

use serde_json::{Value, json};

use crate::support::bridge_caller::{BRIDGE, new_id};
use crate::support::program::crosspoint;
use crate::support::puller::Puller;
use crate::support::server::{Answer, Server};

/// Most bytes of an answer with such a hint: a hint of 1 KiB and what is around it.
const ANSWER_BYTES_MAX: usize = 8 << 10;

/// A name of 500 bytes.
fn long(number: usize) -> String {
    format!("{number:04}-{}", "n".repeat(495))
}

fn joined(server: &Server, name: &'static str, number: u32, works: &[String]) {
    let answer = Puller::new(name, number).join(server, json!({ "work": works, "lease_seconds": 300 }));
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Asks for work at every door, of this agent if one is given.
fn asked(server: &Server, work: &str, agent: Option<&str>) -> Vec<(&'static str, Answer)> {
    let mut native = json!({ "work": work, "input": {} });
    let mut run = json!({ "request_id": "r", "task_type": work, "inputs": {} });
    let mut task = json!({ "id": "t", "type": work, "payload": {} });
    let mut bridge = json!({ "request_id": new_id(), "version": "1.0", "agent_name": work, "prompt": "p" });
    if let Some(agent) = agent {
        native["agent"] = json!(agent);
        let carried = |of: &str| json!({ "from": "task.request", "target": agent, "filled": { of: {} } });
        run["x_crosspoint"] = carried("run");
        task["routing"] = json!({ "target": agent });
        bridge["context"] = json!({ "x_crosspoint": carried("bridge") });
    }
    let doors: [(&str, Value); 5] = [
        ("/api/v1/jobs", native),
        ("/agents/run/sync", run.clone()),
        ("/agents/run/stream", run),
        ("/tasks", task),
        (BRIDGE, bridge),
    ];
    doors.map(|(path, body)| (path, server.post(path, &body.to_string()))).into()
}

#[track_caller]
fn names_some(answers: Vec<(&str, Answer)>, first: &str, more: &str) {
    for (path, answer) in answers {
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.body.len() < ANSWER_BYTES_MAX, "{path} answers with {} bytes", answer.body.len());
        let said = answer.text();
        assert!(said.contains(first) && said.contains(more), "{path}: {said}");
    }
}

#[test]
fn an_unknown_work_is_answered_with_some_of_those_that_are_known() {
    let server = Server::start();
    let works: Vec<String> = (0..1_000).map(long).collect();
    joined(&server, "much", 1, &works);
    // The sample agents take four works, and two long ones fit in.
    let more = "and 1,002 more; GET /api/v1/agents lists all";
    names_some(asked(&server, "nothing", None), &long(0), more);
}

#[test]
fn an_unknown_agent_is_answered_with_some_of_those_that_are_known() {
    let server = Server::start();
    for number in 0..30 {
        let name: &'static str = long(number).leak();
        joined(&server, name, 1, &["dig".to_owned()]);
    }
    let more = "and 32 more; GET /api/v1/agents lists all";
    names_some(asked(&server, "dig", Some("nobody")), &long(0), more);
}

#[test]
fn a_server_that_remembers_many_agents_says_so_in_some_lines() {
    let mut server = Server::start();
    for number in 0..30 {
        let name: &'static str = format!("agent-{number:02}").leak();
        joined(&server, name, 1, &(0..100).map(long).collect::<Vec<_>>());
    }
    server.stop();
    let before = server.log().len();
    server.restart();
    let log = server.log();
    let banner = log[before..].split("Ctrl-C stops it.").next().expect("there is a banner");
    assert!(banner.contains("and 14 more; crosspoint agents list lists all"), "{banner}");
    assert!(banner.contains("agent-00") && banner.len() < 20 * 1_200 + 1_000, "{}", banner.len());
}

#[test]
fn commands_hint_at_commands() {
    let server = Server::start();
    let submit = |work: &str| {
        let mut command = crosspoint(&["submit", work, "--server", &server.url()]);
        String::from_utf8(command.output().expect("it runs").stderr).expect("text")
    };
    assert!(submit("ecoh").contains("did you mean echo?"), "{}", submit("ecoh"));
    let works: Vec<String> = (0..100).map(long).collect();
    joined(&server, "much", 1, &works);
    let said = submit("other");
    assert!(said.contains("crosspoint agents list shows all") && !said.contains("/api/v1"), "{said}");
}
