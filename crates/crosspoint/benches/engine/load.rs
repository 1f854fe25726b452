//! Clients: each keeps one connection and sends its next request when the last was answered.
//!
//! Written by hand and in one thread, so that it takes as little as possible of the two cores it shares with the server.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a run of some clients showed.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) rate: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

static MADE: AtomicU64 = AtomicU64::new(0);

/// A request of 1,000 bytes of input; the input is its last member.
pub(crate) fn document(work: &str, request_id: &str) -> String {
    const TEXT: &str = "Nothing lost, nothing twice. ";
    let mut text = TEXT.repeat(40);
    text.truncate(1_000 - r#"{"text":""}"#.len());
    format!(r#"{{"work":"{work}","request_id":"{request_id}","input":{{"text":"{text}"}}}}"#)
}

/// Submits jobs from so many clients for so long; every answer must be a job, ended if it was waited for.
pub(crate) fn run(address: &str, clients: usize, time: Duration, path: &str, work: &str) -> Load {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Connections, caches and the log are warm when the clock starts.
        let warm = Instant::now() + time / 4;
        let end = warm + time;
        let tasks: Vec<_> = (0..clients)
            .map(|_| tokio::spawn(client(address.to_owned(), path.to_owned(), work.to_owned(), warm, end)))
            .collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.expect("a client ends"));
        }
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Load { rate: times.len() as f64 / time.as_secs_f64(), p50: at(0.5), p99: at(0.99) }
    })
}

/// Submits a number of jobs and does not wait for them.
pub(crate) fn submit(address: &str, clients: usize, jobs: usize, work: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let share = jobs / clients;
        let one = |address: String, work: String| async move {
            let mut connection = Connection::open(&address).await;
            for _ in 0..share {
                connection.submit("jobs", &work, "202").await;
            }
        };
        let tasks: Vec<_> = (0..clients).map(|_| tokio::spawn(one(address.to_owned(), work.to_owned()))).collect();
        for task in tasks {
            task.await.expect("a client ends");
        }
    });
}

async fn client(address: String, path: String, work: String, warm: Instant, end: Instant) -> Vec<Duration> {
    let mut connection = Connection::open(&address).await;
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        if start >= end {
            return times;
        }
        connection.submit(&path, &work, "200").await;
        if start >= warm {
            times.push(start.elapsed());
        }
    }
}

pub(crate) struct Connection {
    stream: TcpStream,
    request: String,
    /// What the request is for, and where in it the number of its id stands.
    submits: Option<(String, usize)>,
    answer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Connection {
        let stream = TcpStream::connect(address).await.expect("the server is there");
        stream.set_nodelay(true).expect("it is a socket");
        Connection { stream, request: String::new(), submits: None, answer: vec![0; 1 << 20] }
    }

    /// Submits one job with an id of its own.
    pub(crate) async fn submit(&mut self, path: &str, work: &str, status: &str) {
        // Two runs against one server must not meet.
        let id = format!("load-{:010}-{:020}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        match &self.submits {
            // All requests of one client are alike but for the id.
            Some((known, at)) if known == path => self.request.replace_range(*at..*at + id.len(), &id),
            Some(_) | None => {
                let body = document(work, &id);
                self.request = format!(
                    "POST /api/v1/{path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let at = self.request.find(&id).expect("the id is in it");
                self.submits = Some((path.to_owned(), at));
            }
        }
        self.exchange(status).await;
    }

    /// Asks for something.
    pub(crate) async fn get(&mut self, path: &str) {
        self.submits = None;
        self.request.clear();
        let _ = write!(self.request, "GET /api/v1/{path} HTTP/1.1\r\nhost: bench\r\n\r\n");
        self.exchange("200").await;
    }

    /// The page of a list after `next`; gives where the page after it begins, as it is to be asked for.
    pub(crate) async fn page(&mut self, filter: &str, next: &str) -> Option<String> {
        self.submits = None;
        self.request.clear();
        let _ = write!(self.request, "GET /api/v1/jobs?limit=50&{filter}{next} HTTP/1.1\r\nhost: bench\r\n\r\n");
        let bytes = self.exchange("200").await;
        let text = String::from_utf8_lossy(&self.answer[..bytes]);
        let (_, next) = text.rsplit_once("\"next\":\"")?;
        Some(format!("&before={}", next.split('"').next()?))
    }

    /// Gives how many bytes were answered.
    async fn exchange(&mut self, status: &str) -> usize {
        self.stream.write_all(self.request.as_bytes()).await.expect("it can be sent");
        let mut have = 0;
        loop {
            let read = self.stream.read(&mut self.answer[have..]).await.expect("it is answered");
            assert!(read > 0, "the server closed the connection");
            have += read;
            if let Some((_, whole)) = extent(&self.answer[..have]) {
                if whole > self.answer.len() {
                    self.answer.resize(whole, 0);
                }
                if have >= whole {
                    break;
                }
            }
        }
        let head = &self.answer[..have.min(12)];
        assert!(head.ends_with(status.as_bytes()), "{}", String::from_utf8_lossy(&self.answer[..have.min(2_000)]));
        have
    }
}

/// Where the body of an answer begins and how long the answer is in all, once its head is there.
pub(crate) fn extent(answer: &[u8]) -> Option<(usize, usize)> {
    const LENGTH: &str = "content-length: ";
    let text = std::str::from_utf8(answer.get(..answer.len().min(1_000))?).ok()?;
    let head = text.find("\r\n\r\n")? + 4;
    let length = &text[text.find(LENGTH)? + LENGTH.len()..];
    Some((head, head + length[..length.find('\r')?].parse::<usize>().ok()?))
}
