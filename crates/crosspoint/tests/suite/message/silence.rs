//! How long agents may say nothing (MSG-6), and work that waits for agents that do not ask for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::message_post::{Posted, heartbeat, paused, pulling, result, status, work_request};
use crate::support::misbehaving_agents::clauses;
use crate::support::server::{Server, until, within};

/// Much longer than agents may be silent here.
const LONG: Duration = Duration::from_secs(3);

const SILENCE: &str = "silence_seconds = 1";

/// Whether a job has not ended after a long time.
fn goes_on(server: &Server, id: &str) -> bool {
    within(LONG, || server.job(id)["outcome"].is_object().then_some(())).is_none()
}

fn failure(job: &Value) -> (&str, &str) {
    let failure = &job["outcome"]["failure"];
    (failure["code"].as_str().expect("a code"), failure["repeat"].as_str().expect("a word"))
}

#[test]
fn a_request_that_is_not_acknowledged_in_time_is_given_up() {
    let agent = Posted::answering(|_, connection| connection.until_gone());
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let job = server.over(&server.begin_once("helper"));
    assert_eq!(failure(&job), ("timeout", "unknown"), "{job:#}");
    // MSG-19: no further attempt goes to the agent.
    assert_eq!(agent.cancelled(1)["request_id"], job["id"]);
}

#[test]
fn work_that_is_acknowledged_and_then_silent_is_given_up() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let job = server.over(&server.begin_once("helper"));
    assert_eq!(failure(&job), ("timeout", "unknown"), "{job:#}");
    assert_eq!(agent.cancelled(1)["payload"]["error_code"], 5901);
}

#[test]
fn silence_is_a_timeout_that_is_repeated_by_the_same_id_and_nobody_is_told_to_stop() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let id = server.begin("helper");
    let (first, second) = (agent.request(1), agent.request(2));
    assert_eq!((&first["request_id"], &second["request_id"]), (&json!(id), &json!(id)));
    server.takes(&result(&second, "at last"));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("at last"), &json!(2)), "{job:#}");
    assert!(agent.had("error").is_empty(), "it goes on with what is wanted");
}

#[test]
fn statuses_keep_work_alive() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let id = server.begin("helper");
    let request = agent.request(1);
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        server.takes(&status(&request, 40));
    }
    server.takes(&result(&request, "done"));
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job:#}");
    assert!(clauses(&job).is_empty(), "{job:#}");
}

#[test]
fn a_pause_stops_the_clock_until_the_work_goes_on() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.takes(&paused(&request));
    assert!(goes_on(&server, &id), "{:#}", server.job(&id));
    assert_eq!(server.job(&id)["attempts"], 1);
    server.takes(&status(&request, 50));
    // The clock runs again.
    server.in_state(&id, "retrying");
}

#[test]
fn a_question_in_a_pause_is_asked_and_its_answer_comes_with_the_request_again() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let id = server.begin("helper");
    let request = agent.request(1);
    let mut asking = paused(&request);
    asking["x_custom_fields"] =
        json!({"x_crosspoint": {"from": "message.work_status", "question": {"prompt": "Size?"}}});
    server.takes(&asking);
    let job = server.in_state(&id, "waiting");
    assert_eq!(job["question"]["prompt"], "Size?", "{job:#}");
    assert_eq!(job["progress"], json!({"percent": 10, "step": "Dig"}), "{job:#}");
    assert!(goes_on(&server, &id), "a person is asked");
    let answered = server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "large"}"#);
    assert_eq!(answered.status, 200, "{answered:?}");
    let again = agent.request(2);
    assert_eq!(again["request_id"], request["request_id"]);
    assert!(again.to_string().contains("large"), "{again:#}");
    server.takes(&result(&again, "large it is"));
    assert_eq!(server.job(&id)["attempts"], 1);
}

#[test]
fn a_request_may_allow_silence_for_as_long_as_it_says() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let asked = work_request("helper", &json!({"max_duration_seconds": 20}));
    let accepted = server.post("/api/agent/message", &asked.to_string());
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let request = agent.request(1);
    assert_eq!(request["payload"]["hints"]["max_duration_seconds"], 20, "{request:#}");
    let id = request["request_id"].as_str().expect("an id");
    assert!(goes_on(&server, id), "{:#}", server.job(id));
    server.takes(&result(&request, "done"));
    assert_eq!(server.job(id)["attempts"], 1);
}

