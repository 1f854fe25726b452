//! Requests that are posted to their agents, and the answers: on the same connection, to the server's endpoint, or both
//! (MSG-17).

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use crosspoint_contracts::{Kind, Options, document};
use serde_json::{Value, json};

use crate::support::message_post::{Posted, error, failed, new_id, result, status};
use crate::support::misbehaving_agents::{clauses, one_outcome};
use crate::support::scripted_agent::{After, json_answer};
use crate::support::server::{PATIENCE, Server, until};

/// Has one job done by an agent, without repeats.
fn done_by(agent: &Posted) -> Value {
    let server = Server::configured(&agent.configuration("helper", ""));
    server.done("helper", &json!({"message": "grüße"}))
}

/// Has one job done by an agent that answers with exactly this.
fn answered_with(status: u16, body: &'static str) -> Value {
    done_by(&Posted::answering(move |_, connection| connection.whole(status, "application/json", body)))
}

#[test]
fn a_request_is_a_whole_message_and_its_result_on_the_connection_is_the_outcome() {
    let agent = Posted::saying(|request| result(request, "all is well"));
    let job = done_by(&agent);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job}");
    assert_eq!(job["outcome"]["outputs"], "all is well");
    assert!(clauses(&job).is_empty(), "{job}");
    let asked = &agent.asked()[0];
    assert_eq!((&*asked.path, asked.header("content-type")), ("/api/agent/message", Some("application/json")));
    let request = agent.request(1);
    let options = Options { kind: Some(Kind::WorkRequest), ..Options::default() };
    let reading = document::read(&asked.body, &options);
    assert!(reading.report.findings.is_empty(), "{:?}\n{request:#}", reading.report);
    // ALL-2: the agent knows the job by its id.
    assert_eq!((&request["request_id"], &request["payload"]["task_id"]), (&job["id"], &job["id"]));
    assert_eq!((&request["from_agent"], &request["payload"]["work_type"]), (&json!("orchestrator"), &json!("helper")));
    assert_eq!(request["payload"]["parameters"], json!({"message": "grüße"}));
    assert!(request["payload"]["hints"].is_object() && request["x_custom_fields"].is_object(), "{request:#}");
}

#[test]
fn an_empty_answer_says_that_the_work_is_taken_and_the_result_comes_to_our_endpoint() {
    for code in [200, 202, 204] {
        let agent = Posted::answering(move |_, connection| connection.whole(code, "application/json", ""));
        let server = Server::configured(&agent.configuration("helper", ""));
        let id = server.begin("helper");
        let request = agent.request(1);
        assert_eq!(server.job(&id)["state"], "running");
        server.takes(&result(&request, "later"));
        // What is acknowledged is on disk: the outcome is there at once.
        let job = server.job(&id);
        assert_eq!((&job["state"], &job["outcome"]["outputs"]), (&json!("completed"), &json!("later")), "{job}");
        assert!(clauses(&job).is_empty() && agent.had("error").is_empty(), "{job}");
        assert_eq!((agent.had("work_request").len(), &job["attempts"]), (1, &json!(1)));
    }
}

#[test]
fn a_status_on_the_connection_is_progress_and_the_result_comes_to_our_endpoint() {
    let agent = Posted::saying(|request| status(request, 20));
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    let progress = |percent| until("progress", || (server.job(&id)["progress"]["percent"] == percent).then_some(()));
    progress(json!(20));
    server.takes(&status(&request, 60));
    progress(json!(60));
    assert_eq!(server.job(&id)["progress"]["step"], "Dig");
    server.takes(&result(&request, "done"));
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job}");
    assert!(clauses(&job).is_empty(), "{job}");
    one_outcome(&server, &id, "status, then result");
}

