//! The measurements of the message door, as a page.

use std::fmt::{self, Write as _};

use crate::heartbeats::Crowd;
use crate::load::Load;
use crate::message_door::WAYS;
use crate::report::{judge, median};
use crate::run_report::{HEADS, PROCESSORS, cells};

/// All ways at one number of clients, in the order of `WAYS`.
pub(crate) struct Rates {
    pub(crate) loads: [Load; 3],
    pub(crate) stolen_percent: f64,
}

/// Rounds by their number of clients.
type Clients = [(usize, Vec<Rates>)];

/// Most of one core, and most memory in bytes, that the agents may cost the server.
const CORE_MAX: f64 = 0.01;
const BYTES_MAX: f64 = 20e6;

pub(crate) fn page(rates: &Clients, crowd: &Crowd) -> String {
    let mut text = format!(
        "Through the message door to a message agent in another process. {PROCESSORS}\n\n\
         | clients | way | {HEADS} | result | target |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (clients, rounds) in rates {
        for way in 0..WAYS.len() {
            let _ = writeln!(text, "{}", row(*clients, way, rounds));
        }
    }
    let Crowd { agents, period, .. } = crowd;
    let _ = write!(
        text,
        "\n| {agents} registered agents, each with a heartbeat every {} s | idle server | with them | more | target |\n\
         |---|---|---|---|---|\n{}\n{}\n",
        period.as_secs(),
        cores(crowd),
        memory(crowd)
    );
    text
}

/// Every round in one line.
pub(crate) fn rounds(rates: &Clients, crowd: &Crowd) -> Vec<String> {
    let rates = rates.iter().flat_map(|(clients, rounds)| {
        rounds.iter().map(move |round| format!("- message door, {clients} clients: {round}"))
    });
    let cores = crowd.cores.iter().map(|[idle, with]| {
        format!("- {} agents: {:.2}% of a core, idle server {:.2}%", crowd.agents, with * 1e2, idle * 1e2)
    });
    rates.chain(cores).collect()
}

fn row(clients: usize, way: usize, rounds: &[Rates]) -> String {
    let loads: Vec<&Load> = rounds.iter().map(|round| &round.loads[way]).collect();
    let against = |other: usize| median(rounds.iter().map(|it| it.loads[way].rate / it.loads[other].rate).collect());
    let judged = match way {
        0 => " | ".to_owned(),
        1 => judge(&format!("{:.2} of the run door", against(0)), "at least 1.0", against(0) >= 1.0),
        _ => judge(&format!("{:.2} of the pushed agent", against(1)), "at least 0.8", against(1) >= 0.8),
    };
    format!("| {clients} | {} | {} | {judged} |", WAYS[way], cells(&loads))
}

fn cores(crowd: &Crowd) -> String {
    let by = |value: &dyn Fn(&[f64; 2]) -> f64| median(crowd.cores.iter().map(value).collect());
    let (idle, with, more) = (by(&|[idle, _]| *idle), by(&|[_, with]| *with), by(&|[idle, with]| with - idle));
    let judged = judge(&format!("{:.2}%", more * 1e2), "under 1%", more < CORE_MAX);
    format!("| processor time of the server, share of one core | {:.2}% | {:.2}% | {judged} |", idle * 1e2, with * 1e2)
}

fn memory(crowd: &Crowd) -> String {
    let [idle, with] = crowd.resident_bytes.map(|bytes| bytes as f64);
    let more = with - idle;
    let judged = judge(&format!("{:.1}", more / 1e6), "under 20", more < BYTES_MAX);
    format!("| memory of the server, MB (VmRSS) | {:.1} | {:.1} | {judged} |", idle / 1e6, with / 1e6)
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, load) in WAYS.iter().zip(&self.loads) {
            write!(f, "{name} {load}; ")?;
        }
        write!(f, "stolen {:.1}%", self.stolen_percent)
    }
}
