//! Answers outlive the agent.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_agent::{Agent, Context, Failure, Keep};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

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

/// ALL-12: an answer says if it is not what was printed, also after a restart.
#[test]
fn a_text_that_was_no_utf8_says_so() {
    let prints = |input: Value, context: Context| async move {
        context.output().write_all(b"a\xffb").await?;
        Ok::<_, Failure>(if input["gives"] == true { json!({"n": 1}) } else { Value::Null })
    };
    let path = scratch("answers");
    let agent = || Agent::new("printer").on("count", prints).answers(&path);
    for _ in 0..2 {
        let served = Served::start(agent());
        let mere = served.post("/agents/run/sync", &request("mere", &json!({}))).json();
        assert_eq!(mere["outputs"], json!({"output": "a\u{fffd}b", "output_encoding": "lossy"}), "{mere}");
        let both = served.post("/agents/run/sync", &request("both", &json!({"gives": true}))).json();
        assert_eq!(both["outputs"], json!({"n": 1}), "{both}");
        let carried = &both["x_crosspoint"];
        assert_eq!((&carried["text"], &carried["output_encoding"]), (&json!("a\u{fffd}b"), &json!("lossy")), "{both}");
    }
}

#[test]
fn a_failure_that_may_be_tried_again_is_not_kept() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let served = Served::start(Agent::new("counter").on("count", counting(&calls)).answers(&path));
    let request = request("one", &json!({"fails": true}));
    let failed = served.post("/agents/run/sync", &request).json();
    assert_eq!((&failed["ok"], &failed["error"]["details"]["repeat"]), (&json!(false), &json!("safe")), "{failed}");
    assert!(!failed.to_string().contains("new `request_id`"), "the same id is right: {failed}");
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

#[test]
fn work_that_is_done_at_most_once_is_not_begun_again_after_a_kill() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let agent = |calls: &Arc<AtomicU32>| Agent::new("counter").at_most_once("count", counting(calls)).answers(&path);
    let served = Served::start(agent(&calls));
    let retried = request("retried", &json!({"fails": true}));
    assert_eq!(served.post("/agents/run/sync", &retried).json()["ok"], json!(false));
    served.post("/agents/run/sync", &request("done", &json!({})));
    served.stop();
    // As if the process had been killed in the middle of the last request: the answer is not there, its beginning is.
    let text = std::fs::read_to_string(&path).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "begun, not done after all, begun, done");
    std::fs::write(&path, lines[..3].join("\n") + "\n").expect("it can be written");
    let served = Served::start(agent(&calls));
    let interrupted = served.post("/agents/run/sync", &request("done", &json!({}))).json();
    assert_eq!(interrupted["ok"], json!(false));
    assert!(interrupted["error"].to_string().contains("INTERRUPTED"), "{interrupted}");
    assert_eq!(served.post("/agents/run/sync", &retried).json()["ok"], json!(true), "it was not done");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn many_callers_with_the_same_request_are_one_job() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    for round in 0..2 {
        let served = Served::start(agent());
        let address = served.address;
        let ask = move || crate::support::ask_at(address, "POST", "/agents/run/sync", &request("one", &json!({})), "");
        let callers: Vec<_> = (0..20).map(|_| std::thread::spawn(ask)).collect();
        for caller in callers {
            assert_eq!(caller.join().expect("it is answered").json()["outputs"]["call"], json!(0), "round {round}");
        }
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn a_caller_that_hangs_up_leaves_no_job_that_is_never_begun() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let served = Served::start(Agent::new("counter").at_most_once("count", counting(&calls)).answers(&path));
    for number in 0..50 {
        let body = request(&format!("left-{number}"), &json!({}));
        let head =
            format!("POST /agents/run/sync HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(served.address).expect("it is there");
        stream.write_all((head + &body).as_bytes()).expect("it can be sent");
    }
    for number in 0..50 {
        let answer = served.post("/agents/run/sync", &request(&format!("left-{number}"), &json!({})));
        assert_eq!(answer.json()["ok"], json!(true), "{number}: {answer:?}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 50, "each is done once");
}

#[test]
fn a_task_that_may_be_tried_again_can_be_asked_for_until_it_is() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let served = Served::start(Agent::new("counter").on("count", counting(&calls)).answers(&path));
    let id = "550e8400-e29b-41d4-a716-446655440030";
    let task = json!({"id": id, "type": "count", "payload": {"fails": true}}).to_string();
    let failed = served.post("/tasks?wait=10", &task).json();
    assert_eq!(failed["status"], json!("failed"), "{failed}");
    assert_eq!(served.get(&format!("/tasks/{id}")).json(), failed, "who polls is told how it ended");
    let again = served.post("/tasks?wait=10", &task).json();
    assert_eq!((&again["status"], calls.load(Ordering::Relaxed)), (&json!("completed"), 2), "{again}");
    assert_eq!(served.get(&format!("/tasks/{id}")).json()["status"], json!("completed"));
}

#[tokio::test]
async fn a_second_agent_with_the_same_store_is_told_where_it_is_and_what_to_do() {
    let path = crate::support::scratch("shared");
    let agent = || Agent::new("keeper").answers(&path);
    let serve = async |agent: Agent| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        agent.serve(listener, std::future::pending()).await
    };
    let mut first = std::pin::pin!(serve(agent()));
    let second = tokio::select! {
        biased;
        first = &mut first => panic!("{first:?}"),
        second = serve(agent()) => second.expect_err("the store is in use"),
    };
    assert_eq!(second.kind(), std::io::ErrorKind::WouldBlock);
    let said = second.to_string();
    assert!(said.contains(&path.display().to_string()) && said.contains("Agent::answers"), "{said}");
}

#[test]
fn work_that_is_done_at_most_once_is_not_begun_again_however_much_came_after_it() {
    let (calls, paid, path) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), scratch("answers"));
    let pay = |paid: &Arc<AtomicU32>| {
        let paid = paid.clone();
        move |_: Value, context: Context| {
            paid.fetch_add(1, Ordering::Relaxed);
            async move {
                context.cancelled().await;
                Ok::<_, Failure>(json!({}))
            }
        }
    };
    let keep = Keep { bytes: 20_000, ..Keep::default() };
    let agent = |path: &std::path::Path| {
        let agent = Agent::new("counter").on("count", counting(&calls)).at_most_once("pay", pay(&paid));
        agent.answers(path).keep(keep).drain(std::time::Duration::ZERO)
    };
    let served = Served::start(agent(&path));
    let task = |amount: u32| {
        json!({"id": "550e8400-e29b-41d4-a716-446655440031", "type": "pay", "payload": {"amount": amount}}).to_string()
    };
    assert_eq!(served.post("/tasks", &task(7)).status, 202);
    while paid.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    for number in 0..200 {
        served.post("/agents/run/sync", &request(&format!("r-{number}"), &json!({})));
    }
    // What is on disk now is what a killed agent leaves.
    let left = scratch("answers");
    std::fs::copy(&path, &left).expect("it can be copied");
    let later = Served::start(agent(&left));
    let interrupted = later.post("/tasks?wait=30", &task(7)).json();
    assert_eq!(interrupted["error"]["code"], json!("INTERRUPTED"), "{interrupted}");
    assert_eq!(later.post("/tasks?wait=30", &task(8)).status, 409, "it is another payment");
    assert_eq!(paid.load(Ordering::Relaxed), 1);
}

