//! `crosspoint agent`: a program on another machine that does the work of a server.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::program::{crosspoint, root, transcript};
use crate::support::programs::nothing_runs_for;
use crate::support::server::{Server, until};
use crate::support::workers::Worker;

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

fn submit(server: &Server, work: &str) -> String {
    id(&server.submit(&json!({"work": work, "input": {"text": "hello"}}).to_string()))
}

#[test]
fn a_program_in_another_shell_does_the_work_and_says_one_line_about_it() {
    let server = Server::start();
    let mut worker = Worker::joined(&server, "shout", &[], &["tr", "a-z", "A-Z"]);
    let job = submit(&server, "shout");
    let done = server.ended(&job);
    assert_eq!(done["outcome"]["outputs"], json!({"TEXT": "HELLO"}), "{done}");
    worker.says("completed");
    let said = worker.said();
    let line = said.lines().find(|line| line.starts_with("job ")).expect("a line for the job");
    assert!(line.starts_with(&format!("job {job}  shout  completed  ")) && line.ends_with(" s"), "{line}");
    assert!(!said.to_lowercase().contains("hello"), "never what it was about: {said}");
    worker.signal("INT");
    assert_eq!(worker.wait().code(), Some(0));
    let agent = server.get("/api/v1/agents/shout").json();
    assert!(agent["away_since"].is_string(), "it has said goodbye: {agent}");
}

