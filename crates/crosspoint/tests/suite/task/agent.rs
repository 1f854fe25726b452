//! Agents of the task contract: what they are asked, and what their answers lead to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::server::{Server, until};
use crate::support::task_agent::{Reply, TaskAgent, asking, completed, failed};

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The recorded clauses that were broken.
pub(crate) fn clauses(job: &Value) -> Vec<String> {
    let list = job["violations"].as_array().cloned().unwrap_or_default();
    list.iter().map(|one| text(&one["clause"]).to_owned()).collect()
}

/// The job with everything beside it, once it has ended.
pub(crate) fn ended(server: &Server, id: &str) -> Value {
    server.ended(id);
    server.job(id)
}

/// Has one job done by an agent that answers like this, without repeats.
pub(crate) fn done_by(agent: &TaskAgent, keys: &str) -> Value {
    let server = Server::configured(&agent.configuration("helper", keys));
    let id = server.begin("helper");
    ended(&server, &id)
}

pub(crate) fn answer(server: &Server, id: &str, input: &Value) {
    let answered = server.post(&format!("/api/v1/jobs/{id}/answer"), &json!({"input": input}).to_string());
    assert_eq!(answered.status, 200, "{answered:?}");
}

#[test]
fn a_task_that_is_answered_at_once_is_done_in_one_exchange() {
    let agent = TaskAgent::simple(|request| json!({"echo": request["payload"], "ключ": 1}));
    let server = Server::configured(&agent.configuration("helper", ""));
    let job = server.done("helper", &json!({"message": "grüße"}));
    assert_eq!(job["outcome"]["outputs"], json!({"echo": {"message": "grüße"}, "ключ": 1}), "{job}");
    assert!(clauses(&job).is_empty(), "{job}");
    assert!(agent.asked("look").is_empty(), "it is not asked for again");
    let call = agent.awaited("post", 1);
    assert_eq!((&call.body["id"], &call.body["type"]), (&job["id"], &json!("helper")));
    assert_eq!(call.body["routing"], json!({"delegationChain": ["crosspoint"]}));
    let block = &call.body["observability"];
    let (trace, span) = (text(&block["traceId"]), text(&block["spanId"]));
    let header = |name: &str| call.request.header(name).map(str::to_owned);
    assert_eq!(header("traceparent"), Some(format!("00-{trace}-{span}-01")), "block and header say the same");
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
}

#[test]
fn an_agent_that_hands_back_what_was_carried_is_understood() {
    let agent = TaskAgent::answering(|call| {
        let mut document = completed(&call.body["id"], &json!({"a": 1}));
        document["metadata"]["x_crosspoint"] = call.body["context"]["x_crosspoint"].clone();
        Reply::Json(200, document)
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let job = server.submit(r#"{"work": "helper", "request_id": "Łódź/1"}"#);
    let job = ended(&server, text(&job["id"]));
    assert_eq!((&job["state"], &job["request_id"]), (&json!("completed"), &json!("Łódź/1")), "{job}");
    assert!(clauses(&job).is_empty(), "{job}");
}

#[test]
fn a_pending_task_is_polled_and_its_progress_is_shown() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    let progress = |percent: u32| {
        let far = json!({"from": "task.response", "percent": percent, "step": "Dig"});
        agent.stands(&id, json!({"status": "in_progress", "metadata": {"x_crosspoint": far}}));
        until("progress", || {
            (server.job(&id)["progress"]["percent"].as_f64() == Some(f64::from(percent))).then_some(())
        });
    };
    progress(40);
    progress(80);
    assert_eq!(server.job(&id)["progress"]["step"], "Dig");
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"a": 1}), &json!(1)));
    assert_eq!(agent.asked("post").len(), 1);
    assert!(agent.asked("look").iter().all(|look| look.id == id && look.query == "wait=2"));
    assert!(clauses(&job).is_empty(), "{job}");
}

