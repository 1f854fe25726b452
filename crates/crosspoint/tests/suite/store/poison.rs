//! A program that kills the server: it is not begun for ever, and no other job suffers for it (ALL-13).

use std::fs;

use serde_json::json;

use crate::support::programs::bash;
use crate::support::server::{Server, until};
use crate::support::task_agent::{TaskAgent, completed};

/// Kills the server, which has started its supervisor.
const KILLER: &str = r#"
echo run >> killed
read -r _ _ _ server _ < /proc/$PPID/stat
kill -9 "$server"
sleep 60
"#;

/// Works until it is released.
const PATIENT: &str = r#"
echo run >> patient
while [ ! -e go ]; do sleep 0.05; done
echo '{"done": true}'
"#;

fn lines(server: &Server, file: &str) -> usize {
    fs::read_to_string(server.directory().join(file)).map_or(0, |text| text.lines().count())
}

/// Starts the server, which is killed by the job that it takes up.
fn is_killed_again(server: &mut Server) {
    let mut child = server.command().spawn().expect("the program starts");
    let status = until("it is killed", || child.try_wait().expect("it can be asked"));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
}

fn why(server: &Server, id: &str) -> String {
    server.job(id)["stuck"]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_program_that_kills_the_server_is_begun_three_times_and_its_neighbour_goes_on() {
    let mut server = Server::configured(&[bash("killer", KILLER, ""), bash("patient", PATIENT, "")].concat());
    server.post("/api/v1/agents/killer/drain", "");
    let task = json!({"id": "deadly", "type": "killer", "payload": {}});
    assert_eq!(server.post("/tasks", &task.to_string()).status, 202);
    let neighbour = server.begin("patient");
    until("it works", || (lines(&server, "patient") == 1).then_some(()));
    server.post("/api/v1/agents/killer/drain", r#"{"drained": false}"#);
    server.wait();
    for _ in 0..2 {
        is_killed_again(&mut server);
    }
    server.restart();
    assert_eq!(lines(&server, "killed"), 3, "not a fourth time");
    // The caller sees a task that goes on. An operator sees why it does not.
    let shown = server.get("/tasks/deadly").json();
    assert_eq!(shown["status"], "in_progress", "{shown}");
    let listed = server.get("/api/v1/jobs?state=waiting").json();
    let id = listed["jobs"][0]["id"].as_str().expect("it is listed").to_owned();
    assert!(why(&server, &id).starts_with("poison: "), "{listed}");
    assert!(server.job(&id)["question"].is_null());
    let answered = server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input":1}"#);
    assert_eq!(answered.status, 409, "{answered:?}");
    // The other job was cut short as often, and is done.
    fs::write(server.directory().join("go"), "").expect("it can be written");
    let done = server.ended(&neighbour);
    assert_eq!(done["outcome"]["outputs"], json!({"done": true}), "{done}");
    // An operator may try again, which is the same job, or end it.
    let retried = server.post(&format!("/api/v1/jobs/{id}/retry"), "");
    assert_eq!((retried.status, &retried.json()["id"]), (202, &json!(id)), "{retried:?}");
    server.wait();
    assert_eq!(lines(&server, "killed"), 4);
    server.configure(&bash("other", "true", ""));
    server.restart();
    assert_eq!(server.job(&id)["state"], "failed", "its agent is gone, and nobody knows what it did");
}

#[test]
fn a_poisoned_job_can_be_cancelled_and_clean_restarts_poison_nobody() {
    let mut server = Server::with(&bash("patient", PATIENT, "grace_seconds = 0.1"), &[]);
    server.configure(&format!("[server]\ndrain_seconds = 0.05\n{}", bash("patient", PATIENT, "grace_seconds = 0.1")));
    let id = server.begin("patient");
    for starts in 2..6 {
        until("it works", || (lines(&server, "patient") == starts - 1).then_some(()));
        assert!(server.stop().success());
        server.restart();
    }
    until("it works", || (lines(&server, "patient") == 5).then_some(()));
    for starts in 6..8 {
        server.kill();
        server.restart();
        until("it works", || (lines(&server, "patient") == starts).then_some(()));
    }
    server.kill();
    server.restart();
    server.in_state(&id, "waiting");
    assert!(why(&server, &id).starts_with("poison: "));
    assert_eq!(server.post(&format!("/api/v1/jobs/{id}/cancel"), "").json()["state"], "cancelled");
    assert_eq!(lines(&server, "patient"), 7);
}

#[test]
fn a_task_that_goes_on_elsewhere_is_taken_up_however_often_the_server_is_killed() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    for kills in 1..=5 {
        agent.awaited("look", kills);
        server.kill();
        server.restart();
    }
    assert_eq!(server.job(&id)["state"], "running", "{}", why(&server, &id));
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    let job = server.ended(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"a": 1}), &json!(1)), "{job}");
}