#[test]
fn progress_output_and_failures_go_through() {
    let server = Server::start();
    let script =
        r#"echo first; echo '@crosspoint {"progress": 40, "step": "Dig"}'; seq 1 200000; echo rock >&2; exit 3"#;
    let _worker = Worker::joined(&server, "dig", &[], &["sh", "-c", script]);
    let job = submit(&server, "dig");
    let failure = server.ended(&job)["outcome"]["failure"].clone();
    assert_eq!(failure["code"], "agent_failed", "{failure}");
    assert_eq!(failure["details"], json!({"exit_code": 3, "stderr": "rock\n"}), "{failure}");
    let events = server.get(&format!("/api/v1/jobs/{job}/events")).text();
    assert!(events.contains(r#""percent":40.0,"step":"Dig""#), "the progress is there");
    let printed: String = events
        .split("event: output\n")
        .skip(1)
        .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
        .map(|data| serde_json::from_str::<Value>(data).expect("JSON")["text"].as_str().expect("text").to_owned())
        .collect();
    let expected = "first\n".to_owned() + &(1..=200_000).map(|number| format!("{number}\n")).collect::<String>();
    assert!(printed == expected, "all of it, in order: {} bytes of {}", printed.len(), expected.len());
}

#[test]
fn a_program_gets_what_it_is_given_and_secrets_need_not_stand_in_arguments() {
    let server = Server::start();
    let more = ["--env", "MODE=fast", "--env", "NO_COLOR"];
    let script = r#"echo "{\"mode\": \"$MODE\", \"handed_on\": \"$NO_COLOR\", \"other\": \"$CARGO_MANIFEST_DIR\"}""#;
    let _worker = Worker::joined(&server, "look", &more, &["sh", "-c", script]);
    let outputs = server.ended(&submit(&server, "look"))["outcome"]["outputs"].clone();
    assert_eq!(outputs, json!({"mode": "fast", "handed_on": "1", "other": ""}));
    let unset = ["agent", "look", "--work", "look", "--env", "NOBODY_HAS_SET_THIS", "--", "cat"];
    let said = transcript(&mut crosspoint(&unset));
    assert!(said.contains("NOBODY_HAS_SET_THIS is not set here") && said.starts_with("exit 2\n"), "{said}");
    for ours in ["CROSSPOINT_JOB_ID=x", "CROSSPOINT_SERVER", "TRACEPARENT=x"] {
        let said = transcript(&mut crosspoint(&["agent", "look", "--work", "look", "--env", ours, "--", "cat"]));
        assert!(said.contains("set by crosspoint itself") && said.starts_with("exit 2\n"), "{said}");
    }
}

#[test]
fn a_question_is_asked_and_its_answer_arrives() {
    let server = Server::start();
    let script = r#"read input; echo '@crosspoint {"ask": {"prompt": "Which?"}}'; read one
        echo '@crosspoint {"ask": {"prompt": "Sure?"}}'; read two; echo "{\"one\": $one, \"two\": $two}""#;
    let _worker = Worker::joined(&server, "choose", &["--ask"], &["bash", "-c", script]);
    let job = submit(&server, "choose");
    for (prompt, answer) in [("Which?", "left"), ("Sure?", "yes")] {
        until(prompt, || (server.job(&job)["question"]["prompt"] == prompt).then_some(()));
        let answered = server.post(&format!("/api/v1/jobs/{job}/answer"), &json!({"input": answer}).to_string());
        assert_eq!(answered.status, 200, "{answered:?}");
    }
    assert_eq!(server.ended(&job)["outcome"]["outputs"], json!({"one": "left", "two": "yes"}));
}

#[test]
fn a_job_that_waits_for_a_person_leaves_its_place_to_others() {
    let server = Server::start();
    let script = r#"read input; case $input in *question*) echo '@crosspoint {"ask": {"prompt": "Which?"}}'; read one;; esac
        echo "{\"one\": ${one:-null}}""#;
    let _worker = Worker::joined(&server, "choose", &["--ask", "--concurrency", "1"], &["bash", "-c", script]);
    let asker = id(&server.submit(r#"{"work": "choose", "input": {"text": "question"}}"#));
    server.in_state(&asker, "waiting");
    let behind = submit(&server, "choose");
    assert_eq!(server.ended(&behind)["outcome"]["outputs"], json!({"one": null}));
    assert_eq!(server.job(&asker)["state"], "waiting");
    assert_eq!(server.post(&format!("/api/v1/jobs/{asker}/answer"), r#"{"input": "left"}"#).status, 200);
    assert_eq!(server.ended(&asker)["outcome"]["outputs"], json!({"one": "left"}));
}

#[test]
fn a_cancel_reaches_the_program_and_ctrl_c_lets_it_end() {
    let server = Server::start();
    let mut worker = Worker::joined(&server, "sleep", &[], &["sh", "-c", "echo up; sleep 1000"]);
    let job = submit(&server, "sleep");
    until("it runs", || {
        server.get(&format!("/api/v1/jobs/{job}/events?follow=false")).text().contains("up").then_some(())
    });
    assert_eq!(server.post(&format!("/api/v1/jobs/{job}/cancel"), "").status, 200);
    worker.says("stopped");
    nothing_runs_for(&job);
    // The program under way may end. A second Ctrl-C does not wait for it.
    let other = submit(&server, "sleep");
    until("it runs", || {
        server.get(&format!("/api/v1/jobs/{other}/events?follow=false")).text().contains("up").then_some(())
    });
    worker.signal("INT");
    worker.says("1 program may end");
    // Until the server knows of the stop, it may queue work for the worker, which then goes back.
    until("the server knows", || (server.get("/api/v1/agents/sleep").json()["concurrency"] == 0).then_some(()));
    let behind = submit(&server, "sleep");
    assert_eq!(server.in_state(&behind, "queued")["agent"], Value::Null, "nothing more is taken");
    worker.signal("INT");
    assert_eq!(worker.wait().code(), Some(130));
    nothing_runs_for(&other);
    assert_eq!(server.in_state(&other, "retrying")["attempts"], 1, "it comes back at once");
}

#[test]
fn it_waits_for_a_server_and_work_waits_for_it() {
    let mut server = Server::start();
    let worker = Worker::joined(&server, "shout", &[], &["cat"]);
    drop(worker);
    until("it is away", || server.get("/api/v1/agents/shout").json()["away_since"].is_string().then_some(()));
    assert!(server.stop().success());
    let mut worker = Worker::start(&server, "shout", &[], &["cat"]);
    worker.says("it is waited for");
    assert_eq!(worker.said().matches("waited for").count(), 1, "once");
    worker.kill();
    server.restart();
    let job = submit(&server, "shout");
    let reason = until("it is stuck", || server.job(&job)["stuck"]["reason"].as_str().map(str::to_owned));
    assert!(reason.starts_with("agent shout is away since "), "{reason}");
    let worker = Worker::joined(&server, "shout", &[], &["cat"]);
    assert_eq!(server.ended(&job)["outcome"]["outputs"], json!({"text": "hello"}));
    // A server that comes back at another address is found too.
    server.kill();
    worker.says("it is waited for");
    server.restart();
    worker.says("there again");
    assert_eq!(server.ended(&submit(&server, "shout"))["state"], "completed");
}

#[test]
fn mistakes_are_told_at_once() {
    let server = Server::start();
    let url = server.url();
    let said = |arguments: &[&str]| transcript(&mut crosspoint(&[&["agent"], arguments, &["--server", &url]].concat()));
    let missing =
        transcript(&mut crosspoint(&["agent", "a", "--work", "w", "--server", &url, "--", "./no-such-program"]));
    assert!(
        missing.starts_with("exit 2") && missing.contains("no-such-program") && missing.contains("hint:"),
        "{missing}"
    );
    let taken = transcript(&mut crosspoint(&["agent", "echo", "--work", "w", "--server", &url, "--", "cat"]));
    assert!(taken.starts_with("exit 2") && taken.contains("an agent of this name is configured"), "{taken}");
    let nothing = said(&["a", "--work", "w"]);
    assert!(nothing.starts_with("exit 2") && nothing.contains("PROGRAM"), "{nothing}");
    let lease = transcript(&mut crosspoint(&["agent", "a", "--work", "w", "--lease-seconds", "1", "--", "cat"]));
    assert!(lease.starts_with("exit 2") && lease.contains("from 5 to 300"), "{lease}");
    assert_eq!(server.get("/api/v1/agents/a").status, 404, "no worker has joined");
    let forgotten = transcript(&mut crosspoint(&["agents", "forget", "echo", "--server", &url]));
    assert!(
        forgotten.starts_with("exit 2") && forgotten.contains("remove its table from the configuration"),
        "{forgotten}"
    );
}

#[test]
fn the_worker_of_the_examples_works() {
    let mut server = Server::start();
    let script = root().join("examples/pull/worker.py");
    let mut child =
        Command::new("python3").arg(script).args([&server.url(), "py", "py"]).spawn().expect("python is there");
    until("it has joined", || (server.get("/api/v1/agents/py").status == 200).then_some(()));
    let done = server.ended(&submit(&server, "py"));
    assert_eq!(done["outcome"]["outputs"], json!({"text": "HELLO"}), "{done}");
    // The worker waits for a server that is gone for a while and then no longer knows it.
    server.stop();
    server.restart_in_place();
    let done = server.ended(&submit(&server, "py"));
    assert_eq!(done["outcome"]["outputs"], json!({"text": "HELLO"}), "{done}");
    assert!(child.try_wait().expect("it can be asked").is_none(), "it runs on");
    let _ = child.kill();
    let _ = child.wait();
    let text = fs::read_to_string(root().join("examples/pull/worker.py")).expect("it can be read");
    let page = fs::read_to_string(root().join("docs/api.md")).expect("it can be read");
    assert!(page.contains("examples/pull/worker.py") && text.lines().count() < 50);
}
