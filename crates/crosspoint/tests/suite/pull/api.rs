//! The pull side of the native API: agents that join, take work and report, over bare sockets.

use serde_json::{Value, json};

use crate::support::puller::Puller;
use crate::support::server::{Answer, Server, until};

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

fn why(server: &Server, id: &str) -> String {
    until("it is stuck", || server.job(id)["stuck"]["reason"].as_str().map(str::to_owned))
}

fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
    error
}

/// Submits work for an agent of that name.
fn submit(server: &Server, work: &str) -> String {
    id(&server.submit(&json!({"work": work, "input": {"n": 1}}).to_string()))
}

/// A call's reports are applied first, and jobs are given after that: an agent that works at once needs one call per
/// job.
#[test]
fn one_call_reports_and_takes() {
    let server = Server::start();
    let worker = Puller::joined(&server, "dig", 1);
    let take = |room: u32, reports: Value| {
        let body = json!({"session": worker.session, "room": room, "reports": reports}).to_string();
        server.post("/api/v1/agents/dig/take?wait=20", &body)
    };
    let first = submit(&server, "dig");
    let given = take(1, json!([])).json();
    assert_eq!((&given["jobs"][0]["id"], given.get("reports")), (&json!(first), None), "nothing was said");
    let second = submit(&server, "dig");
    let result = json!([{"id": first, "attempt": 1, "result": {"outputs": {"done": 1}}}]);
    // The worker lists the job that it reports, because it does not know yet that the report was taken.
    let holding = json!([{"id": first, "attempt": 1, "answers": 0}]);
    let body = json!({"session": worker.session, "room": 1, "holding": holding, "reports": result}).to_string();
    let given = server.post("/api/v1/agents/dig/take?wait=20", &body).json();
    assert_eq!((&given["reports"], &given["jobs"][0]["id"]), (&json!(["taken"]), &json!(second)));
    assert_eq!(given["stop"], json!([]), "that is no work to be stopped");
    assert_eq!(server.job(&first)["outcome"]["outputs"], json!({"done": 1}), "it is on disk when the call is answered");
    // A worker that lost that answer reports again, and is given again the jobs that it does not list.
    let again = take(1, result).json();
    assert_eq!((&again["reports"], &again["jobs"][0]["id"]), (&json!(["gone"]), &json!(second)));
    assert!(server.job(&first)["violations"].is_null());
    // A mistake refuses the whole call, and nothing is given.
    let wrong = json!([{"id": second, "attempt": 1, "result": {}}]);
    assert_eq!(refused(&take(1, wrong), 400, "invalid")["at"], "/reports/0/result");
    assert_eq!(server.job(&second)["state"], "running");
    let twice = format!(r#"{{"session":"{}","session":"x","room":1,"reports":[]}}"#, worker.session);
    refused(&server.post("/api/v1/agents/dig/take", &twice), 400, "invalid");
}

#[test]
fn work_is_known_once_its_agent_has_joined_and_is_done_by_the_worker_that_asks() {
    let server = Server::start();
    refused(&server.post("/api/v1/jobs", r#"{"work":"dig"}"#), 400, "unsupported");
    let mut worker = Puller::joined(&server, "dig", 1);
    let agent = server.get("/api/v1/agents/dig").json();
    let shown = json!({
        "name": "dig", "contract": "pull", "work": ["dig"], "concurrency": 4, "running": 0,
        "breaker": {"state": "closed", "failures": 0, "until": null}, "drained": false, "configured": false,
        "away_since": null
    });
    assert_eq!(agent, shown);
    let job = submit(&server, "dig");
    let ordered = worker.take_some(&server, 4);
    let given = &ordered["jobs"][0];
    // Without a caller's trace, the trace id is the job's id, and the attempt is a span of it.
    let trace = format!("00-{}-", job.replace('-', ""));
    assert!(given["traceparent"].as_str().is_some_and(|parent| parent.starts_with(&trace)), "{given}");
    let expected = json!({
        "id": job, "attempt": 1, "work": "dig", "request_id": job, "output_offset": 0, "input": {"n": 1},
        "traceparent": given["traceparent"]
    });
    assert_eq!(given, &expected);
    assert_eq!(server.job(&job)["agent"], "dig");
    assert_eq!(worker.finish(&server, &given["id"], 1), "taken");
    let done = server.ended(&job);
    assert_eq!(done["outcome"], json!({"status": "completed", "outputs": {"by": worker.session}, "artifacts": []}));
    // A worker that did not hear that its report was taken repeats it, and no harm is done.
    assert_eq!(worker.finish(&server, &given["id"], 1), "gone");
    assert!(server.job(&job)["violations"].is_null());
}

#[test]
fn what_was_given_and_did_not_arrive_is_given_again() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let jobs: Vec<String> = (0..3).map(|_| submit(&server, "dig")).collect();
    until("all are with it", || (server.get("/api/v1/agents/dig").json()["running"] == 3).then_some(()));
    worker.take_and_vanish(&server, 3);
    let ordered = worker.take(&server, 4);
    let given: Vec<&Value> = ordered["jobs"].as_array().expect("a list").iter().map(|job| &job["id"]).collect();
    assert_eq!(given, jobs.iter().map(|job| json!(job)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    assert_eq!(ordered["jobs"][2]["input"], json!({"n": 1}));
    assert_eq!(ordered["jobs"][2]["attempt"], 1, "it is the same attempt");
    for job in &jobs {
        assert_eq!(worker.finish(&server, &json!(job), 1), "taken");
        assert_eq!(server.ended(job)["attempts"], 1);
    }
}

#[test]
fn a_stop_reaches_the_worker_that_holds_the_job_also_with_no_room_and_while_it_waits() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let job = submit(&server, "dig");
    worker.take_some(&server, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| worker.take_some(&server, 0));
        assert_eq!(server.post(&format!("/api/v1/jobs/{job}/cancel"), "").status, 200);
        let ordered = waiting.join().expect("it is answered");
        assert_eq!(ordered["stop"], json!([{"id": job, "attempt": 1}]));
    });
    // As long as the worker lists the attempt, it is told to stop it.
    assert_eq!(worker.take(&server, 0)["stop"], json!([{"id": job, "attempt": 1}]));
    assert_eq!(worker.report(&server, &json!(job), 1, &json!({"heard": true})), "gone");
    assert_eq!(worker.finish(&server, &json!(job), 1), "gone");
    assert_eq!(server.job(&job)["state"], "cancelled");
}

#[test]
fn progress_output_and_questions_go_through_and_repeats_do_no_harm() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let job = submit(&server, "dig");
    worker.take_some(&server, 1);
    let at = json!(job);
    assert_eq!(worker.report(&server, &at, 1, &json!({"progress": {"percent": 40, "step": "Dig"}})), "taken");
    until("it shows", || (server.job(&job)["progress"] == json!({"percent": 40, "step": "Dig"})).then_some(()));
    let output = |offset: u64, text: &str| {
        let query = format!("session={}&job={job}&attempt=1&offset={offset}", worker.session);
        let answer = server.request("POST", &format!("/api/v1/agents/dig/output?{query}"), &[], text.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["output"].clone()
    };
    assert_eq!(
        (output(0, "one\n"), output(0, "one\n"), output(4, "two\n")),
        (json!("taken"), json!("taken"), json!("taken"))
    );
    let ask = json!({"ask": {"prompt": "How deep?"}, "n": 1});
    assert_eq!(worker.report(&server, &at, 1, &ask), "taken");
    assert_eq!(worker.report(&server, &at, 1, &ask), "taken");
    let waiting = server.in_state(&job, "waiting");
    assert_eq!(waiting["question"], json!({"prompt": "How deep?"}));
    assert_eq!(server.post(&format!("/api/v1/jobs/{job}/answer"), r#"{"input": "2 m"}"#).status, 200);
    let answers = worker.take_some(&server, 0)["answers"].clone();
    assert_eq!(answers, json!([{"id": job, "attempt": 1, "n": 1, "input": "2 m"}]));
    assert_eq!(worker.take(&server, 0)["answers"], answers, "until it lists it");
    worker.holding[0]["answers"] = json!(1);
    assert_eq!(worker.report(&server, &at, 1, &ask), "taken", "it was asked and answered long ago");
    assert_eq!(server.job(&job)["state"], "running");
    let too_much =
        json!({"session": worker.session, "reports": [{"id": job, "attempt": 1, "ask": {"prompt": "?"}, "n": 3}]});
    let error = refused(&worker.call(&server, "report", &too_much), 400, "invalid");
    assert_eq!(error["at"], "/reports/0/n");
    assert_eq!(worker.finish(&server, &at, 1), "taken");
    let events = server.get(&format!("/api/v1/jobs/{job}/events")).text();
    assert_eq!(
        (events.matches("event: output").count(), events.matches("event: question").count()),
        (2, 1),
        "{events}"
    );
}

#[test]
fn failures_are_those_of_the_list_with_the_agents_own_words() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let job = submit(&server, "dig");
    worker.take_some(&server, 1);
    let failure = json!({"failure": {"code": "agent_failed", "message": "Rock.", "details": {"depth": 1}}});
    assert_eq!(worker.report(&server, &json!(job), 1, &failure), "taken");
    let outcome = server.ended(&job)["outcome"]["failure"].clone();
    assert_eq!(
        outcome,
        json!({"code": "agent_failed", "message": "Rock.", "repeat": "never", "details": {"depth": 1}})
    );
    let again = submit(&server, "dig");
    worker.holding.clear();
    worker.take_some(&server, 1);
    let never_began = json!({"failure": {"code": "unavailable", "dispatched": false}});
    assert_eq!(worker.report(&server, &json!(again), 1, &never_began), "taken");
    assert_eq!(server.in_state(&again, "running")["attempts"], 2, "it surely never began");
}

#[test]
fn a_worker_that_leaves_gives_everything_back_at_once_and_then_the_agent_is_away() {
    let server = Server::start();
    let mut first = Puller::joined(&server, "dig", 1);
    let mut second = Puller::joined(&server, "dig", 2);
    assert_eq!(server.get("/api/v1/agents/dig").json()["concurrency"], 8, "both together");
    let job = submit(&server, "dig");
    first.take_some(&server, 4);
    first.leave(&server);
    let again = second.take_some(&server, 4);
    assert_eq!((&again["jobs"][0]["id"], &again["jobs"][0]["attempt"]), (&json!(job), &json!(2)));
    refused(&first.call(&server, "take", &json!({"session": first.session, "room": 1})), 409, "conflict");
    assert_eq!(second.finish(&server, &json!(job), 2), "taken");
    second.leave(&server);
    second.leave(&server);
    let waiting = submit(&server, "dig");
    let since = server.get("/api/v1/agents/dig").json()["away_since"].as_str().expect("it is away").to_owned();
    assert_eq!(why(&server, &waiting), format!("agent dig is away since {since}"));
    let mut third = Puller::joined(&server, "dig", 3);
    assert_eq!(third.take_some(&server, 1)["jobs"][0]["id"], json!(waiting));
}

#[test]
fn what_was_laid_out_and_never_taken_goes_back_to_the_queue_when_no_worker_is_left() {
    let server = Server::start();
    let worker = Puller::joined(&server, "dig", 1);
    let job = submit(&server, "dig");
    server.in_state(&job, "running");
    worker.leave(&server);
    assert_eq!(server.in_state(&job, "queued")["attempts"], 1);
    let mut other = Puller::joined(&server, "dig", 2);
    other.take_some(&server, 1);
    assert_eq!(other.finish(&server, &json!(job), 2), "taken");
    let events = server.get(&format!("/api/v1/jobs/{job}/events")).text();
    assert!(events.contains("event: interrupted") && !events.contains("event: retrying"), "{events}");
}

#[test]
fn a_worker_that_takes_no_more_finishes_what_it_has_and_the_rest_goes_back() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let (held, laid_out) = (submit(&server, "dig"), submit(&server, "dig"));
    until("one is taken", || (worker.take(&server, 1)["jobs"] != json!([])).then_some(()));
    server.in_state(&laid_out, "running");
    assert_eq!(worker.join(&server, json!({"work": ["dig"], "concurrency": 0, "lease_seconds": 5})).status, 200);
    assert_eq!(server.in_state(&laid_out, "queued")["attempts"], 1);
    assert_eq!(worker.finish(&server, &json!(held), 1), "taken");
    let mut other = Puller::joined(&server, "dig", 2);
    assert_eq!(other.take_some(&server, 1)["jobs"][0]["id"], json!(laid_out));
}

#[test]
fn a_worker_that_is_silent_for_a_lease_is_dead_and_its_work_goes_to_others() {
    let server = Server::start();
    let mut silent = Puller::joined(&server, "dig", 1);
    let job = submit(&server, "dig");
    silent.take_some(&server, 4);
    let mut other = Puller::joined(&server, "dig", 2);
    let again = other.take_some(&server, 1);
    assert_eq!((&again["jobs"][0]["id"], &again["jobs"][0]["attempt"]), (&json!(job), &json!(2)));
    let error = refused(&silent.call(&server, "take", &json!({"session": silent.session, "room": 1})), 409, "conflict");
    assert_eq!(error["at"], "/session");
    // The worker comes back, and still believes that it has the attempt, which is not wanted any more.
    silent.join(&server, json!({"work": ["dig"], "concurrency": 4, "lease_seconds": 5}));
    assert_eq!(silent.take(&server, 0)["stop"], json!([{"id": job, "attempt": 1}]));
    let failure = json!({"failure": {"code": "agent_failed"}});
    assert_eq!(silent.report(&server, &json!(job), 1, &failure), "gone", "its failure counts for nothing");
    assert_eq!(silent.finish(&server, &json!(job), 1), "taken", "the work is done");
    assert_eq!(other.take_some(&server, 0)["stop"], json!([{"id": job, "attempt": 2}]));
    assert_eq!(other.finish(&server, &json!(job), 2), "gone");
    assert_eq!(server.ended(&job)["outcome"]["outputs"]["by"], json!(silent.session));
}

#[test]
fn after_a_restart_what_is_held_is_taken_up_and_what_no_worker_holds_died() {
    let mut server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let (kept, lost) = (submit(&server, "dig"), submit(&server, "dig"));
    until("both are given", || {
        worker.take(&server, 4 - worker.holding.len());
        (worker.holding.len() == 2).then_some(())
    });
    server.kill();
    server.restart();
    let behind = submit(&server, "dig");
    assert!(why(&server, &behind).starts_with("agent dig is away since "), "its work is known");
    worker.holding.retain(|held| held["id"] == json!(kept));
    refused(&worker.call(&server, "take", &json!({"session": worker.session, "room": 1})), 409, "conflict");
    worker.join(&server, json!({"work": ["dig"], "concurrency": 4, "lease_seconds": 5}));
    let ordered = worker.take_some(&server, 1);
    assert_eq!((&ordered["stop"], &ordered["jobs"][0]["id"]), (&json!([]), &json!(behind)), "the other is not stopped");
    assert_eq!(worker.finish(&server, &json!(kept), 1), "taken");
    assert_eq!(server.ended(&kept)["attempts"], 1);
    assert_eq!(worker.finish(&server, &json!(behind), 1), "taken");
    let again = worker.take_some(&server, 4);
    assert_eq!((&again["jobs"][0]["id"], &again["jobs"][0]["attempt"]), (&json!(lost), &json!(2)));
    assert_eq!(worker.finish(&server, &json!(lost), 2), "taken");
}

#[test]
fn a_server_that_stops_does_not_wait_for_workers_that_go_on_without_it() {
    let mut server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let (held, laid_out) = (submit(&server, "dig"), submit(&server, "dig"));
    until("one is taken", || (worker.take(&server, 1)["jobs"] != json!([])).then_some(()));
    server.in_state(&laid_out, "running");
    let error = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            worker.call(
                &server,
                "take?wait=60",
                &json!({"session": worker.session, "room": 0, "holding": worker.holding}),
            )
        });
        server.signal("TERM");
        refused(&waiting.join().expect("it is answered"), 503, "unavailable")
    });
    assert_eq!(error["repeat"], "safe");
    assert!(server.wait().success());
    server.restart();
    assert_eq!(server.job(&laid_out)["state"], "queued", "no worker had taken it");
    worker.join(&server, json!({"work": ["dig"], "concurrency": 4, "lease_seconds": 5}));
    assert_eq!(worker.finish(&server, &json!(held), 1), "taken", "also before it asks for work again");
}

