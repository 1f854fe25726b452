//! Agents of the task contract that refuse, break the contract, lose connections, or fall silent: one outcome each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exec::start::{breaker_is_due, decided};
use crate::support::scripted_agent::{answer, configuration, json_answer, unused_address};
use crate::support::server::{Server, until};
use crate::support::task_agent::{Call, Reply, TaskAgent, completed, failed};
use crate::task::agent::{clauses, done_by, ended, text};

/// Code and repeat of a job that failed.
fn failure(job: &Value) -> (&str, &str) {
    let failure = &job["outcome"]["failure"];
    (text(&failure["code"]), text(&failure["repeat"]))
}

/// An agent that answers posts like this, and knows no task.
fn posting(status: u16, document: impl Fn(&Value) -> Value + Send + Sync + 'static) -> TaskAgent {
    TaskAgent::answering(move |call| match &*call.what {
        "post" => Reply::Json(status, document(&call.body["id"])),
        _ => Reply::Kept,
    })
}

#[test]
fn a_refused_post_says_why_and_whether_to_repeat() {
    for (status, expected) in [
        (400, ("invalid", "never")),
        (401, ("unavailable", "never")),
        (403, ("unavailable", "never")),
        (404, ("unsupported", "never")),
        (405, ("unsupported", "never")),
        (409, ("conflict", "never")),
        (422, ("invalid", "never")),
        (500, ("agent_failed", "never")),
        (501, ("agent_failed", "never")),
        (502, ("agent_failed", "never")),
        (504, ("agent_failed", "never")),
        (302, ("broken_contract", "unknown")),
    ] {
        let agent = posting(status, |_| json!({"detail": "in words of its own"}));
        let job = done_by(&agent, "");
        assert_eq!(failure(&job), expected, "{status}");
        assert_eq!(agent.asked("post").len(), 1, "{status}");
    }
    // In the contract's words, also if the id could not be read.
    let agent = posting(400, |_| failed(&json!("none"), "CAPABILITY_NOT_FOUND", false));
    let job = done_by(&agent, "");
    assert_eq!(failure(&job), ("unsupported", "never"));
    assert_eq!(job["outcome"]["failure"]["message"], "It went wrong.");
}

#[test]
fn an_agent_that_has_no_room_yet_gets_the_task_again() {
    for status in [429, 503] {
        let posts = Arc::new(AtomicUsize::new(0));
        let agent = TaskAgent::answering(move |call| match &*call.what {
            "post" if posts.fetch_add(1, Ordering::Relaxed) == 0 => {
                Reply::Json(status, failed(&call.body["id"], "AGENT_BUSY", true))
            }
            "post" => Reply::Json(200, completed(&call.body["id"], &json!({"a": 1}))),
            _ => Reply::Kept,
        });
        let job = done_by(&agent, "");
        assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "{status}: {job}");
        let ids: Vec<Value> = agent.asked("post").iter().map(|call| call.body["id"].clone()).collect();
        assert_eq!(ids, [job["id"].clone(), job["id"].clone()], "every attempt carries the job's id");
    }
}

#[test]
fn an_agent_that_is_away_is_tried_again_and_is_safe_to_repeat() {
    let url = format!("http://{}", unused_address());
    let server = Server::configured(&configuration("away", "task", &url, ""));
    let job = server.submit(r#"{"work": "away", "limits": {"attempts": 2}}"#);
    let job = ended(&server, text(&job["id"]));
    assert_eq!((failure(&job), &job["attempts"]), (("unavailable", "safe"), &json!(2)), "{job}");
}

#[test]
fn a_lost_answer_to_a_post_is_looked_for() {
    let agent = TaskAgent::answering(|call| if call.what == "post" { Reply::Close } else { Reply::Kept });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, json!({"status": "in_progress"}));
    until("it is polled on", || (agent.asked("look").len() > 6).then_some(()));
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"a": 1}), &json!(1)), "{job}");
    assert_eq!(agent.asked("post").len(), 1);
    // An agent that does not know the task may have died over it, or may keep no tasks, so the result is unknown.
    let agent = TaskAgent::answering(|call| if call.what == "post" { Reply::Close } else { Reply::Kept });
    let job = done_by(&agent, "");
    assert_eq!(failure(&job), ("unavailable", "unknown"));
    assert_eq!(agent.asked("post").len(), 1, "so it is not done twice");
    // Unless the operator says that a repeat does no harm.
    let posts = AtomicUsize::new(0);
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "post" if posts.fetch_add(1, Ordering::Relaxed) == 0 => Reply::Close,
        _ => Reply::Kept,
    });
    let server = Server::configured(&agent.configuration("helper", "repeatable = true"));
    let id = server.begin("helper");
    agent.awaited("post", 2);
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["attempts"], 2);
}

