//! How fast jobs go through the real program, as ratios of one run. This is not a test: no figure decides anything.
//!
//! `scripts/bench` runs it and puts what it prints into `bench/RESULTS.md`. `--quick` is for trying it out: fewer
//! seconds and fewer stored jobs. `--run-door` measures only the way through the run door, `--message` only that
//! through the message door, `--tokens` only what tokens cost, `--functions` only functions as agents.
//! `--load ADDRESS CLIENTS [WORK [run|message]]` only loads a server that already runs, for profiling it, at the native
//! door or at another one. `--echo-agent URL [NAME WORK]` joins a server as an agent that echoes, `--run-agent ADDRESS`
//! serves as an agent of the run contract and of the message contract, `--message-agent ADDRESS NAME` pulls as an agent
//! of the message contract, and `--function-agent WAY` serves as a function, or as what it is compared with.

#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "engine/bare.rs"]
mod bare;
#[path = "engine/call.rs"]
mod call;
#[path = "engine/echo_agent.rs"]
mod echo_agent;
#[path = "engine/functions.rs"]
mod functions;
#[path = "engine/heartbeats.rs"]
mod heartbeats;
#[path = "engine/load.rs"]
mod load;
#[path = "engine/machine.rs"]
mod machine;
#[path = "engine/message_agent.rs"]
mod message_agent;
#[path = "engine/message_door.rs"]
mod message_door;
#[path = "engine/message_report.rs"]
mod message_report;
#[path = "engine/report.rs"]
mod report;
#[path = "engine/run_agent.rs"]
mod run_agent;
#[path = "engine/run_door.rs"]
mod run_door;
#[path = "engine/run_report.rs"]
mod run_report;
#[path = "engine/scale.rs"]
mod scale;
#[path = "engine/serving.rs"]
mod serving;
#[path = "engine/tokens.rs"]
mod tokens;

use std::time::Duration;

use call::Call;
use report::Report;

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    seconds: Duration,
    rounds: usize,
    stored: usize,
    queued: usize,
    /// Agents that only send heartbeats, and the time between two of each.
    agents: usize,
    beat: Duration,
    /// Tokens of the server that has many.
    tokens: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--load") {
        let clients = arguments[at + 2].parse().expect("a number of clients");
        let work = arguments.get(at + 3).map_or("echo", String::as_str);
        let call = match arguments.get(at + 4).map(String::as_str) {
            Some("run") => Call::run_sync(work),
            Some("message") => Call::message(work),
            Some(_) | None => Call::native(work),
        };
        let load = load::run(&arguments[at + 1], clients, Duration::from_secs(5), &call, &[]);
        return println!("{:.0} jobs/s, p50 {:.2?}, p99 {:.2?}", load.rate, load.p50, load.p99);
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--echo-agent") {
        let word = |at: usize, default| arguments.get(at).map_or(default, String::as_str);
        return echo_agent::run(&arguments[at + 1], word(at + 2, "echo-agent"), word(at + 3, "echo_elsewhere"));
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--run-agent") {
        return run_agent::run(&arguments[at + 1]);
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--message-agent") {
        return message_agent::run(&arguments[at + 1], &arguments[at + 2]);
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--function-agent") {
        return functions::run(&arguments[at + 1]);
    }
    let is_said = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let extent = Extent::of(is_said("--quick"));
    let mut report = Report::default();
    report.machine();
    if is_said("--message") {
        message_door::measure(extent, &mut report);
        return print!("{}", report.finish());
    }
    if is_said("--functions") {
        functions::measure(extent, &mut report);
        return print!("{}", report.finish());
    }
    if is_said("--tokens") {
        tokens::measure(extent, &mut report);
        return print!("{}", report.finish());
    }
    if !is_said("--run-door") {
        throughput(extent, &mut report);
        scale::measure(extent, &mut report);
    }
    run_door::measure(extent, &mut report);
    print!("{}", report.finish());
}

impl Extent {
    fn of(quick: bool) -> Extent {
        let seconds = Duration::from_secs;
        if quick {
            let (agents, beat) = (50, seconds(1));
            Extent { seconds: seconds(1), rounds: 1, stored: 20_000, queued: 10_000, agents, beat, tokens: 1_000 }
        } else {
            let (agents, beat) = (1_000, seconds(30));
            Extent { seconds: seconds(4), rounds: 5, stored: 1_000_000, queued: 100_000, agents, beat, tokens: 10_000 }
        }
    }
}

/// Submits and waits for the outcome, compared with the bare store, in turns.
fn throughput(extent: Extent, report: &mut Report) {
    for clients in [1, 32, 128] {
        let mut rounds = Vec::new();
        let mut tries = 0;
        while rounds.len() < extent.rounds {
            let stolen = machine::Stolen::now();
            let fsync = machine::fsync_median(&serving::data_directory("fsync"));
            let bare = bare::rate(&serving::data_directory("bare"), clients, extent.seconds);
            let server = serving::Server::start("load");
            let load = load::run(&server.address, clients, extent.seconds, &Call::native("echo"), &[]);
            let agent = echo_agent::start(&server.address);
            server.knows("echo_elsewhere");
            let call = Call::native("echo_elsewhere");
            let elsewhere = load::run(&server.address, clients, extent.seconds, &call, &[]);
            drop(agent);
            let round = report::Round { fsync, bare, load, elsewhere, stolen_percent: stolen.percent() };
            eprintln!("{clients} clients: {round}");
            tries += 1;
            // A round disturbed by other tenants of the machine is measured again, three times at most.
            if round.stolen_percent < 5.0 || tries >= extent.rounds + 3 {
                rounds.push(round);
            }
        }
        report.throughput(clients, &rounds);
    }
}
