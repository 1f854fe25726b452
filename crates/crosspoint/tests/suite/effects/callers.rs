//! Callers that lose answers too: they send a request again until it is answered, and some once more. And an operator,
//! who closes breakers and has jobs begun again of which it is sure that they never began.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

use super::kinds::KINDS;
use crate::support::persistent_callers::Dice;
use crate::support::server::{Answer, exchange, until, within};

/// Longest time until a job ends, after all its repeats. It only ends what would hang.
const ENDING_TIME_MAX: Duration = Duration::from_secs(180);

/// How often the operator looks at the agents.
const LOOKING: Duration = Duration::from_millis(200);

/// A job that was accepted.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) kind: &'static str,
    pub(super) number: u32,
    pub(super) id: String,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) kind: &'static str,
    pub(super) number: u32,
    pub(super) job: Value,
    /// How often the operator had it begun again.
    pub(super) again: usize,
}

/// Submits the jobs of all kinds whose numbers leave this rest when divided by the number of callers.
pub(super) fn submit((caller, callers): (u32, u32), server: SocketAddr, seed: u64) -> Vec<Accepted> {
    let mut dice = Dice(seed);
    let mut accepted = Vec::new();
    for number in (0..).take_while(|number| KINDS.iter().any(|kind| *number < kind.jobs)) {
        if number % callers != caller {
            continue;
        }
        for kind in KINDS.iter().filter(|kind| number < kind.jobs) {
            let request_id = format!("{}-{number}", kind.name);
            let mut body = json!({"work": kind.name, "input": {"n": number}, "request_id": request_id});
            if number % 5 == 0 && kind.is_tried_by_hand() {
                body["limits"] = json!({"attempts": 1});
            }
            let body = body.to_string();
            let id = accepted_as(&insist(server, "/api/v1/jobs", &[], &body));
            if dice.below(5) == 0 {
                let repeated = accepted_as(&insist(server, "/api/v1/jobs", &[], &body));
                assert_eq!(id, repeated, "a repeat is the same job");
            }
            accepted.push(Accepted { kind: kind.name, number, id });
        }
    }
    accepted
}

/// Posts until there is an answer, through whatever is lost.
fn insist(server: SocketAddr, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    until("it is accepted", || {
        let answer = exchange(server, "POST", path, headers, body.as_bytes())?;
        [200, 202].contains(&answer.status).then_some(answer)
    })
}

fn accepted_as(answer: &Answer) -> String {
    answer.json()["id"].as_str().expect("an id").to_owned()
}

/// Waits for the end of a job. A job that certainly never began is begun again, as often as that happens.
pub(super) fn end(accepted: &Accepted, server: SocketAddr, lossy: SocketAddr) -> Ended {
    let (mut id, mut again) = (accepted.id.clone(), 0);
    loop {
        let path = format!("/api/v1/jobs/{id}?wait=10");
        let look = || exchange(server, "GET", &path, &[], b"").map(|answer| answer.json());
        let ended = within(ENDING_TIME_MAX, || look().filter(|job| job["outcome"].is_object()));
        let job = ended.unwrap_or_else(|| panic!("it does not end: {:?}", look()));
        if job["outcome"]["failure"]["repeat"] != "safe" {
            return Ended { kind: accepted.kind, number: accepted.number, job, again };
        }
        let key = format!("again-{id}");
        let answer = insist(lossy, &format!("/api/v1/jobs/{id}/retry"), &[("idempotency-key", &key)], "");
        let next = accepted_as(&answer);
        assert_ne!(id, next, "it is a job of its own");
        (id, again) = (next, again + 1);
    }
}

/// Closes breakers until all is done: lost answers look like an agent in trouble, which would get no work for a minute.
pub(super) fn close_breakers(server: SocketAddr, done: &Receiver<()>) {
    while done.recv_timeout(LOOKING) == Err(RecvTimeoutError::Timeout) {
        let Some(answer) = exchange(server, "GET", "/api/v1/agents", &[], b"") else { continue };
        if answer.status != 200 {
            continue;
        }
        for agent in answer.json()["agents"].as_array().expect("a list") {
            if agent["breaker"]["state"] != "closed" {
                let path = format!("/api/v1/agents/{}/breaker", agent["name"].as_str().expect("a name"));
                let _ = exchange(server, "POST", &path, &[], br#"{"state": "closed"}"#);
            }
        }
    }
}