#[test]
fn an_answer_that_is_cut_short_anywhere_is_looked_for() {
    let whole = |id: &Value| json_answer(200, completed(id, &json!({"a": 1})).to_string());
    let length = whole(&json!("00000000-0000-0000-0000-000000000000")).len();
    for at in [1, 9, 15, 40, length / 2, length - 1] {
        let agent = TaskAgent::answering(move |call| match &*call.what {
            "post" => Reply::Bytes(whole(&call.body["id"])[..at].to_vec()),
            "look" => Reply::Json(200, completed(&json!(call.id), &json!({"a": 2}))),
            _ => Reply::Kept,
        });
        let job = done_by(&agent, "");
        assert_eq!(job["outcome"]["outputs"], json!({"a": 2}), "cut at {at}: {job}");
        assert_eq!(agent.asked("post").len(), 1);
    }
}

#[test]
fn a_conflict_about_an_id_of_ours_is_the_agents_mistake() {
    let agent = TaskAgent::answering(|call| match &*call.what {
        "post" => Reply::Json(409, failed(&call.body["id"], "INVALID_FIELD_VALUE", true)),
        "look" => Reply::Json(200, completed(&json!(call.id), &json!({"a": 1}))),
        _ => Reply::Kept,
    });
    let job = done_by(&agent, "");
    assert_eq!((&job["state"], clauses(&job)), (&json!("completed"), vec!["TASK-5".to_owned()]), "{job}");
}

#[test]
fn a_task_that_the_agent_forgets_fails() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    agent.forget(&id);
    let job = ended(&server, &id);
    assert_eq!((failure(&job), clauses(&job)), (("unavailable", "unknown"), vec!["TASK-4.2".to_owned()]), "{job}");
    assert_eq!(agent.asked("post").len(), 1);
}

/// Every poll gets this answer. The job must end as broken, with this clause recorded.
fn breaks(clause: &str, body: impl Fn(&Call) -> Reply + Send + Sync + 'static) {
    let agent = TaskAgent::answering(move |call| if call.what == "look" { body(call) } else { Reply::Kept });
    let job = done_by(&agent, "");
    assert_eq!(failure(&job), ("broken_contract", "unknown"), "{clause}: {job}");
    assert_eq!(clauses(&job), [clause], "{job}");
    assert!(!job["violations"].to_string().contains("hush"), "a violation holds no content: {job}");
    // ALL-11: the caller is shown the answer, if there was one.
    let details = &job["outcome"]["failure"]["details"];
    let answer = details["answer"].as_str().unwrap_or_default();
    assert!(answer.contains("hush") || details.is_null(), "{job}");
}

#[test]
fn answers_that_cannot_be_read_are_borne_a_few_times() {
    breaks("TASK-121", |_| Reply::Json(200, completed(&json!("hush"), &json!({}))));
    breaks("TASK-108", |call| Reply::Json(200, json!({"id": call.id, "status": "hush"})));
    breaks("TASK-2", |call| Reply::Json(200, json!({"id": call.id, "status": "completed", "hush": 1})));
    breaks("ALL-101", |_| Reply::Bytes(json_answer(200, "{hush")));
    breaks("TASK-4.5", |_| {
        Reply::Bytes(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/hush\r\ncontent-length: 0\r\n\r\n".to_vec())
    });
    // Two wrong answers and then a right one count as right.
    let looks = AtomicUsize::new(0);
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "look" if looks.fetch_add(1, Ordering::Relaxed) < 2 => Reply::Bytes(json_answer(200, "rubbish")),
        "look" => Reply::Json(200, completed(&json!(call.id), &json!({}))),
        _ => Reply::Kept,
    });
    let job = done_by(&agent, "");
    assert_eq!((&job["state"], clauses(&job)), (&json!("completed"), vec!["ALL-101".to_owned()]));
}

