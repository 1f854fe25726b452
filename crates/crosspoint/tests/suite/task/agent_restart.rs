//! The server is killed while an agent of the task contract has a task: the task is taken up where it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::support::server::{Server, until};
use crate::support::task_agent::{Reply, TaskAgent, asking, completed};
use crate::task::agent::{answer, ended, text};

#[test]
fn a_task_under_way_is_polled_on() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, json!({"status": "in_progress"}));
    agent.looked_again();
    server.kill();
    server.restart();
    agent.looked_again();
    assert_eq!(server.job(&id)["state"], "running");
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"a": 1}), &json!(1)), "{job}");
    assert_eq!(agent.asked("post").len(), 1, "it was not posted again");
}

#[test]
fn a_task_that_ended_meanwhile_has_ended() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    server.kill();
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    server.restart();
    assert_eq!(ended(&server, &id)["outcome"]["outputs"], json!({"a": 1}));
    assert_eq!(agent.asked("post").len(), 1);
}

#[test]
fn a_question_stays_and_is_answered_once() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    server.kill();
    server.restart();
    agent.looked_again();
    assert_eq!(server.job(&id)["question"]["prompt"], "Size?");
    answer(&server, &id, &json!("big"));
    assert_eq!(agent.awaited("input", 1).body, json!({"input": "big"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
    assert_eq!((agent.asked("input").len(), agent.asked("post").len()), (1, 1));
}

#[test]
fn an_answer_that_may_not_have_arrived_is_delivered_again_and_the_question_is_not_asked_twice() {
    let hanging = Arc::new(AtomicBool::new(true));
    let hangs = hanging.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "input" if hangs.load(Ordering::Relaxed) => Reply::Hang,
        _ => Reply::Kept,
    });
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!("big"));
    agent.awaited("input", 1);
    server.kill();
    hanging.store(false, Ordering::Relaxed);
    server.restart();
    assert_eq!(agent.awaited("input", 2).body, json!({"input": "big"}));
    // The same question once more is a new question.
    server.in_state(&id, "running");
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!("bigger"));
    assert_eq!(agent.awaited("input", 3).body, json!({"input": "bigger"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
    let events = server.get(&format!("/api/v1/jobs/{id}/events")).text();
    assert_eq!(events.matches("event: question").count() + events.matches("event:question").count(), 2, "{events}");
}

#[test]
fn an_answer_that_has_arrived_is_not_given_to_a_later_question_in_the_same_words() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Approve?"));
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!("yes"));
    agent.awaited("input", 1);
    agent.stands(&id, json!({"status": "in_progress"}));
    server.kill();
    server.restart();
    agent.looked_again();
    agent.stands(&id, asking("Approve?"));
    server.in_state(&id, "waiting");
    assert_eq!(agent.asked("input").len(), 1, "this question has no answer yet");
    answer(&server, &id, &json!("no"));
    assert_eq!(agent.awaited("input", 2).body, json!({"input": "no"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

#[test]
fn an_answer_that_comes_before_the_agent_is_back_is_kept_for_it() {
    let away = Arc::new(AtomicBool::new(false));
    let is_away = away.clone();
    let agent = TaskAgent::answering(move |_| if is_away.load(Ordering::Relaxed) { Reply::Close } else { Reply::Kept });
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    server.kill();
    away.store(true, Ordering::Relaxed);
    server.restart();
    let before = agent.asked("look").len();
    agent.awaited("look", before + 1);
    answer(&server, &id, &json!("big"));
    away.store(false, Ordering::Relaxed);
    assert_eq!(agent.awaited("input", 1).body, json!({"input": "big"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

#[test]
fn a_question_that_was_taken_back_meanwhile_is_asked_no_more() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    server.kill();
    agent.stands(&id, json!({"status": "in_progress"}));
    server.restart();
    server.in_state(&id, "running");
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

#[test]
fn a_task_that_the_agent_does_not_know_is_posted_again_unless_it_must_not() {
    // The post hangs, as if it had never arrived. An agent that says in the contract's words that it knows no such task
    // has never had it. An agent that has no such endpoint may be at work.
    let cases = [(true, "", 2), (false, "", 1), (false, "repeatable = true", 2), (true, "repeatable = false", 1)];
    for (in_its_words, keys, posts) in cases {
        let hanging = Arc::new(AtomicBool::new(true));
        let hangs = hanging.clone();
        let posted = AtomicBool::new(false);
        let agent = TaskAgent::answering(move |call| match &*call.what {
            "post" if hangs.load(Ordering::Relaxed) => Reply::Hang,
            "post" => {
                posted.store(true, Ordering::Relaxed);
                Reply::Kept
            }
            "look" if !in_its_words && !posted.load(Ordering::Relaxed) => {
                Reply::Json(404, json!({"detail": "Not Found"}))
            }
            _ => Reply::Kept,
        });
        let mut server = Server::configured(&agent.configuration("helper", keys));
        let id = server.begin("helper");
        agent.awaited("post", 1);
        server.kill();
        hanging.store(false, Ordering::Relaxed);
        server.restart();
        if posts == 2 {
            assert_eq!(agent.awaited("post", 2).body, agent.awaited("post", 1).body, "the very same request");
            agent.stands(&id, completed(&json!(id), &json!({})));
        }
        let job = ended(&server, &id);
        if posts == 2 {
            assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{keys}: {job}");
        } else {
            let failure = &job["outcome"]["failure"];
            assert_eq!((text(&failure["code"]), text(&failure["repeat"])), ("unavailable", "unknown"), "{job}");
        }
        assert_eq!(agent.asked("post").len(), posts, "{keys}");
    }
}

#[test]
fn a_task_that_is_begun_anew_is_given_the_answers_that_people_gave() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    for (count, question) in ["Size?", "Colour?"].iter().enumerate() {
        agent.stands(&id, asking(question));
        until("it is asked", || (server.job(&id)["question"]["prompt"] == **question).then_some(()));
        answer(&server, &id, &json!(question));
        agent.awaited("input", count + 1);
    }
    server.kill();
    agent.forget(&id);
    server.restart();
    agent.awaited("post", 2);
    for (count, question) in ["Size?", "Colour?"].iter().enumerate() {
        agent.stands(&id, asking(question));
        assert_eq!(agent.awaited("input", count + 3).body, json!({"input": question}));
    }
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

/// An agent may ask the same again. The earlier answer is not an answer to that, even if the server ended in between.
#[test]
fn an_old_answer_is_not_given_to_a_new_question_in_the_same_words() {
    // The second answer never reaches the task.
    let inputs = AtomicUsize::new(0);
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "input" if inputs.fetch_add(1, Ordering::Relaxed) == 1 => Reply::Hang,
        _ => Reply::Kept,
    });
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Go on?"));
    until("it is asked", || (server.job(&id)["question"]["prompt"] == "Go on?").then_some(()));
    answer(&server, &id, &json!("yes"));
    agent.awaited("input", 1);
    agent.stands(&id, json!({"id": id, "status": "in_progress"}));
    // The task has gone on, and the server sees that.
    agent.looked_again();
    agent.looked_again();
    server.kill();
    agent.stands(&id, asking("Go on?"));
    server.restart();
    until("a person is asked again", || (server.job(&id)["question"]["prompt"] == "Go on?").then_some(()));
    answer(&server, &id, &json!("no"));
    assert_eq!(agent.awaited("input", 2).body, json!({"input": "no"}));
    // The task still asks: it is given the second answer again, and not the first.
    server.kill();
    server.restart();
    assert_eq!(agent.awaited("input", 3).body, json!({"input": "no"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

/// The agent has acknowledged an answer, and the server is killed before it sees the task go on. The same words are
/// then another question, whatever was seen in between.
#[test]
fn an_acknowledged_answer_is_never_given_to_a_new_question_in_the_same_words() {
    let (hanging, hung) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (hangs, counted) = (hanging.clone(), hung.clone());
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "input" => Reply::Bytes(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec()),
        "look" if hangs.load(Ordering::SeqCst) => {
            counted.fetch_add(1, Ordering::SeqCst);
            Reply::Hang
        }
        _ => Reply::Kept,
    });
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Approve?"));
    server.in_state(&id, "waiting");
    hanging.store(true, Ordering::SeqCst);
    let polled = |count| until("a poll", || (hung.load(Ordering::SeqCst) >= count).then_some(()));
    polled(1);
    answer(&server, &id, &json!("yes"));
    agent.awaited("input", 1);
    // The next poll shows that the server has read the acknowledgement. How the task stands it does not learn.
    polled(2);
    server.kill();
    // The agent has gone on meanwhile, and asks the same again.
    hanging.store(false, Ordering::SeqCst);
    server.restart();
    server.in_state(&id, "waiting");
    assert_eq!(agent.asked("input").len(), 1, "no person said yes to this");
    answer(&server, &id, &json!("no"));
    assert_eq!(agent.awaited("input", 2).body, json!({"input": "no"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

/// What an agent says on the way is shown as it was, also after a restart.
#[test]
fn the_last_progress_is_shown_in_the_agents_own_words_after_a_kill() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let body = json!({"id": "t", "type": "helper", "payload": {}}).to_string();
    server.task("POST", "/tasks", &[], &body);
    let id = agent.awaited("look", 1).id;
    let said = json!({
        "status": "in_progress", "found": {"pages": [1, 2.50]}, "metadata": {"phase": "reading", "agent": "tested"},
    });
    agent.stands(&id, said.clone());
    let shown = |server: &Server| {
        let task = server.poll("t").document;
        (task["found"].clone(), task["metadata"]["phase"].clone(), task["id"].clone())
    };
    let wanted = (said["found"].clone(), json!("reading"), json!("t"));
    until("it is shown", || (shown(&server) == wanted).then_some(()));
    let looks = agent.asked("look").len();
    server.kill();
    // From now on the agent is away: what is shown is what was kept.
    agent.forget(&id);
    server.restart();
    assert_eq!(shown(&server), wanted);
    assert!(agent.asked("look").len() >= looks);
}
