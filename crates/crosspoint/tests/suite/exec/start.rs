//! Programs that cannot be started: each gets a clear outcome, and a breaker spares the rest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::support::programs::agent;
use crate::support::server::{Server, until};

/// Writes a file into the server's directory.
fn file(server: &Server, name: &str, text: &str, mode: u32) {
    let path = server.directory().join(name);
    fs::write(&path, text).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it can be changed");
}

#[test]
fn each_way_not_to_start_has_a_reason_and_something_to_do() {
    let names = ["./missing", "no-such-program", "./plain", "./data", "./bad-interpreter", "./no-first-line"];
    let agents: Vec<String> =
        names.iter().enumerate().map(|(at, name)| agent(&format!("a{at}"), &[name], "")).collect();
    let server = Server::configured(&agents.concat());
    file(&server, "plain", "#!/bin/sh\n", 0o644);
    file(&server, "bad-interpreter", "#!/no/such/interpreter\n", 0o755);
    file(&server, "no-first-line", "just text\n", 0o755);
    let reasons = [
        "there is no such file",
        "it is in no directory of PATH",
        "is not executable; make it so with chmod +x",
        "is a directory",
        "the interpreter on its first line (#!), /no/such/interpreter: there is no such file",
        "a script begins with #! and its interpreter",
    ];
    for (at, (name, reason)) in names.iter().zip(reasons).enumerate() {
        let job = server.done(&format!("a{at}"), &json!({}));
        let failure = &job["outcome"]["failure"];
        assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("safe")), "{job}");
        let message = failure["message"].as_str().expect("a text");
        assert!(message.contains(name) && message.contains(reason), "{message}");
    }
}

#[test]
fn a_directory_that_is_gone_is_a_reason_too() {
    let directory = std::env::temp_dir().join(format!("crosspoint-gone-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("it can be made");
    let configuration = directory.join("other.toml");
    fs::write(&configuration, agent("echo", &["cat"], "")).expect("it can be written");
    let server = Server::with("", &["--config", configuration.to_str().expect("UTF-8")]);
    fs::remove_dir_all(&directory).expect("it can be removed");
    let job = server.done("echo", &json!({}));
    let message = job["outcome"]["failure"]["message"].as_str().expect("a text");
    assert!(message.contains("its directory") && message.contains("there is no such file"), "{message}");
}

#[test]
fn a_program_is_found_beside_the_configuration_and_in_path() {
    let configuration = [
        agent("beside", &["./agents/own", "an argument", ""], ""),
        agent("in_path", &["own"], "env = { PATH = \"agents:/usr/bin:/bin\" }"),
    ];
    let server = Server::configured(&configuration.concat());
    fs::create_dir(server.directory().join("agents")).expect("it can be made");
    file(&server, "agents/own", "#!/bin/sh\nprintf '{\"name\": \"%s\", \"arguments\": %d}' \"$1\" $#\n", 0o755);
    assert_eq!(server.done("beside", &json!({}))["outcome"]["outputs"], json!({"name": "an argument", "arguments": 2}));
    assert_eq!(server.done("in_path", &json!({}))["outcome"]["outputs"], json!({"name": "", "arguments": 0}));
}

#[test]
fn a_program_that_is_away_is_tried_again_and_its_breaker_opens() {
    let server = Server::configured(&agent("late", &["./late"], ""));
    let id = server.begin("late");
    server.in_state(&id, "retrying");
    file(&server, "late", "#!/bin/sh\necho '{\"here\": true}'\n", 0o755);
    let job = server.ended(&id);
    assert_eq!(job["outcome"]["outputs"], json!({"here": true}), "{job}");
    assert!(job["attempts"].as_u64() >= Some(2), "{job}");
    fs::remove_file(server.directory().join("late")).expect("it can be removed");
    for _ in 0..5 {
        let failure = server.done("late", &json!({}))["outcome"]["failure"]["code"].clone();
        assert_eq!(failure, "unavailable");
    }
    until("the breaker opens", || {
        let agents = server.get("/api/v1/agents").json();
        (agents["agents"][0]["breaker"]["state"] == "open").then_some(())
    });
}

/// Makes the time of an open breaker be over, and starts the server again.
pub(crate) fn breaker_is_due(server: &mut Server) {
    assert!(server.stop().success());
    let script = "
import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.execute('UPDATE agent SET until = 1 WHERE until IS NOT NULL')
store.commit()
sys.exit(store.total_changes != 1)
";
    let updated = Command::new("python3").args(["-c", script]).arg(server.data().join("jobs.db")).status();
    assert!(updated.is_ok_and(|status| status.success()), "one breaker was open");
    server.restart();
}

/// The state of the breaker, once the check has decided.
pub(crate) fn decided(server: &Server) -> String {
    until("the check has decided", || {
        let breaker = server.get("/api/v1/agents/late").json()["breaker"].clone();
        let is_due = breaker["until"].as_str().is_some_and(|until| until.starts_with("1970"));
        let state = breaker["state"].as_str().expect("a state").to_owned();
        (!is_due && state != "half_open").then_some(state)
    })
}

#[test]
fn a_script_without_its_interpreter_keeps_the_breaker_from_closing() {
    let mut server = Server::configured(&agent("late", &["./late"], ""));
    file(&server, "late", "#!/no/such/interpreter\necho\n", 0o755);
    for _ in 0..5 {
        server.done("late", &json!({}));
    }
    breaker_is_due(&mut server);
    assert_eq!(decided(&server), "open");
    file(&server, "late", "#! /bin/sh -e\necho run >> runs; echo '{\"here\": true}'\n", 0o755);
    breaker_is_due(&mut server);
    assert_eq!(decided(&server), "closed");
    assert!(!server.directory().join("runs").exists(), "a check runs nothing");
    assert_eq!(server.done("late", &json!({}))["outcome"]["outputs"], json!({"here": true}));
}

#[test]
fn a_lock_that_cannot_be_taken_starts_nothing_and_is_the_reason() {
    let server = Server::configured(&agent("echo", &["cat"], ""));
    assert_eq!(server.done("echo", &json!({"a": 1}))["outcome"]["outputs"], json!({"a": 1}));
    let lock = server.data().join("programs.lock");
    fs::remove_file(&lock).expect("it can be removed");
    fs::create_dir(&lock).expect("it can be made");
    let failure = server.done("echo", &json!({}))["outcome"]["failure"].clone();
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("safe")), "{failure}");
    let message = failure["message"].as_str().expect("a text");
    assert!(message.contains("cat") && message.contains("the lock of programs in the data directory"), "{message}");
}

#[test]
fn supervise_by_hand_says_what_it_is_for() {
    let output = crate::support::program::crosspoint(&["supervise"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is started by crosspoint itself"), "{output:?}");
}
