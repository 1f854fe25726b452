//! Supervisors that are used again.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::programs::{agent, bash, children_of, is_zombie, nothing_runs_for};
use crate::support::server::{Server, until};

/// Most supervisors that a server keeps.
pub(super) const SPARES_MAX: usize = 4;

fn quick() -> String {
    agent("quick", &["true"], "")
}

/// Has a program run, and returns the supervisor that is left of it.
fn spare(server: &Server) -> u32 {
    assert_eq!(server.done("quick", &json!({}))["state"], "completed");
    let children = children_of(server.pid());
    assert_eq!(children.len(), 1, "{children:?}");
    children[0]
}

fn kill(pid: u32) {
    send("-KILL", pid);
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn a_supervisor_whose_program_ended_by_itself_is_used_again() {
    let server = Server::configured(&(quick() + &bash("fails", "exit 3", "")));
    let first = spare(&server);
    assert_eq!(spare(&server), first);
    assert_eq!(server.done("fails", &json!({}))["outcome"]["failure"]["details"]["exit_code"], 3);
    assert_eq!(spare(&server), first);
}

/// Each program has its own directory, input, output, environment and errors, and no file of another.
#[test]
fn nothing_of_one_program_reaches_the_next() {
    let script = "cat; echo \"[$ONLY] $CROSSPOINT_WORK\"; for f in /proc/$$/fd/*; do echo ${f##*/}; done; \
                  echo $CROSSPOINT_WORK >&2; exit 1";
    let first = bash("first", script, "env = { ONLY = \"1\" }");
    let server = Server::configured(&(first + &bash("second", script, "")));
    let one = server.done("first", &json!({"for": "one"}));
    let supervisors = children_of(server.pid());
    let two = server.done("second", &json!({"for": "two"}));
    assert_eq!(children_of(server.pid()), supervisors, "it is the same supervisor");
    let stderr = |job: &Value| job["outcome"]["failure"]["details"]["stderr"].clone();
    assert_eq!([stderr(&one), stderr(&two)], ["first\n", "second\n"]);
    let lines = |job: &Value| -> Vec<String> {
        let printed = server.get(&format!("/api/v1/jobs/{}/output", job["id"].as_str().expect("an id")));
        printed.text().lines().map(str::to_owned).collect()
    };
    let (one, two) = (lines(&one), lines(&two));
    assert_eq!(one[..2], [r#"{"for":"one"}"#, "[1] first"], "{one:?}");
    assert_eq!(two[..2], [r#"{"for":"two"}"#, "[] second"], "{two:?}");
    // Not only stdin, stdout and stderr: whoever runs the tests may have left files open to all.
    assert_eq!(two[2..], one[2..], "the open files");
}

#[test]
fn a_spare_that_is_killed_costs_no_attempt() {
    let server = Server::configured(&quick());
    for _ in 0..3 {
        let killed = spare(&server);
        kill(killed);
        until("it has ended", || (is_zombie(killed) || !children_of(server.pid()).contains(&killed)).then_some(()));
        let job = server.done("quick", &json!({}));
        assert_eq!(job["state"], "completed", "{job}");
        assert_eq!(job["attempts"], 1, "{job}");
        until("the killed one is reaped", || (!children_of(server.pid()).contains(&killed)).then_some(()));
    }
}

#[test]
fn a_spare_ends_with_its_server_also_when_that_is_killed() {
    let mut server = Server::configured(&quick());
    let left = spare(&server);
    server.kill();
    until("it is gone", || (!Path::new(&format!("/proc/{left}")).exists()).then_some(()));
}

/// A program that was told to end, or left something behind, may have done more than its supervisor knows.
#[test]
fn a_supervisor_that_had_to_end_something_is_not_used_again() {
    let daemon = bash("daemon", "setsid sleep 600 >/dev/null 2>&1 & exit 0", "");
    let server = Server::configured(&(bash("slow", "echo x > begun; sleep 600", "grace_seconds = 0.1") + &daemon));
    let gone = |why: &str| until(why, || children_of(server.pid()).is_empty().then_some(()));
    let id = server.begin("slow");
    server.said_in("begun");
    server.cancel(&id);
    nothing_runs_for(&id);
    gone("the supervisor of a cancelled program is gone");
    server.done("daemon", &json!({}));
    gone("the supervisor of a program that left a daemon is gone");
}

#[test]
fn a_burst_of_programs_leaves_a_few_supervisors() {
    let server =
        Server::configured(&bash("meets", "echo x >> here; until [ -e go ]; do sleep 0.02; done", "concurrency = 12"));
    let ids: Vec<String> = (0..12).map(|_| server.begin("meets")).collect();
    until("all run", || (children_of(server.pid()).len() == 12).then_some(()));
    std::fs::write(server.directory().join("go"), "").expect("it can be written");
    for id in &ids {
        assert_eq!(server.ended(id)["outcome"]["status"], "completed");
    }
    until("a few are left", || (children_of(server.pid()).len() == SPARES_MAX).then_some(()));
}

/// A stopped supervisor reads no order and no stop, and would hold up its job for as long as it is stopped.
#[test]
fn a_supervisor_that_somebody_stopped_goes_on() {
    let server = Server::configured(&(quick() + &bash("stops", "kill -STOP $PPID; echo x > begun; sleep 600", "")));
    let first = spare(&server);
    send("-STOP", first);
    assert_eq!(spare(&server), first);
    let id = server.begin("stops");
    server.said_in("begun");
    server.cancel(&id);
    nothing_runs_for(&id);
    until("its supervisor is gone", || children_of(server.pid()).is_empty().then_some(()));
}

#[test]
fn killed_spares_are_reaped_and_take_no_place() {
    let server =
        Server::configured(&(quick() + &bash("meets", "until [ -e go ]; do sleep 0.02; done", "concurrency = 4")));
    let ids: Vec<String> = (0..SPARES_MAX).map(|_| server.begin("meets")).collect();
    until("all run", || (children_of(server.pid()).len() == SPARES_MAX).then_some(()));
    std::fs::write(server.directory().join("go"), "").expect("it can be written");
    for id in &ids {
        assert_eq!(server.ended(id)["outcome"]["status"], "completed");
    }
    until("all are spares", || (children_of(server.pid()).len() == SPARES_MAX).then_some(()));
    children_of(server.pid()).into_iter().for_each(kill);
    let left = spare(&server);
    assert_eq!(children_of(server.pid()), [left]);
}
