//! An orchestrator of the message contract that does as a test says.

use std::sync::{Arc, Mutex};

use crosspoint_agent::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request of the agent.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Path and query.
    pub(crate) target: String,
    pub(crate) body: Value,
}

impl Asked {
    /// Whether the agent asks for messages.
    pub(crate) fn is_poll(&self) -> bool {
        self.target.starts_with("/api/agent/messages?")
    }

    /// Whether the agent sends a message of this type.
    pub(crate) fn is(&self, message_type: &str) -> bool {
        self.target == "/api/agent/message" && self.body["type"] == message_type
    }
}

/// Status and body of an answer; `None` if there never is one.
pub(crate) type Answer = Option<(u16, Value)>;

/// Decides about the answer to a request.
type Answering = Arc<Mutex<dyn FnMut(&Asked) -> Answer + Send>>;

/// An orchestrator, in the runtime of the test.
pub(crate) struct Orchestrator {
    pub(crate) url: Url,
    asked: mpsc::UnboundedReceiver<Asked>,
}

impl Orchestrator {
    pub(crate) async fn start(answer: impl FnMut(&Asked) -> Answer + Send + 'static) -> Orchestrator {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let (seen, asked) = mpsc::unbounded_channel();
        let answer: Answering = Arc::new(Mutex::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), answer.clone()));
            }
        });
        Orchestrator { url: url.parse().expect("it is an address"), asked }
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) -> Asked {
        self.asked.recv().await.expect("it goes on")
    }

    /// Returns the next request, if it has come already.
    pub(crate) fn past(&mut self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }

    /// Waits for a request of which this holds.
    pub(crate) async fn until(&mut self, is_meant: impl Fn(&Asked) -> bool) -> Asked {
        loop {
            let asked = self.next().await;
            if is_meant(&asked) {
                return asked;
            }
        }
    }
}

async fn serve(stream: TcpStream, seen: mpsc::UnboundedSender<Asked>, answer: Answering) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        while head.last().is_none_or(|line: &String| line != "\r\n") {
            let mut line = String::new();
            let read = stream.read_line(&mut line).await.ok()?;
            (read > 0).then_some(())?;
            head.push(line);
        }
        let target = head[0].split(' ').nth(1)?.to_owned();
        let length =
            head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await.ok()?;
        let asked = Asked { target, body: serde_json::from_slice(&body).unwrap_or_default() };
        let answered = answer.lock().expect("it does not panic")(&asked);
        let _ = seen.send(asked);
        let Some((status, body)) = answered else { return std::future::pending().await };
        let body = if status == 204 { String::new() } else { body.to_string() };
        let head =
            format!("HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
    }
}

/// The answer to a registration, with the wish for signs of life.
pub(crate) fn registered(heartbeat_seconds: Option<u32>) -> Answer {
    let mut taken = json!({"agent_id": "worker", "protocol_version": "1.0"});
    if let Some(seconds) = heartbeat_seconds {
        taken["heartbeat_seconds"] = json!(seconds);
    }
    Some((200, taken))
}

/// A message of an orchestrator.
pub(crate) fn message(message_type: &str, request_id: &str, payload: &Value) -> Value {
    json!({
        "protocol_version": "1.0", "message_id": request_id, "request_id": request_id, "trace_id": request_id,
        "from_agent": "orchestrator", "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z", "type": message_type,
        "payload": payload, "x_custom_fields": {},
    })
}

/// A request for work, of the task with the same id.
pub(crate) fn request(work: &str, id: &str) -> Value {
    message("work_request", id, &json!({"task_id": id, "work_type": work, "parameters": {}, "hints": {}}))
}