#[test]
fn a_result_on_the_connection_counts_after_statuses_by_post() {
    let (finish, finished) = mpsc::channel::<()>();
    let finished = Mutex::new(finished);
    let agent = Posted::answering(move |request, connection| {
        let _ = finished.lock().expect("one waits").recv_timeout(PATIENCE);
        connection.json(200, &result(request, "on the connection"))
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    for percent in [10, 50, 90] {
        server.takes(&status(&request, percent));
    }
    until("progress", || (server.job(&id)["progress"]["percent"] == 90).then_some(()));
    finish.send(()).expect("the agent waits");
    let job = server.over(&id);
    assert_eq!(job["outcome"]["outputs"], "on the connection", "{job}");
    assert_eq!(job["attempts"], 1);
    assert!(clauses(&job).is_empty(), "{job}");
}

#[test]
fn a_result_by_post_counts_while_the_connection_is_still_open() {
    let agent = Posted::answering(|_, connection| connection.until_gone());
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    server.takes(&result(&agent.request(1), "by post"));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("by post"), &json!(1)), "{job}");
    assert!(clauses(&job).is_empty() && agent.had("error").is_empty(), "{job}");
}

#[test]
fn a_failed_result_is_the_agents_failure_and_its_output_is_kept() {
    let job = done_by(&Posted::saying(|request| failed(request, "no disk left")));
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("agent_failed"), &json!("never")), "{job}");
    assert_eq!(failure["message"], "no disk left", "{job}");
    assert_eq!(job["outcome"]["said"]["document"]["payload"]["exit_code"], 3, "{job}");
    assert!(clauses(&job).is_empty(), "{job}");
}

#[test]
fn an_error_on_the_connection_ends_the_work_whatever_the_status_is() {
    for http in [200, 202, 400, 422, 500] {
        let agent = Posted::answering(move |request, connection| {
            let context = json!({"validation_error": "no such playbook", "field_name": "playbook"});
            connection.json(http, &error(request, 5003, &context))
        });
        let job = done_by(&agent);
        assert_eq!(job["outcome"]["failure"]["code"], "invalid", "{http}: {job}");
        assert_eq!(job["outcome"]["failure"]["message"], "It went wrong.", "{http}");
        assert!(clauses(&job).is_empty(), "{http}: {job}");
    }
}

#[test]
fn an_answer_that_is_no_message_is_taken_for_an_acknowledgement_and_on_record() {
    for body in ["OK", "<html>", "{}", r#"{"status": "accepted"}"#, r#"{"type": "work_request", "payload": {}}"#, "[1]"]
    {
        let agent = Posted::answering(move |_, connection| connection.whole(200, "text/plain", body));
        let server = Server::configured(&agent.configuration("helper", ""));
        let id = server.begin("helper");
        let request = agent.request(1);
        assert_eq!(clauses(&server.on_record(&id, "MSG-17")), ["MSG-17"], "{body}");
        server.takes(&result(&request, "later"));
        assert_eq!(server.job(&id)["outcome"]["outputs"], "later", "{body}");
    }
}

#[test]
fn an_answer_about_another_task_breaks_the_contract() {
    let agent = Posted::saying(|request| {
        let mut message = result(request, "not mine");
        message["request_id"] = json!(new_id());
        message["payload"]["task_id"] = json!(new_id());
        message
    });
    let job = done_by(&agent);
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("broken_contract"), &json!("unknown")), "{job}");
    assert!(clauses(&job).contains(&"MSG-17.2".to_owned()), "{job}");
}

#[test]
fn a_renewed_request_id_counts_with_the_right_task_id() {
    let renewed = |request: &Value| {
        let mut message = result(request, "mine");
        message["request_id"] = json!(new_id());
        message
    };
    let job = done_by(&Posted::saying(renewed));
    assert_eq!(job["outcome"]["outputs"], "mine", "{job}");
    assert_eq!(clauses(&job), ["MSG-17.2"], "{job}");
    // To our endpoint, too.
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    server.takes(&renewed(&agent.request(1)));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], clauses(&job)), (&json!("mine"), vec!["MSG-17.2".to_owned()]), "{job}");
}

#[test]
fn a_renewed_task_id_counts_with_the_right_request_id() {
    let agent = Posted::saying(|request| {
        let mut message = result(request, "mine");
        message["payload"]["task_id"] = json!(new_id());
        message
    });
    let job = done_by(&agent);
    assert_eq!((&job["outcome"]["outputs"], clauses(&job)), (&json!("mine"), vec!["MSG-17.2".to_owned()]), "{job}");
}

