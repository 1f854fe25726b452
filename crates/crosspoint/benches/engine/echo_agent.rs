//! An agent in another process that returns its input, over the pull side of the API. On one connection it reports the
//! jobs it has done and takes new ones in one call.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};

use crosspoint_contracts::json::Tape;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Most jobs that it holds at a time, and that it reports in one call.
const CONCURRENCY: usize = 1_000;

const SESSION: &str = "0b0e0c0a-0000-4000-8000-000000000001";

/// Joins and echoes for as long as the server runs.
pub(crate) fn run(url: &str, name: &str, work: &str) {
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = Connection::open(&address, name).await;
        let join = format!(r#"{{"session":"{SESSION}","work":["{work}"],"concurrency":{CONCURRENCY}}}"#);
        connection.call("join", &join).await;
        work_on(connection).await;
    });
}

/// Starts this program as such an agent, in a process of its own.
pub(crate) fn start(address: &str) -> Agent {
    let this = std::env::current_exe().expect("this program has a file");
    let arguments = ["--echo-agent", address, "echo-agent", "echo_elsewhere"];
    let child = Command::new(this).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Agent(child.expect("it starts"))
}

/// The process, which is killed when this is dropped.
pub(crate) struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reports and takes for ever. A reported job is no longer held, so the agent never lists any.
async fn work_on(mut connection: Connection) {
    let mut reports = String::new();
    loop {
        let body = format!(r#"{{"session":"{SESSION}","room":{CONCURRENCY},"reports":[{reports}]}}"#);
        let answer = connection.call("take?wait=10", &body).await;
        reports.clear();
        let tape = Tape::scan(answer).expect("it is JSON");
        let jobs = tape.root().and_then(|root| root.get("jobs")).expect("it has jobs");
        for job in jobs.items() {
            let [id, attempt, input] = ["id", "attempt", "input"].map(|name| job.get(name).expect(name).source());
            let comma = if reports.is_empty() { "" } else { "," };
            let _ = write!(reports, r#"{comma}{{"id":{id},"attempt":{attempt},"result":{{"outputs":{input}}}}}"#);
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

    /// Makes one call and returns the body of its answer.
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
            // The server has ended, so the agent ends too.
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
