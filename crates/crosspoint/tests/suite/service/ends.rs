//! How programs end that serve callers: cancelled, with their agent, and after Ctrl-C.

use std::io::Read as _;
use std::process::Command;

use serde_json::json;

use super::TASK;
use crate::support::server::until;
use crate::support::service::Service;

/// Writes the process that it is, and stays.
const STAYS: &str = "echo $$ >> pids; echo ran >> ran; sleep 600 & wait";

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn started(service: &Service, count: usize) -> String {
    let last = |text: String| text.lines().nth(count - 1).map(str::to_owned);
    until("the program runs", || last(service.file("pids")))
}

fn is_gone(pid: &str) {
    until("the program is gone", || (!is_alive(pid)).then_some(()));
}

#[test]
fn a_cancelled_task_ends_its_program_and_stays_cancelled() {
    let mut service = Service::of(STAYS, &["--grace-seconds", "0.2"]);
    let task = service.begin(TASK);
    let pid = started(&service, 1);
    assert_eq!(service.post(&format!("{task}/cancel"), &json!({})).status, 200);
    service.has_status(&task, "cancelled");
    is_gone(&pid);
    until("it is told", || service.said().contains("cancelled").then_some(()));
    service.kill();
    service.start();
    let again = service.post("/tasks?wait=5", &json!({"id": TASK, "type": "help", "payload": {}})).json();
    assert_eq!(again["status"], "cancelled", "{again}");
    assert_eq!(service.file("ran"), "ran\n");
}

#[test]
fn programs_die_with_their_agent_and_the_work_begins_again_when_it_is_asked_for() {
    let mut service = Service::of("if [ -e ran ]; then echo '{}'; else touch ran; echo $$ >> pids; sleep 600; fi", &[]);
    service.begin(TASK);
    let pid = started(&service, 1);
    service.kill();
    service.start();
    let again = service.post("/tasks?wait=60", &json!({"id": TASK, "type": "help", "payload": {}})).json();
    assert_eq!(again["status"], "completed", "{again}");
    assert!(!is_alive(&pid), "the first one was gone before the second began");
}

#[test]
fn work_that_may_not_begin_twice_fails_as_interrupted() {
    let mut service = Service::of(STAYS, &["--repeatable", "false"]);
    service.begin(TASK);
    let pid = started(&service, 1);
    service.kill();
    service.start();
    let again = service.post("/tasks?wait=60", &json!({"id": TASK, "type": "help", "payload": {}})).json();
    assert_eq!(again["status"], "failed", "{again}");
    assert!(again.to_string().contains("INTERRUPTED"), "{again}");
    is_gone(&pid);
    assert_eq!(service.file("ran"), "ran\n", "it began once");
}

#[test]
fn ctrl_c_lets_the_program_end_and_takes_no_more_work() {
    let mut service = Service::of("echo $$ >> pids; until [ -e go ]; do sleep 0.02; done; echo '{}'", &[]);
    let address = service.address();
    let caller = std::thread::spawn(move || {
        let body = json!({"request_id": "r-1", "task_type": "help", "inputs": {}}).to_string();
        crate::support::server::exchange(address, "POST", "/agents/run/sync", &[], body.as_bytes())
    });
    started(&service, 1);
    service.signal("INT");
    until("it leaves", || service.said().contains("leaving").then_some(()));
    let refused = service.run("r-2", &json!({}));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(service.get("/health/ready").status, 503);
    std::fs::write(service.directory().join("go"), "").expect("it can be written");
    assert_eq!(service.wait().code(), Some(0));
    let answer = caller.join().expect("it ends").expect("there is an answer");
    assert_eq!(answer.json()["status"], "ok", "{answer:?}");
}

#[test]
fn a_second_ctrl_c_ends_programs_at_once() {
    let mut service = Service::of(STAYS, &[]);
    service.begin(TASK);
    let pid = started(&service, 1);
    service.signal("TERM");
    until("it leaves", || service.said().contains("leaving").then_some(()));
    service.signal("TERM");
    assert_eq!(service.wait().code(), Some(130));
    is_gone(&pid);
}

