//! Who did what is on record, with ids and names alone.

use serde_json::{Value, json};

use crate::support::program::{crosspoint, stdout};
use crate::support::server::Server;
use crate::support::tokens::{self, with};

const SECRET: &str = "x7content";

/// The audit, as it is exported.
fn exported(server: &Server) -> (String, Vec<Value>) {
    let text = stdout(crosspoint(&["store", "export", "--audit", "--data"]).arg(server.data()));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    (text, lines)
}

#[test]
fn what_was_done_is_on_record_with_who_did_it() {
    let mut server = Server::start();
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let post = |token: &str, path: &str, body: &Value| {
        let answer = with(&server, Some(token), "POST", path, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    let job = post(&planner, "/api/v1/jobs", &json!({"work": "ask", "input": {"text": SECRET}}));
    let id = job["id"].as_str().expect("an id").to_owned();
    let read = with(&server, Some(&planner), "GET", &format!("/api/v1/jobs/{id}?wait=0"), "");
    assert_eq!(read.status, 200, "{read:?}");
    // What is refused is not done.
    let refused = with(&server, Some(&planner), "POST", "/api/v1/agents/echo/drain", "");
    assert_eq!(refused.status, 403, "{refused:?}");
    post(&admin, "/api/v1/agents/echo/drain", &json!({"drained": true}));
    post(&admin, "/api/v1/agents/echo/breaker", &json!({"state": "open"}));
    post(&planner, &format!("/api/v1/jobs/{id}/cancel"), &json!({}));
    post(&admin, "/api/v1/tokens/planner/revoke", &json!({}));
    server.stop();
    let (text, lines) = exported(&server);
    let did = |who: &str| {
        let of_them = lines.iter().filter(|line| line["who"] == who);
        of_them.filter_map(|line| line["act"].as_str()).collect::<Vec<&str>>()
    };
    assert_eq!(did("planner"), ["submit", "read", "cancel"], "{text}");
    assert_eq!(did("ops"), ["token_create", "drain", "breaker_open", "token_revoke"], "{text}");
    assert_eq!(did("no token"), ["token_create"], "the first one was made while the server was open: {text}");
    let submitted = lines.iter().find(|line| line["act"] == "submit").expect("it is there");
    assert_eq!(submitted["job"], json!(id), "{text}");
    assert!(!text.contains(SECRET) && !text.contains(&admin) && !text.contains(&planner), "{text}");
}