#[test]
fn an_error_is_found_by_the_task_in_its_context() {
    let renewed = |request: &Value| {
        let context = json!({"validation_error": "?", "field_name": null, "task_id": request["request_id"]});
        let mut message = error(request, 5003, &context);
        message["request_id"] = json!(new_id());
        message
    };
    let job = done_by(&Posted::saying(renewed));
    assert_eq!((&job["outcome"]["failure"]["code"], clauses(&job)), (&json!("invalid"), vec!["MSG-17.2".to_owned()]));
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    server.takes(&renewed(&agent.request(1)));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["failure"]["code"], clauses(&job)), (&json!("invalid"), vec!["MSG-17.2".to_owned()]));
}

#[test]
fn an_answer_without_ids_on_the_connection_of_its_request_counts_and_is_on_record() {
    let agent = Posted::saying(|request| {
        let mut message = result(request, "mine");
        message.as_object_mut().expect("an object").remove("request_id");
        message["payload"].as_object_mut().expect("an object").remove("task_id");
        message
    });
    let job = done_by(&agent);
    assert_eq!(job["outcome"]["outputs"], "mine", "{job}");
    assert_eq!(clauses(&job), ["MSG-1", "MSG-109"], "{job}");
}

#[test]
fn a_message_to_our_endpoint_without_ids_is_about_nothing() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let mut message = result(&agent.request(1), "mine");
    message.as_object_mut().expect("an object").remove("request_id");
    message["payload"].as_object_mut().expect("an object").remove("task_id");
    let refused = server.hears(&message);
    assert_eq!((refused.status, &refused.json()["payload"]["error_code"]), (404, &json!(5003)), "{refused:?}");
    assert_eq!(server.job(&id)["state"], "running");
}

#[test]
fn what_cannot_be_read_as_a_result_breaks_the_contract_and_is_kept() {
    let broken: [fn(&Value) -> Value; 2] = [
        |request| {
            let mut message = result(request, "?");
            message["payload"]["status"] = json!("perhaps");
            message
        },
        |request| {
            let mut message = result(request, "?");
            message["payload"].as_object_mut().expect("an object").remove("output");
            message
        },
    ];
    for answer in broken {
        let job = done_by(&Posted::saying(answer));
        assert_eq!(job["outcome"]["failure"]["code"], "broken_contract", "{job}");
        assert!(!clauses(&job).is_empty(), "{job}");
        let kept = job["outcome"]["failure"]["details"]["answer"].as_str().expect("the raw answer is kept");
        assert!(kept.contains("work_result"), "{kept}");
    }
}

#[test]
fn statuses_without_a_document_mean_what_they_mean_for_every_contract() {
    for (status, body, failure) in [
        (400, "", "invalid"),
        (404, r#"{"detail": "no such path"}"#, "unsupported"),
        (401, "", "unavailable"),
        (429, "", "resource_limit"),
        (500, "<html>", "agent_failed"),
        (503, "", "unavailable"),
    ] {
        let job = answered_with(status, body);
        assert_eq!(job["outcome"]["failure"]["code"], failure, "{status}: {job}");
    }
}

#[test]
fn the_later_dialect_is_read_with_a_warning() {
    let agent = Posted::saying(|request| {
        let mut message = result(request, "mine");
        let task_id = request["payload"]["task_id"].clone();
        message["priority"] = json!(3);
        message["payload"] = json!({
            "task_id": task_id, "status": "completed", "exit_code": 0, "output": "mine", "duration_ms": 12,
            "agent_id": "helper-7", "error_message": null, "resources_used": {"anything": [1]},
        });
        message
    });
    let job = done_by(&agent);
    assert_eq!(job["outcome"]["outputs"], "mine", "{job}");
    let levels: Vec<&Value> = job["violations"].as_array().expect("a list").iter().map(|one| &one["level"]).collect();
    assert!(levels.iter().all(|level| **level == "warning"), "{job}");
}

#[test]
fn long_results_come_through_whole() {
    let long = "ä".repeat(1 << 19);
    let given = Arc::new(long.clone());
    let agent = Posted::answering(move |request, connection| {
        connection.send(json_answer(200, result(request, &given).to_string()));
        After::Keep
    });
    assert!(done_by(&agent)["outcome"]["outputs"] == json!(long), "a megabyte, as it came");
}
