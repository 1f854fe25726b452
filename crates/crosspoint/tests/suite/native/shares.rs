//! A share for every work, agent and question: the backlog of one leaves room for the others.

use serde_json::json;

use crate::support::programs::{alive_for, bash};
use crate::support::server::{Server, until};

#[test]
fn a_refusal_says_which_share_is_full_and_the_others_are_served() {
    let server = Server::configured("[limits]\njobs = 100\njobs_per_work = 3\njobs_per_agent = 2\n");
    let agent = json!({"work": "ask", "agent": "ask"}).to_string();
    for _ in 0..2 {
        server.submit(&agent);
    }
    let refused = server.post("/api/v1/jobs", &agent);
    let error = refused.json()["error"].clone();
    assert_eq!((refused.status, &error["code"], &error["repeat"]), (429, &json!("resource_limit"), &json!("safe")));
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("[limits] jobs_per_agent")), "{error}");
    assert!(
        error["message"].as_str().is_some_and(|message| message.contains("the one agent that can take it")),
        "{error}"
    );
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains(r#"crosspoint_refusals_total{limit="jobs_per_agent"} 1"#), "{metrics}");
    for work in ["echo", "fail"] {
        assert_eq!(server.post("/api/v1/jobs?wait=60", &json!({"work": work}).to_string()).status, 200, "{work}");
    }
}

#[test]
fn programs_that_wait_for_answers_have_a_limit_of_their_own() {
    let asks = r#"read -r input; echo '@crosspoint {"ask": {"prompt": "Go on?"}}'; read -r answer; echo "{\"answer\": $answer}""#;
    let server = Server::configured(&bash("asker", asks, "ask = true\nconcurrency = 1\nwaiting = 2"));
    let ids: Vec<String> = (0..5).map(|_| server.begin("asker")).collect();
    for id in &ids[..2] {
        server.in_state(id, "waiting");
    }
    let reason = until("it says why", || server.job(&ids[2])["stuck"]["reason"].as_str().map(str::to_owned));
    assert!(reason.contains("2 jobs that wait for people, and may have no more"), "{reason}");
    assert!(ids[2..].iter().all(|id| server.job(id)["state"] == "queued" && alive_for(id).is_empty()));
    for id in &ids {
        server.in_state(id, "waiting");
        assert_eq!(server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input":7}"#).status, 200);
        assert_eq!(server.ended(id)["outcome"]["outputs"], json!({"answer": 7}));
    }
}
