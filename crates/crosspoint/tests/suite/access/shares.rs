//! A caller with a backlog neither shuts the others out nor makes them wait for the end of it.

use serde_json::json;

use crate::support::programs::bash;
use crate::support::server::Server;
use crate::support::tokens::{self, with};

#[test]
fn the_backlog_of_a_caller_does_not_hold_up_the_job_of_another() {
    let server = Server::configured(&bash("slow", "sleep 0.05; echo '{}'", "concurrency = 1"));
    let admin = tokens::closed(&server);
    let (busy, calm) = (tokens::caller(&server, &admin, "busy"), tokens::caller(&server, &admin, "calm"));
    let urgent = json!({"work": "slow", "priority": "urgent"}).to_string();
    let backlog: Vec<String> = (0..200)
        .map(|_| with(&server, Some(&busy), "POST", "/api/v1/jobs", &urgent).json()["id"].to_string())
        .map(|id| id.trim_matches('"').to_owned())
        .collect();
    let low = json!({"work": "slow", "priority": "low"}).to_string();
    let done = with(&server, Some(&calm), "POST", "/api/v1/jobs?wait=60", &low);
    assert_eq!((done.status, &done.json()["state"]), (200, &json!("completed")));
    let last = with(&server, Some(&busy), "GET", &format!("/api/v1/jobs/{}", backlog[199]), "").json();
    assert_eq!(last["state"], "queued", "the backlog is far from done");
}

#[test]
fn a_caller_that_has_its_share_is_refused_and_the_others_are_not() {
    let server = Server::configured("[limits]\njobs = 100\njobs_per_work = 6\njobs_per_caller = 3\n");
    let admin = tokens::closed(&server);
    let (busy, calm) = (tokens::caller(&server, &admin, "busy"), tokens::caller(&server, &admin, "calm"));
    let ask = json!({"work": "ask"}).to_string();
    for _ in 0..3 {
        assert_eq!(with(&server, Some(&busy), "POST", "/api/v1/jobs", &ask).status, 202);
    }
    let refused = with(&server, Some(&busy), "POST", "/api/v1/jobs", &ask);
    let hint = refused.json()["error"]["hint"].to_string();
    assert!(refused.status == 429 && hint.contains("[limits] jobs_per_caller"), "{refused:?}");
    assert_eq!(with(&server, Some(&calm), "POST", "/api/v1/jobs", &ask).status, 202);
}