#[test]
fn long_results_artifacts_and_unknown_members_come_through() {
    let long = "ä".repeat(1 << 20);
    let given = long.clone();
    let agent = TaskAgent::answering(move |call| {
        let mut document = completed(&call.body["id"], &json!({"long": given}));
        document["artifacts"] = json!([{"name": "n.md", "type": "text/markdown", "content": "c", "lang": "en"}]);
        document["own"] = json!({"x": [1, 2.50]});
        Reply::Json(200, document)
    });
    let job = done_by(&agent, "");
    let outcome = &job["outcome"];
    assert!(outcome["outputs"]["long"] == json!(long), "two megabytes, as they came");
    assert_eq!(outcome["artifacts"], json!([{"name": "n.md", "type": "text/markdown", "content": "c", "lang": "en"}]));
    assert_eq!(outcome["said"]["document"]["own"], json!({"x": [1, 2.50]}));
}

#[test]
fn every_code_of_an_agent_is_one_of_the_closed_list() {
    for (code, recoverable, failure, repeat) in [
        ("INVALID_INPUT", true, "invalid", "never"),
        ("MISSING_REQUIRED_FIELD", true, "invalid", "never"),
        ("CAPABILITY_NOT_FOUND", false, "unsupported", "never"),
        ("AGENT_UNAVAILABLE", true, "unavailable", "unknown"),
        ("AGENT_BUSY", true, "resource_limit", "unknown"),
        ("UNAUTHENTICATED", true, "unavailable", "never"),
        ("TASK_GRAPH_CYCLE", false, "delegation", "never"),
        ("TIMEOUT", true, "timeout", "unknown"),
        ("MCP_NOT_CONNECTED", true, "agent_failed", "never"),
        ("INTERNAL_ERROR", false, "agent_failed", "never"),
        ("INTERNAL_ERROR", true, "internal", "unknown"),
    ] {
        let agent = TaskAgent::answering(move |call| Reply::Json(200, failed(&call.body["id"], code, recoverable)));
        let job = done_by(&agent, "");
        let found = &job["outcome"]["failure"];
        assert_eq!((text(&found["code"]), text(&found["repeat"])), (failure, repeat), "{code}");
        assert_eq!(found["message"], "It went wrong.", "{code}");
        assert_eq!(found["details"]["details"], json!({"n": 7}), "{code}");
        assert_eq!(agent.asked("post").len(), 1, "{code} is not tried again");
    }
    let agent = TaskAgent::answering(|call| Reply::Json(200, json!({"id": call.body["id"], "status": "cancelled"})));
    assert_eq!(done_by(&agent, "")["state"], "cancelled");
}

#[test]
fn a_question_goes_up_and_its_answer_down() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    let schema = json!({"type": "string"});
    agent.stands(&id, json!({"status": "input_required", "inputRequest": {"prompt": "Size?", "schema": schema}}));
    let job = server.in_state(&id, "waiting");
    assert_eq!(job["question"], json!({"prompt": "Size?", "schema": schema}));
    agent.looked_again();
    answer(&server, &id, &json!({"size": "grün"}));
    assert_eq!(agent.awaited("input", 1).body, json!({"input": {"size": "grün"}}));
    server.in_state(&id, "running");
    agent.stands(&id, asking("Really?"));
    until("the second question", || (server.job(&id)["question"]["prompt"] == "Really?").then_some(()));
    answer(&server, &id, &json!(true));
    agent.awaited("input", 2);
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    let job = ended(&server, &id);
    assert_eq!(job["outcome"]["outputs"], json!({"a": 1}));
    assert_eq!(agent.asked("input").len(), 2);
    assert!(clauses(&job).is_empty(), "{job}");
}

#[test]
fn a_question_that_is_taken_back_cannot_be_answered() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    agent.stands(&id, json!({"status": "in_progress"}));
    server.in_state(&id, "running");
    let refused = server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": 1}"#);
    assert_eq!(refused.status, 409, "{refused:?}");
    // The agent's next question is asked too, and gets its own answer.
    agent.stands(&id, asking("Colour?"));
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!("red"));
    assert_eq!(agent.awaited("input", 1).body, json!({"input": "red"}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(ended(&server, &id)["state"], "completed");
}

#[test]
fn a_task_that_ends_while_a_person_thinks_does_not_wait() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    agent.stands(&id, failed(&json!(id), "TIMEOUT", true));
    assert_eq!(ended(&server, &id)["outcome"]["failure"]["code"], "timeout");
}

