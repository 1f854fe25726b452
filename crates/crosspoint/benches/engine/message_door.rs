//! Through the message door to agents of the message contract in other processes, compared with the run door and a run
//! agent; and what it costs to know many agents.

use crate::call::Call;
use crate::load::{self, Load};
use crate::message_report::{self, Rates};
use crate::report::Report;
use crate::run_agent::{self, Agent};
use crate::serving::Server;
use crate::{Extent, heartbeats, machine, message_agent};

/// The ways that are compared, in the order of the table.
pub(crate) const WAYS: [&str; 3] = [
    "run door, run agent in another process",
    "message door, message agent, pushed",
    "message door, message agent that pulls",
];

/// The works of the agents, in the same order.
const WORKS: [&str; 3] = ["bench", "bench_pushed", "bench_pulled"];

/// The name of the agent that pulls.
const PULLS: &str = "pulls";

pub(crate) fn measure(extent: Extent, report: &mut Report) {
    let agent = run_agent::start();
    let rates = [1, 32, 128].map(|clients| (clients, rates(extent, &agent, clients)));
    let crowd = heartbeats::measure(extent);
    report.section(&message_report::page(&rates, &crowd), message_report::rounds(&rates, &crowd));
}

/// A server that knows all three agents.
fn serve(agent: &Agent) -> Server {
    let (address, concurrency) = (&agent.address, message_agent::CONCURRENCY);
    let [run, pushed, pulled] = WORKS;
    let config = format!(
        r#"
[[agent]]
name = "runs"
contract = "run"
url = "http://{address}"
work = ["{run}"]
concurrency = {concurrency}

[[agent]]
name = "pushed"
contract = "message"
via = "push:http://{address}"
work = ["{pushed}"]
concurrency = {concurrency}

[[agent]]
name = "{PULLS}"
contract = "message"
via = "pull"
work = ["{pulled}"]
concurrency = {concurrency}
"#
    );
    Server::start_configured("message-door", &config)
}

/// All ways in turns, on one server per round. A disturbed round is measured again, three times at most.
fn rates(extent: Extent, agent: &Agent, clients: usize) -> Vec<Rates> {
    let [run, pushed, pulled] = WORKS;
    let calls = [Call::run_sync(run), Call::message(pushed), Call::message(pulled)];
    let time = extent.seconds / 2;
    let mut rounds = Vec::new();
    let mut tries = 0;
    while rounds.len() < extent.rounds {
        let stolen = machine::Stolen::now();
        let server = serve(agent);
        let puller = message_agent::start(&server.address, PULLS);
        let agents = [agent.pid(), agent.pid(), puller.pid()];
        let mut loads: [Option<Load>; 3] = [const { None }; 3];
        // The first way meets an empty store, so every way is first once.
        for way in (0..calls.len()).map(|way| (way + tries) % calls.len()) {
            let watched = [server.pid(), agents[way], std::process::id()];
            loads[way] = Some(load::run(&server.address, clients, time, &calls[way], &watched));
        }
        drop(puller);
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
