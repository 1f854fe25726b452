//! `crosspoint bridge run` when it is asked to stop, or killed.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::bridge_directory::Directory;
use crate::support::bridge_run::{Ran, signal};
use crate::support::programs::{bash, pids};
use crate::support::server::{Server, until};

/// An agent that notes its job, and waits until it may end.
fn waits() -> String {
    bash("waits", r#"echo "$CROSSPOINT_JOB_ID" >> ran; until [ -e go ]; do sleep 0.01; done; cat"#, "")
}

fn ended(driver: Child) -> Ran {
    driver.wait_with_output().expect("it ends").into()
}

#[test]
fn who_is_interrupted_while_an_agent_works_goes_on_later_with_the_same_job() {
    for name in ["INT", "TERM"] {
        let place = Directory::configured(&waits());
        let driver = place.begin(&[], &["./asks", "1", "waits"]);
        place.until_there("ran");
        signal(driver.id(), name);
        let ran = ended(driver);
        assert_eq!(ran.code, 130, "{ran:?}");
        assert!(ran.stderr.contains("the same command goes on"), "{ran:?}");
        assert_eq!(place.bridge_files(), [".agent-bridge.json", ".agent-request.json"]);
        place.write("go", "");
        let again = place.run(&[], &["./asks", "1", "waits"]);
        assert_eq!(again.code, 0, "{again:?}");
        place.is_answered(1);
        // The agent's program died with the driver, which was its own server. It ran again (ALL-3), for the same job.
        let ran = place.lines("ran");
        assert_eq!((ran.len(), ran.first() == ran.last()), (2, true), "{ran:?}");
        assert_eq!(place.lines("calls"), ["1 waits", "1 waits --resume"]);
        assert_eq!(place.bridge_files(), [""; 0]);
    }
}

#[test]
fn with_a_server_the_work_goes_on_meanwhile_and_is_done_once() {
    let server = Server::configured(&waits());
    let place = Directory::configured("");
    let command = ["./asks", "1", "waits"];
    let driver = place.begin(&["--server", &server.url()], &command);
    server.said_in("ran");
    signal(driver.id(), "INT");
    assert_eq!(ended(driver).code, 130);
    fs::write(server.directory().join("go"), "").expect("it can be written");
    assert_eq!(place.run(&["--server", &server.url()], &command).code, 0);
    place.is_answered(1);
    assert_eq!(server.said_in("ran").lines().count(), 1);
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    let mut server = Server::configured(&waits());
    let place = Directory::configured("");
    let data = server.data().display().to_string();
    let driver = place.begin(&["--data", &data], &["./asks", "1", "waits"]);
    server.said_in("ran");
    server.kill();
    fs::write(server.directory().join("go"), "").expect("it can be written");
    server.restart();
    let ran = ended(driver);
    assert_eq!(ran.code, 0, "{ran:?}");
    place.is_answered(1);
}

/// A program that does this when it is told to end, and shows when it is ready for it.
fn on_signal(action: &str) -> String {
    format!("trap '{action}' INT TERM; touch here; until [ -e go ]; do sleep 0.01; done")
}

#[test]
fn a_program_that_runs_is_told_and_how_it_ends_counts() {
    for (name, action, code) in
        [("INT", "exit 3", 130), ("TERM", "exit 42", 130), ("INT", "exit 0", 0), ("TERM", "exit 0", 0)]
    {
        let place = Directory::configured("");
        let driver = place.begin(&[], &["bash", "-c", &on_signal(action)]);
        place.until_there("here");
        signal(driver.id(), name);
        assert_eq!(ended(driver).code, code, "{name} {action}");
    }
    let place = Directory::configured("");
    let driver = place.begin(&[], &["bash", "-c", "touch here; exec sleep 600"]);
    place.until_there("here");
    signal(driver.id(), "TERM");
    assert_eq!(ended(driver).code, 130);
}

#[test]
fn what_is_remembered_stays_when_a_resumed_program_is_interrupted() {
    let place = Directory::configured("");
    let asked = json!({"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "agent_name": "echo", "prompt": "?"});
    place.write("ask", &asked.to_string());
    let script = format!(
        "#!/bin/bash\nif [ -z \"$1\" ]; then cp ask .agent-request.json; exit 42; fi\necho >> resumed; {}\n",
        on_signal("exit 1")
    );
    place.script("asks", &script);
    let driver = place.begin(&[], &["./asks"]);
    place.until_there("here");
    signal(driver.id(), "INT");
    assert_eq!(ended(driver).code, 130);
    assert_eq!(place.bridge_files(), [".agent-bridge.json", ".agent-response.json"]);
    place.write("go", "");
    // BRIDGE-4.4: the driver goes on at once with the recorded answer.
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!((place.lines("resumed").len(), place.bridge_files()), (2, vec![".agent-response.json".to_owned()]));
}

#[test]
fn a_program_does_not_outlive_its_driver() {
    let place = Directory::configured("");
    let mut driver = place.begin(&[], &["bash", "-c", "echo $$ > own.new; mv own.new own; exec sleep 600"]);
    place.until_there("own");
    let pid: u32 = place.read("own").trim().parse().expect("a number");
    assert!(pids().contains(&pid));
    driver.kill().expect("it can be killed");
    driver.wait().expect("it ends");
    let is_gone = || fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    until("it is gone", || is_gone().then_some(()));
}

/// Three processes that a script has started: a plain child, one in a session of its own, one whose parent is gone.
/// Each would go on writing.
const GHOSTS: &str = r#"#!/bin/bash
if [ -e ghosts ]; then
    for pid in $(cat ghosts); do [ -e "/proc/$pid" ] && echo "$pid" >> alive; done
    exit 0
fi
ghost='echo $$ >> ghosts.new; while :; do echo >> written; sleep 0.01; done'
bash -c "$ghost" &
setsid bash -c "$ghost" &
(bash -c "$ghost" &)
until [ "$(wc -l < ghosts.new)" = 3 ]; do sleep 0.01; done 2> /dev/null
mv ghosts.new ghosts
wait
"#;

#[test]
fn the_next_driver_has_the_directory_when_nothing_of_the_last_program_is_left() {
    let place = Directory::configured("");
    place.script("haunts", GHOSTS);
    let mut driver = place.begin(&[], &["./haunts"]);
    place.until_there("ghosts");
    driver.kill().expect("it can be killed");
    let ran = place.run(&[], &["./haunts"]);
    assert_eq!((ran.code, place.lines("alive")), (0, vec![]), "{ran:?}");
    driver.wait().expect("it ends");
    assert_eq!(place.lines("ghosts").len(), 3);
}

#[test]
fn what_a_program_leaves_running_lives_on_and_holds_nothing() {
    let place = Directory::configured("");
    let script = "setsid sleep 600 < /dev/null > /dev/null 2>&1 & echo $! > service";
    for _ in 0..2 {
        let ran = place.run(&[], &["bash", "-c", script]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let pid: u32 = place.read("service").trim().parse().expect("a number");
        assert!(pids().contains(&pid));
        place.run(&[], &["true"]);
        signal(pid, "KILL");
    }
}

/// The driver at a terminal, where `typed` is entered once the place has the file `ready`.
fn at_a_terminal(place: &Directory, command: &str, ready: &str, typed: &[u8]) -> (i32, String) {
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let line = format!("stty cols 100; '{}' bridge run -- {command}", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(place.path()).env("TERM", "xterm");
    script.env_remove("NO_COLOR").env_remove("CROSSPOINT_SERVER").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    place.until_there(ready);
    stdin.write_all(typed).expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    drop(stdin);
    (output.status.code().expect("a code"), String::from_utf8(output.stdout).expect("it is UTF-8"))
}

#[test]
fn at_a_terminal_the_program_hears_of_ctrl_c_once_and_not_twice() {
    let place = Directory::configured("");
    place.script("counts", "#!/bin/bash\ntrap 'echo >> heard; touch go' INT\ntouch here\nuntil [ -e go ]; do sleep 0.01; done\nsleep 0.2\nexit 1\n");
    let (code, said) = at_a_terminal(&place, "./counts", "here", b"\x03");
    assert_eq!((code, place.lines("heard").len()), (130, 1), "{said}");
}

#[test]
fn at_a_terminal_a_line_says_who_is_asked_and_since_when() {
    let agent = r#"echo '@crosspoint {"progress": {"step": "reading files"}}'; until [ -e go ]; do sleep 0.01; done; sleep 0.3; cat"#;
    let place = Directory::configured(&bash("reviewer", agent, ""));
    let asked = json!({"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "agent_name": "reviewer",
        "prompt": "SECRET", "phase": 3, "phase_name": "planning"});
    place.write("ask", &asked.to_string());
    place.script("asks", "#!/bin/bash\n[ -n \"$1\" ] && exit 0\ncp ask .agent-request.json; touch here go; exit 42\n");
    let (code, said) = at_a_terminal(&place, "./asks", "here", b"");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("phase 3 planning \u{b7} reviewer \u{b7} 0:0"), "{said}");
    assert!(said.contains("phase 3 planning \u{b7} reviewer: answered after"), "{said}");
    assert!(!said.contains("SECRET"), "{said}");
}
