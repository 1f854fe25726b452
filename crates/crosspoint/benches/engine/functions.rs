//! A function as an agent (`crosspoint-agent`) beside a bare handler of axum that parses and answers the same JSON: how
//! many runs per second, without and with answers that are kept; and how long 1 MB takes that the function prints.

use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use crosspoint_agent::{Agent, Context, Failure};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::call::Call;
use crate::load::{self, Connection, Load};
use crate::report::{Report, judge, median};
use crate::run_report::{HEADS, PROCESSORS, cells};
use crate::serving::data_directory;
use crate::{Extent, machine};

/// The agents that are compared, in the order of the table, and the words by which they are started.
const WAYS: [(&str, &str); 3] = [
    ("bare axum handler", "bare"),
    ("function, answers in memory", "forgetful"),
    ("function, answers on disk", "kept"),
];

/// The work that echoes, and the work that prints.
const ECHO: &str = "echo";
const PRINT: &str = "print";

/// How much is printed, and in how many blocks.
const PRINTED_BYTES: usize = 1_000_000;
const BLOCKS: usize = 250;

/// Number of turns in which 1 MB is printed.
const TURNS: usize = 200;

/// About as long as a line of the store of answers for an echo of 1,000 bytes.
const LINE_BYTES: usize = 1_300;

/// All agents at one number of clients, and the lines that can be synced in a second in groups of that size.
struct Rates {
    loads: [Load; 3],
    commits: f64,
    stolen_percent: f64,
}

/// Medians of the time that 1 MB takes: from the bare handler, and from a function.
struct Printing([Duration; 2]);

pub(crate) fn measure(extent: Extent, report: &mut Report) {
    let rates = [1, 32, 128].map(|clients| (clients, rates(extent, clients)));
    let printing: Vec<Printing> = (0..extent.rounds).map(|_| printing()).collect();
    let lines = rates.iter().flat_map(|(clients, rounds)| {
        rounds.iter().map(move |round| format!("- functions, {clients} clients: {round}"))
    });
    let lines = lines.chain(printing.iter().map(|round| format!("- printing: {round}"))).collect();
    report.section(&page(&rates, &printing), lines);
}

/// Serves one of [`WAYS`] until it is killed. Prints the address that it listens on.
pub(crate) fn run(way: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        println!("{}", listener.local_addr().expect("it is bound"));
        if way == "bare" {
            let router = axum::Router::new().route("/agents/run/sync", post(bare));
            // As the agent does: small writes would otherwise wait for the caller's system.
            let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("it is a socket"));
            return axum::serve(listener, router).await.expect("it serves");
        }
        let agent = Agent::new("bench").on(ECHO, echo).on(PRINT, print).concurrency(256);
        let agent = match way {
            "kept" => agent.answers(data_directory("function").join("answers")),
            _ => agent.forgetful(),
        };
        agent.serve(listener, std::future::pending()).await.expect("it serves");
    });
}

async fn echo(input: Value, _: Context) -> Result<Value, Failure> {
    Ok(input)
}

async fn print(_: Value, context: Context) -> Result<(), Failure> {
    let (block, mut output) = (block(), context.output());
    for _ in 0..BLOCKS {
        output.write_all(block.as_bytes()).await?;
    }
    Ok(())
}

fn block() -> String {
    "x".repeat(PRINTED_BYTES / BLOCKS)
}

/// The same without the agent.
async fn bare(request: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&request).expect("it is JSON");
    let (id, work) = (&request["request_id"], &request["task_type"]);
    if work == PRINT {
        return bare_print(id, work);
    }
    let answer = json!({
        "request_id": id, "task_type": work, "status": "ok", "ok": true, "outputs": request["inputs"],
        "artifacts": [], "provenance": {}, "usage": {}, "warnings": [],
    });
    ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

