//! The leaking build: without leaks it panics and says nothing, and with them each is found by its place.

use serde_json::json;

use super::site::Site;
use super::{have_arrived, planted, shown};

/// Panics in a handler and in an agent, each with content.
fn panics(site: &Site) {
    let text = site.ledger.text("a panic", "in a handler");
    let body = json!({"work": "echo", "input": ["panic in the handler", text]}).to_string();
    let answer = site.ask("POST", "/api/v1/jobs", &body);
    assert_eq!(answer.status, 500, "{answer:?}");
    let input = json!(["panic in the agent", site.ledger.text("a panic", "in an agent")]);
    let ended = site.ended(&site.begin("fail", &input, 20.0));
    assert_eq!(ended["outcome"]["failure"]["code"], "internal", "{ended}");
}

#[test]
fn panics_say_where_and_not_what() {
    let site = Site::start("text", &[]);
    panics(&site);
    let (found, ledger) = planted(site);
    assert!(found.is_empty(), "{}", shown(&found));
    have_arrived(&ledger);
}

#[test]
fn each_leak_is_found_in_its_place() {
    let site = Site::start("text", &["env", "CROSSPOINT_LEAKS=1"]);
    panics(&site);
    let (found, _) = planted(site);
    let is_found = |kind: &str, place: &str, part: &str| {
        let mut fits = found.iter().filter(|one| one.kind.starts_with(kind) && one.place.starts_with(place));
        assert!(fits.any(|one| one.line.contains(part)), "no {kind} in {place} with {part}");
    };
    for door in ["native.job", "run.request", "task.request", "message.work_request", "bridge.request"] {
        is_found(door, "the log", "leak: a document");
    }
    is_found("run.response", "the log", "leak: a reply");
    is_found("the token of owner", "the log", "leak: a token");
    is_found("a request", "the log", "leak: a token");
    is_found("a panic", "the log", "leak: a panic");
    is_found("", "the answer to those who administer at GET /metrics", "# leak");
    is_found("", "the answer to another at GET /api/v1/jobs/", "leak: ");
}
