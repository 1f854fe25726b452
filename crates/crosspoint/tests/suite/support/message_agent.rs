//! Agents of the message contract that are sent their work, over the scripted agent, and what agents of this contract
//! say about their work.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::scripted_agent::{After, Connection, Request};

/// A work_request that an agent got.
#[derive(Clone, Debug)]
pub(crate) struct Work(pub(crate) Value);

impl Work {
    /// The work that a message asks for; `None` if it is another message.
    pub(crate) fn of(message: &Value) -> Option<Work> {
        (message["type"] == "work_request").then(|| Work(message.clone()))
    }

    pub(crate) fn id(&self) -> String {
        self.0["request_id"].as_str().expect("a request has an id").to_owned()
    }

    pub(crate) fn parameters(&self) -> &Value {
        &self.0["payload"]["parameters"]
    }

    /// A person's answer to what the agent asked (ALL-5).
    pub(crate) fn answer(&self) -> Option<&Value> {
        self.0["x_custom_fields"]["x_crosspoint"].get("answer")
    }

    /// A message about this work.
    pub(crate) fn reply(&self, kind: &str, payload: &Value) -> Value {
        json!({
            "protocol_version": "1.0", "message_id": Uuid::new_v4().to_string(), "from_agent": self.0["to_agent"],
            "to_agent": self.0["from_agent"], "timestamp": "2026-01-19T04:21:05Z", "trace_id": self.0["trace_id"],
            "request_id": self.0["request_id"], "type": kind, "payload": payload, "x_custom_fields": {},
        })
    }

    /// That the work is at this step.
    pub(crate) fn running(&self, percent: u32, step: &str) -> Value {
        self.status("running", percent, step)
    }

    /// A pause until a person answers this (ALL-5).
    pub(crate) fn asking(&self, question: &Value) -> Value {
        let mut status = self.status("paused", 10, "Waits for an answer");
        status["x_custom_fields"] = json!({"x_crosspoint": {"question": question}});
        status
    }

    fn status(&self, status: &str, percent: u32, step: &str) -> Value {
        let step = json!({"number": 1, "name": step, "output": ""});
        let id = &self.0["payload"]["task_id"];
        let payload = json!({"task_id": id, "status": status, "progress_percent": percent, "step": step});
        self.reply("work_status", &payload)
    }

    /// That the work is done.
    pub(crate) fn done(&self, output: &str) -> Value {
        self.result("success", 0, output)
    }

    /// That the work was done in vain.
    pub(crate) fn failed(&self, exit_code: i32, output: &str) -> Value {
        self.result("failed", exit_code, output)
    }

    fn result(&self, status: &str, exit_code: i32, output: &str) -> Value {
        let used = json!({"duration_seconds": 2, "gpu_vram_mb": 0, "cpu_time_ms": 12});
        let payload = json!({
            "task_id": self.0["payload"]["task_id"], "status": status, "exit_code": exit_code, "output": output,
            "resources_used": used,
        });
        self.reply("work_result", &payload)
    }

    pub(crate) fn error(&self, code: i64, message: &str, context: &Value) -> Value {
        self.reply("error", &json!({"error_code": code, "error_message": message, "error_context": context}))
    }
}

impl Request {
    /// The work that this asks an agent of the message contract for; `None` if it is about something else.
    pub(crate) fn work(&self) -> Option<Work> {
        let is_message = self.method == "POST" && self.path == "/api/agent/message";
        is_message.then(|| self.json()).and_then(|message| Work::of(&message))
    }
}

/// The answer that something was taken, and that nothing more is to be said now (MSG-17).
pub(crate) fn taken(connection: &mut Connection) -> After {
    connection.whole(202, "application/json", "")
}
