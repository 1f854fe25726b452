//! Agents that refuse our token: the caller is told that the agent is unavailable, and the operator why (RUN-5).

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use crate::run::agent::failure;
use crate::support::message_caller::MESSAGES;
use crate::support::program::crosspoint;
use crate::support::scripted_agent::ScriptedAgent;
use crate::support::server::Server;

const CONTRACTS: [&str; 3] = ["run", "task", "message"];
const TOKEN: &str = "s3cret-of-the-server";
const WARNING: &str = "the agent refuses our token";

fn refused_since(server: &Server, agent: &str) -> Value {
    server.get(&format!("/api/v1/agents/{agent}")).json()["token_refused_since"].clone()
}

fn said(server: &Server, arguments: &[&str]) -> String {
    let mut command = crosspoint(arguments);
    let output = command.args(["--server", &server.url()]).current_dir(server.directory()).output();
    String::from_utf8(output.expect("it runs").stdout).expect("text")
}

#[test]
fn the_operator_is_told_once_and_sees_it_until_the_token_is_taken() {
    let status = Arc::new(AtomicU16::new(401));
    let present = status.clone();
    let scripted = ScriptedAgent::start_many(move |request, connection| {
        match (present.load(Ordering::SeqCst), request.path.as_str()) {
            (200, "/tasks") => connection.json(200, &request.completed("task")),
            (200, MESSAGES) => connection.json(200, &request.work().expect("it is work").done("message")),
            (200, _) => connection.stream(&[request.started(), request.final_event("run")]),
            (status, _) => connection.json(status, &json!({"detail": "who are you?"})),
        }
    });
    for contract in CONTRACTS {
        status.store(401, Ordering::SeqCst);
        let agents = scripted.agent(contract, contract, "token_file = \"token\"") + &scripted.agent(contract, "b", "");
        let mut server = Server::with("", &["--log", "debug"]);
        assert!(server.stop().success());
        fs::write(server.directory().join("token"), TOKEN).expect("it can be written");
        server.configure(&agents);
        server.restart();
        assert!(refused_since(&server, contract).is_null());
        for status_of_now in [401, 403, 407] {
            status.store(status_of_now, Ordering::SeqCst);
            let job = server.done(contract, &json!({}));
            assert_eq!((failure(&job), &job["attempts"]), (("unavailable", "never"), &json!(1)), "{job}");
            assert_eq!(job["outcome"]["failure"]["message"], "who are you?", "{job}");
        }
        assert!(refused_since(&server, contract).is_string() && refused_since(&server, "b").is_null());
        assert_eq!(server.log().matches(WARNING).count(), 1, "{}", server.log());
        let list = said(&server, &["agents", "list"]);
        assert!(list.contains("TOKEN") && list.contains("refused"), "{list}");
        assert!(said(&server, &["agents", "show", contract]).contains("look at its token_file"));
        assert!(!said(&server, &["agents", "show", "b"]).contains("token"));
        status.store(200, Ordering::SeqCst);
        assert_eq!(server.done(contract, &json!({}))["state"], "completed");
        assert!(refused_since(&server, contract).is_null());
        assert!(!said(&server, &["agents", "list"]).contains("TOKEN"));
        status.store(401, Ordering::SeqCst);
        server.done(contract, &json!({}));
        assert_eq!(server.log().matches(WARNING).count(), 2, "it is another refusal");
        let all = server.log() + &server.get("/api/v1/agents").text();
        assert!(!all.contains(TOKEN) && !all.contains("who are you?"), "{all}");
    }
}

#[test]
fn an_agent_that_wants_a_token_and_has_none_configured_says_what_to_do() {
    let scripted = ScriptedAgent::start_many(|_, connection| connection.json(401, &json!({})));
    let server = Server::configured(&scripted.agent("run", "far", ""));
    let job = server.done("far", &json!({}));
    assert_eq!(failure(&job), ("unavailable", "never"), "{job}");
    assert!(server.log().contains("the agent wants a token; configure its token_file"), "{}", server.log());
}

/// The words of the contract for a refused token, with a status that says nothing about it.
#[test]
fn an_agents_own_unauthenticated_is_about_our_token_and_not_the_callers() {
    let scripted = ScriptedAgent::start_many(|request, connection| {
        let error = json!({"code": "UNAUTHENTICATED", "message": "who are you?", "recoverable": true});
        let document = if request.path == "/tasks" {
            json!({"id": request.id(), "status": "failed", "error": error})
        } else if let Some(work) = request.work() {
            work.error(5004, "who are you?", &json!({"agent_id": "far", "token_status": "unknown"}))
        } else {
            json!({"request_id": request.id(), "task_type": request.agent, "status": "error", "ok": false, "outputs": {},
                "error": error})
        };
        if request.wants_stream() {
            return connection.stream(&[request.started(), request.event("final", document)]);
        }
        connection.json(200, &document)
    });
    for contract in CONTRACTS {
        let server = Server::configured(&scripted.agent(contract, contract, "repeatable = true"));
        let body = json!({"request_id": "r", "task_type": contract}).to_string();
        let answer = server.post("/agents/run/sync", &body);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (200, &json!("AGENT_UNAVAILABLE")), "{error}");
        assert_eq!((&error["message"], &error["details"]["repeat"]), (&json!("who are you?"), &json!("never")));
        assert!(refused_since(&server, contract).is_string());
        let posts = scripted.requests_of(contract).iter().filter(|request| request.method == "POST").count();
        assert_eq!(posts, 1, "it is not tried again");
    }
}
