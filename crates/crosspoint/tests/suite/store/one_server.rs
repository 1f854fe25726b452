//! One server per store, whatever name the store is opened by and whatever was removed beside it.

use std::fs;
use std::process::{Command, Output};

use crate::support::server::{Server, until};

/// A second server of the same store, which must not start.
fn second(server: &Server, data: &str) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.current_dir(server.directory()).args(["serve", "--listen", "127.0.0.1:0", "--data", data]);
    command.env("NO_COLOR", "1").output().expect("it starts")
}

#[test]
fn neither_a_link_nor_a_removed_lock_lets_a_second_server_in() {
    let server = Server::start();
    let id = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    let other = server.directory().join("other");
    fs::create_dir(&other).expect("it can be made");
    std::os::unix::fs::symlink(server.data().join("jobs.db"), other.join("jobs.db")).expect("a link can be made");
    for entry in fs::read_dir(server.data()).expect("it can be listed").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".lock") {
            fs::remove_file(entry.path()).expect("it can be removed");
        }
    }
    for data in ["other", "data"] {
        let refused = second(&server, data);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("in use by another process"), "{said}");
    }
    server.in_state(&id, "waiting");
    assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status, 200);
}

#[test]
fn a_server_whose_store_is_another_file_writes_nothing_and_stops() {
    let mut server = Server::start();
    let id = server.submit(r#"{"work":"echo"}"#)["id"].as_str().expect("an id").to_owned();
    server.ended(&id);
    let (database, away) = (server.data().join("jobs.db"), server.data().join("away.db"));
    fs::rename(&database, &away).expect("it can be moved");
    let refused = server.try_request("POST", "/api/v1/jobs", &[], br#"{"work":"echo"}"#);
    assert!(refused.is_none_or(|answer| answer.status == 503), "nobody would find it");
    let status = server.wait();
    assert_eq!(status.code(), Some(2), "{}", server.log());
    assert!(server.log().contains("taken over by another process, or is not at its place"), "{}", server.log());
    fs::rename(&away, &database).expect("it can be moved");
    server.restart();
    assert_eq!(server.job(&id)["state"], "completed");
    until("nothing else is there", || {
        (server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len) == Some(1)).then_some(())
    });
}
