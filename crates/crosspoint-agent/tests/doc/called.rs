// What the examples of rustdoc hide: a caller of the agent that an example makes. Each of them includes this file.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

pub use crosspoint_agent::{Agent, Context, Failure, Keep, Url};
pub use serde_json::{Value, json};

/// Serves the agent, sends it one run of this work, and returns the answer.
pub fn called(agent: Agent, work: &str, inputs: Value) -> Value {
    serving(agent, |post| post("/agents/run/sync", json!({"request_id": "r-1", "task_type": work, "inputs": inputs})))
}

/// Serves the agent for as long as the function runs, which gets the means to post documents.
pub fn serving<T>(agent: Agent, ask: impl FnOnce(&dyn Fn(&str, Value) -> Value) -> T) -> T {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("it can be set");
    let address = listener.local_addr().expect("it has an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it can be made");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
            agent.serve(listener, async { drop(stopped.await) }).await.expect("it serves");
        });
    });
    let answer = ask(&|path, body| posted(address, path, &body.to_string()));
    drop(stop);
    serving.join().expect("it ends");
    answer
}

fn posted(address: SocketAddr, path: &str, body: &str) -> Value {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    let token = "authorization: Bearer a-token-of-32-characters-or-more\r\n";
    let trace = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    write!(stream, "{head}{token}{trace}connection: close\r\n\r\n{body}").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    let (_, body) = answer.split_once("\r\n\r\n").expect("it has a body");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}