#[test]
fn silence_beyond_what_a_request_allows_is_a_timeout() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", SILENCE));
    let begun = Instant::now();
    server.post("/api/agent/message", &work_request("helper", &json!({"max_duration_seconds": 1})).to_string());
    let request = agent.request(1);
    server.in_state(request["request_id"].as_str().expect("an id"), "retrying");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn a_message_that_was_pulled_and_not_acknowledged_is_given_up() {
    let server = Server::configured(&pulling("puller", SILENCE));
    server.polled("agent=puller");
    let id = server.begin_once("puller");
    let given = server.pulled("puller");
    let job = server.over(&id);
    assert_eq!(failure(&job), ("timeout", "unknown"), "{job:#}");
    // The next poll says that it is no longer wanted.
    let cancel = server.pulled("puller");
    assert_eq!((&cancel["type"], &cancel["request_id"]), (&json!("error"), &given["request_id"]), "{cancel:#}");
}

#[test]
fn a_message_that_waits_for_a_poll_waits_without_a_clock() {
    let server = Server::configured(&pulling("puller", SILENCE));
    server.polled("agent=puller");
    let id = server.begin_once("puller");
    server.in_state(&id, "running");
    assert!(goes_on(&server, &id), "{:#}", server.job(&id));
    server.takes(&result(&server.pulled("puller"), "done"));
    assert_eq!(server.job(&id)["attempts"], 1);
}

#[test]
fn a_message_goes_back_into_the_queue_when_its_agent_leaves_before_it_asks_for_it() {
    let helper = Posted::saying(|request| result(request, "by the helper"));
    let work = "work = [\"dig\"]\nsilence_seconds = 1";
    let mut server = Server::configured(&pulling("puller", work));
    server.polled("agent=puller");
    let id = server.begin("dig");
    assert_eq!(server.in_state(&id, "running")["attempts"], 1);
    server.takes(&heartbeat("puller", "code", "offline"));
    let job = server.in_state(&id, "queued");
    let reason = job["stuck"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("agent puller is away since "), "{reason}");
    // Nobody has begun it, so any agent of the work may have it.
    server.kill();
    server.configure(&(pulling("puller", work) + &helper.configuration("helper", "work = [\"dig\"]")));
    server.restart();
    let job = server.over(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["agent"]), (&json!("by the helper"), &json!("helper")), "{job:#}");
    assert!(clauses(&job).is_empty(), "{job:#}");
}

#[test]
fn an_agent_that_sends_heartbeats_and_does_not_poll_gets_no_work() {
    let server = Server::configured(&pulling("puller", SILENCE));
    server.takes(&heartbeat("puller", "code", "online"));
    let id = server.begin("puller");
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job:#}");
    server.takes(&result(&server.pulled("puller"), "done"));
    assert_eq!(server.job(&id)["attempts"], 1);
}

#[test]
fn work_for_an_agent_that_does_not_poll_uses_up_no_attempt_and_says_why_it_waits() {
    let server = Server::configured(&pulling("puller", SILENCE));
    let id = server.begin("puller");
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job:#}");
    let reason = job["stuck"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("agent puller is away since "), "{reason}");
    assert!(server.agent("puller")["away_since"].is_string());
    server.takes(&result(&server.pulled("puller"), "done"));
    let job = server.over(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("done"), &json!(1)), "{job:#}");
    until("the agent is there", || server.agent("puller")["away_since"].is_null().then_some(()));
}

#[test]
fn a_server_stops_while_work_that_an_agent_may_have_waits_for_its_next_attempt() {
    let agent = Posted::answering(|_, connection| connection.until_gone());
    let mut server = Server::configured(&agent.configuration("helper", SILENCE));
    // More than there are threads.
    let jobs: Vec<String> = (0..16).map(|_| server.begin("helper")).collect();
    for id in &jobs {
        server.in_state(id, "retrying");
    }
    assert!(server.stop().success());
    server.restart();
    let goes_on = |id: &String| server.job(id)["outcome"].is_null() || server.job(id)["attempts"] == 4;
    assert!(jobs.iter().all(goes_on), "nothing is lost");
}
