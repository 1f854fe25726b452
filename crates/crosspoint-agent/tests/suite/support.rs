//! An agent that serves, and a caller.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_agent::Agent;
use serde_json::Value;
use tokio::sync::oneshot;

/// An agent that serves in a runtime of its own, until this value is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Served {
    pub(crate) fn start(agent: Agent) -> Served {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        listener.set_nonblocking(true).expect("it can be set");
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                agent.serve(listener, async { drop(stopped.await) }).await
            })
        });
        Served { address, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, body, "")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    /// Sends one request on a connection of its own. `headers` are whole lines.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str, headers: &str) -> Answer {
        ask_at(self.address, method, path, body, headers)
    }

    /// Tells the agent to stop, and waits until it does no new work.
    pub(crate) fn begin_to_stop(&mut self) {
        drop(self.stop.take());
        while self.get("/health/ready").status != 503 {}
    }

    /// Stops the agent and waits for its end.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic").expect("it serves");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends one request to an agent at this address.
pub(crate) fn ask_at(address: SocketAddr, method: &str, path: &str, body: &str, headers: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("it is there");
    let bytes = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {bytes}\r\n{headers}\r\n{body}"
    )
    .expect("it can be sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it is answered");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("it has a status");
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    Answer { status, body }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A path that no other test has.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("agent").join(std::process::id().to_string());
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    directory.join(format!("{name}-{number}"))
}
