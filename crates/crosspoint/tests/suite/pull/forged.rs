//! An agent that joined under its own name and reports on jobs that are not its own.

use serde_json::{Value, json};

use crate::support::puller::Puller;
use crate::support::server::Server;

fn submit(server: &Server, work: &str) -> Value {
    server.submit(&json!({"work": work, "input": {"n": 1}}).to_string())["id"].clone()
}

fn clauses(job: &Value) -> Vec<&str> {
    let list = job["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|one| one["clause"].as_str().expect("a text")).collect()
}

#[test]
fn a_worker_cannot_end_the_job_of_another_and_that_it_tried_is_on_record() {
    let server = Server::start();
    let mut honest = Puller::joined(&server, "dig", 1);
    let forger = Puller::joined(&server, "spy", 2);
    let id = submit(&server, "dig");
    honest.take_some(&server, 1);
    let forged = [
        json!({"result": {"outputs": {"by": "nobody"}}}),
        json!({"failure": {"code": "agent_failed"}}),
        json!({"heard": true}),
        json!({"progress": {"percent": 99}}),
        json!({"ask": {"prompt": "Your password?"}, "n": 1}),
        json!({"violation": "it is a fraud"}),
    ];
    for said in &forged {
        assert_eq!(forger.report(&server, &id, 1, said), "gone", "{said}");
    }
    let path = format!(
        "/api/v1/agents/spy/output?session={}&job={}&attempt=1&offset=0",
        forger.session,
        id.as_str().expect("an id")
    );
    assert_eq!(server.post(&path, "lies").json(), json!({"output": "gone"}));
    let job = server.job(id.as_str().expect("an id"));
    assert_eq!((&job["state"], &job["progress"]["percent"]), (&json!("running"), &Value::Null), "{job}");
    assert_eq!(clauses(&job), ["ALL-2"; 7], "{job}");
    assert_eq!(honest.finish(&server, &id, 1), "taken");
    assert_eq!(forger.report(&server, &id, 1, &forged[0]), "gone");
    let job = server.job(id.as_str().expect("an id"));
    assert_eq!(job["outcome"]["outputs"], json!({"by": honest.session}), "{job}");
    assert_eq!(clauses(&job), ["ALL-2"; 8], "also after the end: {job}");
}

#[test]
fn what_is_recorded_of_one_job_is_bounded() {
    let server = Server::start();
    let mut honest = Puller::joined(&server, "dig", 1);
    let forger = Puller::joined(&server, "spy", 2);
    let id = submit(&server, "dig");
    honest.take_some(&server, 1);
    let report = json!({"id": id, "attempt": 1, "heard": true});
    let body = json!({"session": forger.session, "reports": vec![report; 1_000]});
    assert_eq!(forger.call(&server, "report", &body).status, 200);
    assert_eq!(clauses(&server.job(id.as_str().expect("an id"))).len(), 100);
    assert_eq!(honest.finish(&server, &id, 1), "taken");
}

#[test]
fn words_that_an_agent_chose_are_not_in_the_log() {
    let server = Server::with("", &["--log", "debug"]);
    let mut agent = Puller::joined(&server, "dig", 1);
    let id = submit(&server, "dig");
    agent.take_some(&server, 1);
    assert_eq!(agent.report(&server, &id, 1, &json!({"violation": "x7secret was broken"})), "taken");
    assert_eq!(agent.finish(&server, &id, 1), "taken");
    let job = server.job(id.as_str().expect("an id"));
    assert_eq!(job["violations"][0]["what"], "x7secret was broken", "its caller is told");
    let log = server.log();
    assert!(log.contains("a rule was broken") && !log.contains("x7secret"), "{log}");
    let line = log.lines().find(|line| line.contains("a rule was broken")).expect("it is there");
    assert!(line.contains(id.as_str().expect("an id")) && line.contains("agent="), "{line}");
}