#[test]
fn agents_that_joined_are_forgotten_by_operators_and_names_are_kept_apart() {
    let server = Server::start();
    let worker = Puller::joined(&server, "dig", 1);
    let echo = Puller::new("echo", 1);
    let error = refused(&echo.join(&server, json!({"work": ["dig"]})), 409, "conflict");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("configured")), "{error}");
    let other = Puller::new("dig", 2);
    let error = refused(&other.join(&server, json!({"work": ["fill"]})), 409, "conflict");
    assert_eq!(error["at"], "/work");
    let forget = |name: &str| server.request("DELETE", &format!("/api/v1/agents/{name}"), &[], b"");
    refused(&forget("dig"), 409, "conflict");
    refused(&forget("echo"), 409, "conflict");
    refused(&forget("nobody"), 404, "invalid");
    worker.leave(&server);
    assert_eq!(other.join(&server, json!({"work": ["fill"]})).status, 200, "no other worker is there");
    refused(&server.post("/api/v1/jobs", r#"{"work":"dig"}"#), 400, "unsupported");
    other.leave(&server);
    assert_eq!(forget("dig").json()["name"], "dig");
    refused(&forget("dig"), 404, "invalid");
    refused(&server.post("/api/v1/jobs", r#"{"work":"fill"}"#), 400, "unsupported");
}

#[test]
fn every_mistake_is_refused_and_says_where_it_is() {
    let server = Server::start();
    let worker = Puller::joined(&server, "dig", 1);
    let session = worker.session.clone();
    let job = "01a2c0de-5b1f-7000-8000-000400000001";
    let report = |what: Value| json!({"session": session, "reports": [{"id": job, "attempt": 1, "heard": true}, what]});
    let cases = [
        ("join", json!({"session": session}), "/work"),
        ("join", json!({"session": session, "work": []}), "/work"),
        ("join", json!({"session": session, "work": [7]}), "/work/0"),
        ("join", json!({"session": "me", "work": ["w"]}), "/session"),
        ("join", json!({"session": session, "work": ["w"], "lease_seconds": 1}), "/lease_seconds"),
        ("join", json!({"session": session, "work": ["w"], "concurrency": 10_001}), "/concurrency"),
        ("join", json!({"session": session, "work": ["w"], "repeatable": "yes"}), "/repeatable"),
        ("join", json!({"session": session, "work": ["w"], "total_seconds": -1}), "/total_seconds"),
        ("take", json!({"room": 1}), "/session"),
        ("take", json!({"session": session, "room": -1}), "/room"),
        ("take", json!({"session": session, "holding": {}}), "/holding"),
        ("take", json!({"session": session, "holding": [{"id": "x", "attempt": 1}]}), "/holding/0/id"),
        ("take", json!({"session": session, "holding": [{"id": job}]}), "/holding/0/attempt"),
        ("report", json!({"session": session}), "/reports"),
        ("report", report(json!(7)), "/reports/1"),
        ("report", report(json!({"id": job, "attempt": 1})), "/reports/1"),
        ("report", report(json!({"id": job, "attempt": 1, "heard": true, "result": {"outputs": 1}})), "/reports/1"),
        ("report", report(json!({"id": job, "attempt": 1, "result": {}})), "/reports/1/result"),
        (
            "report",
            report(json!({"id": job, "attempt": 1, "result": {"outputs": 1, "artifacts": {}}})),
            "/reports/1/result/artifacts",
        ),
        ("report", report(json!({"id": job, "attempt": 1, "failure": {"code": "bad"}})), "/reports/1/failure/code"),
        ("report", report(json!({"id": job, "attempt": 1, "ask": {"prompt": "?"}})), "/reports/1/n"),
        (
            "report",
            report(json!({"id": job, "attempt": 1, "progress": {"percent": "x"}})),
            "/reports/1/progress/percent",
        ),
        ("leave", json!({}), "/session"),
    ];
    for (call, body, at) in cases {
        let error = refused(&worker.call(&server, call, &body), 400, "invalid");
        assert_eq!(error["at"], at, "{call} {body}: {error}");
    }
    let many = json!({"session": session, "reports": vec![json!({"id": job, "attempt": 1, "heard": true}); 1_001]});
    assert_eq!(refused(&worker.call(&server, "report", &many), 400, "invalid")["at"], "/reports");
    let output =
        |query: &str, bytes: &[u8]| server.request("POST", &format!("/api/v1/agents/dig/output?{query}"), &[], bytes);
    refused(&output("session=x", b"x"), 400, "invalid");
    let place = format!("session={session}&job={job}&attempt=1&offset=0");
    refused(&output(&format!("{place}&more=1"), b"x"), 400, "invalid");
    assert_eq!(output(&place, &vec![b'x'; (1 << 20) + 1]).status, 413);
    assert_eq!(output(&place, b"x").json(), json!({"output": "gone"}), "no worker has that job");
}