#[test]
fn what_can_be_read_counts_and_what_is_wrong_with_it_is_on_record() {
    let good = |status: u16| {
        let agent = posting(status, |id| completed(id, &json!({"a": 1})));
        let job = done_by(&agent, "");
        assert_eq!(job["outcome"]["outputs"], json!({"a": 1}), "{status}: {job}");
        clauses(&job)
    };
    assert_eq!(good(500), ["TASK-4"]);
    assert!(good(201).is_empty());
    let agent = TaskAgent::answering(|call| {
        let body = completed(&call.body["id"], &json!({"a": 1})).to_string();
        Reply::Bytes(answer(200, "text/html", body))
    });
    let job = done_by(&agent, "");
    assert_eq!((&job["state"], clauses(&job)), (&json!("completed"), vec!["TASK-4".to_owned()]));
}

#[test]
fn a_task_that_goes_back_to_pending_is_on_record_and_goes_on() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, json!({"status": "in_progress"}));
    agent.looked_again();
    agent.stands(&id, json!({"status": "pending"}));
    agent.looked_again();
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(clauses(&ended(&server, &id)), ["TASK-3"]);
}

#[test]
fn an_answer_over_the_limit_is_not_read() {
    let agent = posting(200, |id| completed(id, &json!({"long": "x".repeat(20_000)})));
    let job = done_by(&agent, "output_bytes = 10000");
    assert_eq!((failure(&job), clauses(&job)), (("resource_limit", "never"), vec!["ALL-145".to_owned()]), "{job}");
}

#[test]
fn an_agent_that_stops_answering_has_timed_out() {
    for (what, hang) in [("post", "post"), ("look", "look")] {
        let agent = TaskAgent::answering(
            move |call| if call.what == hang || hang == "post" { Reply::Hang } else { Reply::Kept },
        );
        // The agent is told after the job has ended, so the server must still be there.
        let server = Server::configured(&agent.configuration("helper", "silence_seconds = 1"));
        let job = ended(&server, &server.begin("helper"));
        assert_eq!(failure(&job), ("timeout", "unknown"), "{what}: {job}");
        assert!(text(&job["outcome"]["failure"]["message"]).contains("sign of life"));
        agent.awaited("cancel", 1);
    }
    // Failed polls do not count as answered, however many there are.
    let agent =
        TaskAgent::answering(|call| if call.what == "look" { Reply::Json(500, json!({})) } else { Reply::Kept });
    assert_eq!(failure(&done_by(&agent, "silence_seconds = 1")), ("timeout", "unknown"));
    assert!(agent.asked("look").len() > 2);
}

#[test]
fn polls_that_are_refused_end_the_task_in_the_words_of_the_agent() {
    for (status, expected) in [
        (401, ("unavailable", "never")),
        (403, ("unavailable", "never")),
        (407, ("unavailable", "never")),
        (404, ("unavailable", "unknown")),
        (405, ("unavailable", "unknown")),
        (400, ("invalid", "never")),
        (422, ("invalid", "never")),
    ] {
        let agent = TaskAgent::answering(move |call| match &*call.what {
            "look" => Reply::Json(status, json!({"detail": "not like this"})),
            _ => Reply::Kept,
        });
        let job = done_by(&agent, "");
        assert_eq!((failure(&job), agent.asked("post").len()), (expected, 1), "{status}: {job}");
        assert!(agent.asked("look").len() >= 3, "it is borne a few times");
        let found = &job["outcome"]["failure"];
        assert_eq!(found["message"], "not like this", "{status}: {job}");
        assert_eq!(found["details"]["answer"], r#"{"detail":"not like this"}"#, "{status}: {job}");
    }
}

#[test]
fn an_agent_that_is_polled_too_often_is_left_alone_for_a_while() {
    let (looks, began) = (AtomicUsize::new(0), Arc::new(Mutex::new(Vec::new())));
    let times = began.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "look" => {
            times.lock().expect("nobody panicked").push(Instant::now());
            match looks.fetch_add(1, Ordering::Relaxed) {
                0 => Reply::Bytes(b"HTTP/1.1 429 Slow\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n".to_vec()),
                _ => Reply::Json(200, completed(&json!(call.id), &json!({}))),
            }
        }
        _ => Reply::Kept,
    });
    assert_eq!(done_by(&agent, "")["state"], "completed");
    let began = began.lock().expect("nobody panicked");
    assert!(began[1] - began[0] >= Duration::from_secs(2), "{:?}", began[1] - began[0]);
}

