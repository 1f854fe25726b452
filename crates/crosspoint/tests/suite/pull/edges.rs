//! The pull side when things go wrong: fewer jobs are taken than announced, results come late, rules are broken,
//! documents are gone.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::programs::violations;
use crate::support::puller::Puller;
use crate::support::server::{Server, until};

fn states(server: &Server, jobs: &[String]) -> Vec<Value> {
    jobs.iter().map(|job| server.job(job)["state"].clone()).collect()
}

#[test]
fn what_is_laid_out_and_has_no_place_any_more_goes_back_to_the_queue() {
    let server = Server::start();
    let terms = |concurrency: u32| json!({"work": ["dig"], "concurrency": concurrency, "lease_seconds": 60});
    let (first, second) = (Puller::new("dig", 1), Puller::new("dig", 2));
    assert_eq!(first.join(&server, terms(3)).status, 200);
    assert_eq!(second.join(&server, terms(2)).status, 200);
    let jobs: Vec<String> = (0..5).map(|_| server.begin("dig")).collect();
    jobs.iter().for_each(|job| drop(server.in_state(job, "running")));
    second.leave(&server);
    until("two go back", || {
        (states(&server, &jobs) == json!(["running", "running", "running", "queued", "queued"]).as_array().cloned()?)
            .then_some(())
    });
    assert_eq!(first.join(&server, terms(1)).status, 200);
    until("two more", || {
        (states(&server, &jobs).iter().filter(|state| **state == "queued").count() == 4).then_some(())
    });
    let mut first = first;
    for _ in &jobs {
        let given = first.take_some(&server, 1)["jobs"][0].clone();
        let attempt = u32::try_from(given["attempt"].as_u64().expect("a number")).expect("a small one");
        assert_eq!(first.finish(&server, &given["id"], attempt), "taken");
    }
    jobs.iter().for_each(|job| assert_eq!(server.ended(job)["state"], "completed"));
}

#[test]
fn results_that_come_late_are_recorded_and_repeats_of_the_outcome_are_not() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let (done, cancelled, failed) = (server.begin("dig"), server.begin("dig"), server.begin("dig"));
    until("all are given", || {
        worker.take(&server, 4 - worker.holding.len());
        (worker.holding.len() == 3).then_some(())
    });
    let result = |text: &str| json!({"result": {"outputs": {"text": text}}});
    let failure = json!({"failure": {"code": "agent_failed"}});
    assert_eq!(worker.report(&server, &json!(done), 1, &result("one")), "taken");
    assert_eq!(worker.report(&server, &json!(done), 1, &result("one")), "gone", "its answer was lost");
    assert!(violations(&server.job(&done)).is_empty());
    assert_eq!(worker.report(&server, &json!(done), 1, &result("two")), "gone");
    assert_eq!(violations(&server.job(&done)), ["a result came again after the outcome"]);
    server.cancel(&cancelled);
    assert_eq!(worker.report(&server, &json!(cancelled), 1, &result("late")), "gone");
    assert_eq!(violations(&server.job(&cancelled)), ["a result came after the job was cancelled"]);
    assert_eq!(worker.report(&server, &json!(failed), 1, &failure), "taken");
    assert_eq!(worker.report(&server, &json!(failed), 1, &failure), "gone");
    assert!(violations(&server.job(&failed)).is_empty());
    assert_eq!(worker.report(&server, &json!(failed), 1, &result("all the same")), "gone");
    assert_eq!(violations(&server.job(&failed)), ["a result came that contradicts the outcome"]);
}

#[test]
fn broken_rules_are_recorded_once_for_each_rule_and_only_so_many() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let job = server.begin("dig");
    worker.take_some(&server, 1);
    let report = |rule: &str| worker.report(&server, &json!(job), 1, &json!({"violation": rule}));
    assert_eq!((report("it dug too deep"), report("it dug too deep")), ("taken".to_owned(), "taken".to_owned()));
    assert_eq!(violations(&server.job(&job)), ["it dug too deep"]);
    for number in 0..30 {
        assert_eq!(report(&format!("rule {number}")), "taken");
    }
    assert_eq!(violations(&server.job(&job)).len(), 20);
    for wrong in [json!(7), json!(""), json!("x".repeat(201)), json!("a\nb")] {
        let body = json!({"session": worker.session, "reports": [{"id": job, "attempt": 1, "violation": wrong}]});
        let answer = worker.call(&server, "report", &body);
        assert_eq!((answer.status, &answer.json()["error"]["at"]), (400, &json!("/reports/0/violation")));
    }
    assert_eq!(worker.report(&server, &json!(job), 2, &json!({"violation": "not its own"})), "gone");
    assert_eq!(worker.finish(&server, &json!(job), 1), "taken");
}

#[test]
fn a_job_whose_document_is_gone_fails_and_takes_no_place() {
    let mut server = Server::start();
    Puller::joined(&server, "dig", 1).leave(&server);
    let (lost, other) = (server.begin("dig"), server.begin("dig"));
    assert!(server.stop().success());
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM document WHERE job = \
                  (SELECT min(job) FROM document)'); c.commit()";
    let removed = Command::new("python3").args(["-c", script]).arg(server.data().join("jobs.db")).status();
    assert!(removed.is_ok_and(|status| status.success()), "somebody's hand has removed it");
    server.restart();
    let mut worker = Puller::joined(&server, "dig", 2);
    let given = until("the other is given", || {
        let given = worker.take(&server, 1)["jobs"].clone();
        (given != json!([])).then_some(given)
    });
    assert_eq!(given[0]["id"], json!(other));
    assert_eq!(server.ended(&lost)["outcome"]["failure"]["code"], "internal");
}
