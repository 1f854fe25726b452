//! Clients: each keeps one connection and sends its next request when the last was answered.
//!
//! Written by hand and in one thread, so that the load takes as little as possible of the two cores it shares with the
//! server.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::call::Call;
use crate::machine::{Cores, Spent};

/// The measurements of a run of some clients. Shown, the watched processes are the server, the agent and the clients.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) rate: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// How the processors were used meanwhile.
    pub(crate) cores: Cores,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [server, agent, generator] = [0, 1, 2].map(|process| self.cores.processes[process]);
        write!(
            f,
            "{:.0} jobs/s, p50 {:.2?}, p99 {:.2?}, processors: server {server:.2}, agent {agent:.2}, load {generator:.2}, \
             others {:.2}, idle {:.2}",
            self.rate, self.p50, self.p99, self.cores.others, self.cores.idle
        )
    }
}

static MADE: AtomicU64 = AtomicU64::new(0);

/// Calls from `clients` clients for `time`, and measures the processor time of the watched processes. Every answer must
/// be the one that the call expects.
pub(crate) fn run(address: &str, clients: usize, time: Duration, call: &Call, watched: &[u32]) -> Load {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Connections, caches and the log are warm when the clock starts.
        let warm = Instant::now() + time / 4;
        let end = warm + time;
        let tasks: Vec<_> =
            (0..clients).map(|_| tokio::spawn(client(address.to_owned(), call.clone(), warm, end))).collect();
        tokio::time::sleep_until(warm.into()).await;
        let spent = Spent::now(watched);
        tokio::time::sleep_until(end.into()).await;
        let cores = spent.cores(watched);
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.expect("a client ends"));
        }
        times.sort();
        let rate = times.len() as f64 / time.as_secs_f64();
        Load { rate, p50: at_share(&times, 0.5), p99: at_share(&times, 0.99), cores }
    })
}

/// The value below which a share of some sorted values lies.
pub(crate) fn at_share(sorted: &[Duration], share: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// Submits a number of jobs and does not wait for them.
pub(crate) fn submit(address: &str, clients: usize, jobs: usize, work: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let share = jobs / clients;
        let one = |address: String, call: Call| async move {
            let mut connection = Connection::open(&address).await;
            for _ in 0..share {
                connection.submit(&call).await;
            }
        };
        let tasks: Vec<_> = (0..clients).map(|_| tokio::spawn(one(address.to_owned(), Call::detached(work)))).collect();
        for task in tasks {
            task.await.expect("a client ends");
        }
    });
}

async fn client(address: String, call: Call, warm: Instant, end: Instant) -> Vec<Duration> {
    let mut connection = Connection::open(&address).await;
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        if start >= end {
            return times;
        }
        connection.submit(&call).await;
        if start >= warm {
            times.push(start.elapsed());
        }
    }
}

pub(crate) struct Connection {
    address: String,
    stream: TcpStream,
    closed: bool,
    request: String,
    /// The call that the request is for, and the places of its id.
    submits: Option<(Call, Vec<usize>)>,
    answer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Connection {
        let stream = connected(address).await;
        Connection {
            address: address.to_owned(),
            stream,
            closed: false,
            request: String::new(),
            submits: None,
            answer: vec![0; 1 << 20],
        }
    }

    /// Submits one job with an id of its own.
    pub(crate) async fn submit(&mut self, call: &Call) {
        self.prepare(call);
        let bytes = self.exchange(call.status).await;
        assert_done(call, &self.answer[..bytes]);
    }

    /// Submits one job and reads its stream to the end. Whenever more arrives, `seen` is given everything so far.
    pub(crate) async fn follow(&mut self, call: &Call, mut seen: impl FnMut(&[u8])) {
        self.prepare(call);
        self.stream.write_all(self.request.as_bytes()).await.expect("it can be sent");
        let mut have = 0;
        loop {
            assert!(have < self.answer.len(), "the stream is too long");
            let read = self.stream.read(&mut self.answer[have..]).await.expect("it is answered");
            have += read;
            let answer = &self.answer[..have];
            assert!(have < 12 || answer[..12].ends_with(call.status.as_bytes()), "{}", shown(answer));
            seen(answer);
            if read == 0 || answer.ends_with(b"\r\n0\r\n\r\n") {
                assert_done(call, answer);
                // The server may close the connection at the end of a stream.
                self.closed = read == 0 || shown(answer).to_ascii_lowercase().contains("\r\nconnection: close\r\n");
                return;
            }
        }
    }

    /// Connects again if needed, so that the next request does not have to.
    pub(crate) async fn ready(&mut self) {
        if std::mem::take(&mut self.closed) {
            self.stream = connected(&self.address).await;
        }
    }

    fn prepare(&mut self, call: &Call) {
        // Ids of two runs against one server must not collide.
        let id = call.id(std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        match &self.submits {
            // All requests of one client are alike except for the id.
            Some((known, places)) if known == call => {
                places.iter().for_each(|at| self.request.replace_range(*at..*at + id.len(), &id));
            }
            Some(_) | None => {
                self.request = call.request(&id);
                let places = self.request.match_indices(&id).map(|(at, _)| at).collect();
                self.submits = Some((call.clone(), places));
            }
        }
    }

    pub(crate) async fn get(&mut self, path: &str) {
        self.submits = None;
        self.request.clear();
        let _ = write!(self.request, "GET /api/v1/{path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.exchange("200").await;
    }

    /// Fetches the page of a list after `next`. Returns the query for the page after it.
    pub(crate) async fn page(&mut self, filter: &str, next: &str) -> Option<String> {
        self.submits = None;
        self.request.clear();
        let _ = write!(self.request, "GET /api/v1/jobs?limit=50&{filter}{next} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let bytes = self.exchange("200").await;
        let text = String::from_utf8_lossy(&self.answer[..bytes]);
        let (_, next) = text.rsplit_once("\"next\":\"")?;
        Some(format!("&before={}", next.split('"').next()?))
    }

    /// Sends the request, and returns the number of bytes in the answer.
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
        assert!(head.ends_with(status.as_bytes()), "{}", shown(&self.answer[..have]));
        have
    }
}

async fn connected(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("the server is there");
    stream.set_nodelay(true).expect("it is a socket");
    stream
}

/// Checks the body too, because a well-formed answer may say that the work failed.
fn assert_done(call: &Call, answer: &[u8]) {
    let done = std::str::from_utf8(answer).is_ok_and(|text| text.contains(call.done));
    assert!(done, "{}", shown(answer));
}

fn shown(answer: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&answer[..answer.len().min(2_000)])
}

/// Where the body of a message begins, and how long the whole message is, once its head is there.
pub(crate) fn extent(message: &[u8]) -> Option<(usize, usize)> {
    const LENGTH: &str = "content-length:";
    let head = message.windows(4).take(4_000).position(|four| four == b"\r\n\r\n")? + 4;
    let lines = std::str::from_utf8(&message[..head]).ok()?.lines();
    let named = |line: &str| line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH));
    let length = lines.into_iter().find(|line| named(line)).map(|line| line[LENGTH.len()..].trim().parse::<usize>());
    Some((head, head + length?.ok()?))
}