#[test]
fn a_program_that_outlived_all_that_watched_over_it_is_gone_before_the_work_begins_again() {
    let script = "echo $$ >> pids; if [ -e ran ]; then echo '{}'; else touch ran; sleep 600; fi";
    let mut service = Service::of(script, &[]);
    service.begin(TASK);
    let pid = started(&service, 1);
    let supervisor = parent_of(&pid);
    // The supervisor cannot do anything any more when it learns that the agent is gone.
    let signal = |name: &str| Command::new("kill").args(["-s", name, &supervisor]).status().expect("kill runs");
    signal("STOP");
    service.kill();
    signal("KILL");
    assert!(is_alive(&pid));
    service.start();
    let again = service.post("/tasks?wait=60", &json!({"id": TASK, "type": "help", "payload": {}})).json();
    assert_eq!(again["status"], "completed", "{again}");
    assert!(!is_alive(&pid), "the first one was gone before the second began");
}

fn parent_of(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = stat.rsplit_once(") ").expect("it has a name").1;
    rest.split(' ').nth(1).expect("it has a parent").to_owned()
}

#[test]
fn callers_that_follow_a_run_are_told_its_end_when_the_agent_stops() {
    let mut service = Service::of("echo $$ >> pids; until [ -e go ]; do sleep 0.02; done; echo '{\"done\": 1}'", &[]);
    let address = service.address();
    let caller = std::thread::spawn(move || {
        let body = json!({"request_id": "r-1", "task_type": "help", "inputs": {}}).to_string();
        crate::support::server::exchange(address, "POST", "/agents/run/stream", &[], body.as_bytes())
    });
    started(&service, 1);
    service.signal("TERM");
    until("it leaves", || service.said().contains("leaving").then_some(()));
    std::fs::write(service.directory().join("go"), "").expect("it can be written");
    assert_eq!(service.wait().code(), Some(0));
    let stream = caller.join().expect("it ends").expect("there is an answer").text();
    assert!(stream.contains("event: final") && stream.contains("{\"done\": 1}"), "{stream}");
}

#[test]
fn the_callers_document_does_not_outlive_the_start_after_a_kill() {
    let mut service = Service::of("echo \"$CROSSPOINT_DOCUMENT\" >> documents; sleep 600", &[]);
    service.begin(TASK);
    let document = until("the program runs", || service.file("documents").lines().next().map(str::to_owned));
    assert!(std::fs::exists(&document).is_ok_and(|exists| exists), "{document}");
    service.kill();
    assert!(std::fs::exists(&document).is_ok_and(|exists| exists), "a killed agent leaves it");
    service.start();
    assert!(std::fs::exists(&document).is_ok_and(|exists| !exists), "{document}");
}

#[test]
fn an_agent_ends_though_its_stderr_is_not_read() {
    let (mut unread, stderr) = std::io::pipe().expect("a pipe can be made");
    let directory = std::env::temp_dir().join(format!("crosspoint-unread-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let mut agent = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    agent.args(["agent", "helper", "--work", "help", "--listen", "127.0.0.1:0", "--", "cat"]).current_dir(&directory);
    let mut agent = agent.stderr(stderr.try_clone().expect("it can be shared")).spawn().expect("it starts");
    let mut said = [0; 16];
    unread.read_exact(&mut said).expect("it says where it is");
    // This one writes until the pipe is full, and then waits.
    let mut fills = Command::new("yes").stdout(stderr).spawn().expect("it starts");
    let state = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    until("the pipe is full", || state(fills.id()).contains("S (sleeping)").then_some(()));
    let told = Command::new("kill").args(["-s", "TERM", &agent.id().to_string()]).status();
    assert!(told.is_ok_and(|told| told.success()));
    let ended = until("it ends", || agent.try_wait().expect("it can be asked"));
    assert!(ended.success(), "{ended}");
    let _ = (fills.kill(), fills.wait());
}