#[test]
fn a_request_whose_answer_is_damaged_is_not_done_again() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
    let agent = || Agent::new("counter").on("count", counting(&calls)).answers(&path);
    let served = Served::start(agent());
    for id in ["one", "two"] {
        served.post("/agents/run/sync", &request(id, &json!({})));
    }
    served.stop();
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replacen("\"call\":0", "\"call\":7", 1)).expect("it can be written");
    let served = Served::start(agent());
    let damaged = served.post("/agents/run/sync", &request("one", &json!({})));
    assert_eq!(damaged.status, 503, "{damaged:?}");
    assert!(damaged.body.contains("cannot be read again") && damaged.body.contains("unknown"), "{damaged:?}");
    assert_eq!(served.post("/agents/run/sync", &request("two", &json!({}))).json()["outputs"]["call"], json!(1));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_request_whose_line_is_torn_is_done_again_unless_it_is_done_at_most_once() {
    for at_most_once in [false, true] {
        let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch("answers"));
        let agent = || {
            let agent = Agent::new("counter").answers(&path);
            match at_most_once {
                true => agent.at_most_once("count", counting(&calls)),
                false => agent.on("count", counting(&calls)),
            }
        };
        let served = Served::start(agent());
        served.post("/agents/run/sync", &request("one", &json!({})));
        served.stop();
        // Of work that is done at most once the first line says that it was begun.
        let text = std::fs::read_to_string(&path).expect("it is there");
        let first = text.lines().next().expect("there is a line");
        std::fs::write(&path, &first[..first.len() - 5]).expect("it can be written");
        for start in 1..=2 {
            let served = Served::start(agent());
            let again = served.post("/agents/run/sync", &request("one", &json!({})));
            if at_most_once {
                assert_eq!(again.status, 503, "{start} {again:?}");
                assert!(again.body.contains("unknown"), "{again:?}");
            } else {
                assert_eq!(again.json()["outputs"]["call"], json!(1), "{start}");
            }
        }
        assert_eq!(calls.load(Ordering::Relaxed), if at_most_once { 1 } else { 2 });
    }
}
