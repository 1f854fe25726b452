//! Nothing that a caller sees counts the work of others: neither ids and lists, nor why its work waits or is refused.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::{Server, until};
use crate::support::tokens::{Two, with};

/// The bits of an id in which earlier versions wrote the number of the job.
fn number_in(id: &str) -> u64 {
    let bits = id.parse::<Uuid>().expect("an id").as_u128();
    ((((bits >> 64) & 0xfff) << 28) | ((bits >> 34) & 0xfff_ffff)) as u64
}

#[test]
fn ids_do_not_tell_how_many_jobs_came_in_between() {
    let two = Two::on(Server::start());
    let echo = |token: &str| number_in(&two.submit(token, "echo", &json!({})));
    let mut numbers = vec![echo(&two.one), echo(&two.one)];
    let others: Vec<u64> = (0..50).map(|_| echo(&two.other)).collect();
    assert_eq!(others.len(), 50);
    numbers.extend([echo(&two.one), echo(&two.one)]);
    // Jobs next to each other are as far apart as those with fifty in between: a thousand is next to nothing of 2^40.
    let apart: Vec<u64> = numbers.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
    assert!(apart.iter().all(|apart| *apart > 1_000), "{apart:?}");
    assert!(numbers.iter().all(|number| *number > 1_000), "{numbers:?}");
}

#[test]
fn a_list_goes_on_by_ids_and_by_none_that_is_made_up() {
    let two = Two::on(Server::start());
    let [first, other, last] = [&two.one, &two.other, &two.one].map(|token| two.submit(token, "echo", &json!({})));
    let page = two.get(&two.one, "/api/v1/jobs?limit=1");
    assert_eq!((page["jobs"][0]["id"].as_str(), page["next"].as_str()), (Some(&*last), Some(&*last)), "{page}");
    let page = two.get(&two.one, &format!("/api/v1/jobs?limit=1&before={last}"));
    assert_eq!((page["jobs"][0]["id"].as_str(), &page["next"]), (Some(&*first), &Value::Null), "{page}");
    let of_all = two.get(&two.admin, &format!("/api/v1/jobs?before={last}"));
    let ids: Vec<&str> =
        of_all["jobs"].as_array().expect("a list").iter().filter_map(|job| job["id"].as_str()).collect();
    assert_eq!(ids, [&*other, &*first]);
    // Were it taken, changing bits of an id and looking where the list goes on would tell the number.
    let id = last.parse::<Uuid>().expect("an id").as_u128();
    let made_up = (34..62).chain(64..76).map(|bit| Uuid::from_u128(id ^ (1 << bit)).to_string());
    let behind = |before: &str| with(&two.server, Some(&two.one), "GET", &format!("/api/v1/jobs?before={before}"), "");
    for before in made_up.chain([Uuid::nil().to_string()]) {
        assert_eq!(behind(&before).status, 404, "{before}");
    }
    assert_eq!(behind("7").status, 400);
    // The id of another's job is that of none.
    assert_eq!((behind(&other).status, behind(&other).text()), (404, behind(&Uuid::nil().to_string()).text()));
}

const ONE_AT_A_TIME: &str = "[server]\ndrain_seconds = 0.1\n[limits]\njobs = 4\njobs_per_work = 4\njobs_per_agent = 4\njobs_per_caller = 4\n\
    [[agent]]\nname = \"one\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\nwork = [\"w\"]\nconcurrency = 1\n";

#[test]
fn why_work_waits_or_is_refused_does_not_count_that_of_others() {
    let two = Two::on(Server::configured(ONE_AT_A_TIME));
    let long = json!({"seconds": 3000});
    let busy = two.submit(&two.other, "w", &long);
    let is_running = || two.get(&two.other, &format!("/api/v1/jobs/{busy}"))["state"] == "running";
    until("it runs", || is_running().then_some(()));
    two.submit(&two.other, "w", &long);
    let id = two.submit(&two.one, "w", &long);
    let why = |token: &str| two.get(token, &format!("/api/v1/jobs/{id}"))["stuck"]["reason"].clone();
    assert_eq!(why(&two.one), "in the queue");
    assert_eq!(why(&two.admin), "1 job is ahead of it in the queue; agent one is busy with 1 of 1");
    assert_eq!(two.get(&two.one, "/api/v1/jobs")["jobs"][0]["stuck"]["reason"], "in the queue");
    // At a door, too.
    let id = Uuid::new_v4().to_string();
    let asked = json!({
        "protocol_version": "1.0", "message_id": id, "from_agent": "orchestrator", "to_agent": "code",
        "timestamp": "2026-01-19T04:21:04Z", "trace_id": id, "request_id": id, "type": "work_request",
        "payload": {"task_id": id, "work_type": "w", "parameters": long, "hints": {}},
    });
    let path = "/api/agent/message?wait=0.1";
    let said = with(&two.server, Some(&two.one), "POST", path, &asked.to_string()).text();
    assert!(said.contains("in the queue") && !said.contains("busy"), "{said}");
    let body = json!({"work": "w", "input": long}).to_string();
    let full = with(&two.server, Some(&two.one), "POST", "/api/v1/jobs", &body);
    assert_eq!(full.status, 429, "{full:?}");
    let message = full.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(!message.contains(|c: char| c.is_ascii_digit()), "{message}");
}
