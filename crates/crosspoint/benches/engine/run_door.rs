//! Through the run door to an agent of the run contract in another process: how many jobs per second, how much longer
//! than calling the agent itself, and how soon its progress is seen.

use std::time::{Duration, Instant};

use crate::call::Call;
use crate::load::{self, Connection, Load, at_share};
use crate::report::Report;
use crate::run_agent::{self, Agent, PERIOD, PROGRESS, WORK};
use crate::run_report::{self, Delivery, Latency, Rates};
use crate::serving::{Server, data_directory};
use crate::{Extent, machine};

/// Number of turns in a round. In each turn one client asks both sides.
const TURNS: usize = 400;

/// Number of callers that each follow a stream, and of events that each sees in a second of measuring.
const STREAMS: usize = 100;
const EVENTS_A_SECOND: usize = 5;

/// The ways that are compared, in the order of the table.
pub(crate) const WAYS: [&str; 3] =
    ["native door, built-in echo", "run door, built-in echo", "run door, run agent in another process"];

pub(crate) fn measure(extent: Extent, report: &mut Report) {
    let agent = run_agent::start();
    let rates = [1, 32, 128].map(|clients| (clients, rates(extent, &agent, clients)));
    let latency = (0..extent.rounds).map(|_| latency(&agent)).collect::<Vec<_>>();
    let delivery = (0..extent.rounds).map(|_| delivery(extent, &agent)).collect::<Vec<_>>();
    report.section(&run_report::page(&rates, &latency, &delivery), run_report::rounds(&rates, &latency, &delivery));
}

/// A server that knows the agent, and the built-in echo.
fn serve(agent: &Agent) -> Server {
    let address = &agent.address;
    let config = format!(
        r#"
[[agent]]
name = "echo"
contract = "builtin"
run = "echo"
work = ["echo"]

[[agent]]
name = "bench"
contract = "run"
url = "http://{address}"
work = ["{WORK}", "{PROGRESS}"]
concurrency = 256
"#
    );
    Server::start_configured("run-door", &config)
}

/// All ways in turns, on one server per round. A disturbed round is measured again, three times at most.
fn rates(extent: Extent, agent: &Agent, clients: usize) -> Vec<Rates> {
    let calls = [Call::native("echo"), Call::run_sync("echo"), Call::run_sync(WORK)];
    let time = extent.seconds / 2;
    let mut rounds = Vec::new();
    let mut tries = 0;
    while rounds.len() < extent.rounds {
        let stolen = machine::Stolen::now();
        let server = serve(agent);
        let watched = [server.pid(), agent.pid(), std::process::id()];
        let mut loads: [Option<Load>; 3] = [const { None }; 3];
        // The first way meets an empty store, so every way is first once.
        for way in (0..calls.len()).map(|way| (way + tries) % calls.len()) {
            loads[way] = Some(load::run(&server.address, clients, time, &calls[way], &watched));
        }
        let loads = loads.map(|load| load.expect("every way was gone"));
        let round = Rates { loads, stolen_percent: stolen.percent() };
        eprintln!("{clients} clients: {round}");
        tries += 1;
        if round.stolen_percent < 5.0 || tries >= extent.rounds + 3 {
            rounds.push(round);
        }
    }
    rounds
}

/// One client that asks the agent itself and through the server in turns, at both endpoints.
fn latency(agent: &Agent) -> Latency {
    let fsync = machine::fsync_median(&data_directory("fsync"));
    let server = serve(agent);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let medians = runtime.block_on(async {
        let mut connections = Vec::new();
        for address in [&agent.address, &server.address, &agent.address, &server.address] {
            connections.push((Connection::open(address).await, Vec::new()));
        }
        let (sync, stream) = (Call::run_sync(WORK), Call::run_stream(WORK));
        for turn in 0..TURNS {
            for (place, (connection, times)) in connections.iter_mut().enumerate() {
                connection.ready().await;
                let start = Instant::now();
                if place < 2 {
                    connection.submit(&sync).await;
                } else {
                    connection.follow(&stream, |_| ()).await;
                }
                // The first turns fill caches.
                if turn >= TURNS / 10 {
                    times.push(start.elapsed());
                }
            }
        }
        connections.into_iter().map(|(_, times)| median(times)).collect::<Vec<_>>()
    });
    let seen = Latency { fsync, sync: [medians[0], medians[1]], stream: [medians[2], medians[3]] };
    eprintln!("{seen}");
    seen
}

/// Many streams at a time, first from the agent itself and then through the server.
fn delivery(extent: Extent, agent: &Agent) -> Delivery {
    let events = extent.seconds.as_secs() as usize * EVENTS_A_SECOND;
    let server = serve(agent);
    let [direct, through] = [&agent.address, &server.address].map(|address| delays(address, events));
    let seen = Delivery { streams: STREAMS, sent: STREAMS * events, direct, through };
    eprintln!("{seen}");
    seen
}

/// Times from each write by the agent to its read by the caller, sorted.
fn delays(address: &str, events: usize) -> Vec<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let follow = |address: String, begin: Duration| async move {
            // Agents do not report in step with each other.
            tokio::time::sleep(begin).await;
            let mut delays = Delays::default();
            let call = Call::run_progress(PROGRESS, events);
            Connection::open(&address).await.follow(&call, |answer| delays.see(answer)).await;
            delays.seen
        };
        let begins = (0..STREAMS).map(|number| PERIOD * u32::try_from(number).unwrap_or(0) / STREAMS as u32);
        let tasks: Vec<_> = begins.map(|begin| tokio::spawn(follow(address.to_owned(), begin))).collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.expect("a stream ends"));
        }
        all.sort();
        assert!(!all.is_empty(), "no progress was seen");
        all
    })
}

/// Compares the times in a stream with the moment at which they are seen.
#[derive(Default)]
struct Delays {
    looked: usize,
    last_ns: u64,
    seen: Vec<Duration>,
}

impl Delays {
    fn see(&mut self, answer: &[u8]) {
        const STEP: &str = "\"step\":\"";
        let now = machine::monotonic_ns();
        let text = std::str::from_utf8(&answer[self.looked..]).expect("it is plain text");
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(STEP)
            && let Some((stamp, after)) = after.split_once('"')
        {
            let written: u64 = stamp.parse().expect("a time");
            // A repeated event counts only the first time.
            if written > self.last_ns {
                self.seen.push(Duration::from_nanos(now.saturating_sub(written)));
                self.last_ns = written;
            }
            rest = after;
        }
        // The end may be half an event, so it is looked at again.
        self.looked += text.len() - rest.len();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    at_share(&times, 0.5)
}
