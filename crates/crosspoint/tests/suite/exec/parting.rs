//! A server that stops, and programs that have not ended when the drain is over: they are asked to end, and their jobs
//! go on at the next start.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::programs::{bash, nothing_runs_for, python};
use crate::support::server::{Server, until};

const NO_DRAIN: &str = "[server]\ndrain_seconds = 0.01\n";

/// Cleans up when it is asked to end, and then fails. The second time it does its work.
const TIDY: &str = r#"
[ -e begun ] && { echo '{"done": true}'; exit; }
trap 'echo asked > asked; sleep 0.3; echo tidied > tidied; exit 1' TERM
echo begun > begun
while true; do sleep 0.05; done
"#;

fn names(server: &Server, id: &str) -> Vec<String> {
    let events = server.get(&format!("/api/v1/jobs/{id}/events?follow=false")).text();
    events.lines().filter_map(|line| line.strip_prefix("event: ")).map(ToOwned::to_owned).collect()
}

#[test]
fn a_program_is_asked_to_end_and_has_its_grace_before_the_server_ends() {
    let mut server = Server::configured(&(NO_DRAIN.to_owned() + &bash("tidy", TIDY, "grace_seconds = 20")));
    let id = server.begin("tidy");
    server.said_in("begun");
    assert!(server.stop().success(), "{}", server.log());
    assert!(server.directory().join("tidied").exists(), "it was waited for");
    nothing_runs_for(&id);
    server.restart();
    let job = server.ended(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"done": true}), &json!(2)), "{job}");
    assert_eq!(names(&server, &id), ["accepted", "started", "interrupted", "started", "output", "completed"]);
}

/// A program that succeeds after it was asked to end may have done only half of its work.
#[test]
fn exit_code_0_after_that_is_no_outcome_either() {
    let script = TIDY.replace("exit 1", "exit 0");
    let mut server = Server::configured(&(NO_DRAIN.to_owned() + &bash("tidy", &script, "")));
    let id = server.begin("tidy");
    server.said_in("begun");
    assert!(server.stop().success(), "{}", server.log());
    server.restart();
    assert_eq!(server.ended(&id)["attempts"], 2);
}

#[test]
fn a_program_that_waits_for_a_person_is_asked_too() {
    let script = r#"
import os, signal, sys
def asked(*_):
    open("asked", "w").write("asked\n")
    sys.exit(1)
signal.signal(signal.SIGTERM, asked)
sys.stdin.readline()
print('@crosspoint {"ask": {"prompt": "?"}}', flush=True)
print(sys.stdin.readline(), flush=True)
"#;
    let mut server = Server::configured(&(NO_DRAIN.to_owned() + &python("asker", script, "ask = true")));
    let id = server.begin("asker");
    server.in_state(&id, "waiting");
    assert!(server.stop().success(), "{}", server.log());
    assert!(server.directory().join("asked").exists(), "it was asked");
    server.restart();
    let job = server.in_state(&id, "waiting");
    assert_eq!(job["attempts"], 2, "{job}");
}

#[test]
fn a_program_that_does_not_end_is_killed_after_its_grace() {
    let script = "trap '' TERM; echo begun > begun; while true; do sleep 0.05; done";
    let mut server = Server::configured(&(NO_DRAIN.to_owned() + &bash("deaf", script, "grace_seconds = 0.1")));
    let id = server.begin("deaf");
    server.said_in("begun");
    assert!(server.stop().success(), "{}", server.log());
    nothing_runs_for(&id);
    server.restart();
    assert_eq!(server.in_state(&id, "running")["attempts"], 2);
}

#[test]
fn a_program_that_ends_by_itself_within_the_drain_has_done_its_work() {
    let script = "trap 'echo asked > asked' TERM; echo begun > begun; while [ ! -e go ]; do sleep 0.02; done; echo '{\"done\": 1}'";
    let mut server = Server::configured(&("[server]\ndrain_seconds = 60\n".to_owned() + &bash("slow", script, "")));
    let id = server.begin("slow");
    server.said_in("begun");
    server.signal("TERM");
    until("it stops", || (server.try_request("GET", "/health/ready", &[], b"")?.status == 503).then_some(()));
    fs::write(server.directory().join("go"), "").expect("it can be written");
    assert!(server.wait().success(), "{}", server.log());
    assert!(!server.directory().join("asked").exists(), "nobody asked it to end");
    server.restart();
    let job = server.ended(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"done": 1}), &json!(1)), "{job}");
}

/// The server inside a command does the same.
#[test]
fn a_program_that_a_command_has_run_is_asked_to_end_when_the_command_is() {
    let mut server = Server::configured(&bash("tidy", TIDY, "grace_seconds = 20"));
    assert!(server.stop().success());
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.args(["submit", "tidy", "--data", "data"]).current_dir(server.directory()).env_remove("CROSSPOINT_SERVER");
    let mut child = command.spawn().expect("it starts");
    server.said_in("begun");
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    let status = until("it ends", || child.try_wait().expect("it can be asked"));
    assert_eq!(status.code(), Some(130));
    assert!(server.directory().join("tidied").exists(), "it was waited for");
    server.restart();
    let jobs = server.get("/api/v1/jobs").json()["jobs"].clone();
    let id = jobs[0]["id"].as_str().expect("a job").to_owned();
    assert_eq!(server.ended(&id)["outcome"]["outputs"], json!({"done": true}));
}