#[test]
fn polls_that_fail_for_a_while_do_no_harm() {
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = broken.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "look" if is_broken.load(Ordering::Relaxed) => Reply::Close,
        _ => Reply::Kept,
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    broken.store(true, Ordering::Relaxed);
    let before = agent.asked("look").len();
    agent.awaited("look", before + 4);
    agent.stands(&id, completed(&json!(id), &json!({})));
    broken.store(false, Ordering::Relaxed);
    let job = ended(&server, &id);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)));
}

#[test]
fn long_work_in_one_exchange_lives_as_long_as_the_agent_answers_anything() {
    // The agent keeps no tasks, so it answers polls with 404. It answers the post only after enough polls that its
    // silence would have been too long if they did not count as signs of life.
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = looks.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "post" => {
            until("it was looked for", || (counted.load(Ordering::Relaxed) >= 8).then_some(()));
            Reply::Json(200, completed(&call.body["id"], &json!({"a": 1})))
        }
        _ => {
            looks.fetch_add(1, Ordering::Relaxed);
            Reply::Json(404, json!({}))
        }
    });
    let job = done_by(&agent, "silence_seconds = 1");
    assert_eq!(job["outcome"]["outputs"], json!({"a": 1}), "{job}");
}

#[test]
fn an_attempt_that_is_given_up_is_taken_up_by_the_next() {
    let hanging = Arc::new(AtomicBool::new(true));
    let hangs = hanging.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "look" if hangs.load(Ordering::Relaxed) => Reply::Hang,
        _ => Reply::Kept,
    });
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 1\nrepeatable = true"));
    let id = server.begin("helper");
    server.in_state(&id, "retrying");
    hanging.store(false, Ordering::Relaxed);
    agent.awaited("post", 2);
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"a": 1}), &json!(2)));
    assert!(agent.asked("cancel").is_empty(), "the same task was wanted all the time");
}

#[test]
fn an_open_breaker_is_closed_by_what_the_agent_says_of_its_health() {
    let health = Arc::new(Mutex::new((0, 0)));
    let said = health.clone();
    let agent = TaskAgent::answering(move |call| {
        let (ready, alive) = *said.lock().expect("no thread panics with it");
        match &*call.what {
            "post" => Reply::Json(503, json!({})),
            "/health/ready" => Reply::Json(ready, json!({"status": "?"})),
            "/health" => Reply::Json(alive, json!({"status": "?"})),
            _ => Reply::Kept,
        }
    });
    let mut server = Server::configured(&agent.configuration("late", ""));
    for (ready, alive, state) in
        [(503, 200, "open"), (404, 503, "open"), (200, 503, "closed"), (404, 200, "closed"), (404, 404, "closed")]
    {
        *health.lock().expect("no thread panics with it") = (ready, alive);
        if server.get("/api/v1/agents/late").json()["breaker"]["state"] == "closed" {
            for _ in 0..5 {
                assert_eq!(failure(&server.done("late", &json!({}))), ("unavailable", "safe"));
            }
        }
        breaker_is_due(&mut server);
        assert_eq!(decided(&server), state, "{ready} {alive}");
    }
    assert_eq!(agent.asked("post").len(), 15, "a check gives no work");
}
