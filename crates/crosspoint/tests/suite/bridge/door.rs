//! The bridge door: a request is a body, and the answer is its response.

use std::thread;

use crosspoint_contracts::bridge::failure;
use crosspoint_contracts::failure::Failure;
use serde_json::{Value, json};

use crate::support::bridge_caller::{BRIDGE, carrying, new_id, request, response};
use crate::support::programs::bash;
use crate::support::scripted_agent::ScriptedAgent;
use crate::support::server::{Server, until};
use crate::support::task_agent::TaskAgent;

/// The object inside a response.
fn inner(response: &Value) -> Value {
    serde_json::from_str(response["response"].as_str().expect("a text")).expect("JSON")
}

#[test]
fn a_request_is_answered_with_its_response() {
    let server = Server::start();
    let mut asked = request(&new_id(), "echo", "Größe \u{1F600}\n\"x\"");
    asked["context"] = json!({"files": ["a.md", 2.50], "ключ": null});
    asked["model"] = Value::Null;
    asked["phase"] = json!(6);
    asked["own"] = json!({"kept": true});
    let answer = server.ask(&asked);
    let document = response(&answer);
    assert_eq!((answer.status, &document["request_id"]), (200, &asked["request_id"]));
    assert_eq!((&document["status"], &document["metadata"]), (&json!("success"), &json!({})));
    assert_eq!(inner(&document), json!({"prompt": asked["prompt"], "context": asked["context"]}));
    let text = document["response"].as_str().expect("a text");
    assert!(text.contains("Größe \u{1F600}") && !text.contains(": "), "compact and not escaped: {text}");
    assert!(document["duration_seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0));
    // The request is a job like any other, and keeps its document as it came.
    let job = &server.asked()[0];
    assert_eq!((&job["door"], &job["request_id"]), (&json!("bridge"), &asked["request_id"]));
    let path = answer.header("location").expect("a place").to_owned();
    assert_eq!(path, format!("/api/v1/jobs/{}", job["id"].as_str().expect("an id")));
    assert_eq!(server.get(&format!("{path}/document")).body, asked.to_string().into_bytes());
    assert_eq!(server.get(&path).json()["outcome"]["outputs"], inner(&document));
}

#[test]
fn what_is_a_text_stays_one_and_an_object_that_was_carried_is_one_again() {
    let server = Server::configured(&bash("words", r#"echo '@crosspoint {"outputs": "größer"}'"#, ""));
    let document = server.response_to(&request(&new_id(), "words", ""));
    // Programs return objects.
    assert!(document["response"].as_str().is_some_and(|text| text.contains("größer")), "{document}");
    let server = Server::start();
    let document = server.response_to(&carrying(&new_id(), "echo", &json!({"a": [1, "ä"]})));
    assert_eq!(inner(&document), json!({"a": [1, "ä"]}));
}

#[test]
fn every_failure_is_a_response_too() {
    let server = Server::start();
    for failure in Failure::ALL {
        let asked = carrying(&new_id(), "fail", &json!({"failure": failure.name(), "message": "It höhö failed."}));
        let document = server.response_to(&asked);
        let (status, code) = failure::write(failure);
        assert_eq!((&document["status"], &document["error_type"]), (&json!(status.word()), &json!(code)), "{failure}");
        assert_eq!((&document["response"], &document["error_message"]), (&Value::Null, &json!("It höhö failed.")));
        let repeat = &document["metadata"]["x_crosspoint"]["details"]["repeat"];
        assert!(["safe", "unknown", "never"].map(|word| json!(word)).contains(repeat), "{document}");
    }
    // BRIDGE-9: a job that was cancelled, and one that took too long.
    let id = new_id();
    let stopped = server.post(BRIDGE, &request(&id, "ask", "?").to_string()).json();
    server.cancel(stopped["id"].as_str().expect("an id"));
    let document = server.response_to(&request(&id, "ask", "?"));
    assert_eq!((&document["status"], &document["error_type"]), (&json!("error"), &json!("cancelled")));
    let mut late = request(&new_id(), "ask", "?");
    late["timeout_seconds"] = json!(0.05);
    let document = server.response_to(&late);
    assert_eq!((&document["status"], &document["error_type"]), (&json!("timeout"), &json!("timeout")));
}

const REVIEWERS: &str = r#"
[[agent]]
name = "reviewer"
contract = "builtin"
run = "echo"
work = ["review", "check"]

[[agent]]
name = "other"
contract = "builtin"
run = "echo"
work = ["review"]

[[agent]]
name = "check"
contract = "builtin"
run = "fail"
work = ["rest"]
"#;

#[test]
fn a_name_is_that_of_a_work_else_that_of_an_agent_and_the_query_wins() {
    let server = Server::configured(REVIEWERS);
    let led = |query: &str, name: &str| {
        let answer = server.post(&format!("{BRIDGE}?wait=60{query}"), &request(&new_id(), name, "p").to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        let job = server.get(answer.header("location").expect("a place")).json();
        (job["work"].as_str().expect("a work").to_owned(), job["agent"].as_str().expect("an agent").to_owned())
    };
    let to = |work: &str, agent: &str| (work.to_owned(), agent.to_owned());
    for _ in 0..4 {
        assert_eq!(led("", "reviewer"), to("review", "reviewer"), "its first work, and nobody else's");
    }
    assert_eq!(led("", "check"), to("check", "reviewer"), "a work goes before an agent");
    assert_eq!(led("&work=rest", "reviewer"), to("rest", "check"));
    assert_eq!(led("&work=other", "anything"), to("review", "other"));
}

#[test]
fn a_repeat_joins_the_job_and_other_work_is_a_conflict() {
    let mut server = Server::configured(REVIEWERS);
    let id = new_id();
    let asked = request(&id, "reviewer", "p");
    let first = server.response_to(&asked);
    assert_eq!(server.response_to(&asked), first, "the same, to the byte");
    // Formatted differently, and sent at another time, it is still the same request.
    let mut again = json!({"created_at": "2026-01-01T00:00:00Z", "timeout_seconds": 7});
    again.as_object_mut().expect("an object").extend(asked.as_object().expect("an object").clone());
    assert_eq!(server.response_to(&again), first);
    for other in [request(&id, "reviewer", "q"), request(&id, "other", "p"), request(&id, "check", "p")] {
        let answer = server.ask(&other);
        let document = response(&answer);
        assert_eq!((answer.status, &document["error_type"]), (409, &json!("request_conflict")), "{other}");
        assert_eq!(document["request_id"], id.as_str());
        assert_eq!(document["metadata"]["x_crosspoint"]["details"]["clause"], "ALL-1");
    }
    for work in ["rest", "other"] {
        let elsewhere = server.post(&format!("{BRIDGE}?wait=60&work={work}"), &asked.to_string());
        assert_eq!(elsewhere.status, 409, "{elsewhere:?}");
    }
    let alike = server.post(&format!("{BRIDGE}?wait=60&work=reviewer"), &asked.to_string());
    assert_eq!(response(&alike), first);
    // The name now leads to another agent, or to none: the job keeps the work that it was accepted for.
    for works in [r#"["check", "review"]"#, r#"["fresh"]"#] {
        server.kill();
        server.configure(&REVIEWERS.replace(r#"["review", "check"]"#, works));
        server.restart();
        assert_eq!(server.response_to(&asked), first, "{works}");
    }
    assert_eq!(server.asked().len(), 1);
    // With an idempotency key, a request gets the job of that key, under the request's own id.
    let keyed = |id: &str| {
        let body = request(id, "other", "k").to_string();
        server.request("POST", &format!("{BRIDGE}?wait=60"), &[("idempotency-key", "K")], body.as_bytes())
    };
    let (one, two) = (new_id(), new_id());
    assert_eq!(response(&keyed(&one))["request_id"], one.as_str());
    assert_eq!(response(&keyed(&two))["request_id"], two.as_str());
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn without_an_answer_the_job_is_shown_and_a_person_can_be_waited_for() {
    let server = Server::start();
    let asked = request(&new_id(), "ask", "Which one?");
    let answer = server.post(BRIDGE, &asked.to_string());
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!((answer.status, &answer.json()["request_id"]), (202, &asked["request_id"]));
    server.in_state(&id, "waiting");
    // ALL-5.6: the job goes on waiting, and shows for what.
    let answer = server.post(&format!("{BRIDGE}?wait=0.05"), &asked.to_string());
    let job = answer.json();
    assert_eq!((answer.status, &job["state"], &job["id"]), (202, &json!("waiting"), &json!(id)));
    assert_eq!(job["question"]["prompt"], "Which one?");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.response_to(&asked));
        server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "this one"}"#);
        assert_eq!(inner(&waiting.join().expect("it is answered")), json!({"answer": "this one"}));
    });
}

#[test]
fn whoever_waits_when_the_server_stops_is_told_how_it_stands_and_can_come_again() {
    let mut server = Server::start();
    let asked = request(&new_id(), "ask", "?");
    let answer = thread::scope(|scope| {
        let server = &server;
        let waiting = scope.spawn(|| server.ask(&asked));
        until("it asks", || server.asked().first().filter(|job| job["state"] == "waiting").map(|_| ()));
        server.signal("TERM");
        waiting.join().expect("it is answered")
    });
    assert_eq!((answer.status, &answer.json()["state"]), (202, &json!("waiting")), "{answer:?}");
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    server.wait();
    server.restart();
    server.in_state(&id, "waiting");
    server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": 1}"#);
    assert_eq!(inner(&server.response_to(&asked)), json!({"answer": 1}));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_store_is_known_by_its_own_name() {
    let mut server = Server::start();
    let store = server.get(BRIDGE).json();
    server.kill();
    server.restart();
    assert_eq!(server.get(BRIDGE).json(), store);
    assert_ne!(Server::start().get(BRIDGE).json(), store);
}

#[test]
fn an_agent_of_the_run_contract_sees_prompt_and_context_under_the_id_of_the_job() {
    let service = ScriptedAgent::start(|asked, connection| connection.events(asked.stream(json!({"größe": 1}))));
    let server = Server::configured(&service.far("work = [\"review\"]"));
    let mut asked = request(&new_id(), "far", "Look.");
    (asked["context"], asked["timeout_seconds"]) = (json!({"n": 1}), json!(0));
    let document = server.response_to(&asked);
    assert_eq!(document["response"], r#"{"größe":1}"#);
    let seen = &service.requests()[0];
    assert_eq!(seen.id(), server.asked()[0]["id"].as_str().expect("an id"), "ALL-2");
    assert_eq!(seen.json()["x_crosspoint"]["request_id"], asked["request_id"]);
    assert_eq!(seen.json()["task_type"], "review", "the work that the name leads to");
    assert_eq!(seen.json()["inputs"], json!({"prompt": "Look.", "context": {"n": 1}}), "ALL-8");
    assert!(seen.json()["budgets"]["max_seconds"].as_f64().is_some_and(|left| left > 60.0 && left <= 120.0));
}

#[test]
fn an_agent_of_the_task_contract_sees_prompt_and_context_under_the_id_of_the_job() {
    let agent = TaskAgent::simple(|request| json!({"output": request["payload"]["prompt"]}));
    let server = Server::configured(&agent.configuration("helper", ""));
    let asked = request(&new_id(), "helper", "Größe?");
    let document = server.response_to(&asked);
    assert_eq!(inner(&document), json!({"output": "Größe?"}));
    let seen = agent.awaited("post", 1);
    assert_eq!(seen.body["id"], server.asked()[0]["id"], "ALL-2");
    assert_eq!(seen.body["payload"], json!({"prompt": "Größe?"}), "ALL-8");
    assert_eq!(seen.body["context"]["x_crosspoint"]["request_id"], asked["request_id"]);
}
