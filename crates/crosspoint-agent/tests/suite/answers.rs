//! Answers outlive the agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_agent::{Agent, Context, Failure, Keep};
use serde_json::{Value, json};

use crate::support::{Served, scratch};

fn counting(
    calls: &Arc<AtomicU32>,
) -> impl Fn(Value, Context) -> std::pin::Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>
+ Send
+ Sync
+ 'static
+ use<> {
    let calls = calls.clone();
    move |input, _| {
        let calls = calls.clone();
        Box::pin(async move {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            if input["fails"] == json!(true) && call == 0 {
                return Err(Failure::new("not now").retryable());
            }
            Ok(json!({"call": call, "echo": input}))
        })
    }
}

fn request(id: &str, inputs: &Value) -> String {
    json!({"request_id": id, "task_type": "count", "inputs": inputs}).to_string()
}

#[test]
fn a_request_is_answered_alike_after_a_restart() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    let first = served.post("/agents/run/sync", &request("one", &json!({"text": "\u{1f600}"}))).json();
    served.stop();
    let served = Served::start(agent());
    let again = served.post("/agents/run/sync", &request("one", &json!({"text": "\u{1f600}"}))).json();
    assert_eq!((&first["outputs"], calls.load(Ordering::Relaxed)), (&again["outputs"], 1), "{first} {again}");
    let other = served.post("/agents/run/sync", &request("one", &json!({"text": "other"})));
    assert_eq!(other.status, 409, "{other:?}");
}

#[test]
fn a_failure_that_may_be_tried_again_is_not_kept() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let served = Served::start(Agent::new("counter").on("count", counting(&calls)).answers(&path));
    let request = request("one", &json!({"fails": true}));
    assert_eq!(served.post("/agents/run/sync", &request).json()["ok"], json!(false));
    assert_eq!(served.post("/agents/run/sync", &request).json()["ok"], json!(true));
    assert_eq!(served.post("/agents/run/sync", &request).json()["outputs"]["call"], json!(1));
}

#[test]
fn a_torn_end_costs_the_torn_answer_alone() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    for id in ["one", "two"] {
        served.post("/agents/run/sync", &request(id, &json!({})));
    }
    served.stop();
    let whole = std::fs::read(&path).expect("it is there");
    std::fs::write(&path, &whole[..whole.len() - 7]).expect("it can be written");
    let served = Served::start(agent());
    let call = |id: &str| served.post("/agents/run/sync", &request(id, &json!({}))).json()["outputs"]["call"].clone();
    assert_eq!((call("one"), call("two"), call("two")), (json!(0), json!(2), json!(2)));
}

#[test]
fn the_file_stays_within_its_size_and_keeps_the_younger_answers() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let keep = Keep { bytes: 20_000, ..Keep::default() };
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path).keep(keep);
    let served = Served::start(agent());
    for number in 0..200 {
        served.post("/agents/run/sync", &request(&format!("r-{number}"), &json!({})));
    }
    let bytes = std::fs::metadata(&path).expect("it is there").len();
    assert!(bytes <= 21_000, "{bytes}");
    served.stop();
    let served = Served::start(agent());
    let call = |id: &str| served.post("/agents/run/sync", &request(id, &json!({}))).json()["outputs"]["call"].clone();
    assert_eq!((call("r-199"), call("r-0")), (json!(199), json!(200)));
}
