//! Agents of the message contract: one that messages are posted to, over the scripted agent, and the messages that
//! agents send.

use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent};
use crate::support::server::{Answer, Server, until};

/// The endpoint of both sides.
pub(crate) const ENDPOINT: &str = "/api/agent/message";

/// An agent that messages are posted to.
pub(crate) struct Posted {
    scripted: ScriptedAgent,
}

impl Posted {
    /// An agent that takes every request and says nothing more on the connection.
    pub(crate) fn taking() -> Posted {
        Posted::answering(|_, connection| connection.whole(202, "application/json", ""))
    }

    /// An agent that answers every request with one message.
    pub(crate) fn saying(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Posted {
        Posted::answering(move |request, connection| connection.json(200, &answer(request)))
    }

    /// An agent that answers requests like this. It takes anything else.
    pub(crate) fn answering(answer: impl Fn(&Value, &mut Connection) -> After + Send + Sync + 'static) -> Posted {
        Posted::at(SocketAddr::from(([127, 0, 0, 1], 0)), answer)
    }

    /// The same at an address, which may be that of an agent that is gone.
    pub(crate) fn at(
        address: SocketAddr,
        answer: impl Fn(&Value, &mut Connection) -> After + Send + Sync + 'static,
    ) -> Posted {
        let scripted = ScriptedAgent::at(address, move |request: &Request, connection: &mut Connection| {
            match serde_json::from_slice::<Value>(&request.body) {
                Ok(message) if message["type"] == "work_request" => answer(&message, connection),
                Ok(_) | Err(_) => connection.whole(200, "application/json", ""),
            }
        });
        Posted { scripted }
    }

    pub(crate) fn url(&self) -> String {
        self.scripted.url()
    }

    /// The configuration of this agent, for work of its name.
    pub(crate) fn configuration(&self, name: &str, keys: &str) -> String {
        pushed(name, &self.url(), keys)
    }

    /// Everything that was posted to it, and asked of it.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.scripted.requests()
    }

    /// The messages of one type that it has had.
    pub(crate) fn had(&self, kind: &str) -> Vec<Value> {
        let posted = self.scripted.requests().into_iter().filter(|request| request.path == ENDPOINT);
        posted.map(|request| request.json()).filter(|message| message["type"] == kind).collect()
    }

    /// Waits until it has had so many requests, and returns the last of these.
    pub(crate) fn request(&self, count: usize) -> Value {
        until("a request", || self.had("work_request").into_iter().nth(count - 1))
    }

    /// Waits until it has been told so often that work is cancelled, and returns the last of these messages.
    pub(crate) fn cancelled(&self, count: usize) -> Value {
        until("a cancellation", || self.had("error").into_iter().nth(count - 1))
    }
}

/// The configuration of an agent that messages are posted to.
pub(crate) fn pushed(name: &str, url: &str, keys: &str) -> String {
    configured(name, &format!("push:{url}"), keys)
}

/// The configuration of an agent that asks for its messages.
pub(crate) fn pulling(name: &str, keys: &str) -> String {
    configured(name, "pull", keys)
}

fn configured(name: &str, via: &str, keys: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"message\"\nvia = \"{via}\"\n{keys}\n")
}

/// An id that nothing has yet.
pub(crate) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// A message about the work of a request, as the contract wants it.
pub(crate) fn about(request: &Value, kind: &str, payload: &Value) -> Value {
    json!({
        "protocol_version": "1.0", "message_id": new_id(), "from_agent": request["to_agent"],
        "to_agent": "orchestrator", "timestamp": "2026-01-19T04:21:04Z", "trace_id": request["trace_id"],
        "request_id": request["request_id"], "type": kind, "payload": payload,
    })
}

/// The work went well, and this came of it.
pub(crate) fn result(request: &Value, output: &str) -> Value {
    about(request, "work_result", &ended(request, "success", 0, output))
}

/// The agent did the work, and it failed.
pub(crate) fn failed(request: &Value, output: &str) -> Value {
    about(request, "work_result", &ended(request, "failed", 3, output))
}

fn ended(request: &Value, status: &str, exit_code: i32, output: &str) -> Value {
    json!({
        "task_id": request["payload"]["task_id"], "status": status, "exit_code": exit_code, "output": output,
        "resources_used": {"duration_seconds": 1, "gpu_vram_mb": 0, "cpu_time_ms": 12},
    })
}

/// The work goes on, and has come so far.
pub(crate) fn status(request: &Value, percent: u32) -> Value {
    let step = json!({"number": 1, "name": "Dig", "output": ""});
    let task_id = &request["payload"]["task_id"];
    let payload = json!({"task_id": task_id, "status": "running", "progress_percent": percent, "step": step});
    about(request, "work_status", &payload)
}

