//! `crosspoint bridge run` with other commands, drivers, watchers, servers and people at the same directory.

use std::fs;

use serde_json::json;

use crate::bridge::run::{asking, request};
use crate::support::bridge_directory::{Directory, PRINTED_ID};
use crate::support::server::{Server, until};

#[test]
fn what_another_command_asked_is_left_to_it() {
    let place = Directory::configured("");
    assert_eq!(place.run(&["--max-iterations", "1"], &["./asks", "3", "echo"]).code, 1);
    let ran = place.run(&[], &["./asks", "9", "echo"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("another command"), "{ran:?}");
    assert_eq!(place.run(&[], &["./asks", "3", "echo"]).code, 0);
    place.is_answered(3);
}

#[test]
fn what_another_server_was_given_is_not_done_again() {
    let (one, other) = (Server::start(), Server::start());
    let place = Directory::configured("");
    let command = ["./asks", "1", "slow_echo"];
    let mut driver = place.begin(&["--server", &one.url()], &command);
    place.until_there(".agent-bridge.json");
    let given = || place.json(".agent-bridge.json")["requests"][0]["store"].is_string().then_some(());
    crate::support::server::until("it is given to the server", given);
    driver.kill().expect("it can be killed");
    driver.wait().expect("it ends");
    let ran = place.run(&["--server", &other.url()], &command);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("another store") && ran.stderr.contains("--server"), "{ran:?}");
    assert_eq!(other.get("/api/v1/jobs").json()["jobs"], json!([]));
    assert_eq!(place.run(&["--server", &one.url()], &command).code, 0);
    place.is_answered(1);
}

/// A watcher gave the request to its own server, and was then killed. Its record names no command.
#[test]
fn what_a_watcher_gave_to_another_server_is_not_done_again_either() {
    let server = Server::start();
    let place = asking("", &request(PRINTED_ID, "echo").to_string());
    let noted =
        json!({"file": ".agent-request.json", "request_id": PRINTED_ID, "digest": null, "store": "0123456789abcdef"});
    place.write(".agent-bridge.json", &json!({"crosspoint": 1, "command": null, "requests": [noted]}).to_string());
    place.write(".agent-request.json", &request(PRINTED_ID, "echo").to_string());
    let ran = place.run(&["--server", &server.url()], &["./asks"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("another store"), "{ran:?}");
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]));
}

#[test]
fn a_server_that_is_away_is_no_failure_of_the_agent() {
    let server = Server::start();
    let place = Directory::configured("");
    let ran = place.run(&["--server", "http://127.0.0.1:1"], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("no server answers") && ran.stderr.contains("goes on"), "{ran:?}");
    assert_eq!(place.bridge_files(), [".agent-bridge.json", ".agent-request.json"]);
    assert_eq!(place.run(&["--server", &server.url()], &["./asks", "1", "echo"]).code, 0);
    place.is_answered(1);
}

#[test]
fn what_a_person_answers_while_no_server_is_there_is_the_answer() {
    let place = Directory::configured("");
    let command = ["./asks", "1", "echo"];
    assert_eq!(place.run(&["--server", "http://127.0.0.1:1"], &command).code, 2);
    let mut answer = crate::support::program::crosspoint(&["bridge", "answer", "--text", "by hand"]);
    answer.current_dir(place.path()).assert().success();
    let ran = place.run(&["--server", "http://127.0.0.1:1"], &command);
    assert_eq!(ran.code, 0, "no server is needed for it: {ran:?}");
    assert_eq!(place.json("answer-0")["response"], "by hand");
}

#[test]
fn one_driver_at_a_time_works_in_a_directory() {
    let place = Directory::configured("");
    let mut first = place.begin(&[], &["bash", "-c", "touch here; until [ -e go ]; do sleep 0.01; done"]);
    place.until_there("here");
    let ran = place.run(&[], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("another driver"), "{ran:?}");
    assert!(!place.has("calls"));
    place.write("go", "");
    assert!(first.wait().expect("it ends").success());
}

#[test]
fn drivers_without_a_server_take_turns_with_their_store() {
    let toml = crate::support::programs::bash("slow", "touch here; until [ -e go ]; do sleep 0.01; done; cat", "");
    let place = Directory::configured(&toml);
    for name in ["one", "two"] {
        place.make(name);
    }
    let one = place.begin(&["--dir", "one"], &["./asks", "1", "slow"]);
    place.until_there("here");
    let mut two = place.driver(&["--dir", "two"], &["./asks", "1", "slow"]);
    let stderr = fs::File::create(place.file("said")).expect("it can be made");
    let mut two = two.env("ROUND", "2").stderr(stderr).spawn().expect("it starts");
    until("it says so", || place.read("said").contains("is waited for").then_some(()));
    place.write("go", "");
    let one = one.wait_with_output().expect("it ends");
    assert!(one.status.success(), "{one:?}");
    assert!(two.wait().expect("it ends").success(), "{}", place.read("said"));
    assert!(place.has("one/answer-0") && place.has("two/answer-0"));
}

#[test]
fn a_program_may_use_the_store_that_its_answers_come_from() {
    let place = Directory::configured("");
    let program = assert_cmd::cargo::cargo_bin!("crosspoint").display().to_string();
    let script =
        format!("#!/bin/bash\n'{program}' submit echo --input '{{}}' > submitted || exit 77\nexec ./asks \"$@\"\n");
    place.script("both", &script);
    let ran = place.run(&[], &["./both", "2", "echo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    place.is_answered(2);
}
