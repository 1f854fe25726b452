//! Agents behind an address: real servers in the test's own process that answer as the test tells them.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::server::{PATIENCE, until};

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// Null if there was none.
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("it is text"))
    }

    pub(crate) fn request_id(&self) -> &str {
        self.body["request_id"].as_str().expect("an id")
    }

    /// A correct response to it.
    pub(crate) fn response(&self, outputs: Value) -> Value {
        let mut response = json!({"request_id": self.request_id(), "task_type": self.body["task_type"], "status": "ok", "ok": true,
            "artifacts": [], "provenance": {}, "usage": {}, "warnings": []});
        response["outputs"] = outputs;
        response
    }

    /// A correct stream that answers it, without progress.
    pub(crate) fn stream(&self, outputs: Value) -> String {
        self.started() + &event("final", &self.response(outputs))
    }

    pub(crate) fn started(&self) -> String {
        event("started", &json!({"request_id": self.request_id(), "task_type": self.body["task_type"]}))
    }
}

pub(crate) fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An answer that is a whole stream.
pub(crate) fn events(text: String) -> Response {
    ([("content-type", "text/event-stream")], text).into_response()
}

/// An answer of JSON.
pub(crate) fn json_answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

/// A server that plays an agent.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    runtime: Option<Runtime>,
}

impl Service {
    /// A service that answers like this, on a free port.
    pub(crate) fn new(answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Service {
        Service::at("127.0.0.1:0".parse().expect("an address"), answer)
    }

    /// The same, at this address.
    pub(crate) fn at(address: SocketAddr, answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Service {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).expect("the port is free");
        let address = listener.local_addr().expect("it has an address");
        let (asked, connections) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<AtomicUsize>::default());
        let (heard, counted) = (asked.clone(), connections.clone());
        let answer = Arc::new(answer);
        let router = axum::Router::new().fallback(move |request: axum::extract::Request| {
            let (heard, answer) = (heard.clone(), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, usize::MAX).await.expect("the body comes");
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let asked = Asked { path: parts.uri.path().to_owned(), headers: parts.headers, body };
                heard.lock().expect("not poisoned").push(asked.clone());
                answer(&asked)
            }
        });
        let listener = listener.tap_io(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Service { address, asked, connections, runtime: Some(runtime) }
    }

    /// A service whose streams are held open, each until the test ends it.
    pub(crate) fn held() -> (Service, Calls) {
        let (sender, calls) = mpsc::channel();
        let service = Service::new(move |asked| {
            let (pieces, body) = pieces();
            sender.send(Call { asked: asked.clone(), pieces }).expect("somebody takes it");
            ([("content-type", "text/event-stream")], body).into_response()
        });
        (service, Calls(calls))
    }

    /// The configuration of an agent at this service, with further keys.
    pub(crate) fn agent(&self, contract: &str, keys: &str) -> String {
        agent_at(self.address, contract, keys)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("not poisoned").clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The configuration of an agent called `far`, with further keys.
pub(crate) fn agent_at(address: SocketAddr, contract: &str, keys: &str) -> String {
    format!("[[agent]]\nname = \"far\"\ncontract = \"{contract}\"\nurl = \"http://{address}\"\n{keys}\n")
}

/// An error breaks the connection off.
type Piece = Result<Bytes, io::Error>;

/// A body whose pieces come from the test.
fn pieces() -> (UnboundedSender<Piece>, Body) {
    let (sender, receiver) = unbounded_channel();
    let next = |mut receiver: UnboundedReceiver<Piece>| async move { Some((receiver.recv().await?, receiver)) };
    (sender, Body::from_stream(futures_util::stream::unfold(receiver, next)))
}

/// The calls that a service has had.
pub(crate) struct Calls(mpsc::Receiver<Call>);

impl Calls {
    /// Waits for the next call.
    pub(crate) fn next(&self) -> Call {
        self.0.recv_timeout(PATIENCE).expect("a call comes")
    }

    /// Whether there is no call, for when no more can come.
    pub(crate) fn none(&self) -> bool {
        self.0.try_recv().is_err()
    }
}

/// A call whose stream the test writes. It ends when this is dropped.
pub(crate) struct Call {
    pub(crate) asked: Asked,
    pieces: UnboundedSender<Piece>,
}

impl Call {
    pub(crate) fn say(&self, text: String) {
        self.pieces.send(Ok(Bytes::from(text))).expect("the caller is there");
    }

    /// The agent dies: the connection breaks off.
    pub(crate) fn die(self) {
        self.pieces.send(Err(io::Error::other("it died"))).expect("the caller is there");
    }

    /// Waits until the caller has closed the connection.
    pub(crate) fn closed(&self) {
        until("the connection is closed", || self.pieces.is_closed().then_some(()));
    }
}
