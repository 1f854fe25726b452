//! An agent in another process that gives back what it is given, over the pull side of the API: one connection on which it asks for
//! work, another on which it reports, and everything that there is at one go.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};

use crosspoint_contracts::json::Tape;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// How many jobs it holds at a time, and how many it reports at one go.
const CONCURRENCY: usize = 1_000;

const SESSION: &str = "0b0e0c0a-0000-4000-8000-000000000001";

/// What it has and has not reported.
#[derive(Default)]
struct Hands {
    /// By the job's id, the attempt: until the report is acknowledged.
    held: RefCell<BTreeMap<String, u32>>,
    /// Reports, as JSON.
    ready: RefCell<Vec<(String, String)>>,
    more: Notify,
}

/// Joins and echoes for as long as the server is there.
pub(crate) fn run(url: &str, name: &str, work: &str) {
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut taking = Connection::open(&address, name).await;
        let join = format!(r#"{{"session":"{SESSION}","work":["{work}"],"concurrency":{CONCURRENCY}}}"#);
        taking.call("join", &join).await;
        let reporting = Connection::open(&address, name).await;
        let hands = Hands::default();
        tokio::join!(take(taking, &hands), report(reporting, &hands));
    });
}

/// Starts this very program as such an agent, in a process of its own.
pub(crate) fn start(address: &str) -> Agent {
    let this = std::env::current_exe().expect("this program has a file");
    let arguments = ["--echo-agent", address, "echo-agent", "echo_elsewhere"];
    let child = Command::new(this).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Agent(child.expect("it starts"))
}

/// The process, which ends with this.
pub(crate) struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn take(mut connection: Connection, hands: &Hands) {
    let mut body = String::new();
    loop {
        body.clear();
        let room = CONCURRENCY - hands.held.borrow().len();
        let _ = write!(body, r#"{{"session":"{SESSION}","room":{room},"holding":["#);
        for (at, (id, attempt)) in hands.held.borrow().iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(body, r#"{comma}{{"id":"{id}","attempt":{attempt}}}"#);
        }
        body.push_str("]}");
        let answer = connection.call("take?wait=10", &body).await;
        let tape = Tape::scan(answer).expect("it is JSON");
        let jobs = tape.root().and_then(|root| root.get("jobs")).expect("it has jobs");
        for job in jobs.items() {
            let id = job.get("id").and_then(crosspoint_contracts::json::Value::text).expect("an id").raw().to_owned();
            let attempt = job.get("attempt").expect("an attempt").source();
            let input = job.get("input").expect("an input").source();
            let report = format!(r#"{{"id":"{id}","attempt":{attempt},"result":{{"outputs":{input}}}}}"#);
            hands.held.borrow_mut().insert(id.clone(), attempt.parse().expect("a number"));
            hands.ready.borrow_mut().push((id, report));
        }
        hands.more.notify_one();
        // What is done goes first: somebody waits for it.
        tokio::task::yield_now().await;
    }
}

async fn report(mut connection: Connection, hands: &Hands) {
    loop {
        let ready = std::mem::take(&mut *hands.ready.borrow_mut());
        if ready.is_empty() {
            hands.more.notified().await;
            continue;
        }
        let reports: Vec<&str> = ready.iter().map(|(_, report)| report.as_str()).collect();
        let body = format!(r#"{{"session":"{SESSION}","reports":[{}]}}"#, reports.join(","));
        connection.call("report", &body).await;
        let mut held = hands.held.borrow_mut();
        for (id, _) in &ready {
            held.remove(id);
        }
    }
}

struct Connection {
    stream: TcpStream,
    name: String,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str, name: &str) -> Connection {
        let stream = TcpStream::connect(address).await.expect("the server is there");
        stream.set_nodelay(true).expect("it is a socket");
        Connection { stream, name: name.to_owned(), answer: vec![0; 1 << 20] }
    }

    /// One call; gives the body of its answer.
    async fn call(&mut self, what: &str, body: &str) -> &[u8] {
        let head = format!(
            "POST /api/v1/agents/{}/{what} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            self.name,
            body.len()
        );
        self.stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.expect("it can be sent");
        let mut have = 0;
        loop {
            if have == self.answer.len() {
                self.answer.resize(have * 2, 0);
            }
            let read = self.stream.read(&mut self.answer[have..]).await.expect("it is answered");
            // The server has ended, and so do we.
            if read == 0 {
                std::process::exit(0);
            }
            have += read;
            if let Some((head, whole)) = crate::load::extent(&self.answer[..have])
                && have >= whole
            {
                assert!(self.answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&self.answer[..have]));
                return &self.answer[head..whole];
            }
        }
    }
}