#[test]
fn a_question_without_words_is_asked_in_ours_and_on_record() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, json!({"status": "input_required"}));
    let job = server.in_state(&id, "waiting");
    assert_eq!(job["question"], json!({"prompt": "The agent needs input."}));
    answer(&server, &id, &json!(1));
    agent.awaited("input", 1);
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(clauses(&ended(&server, &id)), ["TASK-2.6"]);
}

#[test]
fn an_answer_that_the_agent_refuses_is_asked_for_again() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let count = refusals.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "input" if count.fetch_add(1, Ordering::Relaxed) == 0 => Reply::Json(422, json!({"detail": "a number"})),
        _ => Reply::Kept,
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("post", 1);
    agent.stands(&id, asking("How many?"));
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!("many"));
    agent.awaited("input", 1);
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!(3));
    assert_eq!(agent.awaited("input", 2).body, json!({"input": 3}));
    agent.stands(&id, completed(&json!(id), &json!({})));
    assert_eq!(clauses(&ended(&server, &id)), ["TASK-4.3"]);
}

#[test]
fn an_agent_that_asks_and_takes_no_answers_breaks_the_contract() {
    let agent = TaskAgent::answering(|call| match &*call.what {
        "post" => Reply::Json(
            200,
            json!({"id": call.body["id"], "status": "input_required", "inputRequest": {"prompt": "?"}}),
        ),
        "look" => Reply::Json(200, json!({"id": call.id, "status": "input_required", "inputRequest": {"prompt": "?"}})),
        _ => Reply::Json(404, json!({})),
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    server.in_state(&id, "waiting");
    answer(&server, &id, &json!(1));
    let job = ended(&server, &id);
    assert_eq!(job["outcome"]["failure"]["code"], "broken_contract", "{job}");
    assert_eq!(clauses(&job), ["TASK-4.3"]);
}

#[test]
fn a_cancelled_job_and_one_whose_time_is_up_are_cancelled_at_the_agent() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    server.cancel(&id);
    assert_eq!(agent.awaited("cancel", 1).id, id);
    let late = server.submit(r#"{"work": "helper", "limits": {"seconds": 0.5}}"#);
    let late = text(&late["id"]).to_owned();
    assert_eq!(ended(&server, &late)["outcome"]["failure"]["code"], "timeout");
    assert_eq!(agent.awaited("cancel", 2).id, late);
    // Also while a person is asked.
    let asks = server.begin("helper");
    agent.awaited("post", 3);
    agent.stands(&asks, asking("?"));
    server.in_state(&asks, "waiting");
    server.cancel(&asks);
    assert_eq!(agent.awaited("cancel", 3).id, asks);
}

#[test]
fn work_goes_to_as_many_at_a_time_as_two_agents_take() {
    let agents = [TaskAgent::start(), TaskAgent::start()];
    let one = |name, agent: &TaskAgent| agent.configuration(name, "work = [\"dig\"]\nconcurrency = 2");
    let server = Server::configured(&(one("first", &agents[0]) + &one("second", &agents[1])));
    let ids: Vec<String> = (0..5).map(|_| server.begin("dig")).collect();
    for agent in &agents {
        agent.awaited("post", 2);
    }
    let queued: Vec<&String> = ids.iter().filter(|id| server.job(id)["state"] == "queued").collect();
    assert_eq!(queued.len(), 1, "the fifth waits");
    for agent in &agents {
        for call in agent.asked("post") {
            agent.stands(text(&call.body["id"]), completed(&call.body["id"], &json!({})));
        }
    }
    let last = until("the fifth is posted", || {
        agents.iter().find_map(|agent| agent.asked("post").into_iter().nth(2).map(|call| (agent, call)))
    });
    last.0.stands(text(&last.1.body["id"]), completed(&last.1.body["id"], &json!({})));
    for id in &ids {
        assert_eq!(ended(&server, id)["state"], "completed");
    }
    let posts: usize = agents.iter().map(|agent| agent.asked("post").len()).sum();
    assert_eq!(posts, 5, "each once");
}