/// The work pauses.
pub(crate) fn paused(request: &Value) -> Value {
    let mut message = status(request, 10);
    message["payload"]["status"] = json!("paused");
    message
}

/// Something keeps the agent from doing the work.
pub(crate) fn error(request: &Value, code: u32, context: &Value) -> Value {
    let payload = json!({"error_code": code, "error_message": "It went wrong.", "error_context": context});
    about(request, "error", &payload)
}

/// A sign of life of an agent.
pub(crate) fn heartbeat(agent: &str, agent_type: &str, status: &str) -> Value {
    let payload = json!({
        "agent_id": agent, "agent_type": agent_type, "status": status, "current_task_id": null,
        "resources": {"gpu_vram_mb": 512}, "timestamp": "2026-01-19T04:21:04Z",
    });
    let unrelated = json!({"to_agent": agent_type, "trace_id": new_id(), "request_id": new_id()});
    about(&unrelated, "work_status", &payload)
}

/// A request of a caller, for agents of the type `code`.
pub(crate) fn work_request(work: &str, hints: &Value) -> Value {
    let payload = json!({"task_id": new_id(), "work_type": work, "parameters": {"n": 7}, "hints": hints});
    let mut message = about(
        &json!({"to_agent": "orchestrator", "trace_id": new_id(), "request_id": new_id()}),
        "work_request",
        &payload,
    );
    message["to_agent"] = json!("code");
    message
}

/// What an agent says of itself when it comes.
pub(crate) fn registration(agent: &str, works: &[&str]) -> Value {
    json!({"agent_id": agent, "agent_type": "code", "supported_versions": ["1.0"], "work_types": works})
}

impl Server {
    /// A server whose agents have tokens, each in a file of this name.
    pub(crate) fn with_tokens(toml: &str, tokens: &[(&str, &str)]) -> Server {
        let mut server = Server::with("", &["--log", "debug"]);
        for (name, token) in tokens {
            fs::write(server.directory().join(name), format!("{token}\n")).expect("it can be written");
        }
        server.configure(toml);
        server.kill();
        server.restart();
        server
    }

    /// Sends a message with a token.
    pub(crate) fn hears_from(&self, token: &str, message: &Value) -> Answer {
        let authorization = format!("Bearer {token}");
        self.request("POST", ENDPOINT, &[("authorization", &authorization)], message.to_string().as_bytes())
    }

    /// Sends a message of an agent.
    pub(crate) fn hears(&self, message: &Value) -> Answer {
        self.post(ENDPOINT, &message.to_string())
    }

    /// Sends a message of an agent, which must be taken.
    pub(crate) fn takes(&self, message: &Value) {
        let answer = self.hears(message);
        assert_eq!((answer.status, answer.text().as_str()), (204, ""), "{answer:?}");
    }

    /// Sends a caller's request, and waits for the outcome.
    pub(crate) fn work_answer(&self, request: &Value) -> Answer {
        self.post(&format!("{ENDPOINT}?wait=60"), &request.to_string())
    }

    /// Registers an agent, which must be taken.
    pub(crate) fn registers(&self, registration: &Value) -> Value {
        let answer = self.post("/api/agent/register", &registration.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Asks for the messages of an agent.
    pub(crate) fn polled(&self, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/agent/messages?{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["messages"].as_array().expect("a list").clone()
    }

    /// Asks for the next message of an agent, and waits until there is one.
    pub(crate) fn pulled(&self, agent: &str) -> Value {
        let mut messages = self.polled(&format!("agent={agent}&wait=60"));
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    pub(crate) fn agent(&self, name: &str) -> Value {
        let answer = self.get(&format!("/api/v1/agents/{name}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Begins a job without repeats, and returns its id.
    pub(crate) fn begin_once(&self, work: &str) -> String {
        let body = json!({"work": work, "limits": {"attempts": 1}});
        self.submit(&body.to_string())["id"].as_str().expect("an id").to_owned()
    }

    /// The job with everything beside its outcome, once it has ended.
    pub(crate) fn over(&self, id: &str) -> Value {
        self.ended(id);
        self.job(id)
    }

    /// The job, once a rule that its agent broke is on record.
    pub(crate) fn on_record(&self, id: &str, clause: &str) -> Value {
        until(clause, || {
            let job = self.job(id);
            let found = job["violations"].as_array().is_some_and(|all| all.iter().any(|one| one["clause"] == clause));
            found.then_some(job)
        })
    }
}