/// Writes to the socket what the function's caller gets for [`print`]: the same bytes, from as many blocks. A text that
/// is there already in one piece would be written with one call of the system and without a copy, which no program can
/// do that prints its output bit by bit.
fn bare_print(id: &Value, work: &Value) -> Response {
    let head = format!(r#"{{"request_id":{id},"task_type":{work},"status":"ok","ok":true,"outputs":{{"output":""#);
    let tail = r#""},"artifacts":[],"provenance":{},"usage":{},"warnings":[]}"#;
    let length = (head.len() + PRINTED_BYTES + tail.len()).to_string();
    let printed = std::iter::repeat_n(block(), BLOCKS).map(Bytes::from);
    let pieces = std::iter::once(head.into()).chain(printed).chain([Bytes::from_static(tail.as_bytes())]);
    let body = Body::from_stream(stream::iter(pieces.map(Ok::<Bytes, std::convert::Infallible>)));
    ([(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_LENGTH, length)], body).into_response()
}

/// An agent in a process of its own, which is killed when this is dropped.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start(way: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
        command.args(["--function-agent", way]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut address = String::new();
        let printed = child.stdout.take().expect("it prints to us");
        std::io::BufReader::new(printed).read_line(&mut address).expect("it says where it listens");
        Process { child, address: address.trim().to_owned() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All agents in turns. A disturbed round is measured again, three times at most.
fn rates(extent: Extent, clients: usize) -> Vec<Rates> {
    let time = extent.seconds / 2;
    let (mut rounds, mut tries) = (Vec::new(), 0);
    while rounds.len() < extent.rounds {
        let stolen = machine::Stolen::now();
        let mut loads: [Option<Load>; 3] = [const { None }; 3];
        for way in (0..WAYS.len()).map(|way| (way + tries) % WAYS.len()) {
            let agent = Process::start(WAYS[way].1);
            let watched = [agent.child.id(), agent.child.id(), std::process::id()];
            loads[way] = Some(load::run(&agent.address, clients, time, &Call::run_sync(ECHO), &watched));
        }
        let loads = loads.map(|load| load.expect("every agent was asked"));
        let round = Rates { loads, commits: commits(clients, time), stolen_percent: stolen.percent() };
        eprintln!("{clients} clients: {round}");
        tries += 1;
        if round.stolen_percent < 5.0 || tries >= extent.rounds + 3 {
            rounds.push(round);
        }
    }
    rounds
}

/// Lines in a second that are written in groups of this size, each group with one sync.
fn commits(clients: usize, time: Duration) -> f64 {
    let path = data_directory("lines").join("lines");
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("it can be made");
    let group = vec![b'x'; LINE_BYTES * clients];
    let (start, mut lines) = (Instant::now(), 0);
    while start.elapsed() < time {
        file.write_all(&group).and_then(|()| file.sync_data()).expect("it can be written");
        lines += clients;
    }
    lines as f64 / start.elapsed().as_secs_f64()
}

/// One client that has 1 MB printed, by both sides in turns.
fn printing() -> Printing {
    let agents = [WAYS[0].1, WAYS[1].1].map(Process::start);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let printing = Printing(runtime.block_on(async {
        let mut sides = [
            (Connection::open(&agents[0].address).await, Vec::new()),
            (Connection::open(&agents[1].address).await, Vec::new()),
        ];
        let call = Call::run_sync(PRINT);
        for turn in 0..TURNS {
            for (connection, times) in &mut sides {
                connection.ready().await;
                let start = Instant::now();
                connection.submit(&call).await;
                // The first turns fill caches.
                if turn >= TURNS / 10 {
                    times.push(start.elapsed());
                }
            }
        }
        sides.map(|(_, mut times)| {
            times.sort();
            load::at_share(&times, 0.5)
        })
    }));
    eprintln!("{printing}");
    printing
}

fn page(rates: &[(usize, Vec<Rates>)], printing: &[Printing]) -> String {
    let mut text = format!(
        "An echo of 1,000 bytes in the run contract, asked for without a server between. {PROCESSORS} Here the agent is \
         the server. *Lines* is how many lines of the same length can be appended to a file in a second, in groups of as \
         many as there are clients, each group with one sync.\n\n\
         | clients | agent | {HEADS} | lines/s | result | target |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (clients, rounds) in rates {
        for (way, (name, _)) in WAYS.iter().enumerate() {
            let loads: Vec<&Load> = rounds.iter().map(|round| &round.loads[way]).collect();
            let _ = writeln!(text, "| {clients} | {name} | {} | {} |", cells(&loads), against(rounds, way));
        }
    }
    let share = |round: &Printing| round.0[1].as_secs_f64() / round.0[0].as_secs_f64();
    let [bare, function] =
        [0, 1].map(|side| median(printing.iter().map(|round| round.0[side].as_secs_f64() * 1e3).collect()));
    let times = median(printing.iter().map(share).collect());
    let judged = judge(&format!("{times:.2}x"), "at most 1.3x", times <= 1.3);
    text + &format!(
        "\n| 1 MB of text | bare handler | function | result | target |\n|---|---|---|---|---|\n\
         | printed in {BLOCKS} blocks, answered whole | {bare:.2} ms | {function:.2} ms | {judged} |\n"
    )
}

/// Compares each agent with what it can be measured by.
fn against(rounds: &[Rates], way: usize) -> String {
    let of = |share: &dyn Fn(&Rates) -> f64| median(rounds.iter().map(share).collect());
    let lines = of(&|round| round.commits);
    match way {
        0 => " | | ".to_owned(),
        1 => {
            let share = of(&|round| round.loads[1].rate / round.loads[0].rate);
            format!(" | {}", judge(&format!("{:.1}% of bare", share * 1e2), "at least 80%", share >= 0.8))
        }
        _ => {
            let share = of(&|round| round.loads[2].rate / round.commits.min(round.loads[1].rate));
            let result = format!("{:.1}% of the lower of lines and memory", share * 1e2);
            format!("{lines:.0} | {}", judge(&result, "at least 80%", share >= 0.8))
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, _), load) in WAYS.iter().zip(&self.loads) {
            write!(f, "{name} {load}; ")?;
        }
        write!(f, "lines {:.0}/s, stolen {:.1}%", self.commits, self.stolen_percent)
    }
}

impl fmt::Display for Printing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bare {:.2?}, function {:.2?}", self.0[0], self.0[1])
    }
}
