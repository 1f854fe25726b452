//! `crosspoint agent` that was asked to stop, and work that was on its way to it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::puller::Puller;
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent};
use crate::support::server::{PATIENCE, Server, until};
use crate::support::workers::Worker;

const JOB: &str = "01a1e2d0-641e-7000-8000-0005a7fde28e";

/// A server by hand: it answers the first call for work with a job, when the test says so.
struct Script {
    asks: Mutex<Sender<()>>,
    answers: Mutex<Receiver<()>>,
    reports: Mutex<Vec<Value>>,
    /// Whether the server knows how to take work back.
    knows_declined: bool,
}

impl Script {
    fn answer(&self, asked: &Request, connection: &mut Connection) -> After {
        let body = if asked.body.is_empty() { Value::Null } else { asked.json() };
        let (_, what) = asked.path.rsplit_once('/').expect("a path");
        let nothing = json!({"jobs": [], "stop": [], "answers": []});
        let answer = match what {
            "take?wait=0" => nothing,
            take if take.starts_with("take") && body["room"] != 0 => {
                self.asks.lock().expect("no thread panics with it").send(()).expect("the test waits");
                self.answers
                    .lock()
                    .expect("no thread panics with it")
                    .recv_timeout(PATIENCE)
                    .expect("the test says so");
                let job = json!({"id": JOB, "attempt": 1, "work": "dig", "request_id": "r", "input": {}});
                json!({"jobs": [job], "stop": [], "answers": []})
            }
            take if take.starts_with("take") => {
                return connection.until_gone();
            }
            "report" => {
                let reports = body["reports"].as_array().expect("a list").clone();
                self.reports.lock().expect("no thread panics with it").extend(reports.clone());
                if !self.knows_declined && reports.iter().any(|report| report["declined"] == true) {
                    return connection.json(400, &json!({"error": {"code": "invalid"}}));
                }
                json!({"reports": vec!["taken"; reports.len()]})
            }
            _ => json!({}),
        };
        connection.json(200, &answer)
    }
}

fn worker(url: &str, directory: &Path) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.args(["agent", "dig", "--work", "dig", "--server", url]);
    command.args(["--", "sh", "-c", "echo > begun"]).current_dir(directory).env("NO_COLOR", "1");
    command.stderr(fs::File::create(directory.join("log")).expect("a log can be made"));
    command.spawn().expect("it starts")
}

/// Has a worker asked to stop while a job is on its way to it. Returns what the worker reports.
fn crossing(name: &str, knows_declined: bool) -> Vec<Value> {
    let directory = std::env::temp_dir().join(format!("crosspoint-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("it can be made");
    let (asks, asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let (asks, answers) = (Mutex::new(asks), Mutex::new(answers));
    let script = Arc::new(Script { asks, answers, reports: Mutex::default(), knows_declined });
    let serving = script.clone();
    let server = ScriptedAgent::start(move |asked, connection| serving.answer(asked, connection));
    let mut child = worker(&server.url(), &directory);
    asked.recv_timeout(PATIENCE).expect("it asks for work");
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    let said = || fs::read_to_string(directory.join("log")).unwrap_or_default();
    until("it leaves", || said().contains("leaving: no more work is taken").then_some(()));
    answer.send(()).expect("the call waits");
    let status = until("it ends", || child.try_wait().expect("it can be asked"));
    assert_eq!(status.code(), Some(0), "{}", said());
    assert!(!directory.join("begun").exists(), "no program is started");
    fs::remove_dir_all(&directory).expect("it can be removed");
    let reports = script.reports.lock().expect("no thread panics with it");
    reports.clone()
}

#[test]
fn a_job_that_was_on_its_way_is_given_back_and_not_begun() {
    assert_eq!(crossing("declines", true), [json!({"id": JOB, "attempt": 1, "declined": true})]);
}

#[test]
fn a_server_that_cannot_take_it_back_is_told_that_nothing_was_begun() {
    let reports = crossing("gives-up", false);
    let failure = &reports.last().expect("there is a report")["failure"];
    assert_eq!((&failure["code"], &failure["dispatched"]), (&json!("unavailable"), &json!(false)), "{reports:?}");
}

#[test]
fn an_idle_worker_leaves_at_once_and_what_comes_then_is_for_others() {
    let server = Server::start();
    let mut worker = Worker::joined(&server, "dig", &["--lease-seconds", "300"], &["cat"]);
    worker.signal("INT");
    assert_eq!(worker.wait().code(), Some(0), "a call that waits for a third of the lease does not delay it");
    let id = server.begin("dig");
    let _other = Worker::joined(&server, "dig", &["--lease-seconds", "300"], &["cat"]);
    let job = server.ended(&id);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job}");
}

/// Nothing was begun, so this holds also for an agent whose work must not be repeated.
#[test]
fn what_is_declined_goes_back_to_the_queue_without_a_repeat_or_a_failure() {
    let server = Server::start();
    let terms = |concurrency: u32| json!({"work": ["dig"], "concurrency": concurrency, "lease_seconds": 60, "repeatable": false});
    let (mut first, mut second) = (Puller::new("dig", 1), Puller::new("dig", 2));
    assert_eq!(first.join(&server, terms(1)).status, 200);
    let id = server.begin("dig");
    let given = first.take_some(&server, 1)["jobs"][0].clone();
    assert_eq!((&given["id"], &given["attempt"]), (&json!(id), &json!(1)));
    for wrong in [json!({"declined": false}), json!({"declined": 1}), json!({"declined": true, "heard": true})] {
        let mut report = wrong.clone();
        (report["id"], report["attempt"]) = (json!(id), json!(1));
        let answer = first.call(&server, "report", &json!({"session": first.session, "reports": [report]}));
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    assert_eq!(first.join(&server, terms(0)).status, 200);
    let declined = json!({"declined": true});
    assert_eq!(first.report(&server, &json!(id), 1, &declined), "taken");
    assert_eq!(server.in_state(&id, "queued")["attempts"], 1);
    assert_eq!(first.report(&server, &json!(id), 1, &declined), "gone", "its answer was lost");
    assert_eq!(second.join(&server, terms(1)).status, 200);
    let given = second.take_some(&server, 1)["jobs"][0].clone();
    assert_eq!((&given["id"], &given["attempt"]), (&json!(id), &json!(2)));
    assert_eq!(first.report(&server, &json!(id), 1, &declined), "gone", "it is another's by now");
    assert_eq!(second.finish(&server, &json!(id), 2), "taken");
    assert_eq!(server.ended(&id)["state"], "completed");
    let events = server.get(&format!("/api/v1/jobs/{id}/events")).text();
    let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["accepted", "started", "interrupted", "started", "completed"]);
}
