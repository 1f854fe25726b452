//! The measurements of the run door, as a page.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::load::{Load, at_share};
use crate::report::{judge, median};
use crate::run_door::WAYS;

/// All ways at one number of clients, in the order of `WAYS`.
pub(crate) struct Rates {
    pub(crate) loads: [Load; 3],
    pub(crate) stolen_percent: f64,
}

/// How long one client waits: for the agent itself, and through the server.
pub(crate) struct Latency {
    pub(crate) fsync: Duration,
    pub(crate) sync: [Duration; 2],
    pub(crate) stream: [Duration; 2],
}

/// Times from the write of a progress event to its read, sorted, and how many events were written on each way.
pub(crate) struct Delivery {
    pub(crate) streams: usize,
    pub(crate) sent: usize,
    pub(crate) direct: Vec<Duration>,
    pub(crate) through: Vec<Duration>,
}

/// Rounds by their number of clients.
type Clients = [(usize, Vec<Rates>)];

pub(crate) fn page(rates: &Clients, latency: &[Latency], delivery: &[Delivery]) -> String {
    let mut text = format!(
        "Through the run door to a run agent in another process. {PROCESSORS}\n\n\
         | clients | way | {HEADS} | result | target |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (clients, rounds) in rates {
        for way in 0..WAYS.len() {
            let _ = writeln!(text, "{}", row(*clients, way, rounds));
        }
    }
    text.push_str("\n| what | directly | through Crosspoint | result | target |\n|---|---|---|---|---|\n");
    for (name, pick) in ENDPOINTS {
        let _ = writeln!(text, "{}", added(name, pick, latency));
    }
    let _ = writeln!(text, "{}", delivered(delivery));
    text
}

/// Every round in one line.
pub(crate) fn rounds(rates: &Clients, latency: &[Latency], delivery: &[Delivery]) -> Vec<String> {
    let rates = rates.iter().flat_map(|(clients, rounds)| {
        rounds.iter().map(move |round| format!("- run door, {clients} clients: {round}"))
    });
    let latency = latency.iter().map(|round| format!("- run door, 1 client in turns: {round}"));
    let delivery = delivery.iter().map(|round| format!("- run door: {round}"));
    rates.chain(latency).chain(delivery).collect()
}

fn row(clients: usize, way: usize, rounds: &[Rates]) -> String {
    let loads: Vec<&Load> = rounds.iter().map(|round| &round.loads[way]).collect();
    let share = median(rounds.iter().map(|round| round.loads[way].rate / round.loads[0].rate).collect());
    let told = format!("{:.0}% of the built-in rate", share * 100.0);
    let judged = match way {
        0 => " | ".to_owned(),
        1 => format!("{told} | "),
        _ => judge(&told, "at least 55%", share >= 0.55),
    };
    format!("| {clients} | {} | {} | {judged} |", WAYS[way], cells(&loads))
}

/// What the cells about processors say.
pub(crate) const PROCESSORS: &str = "Processors: 2.0 would be two full ones; *load* is the load generator, *others* \
                                     everybody else, the kernel's own threads included; *µs a job* is what the server \
                                     takes for one.";

/// The heads of [`cells`].
pub(crate) const HEADS: &str = "jobs/s | p50 ms | p99 ms | server | agent | load | others | idle | µs a job";

/// The medians of some loads, as cells of a table.
pub(crate) fn cells(loads: &[&Load]) -> String {
    let by = |value: &dyn Fn(&Load) -> f64| median(loads.iter().map(|load| value(load)).collect());
    let (rate, p50, p99) = (by(&|load| load.rate), by(&|load| ms(load.p50)), by(&|load| ms(load.p99)));
    let [server, agent, generator] = [0, 1, 2].map(|process| by(&|load| load.cores.processes[process]));
    let (others, idle) = (by(&|load| load.cores.others), by(&|load| load.cores.idle));
    let cost = by(&|load| load.cores.processes[0] / load.rate * 1e6);
    format!(
        "{rate:.0} | {p50:.2} | {p99:.2} | {server:.2} | {agent:.2} | {generator:.2} | {others:.2} | {idle:.2} | {cost:.0}"
    )
}

type Pick = fn(&Latency) -> [Duration; 2];

const ENDPOINTS: [(&str, Pick); 2] = [("sync", |latency| latency.sync), ("stream", |latency| latency.stream)];

/// How much longer one client waits than if it called the agent itself.
fn added(name: &str, pick: Pick, rounds: &[Latency]) -> String {
    let by = |value: &dyn Fn(&Latency) -> f64| median(rounds.iter().map(value).collect());
    let [direct, through] = [0, 1].map(|side| by(&|round| ms(pick(round)[side])));
    let over = by(&|round| ms(pick(round)[1]) - ms(pick(round)[0]) - 2.0 * ms(round.fsync));
    let fsync = by(&|round| ms(round.fsync));
    let result = format!("two fsyncs of {fsync:.2} ms and {over:.2} ms more");
    let judged = judge(&result, "two fsyncs and at most 1.5 ms", over <= 1.5);
    format!("| {name}, 1 client, p50 | {direct:.2} ms | {through:.2} ms | {judged} |")
}

/// How soon progress is seen.
fn delivered(rounds: &[Delivery]) -> String {
    type Side = fn(&Delivery) -> &[Duration];
    let sides: [Side; 2] = [|round| &round.direct, |round| &round.through];
    let by = |side: Side, share| median(rounds.iter().map(|round| ms(at_share(side(round), share))).collect());
    let [direct, through] = sides.map(|side| [by(side, 0.5), by(side, 0.99)]);
    let [p50, p99] = through;
    let (streams, sent) = rounds.first().map_or((0, 0), |round| (round.streams, round.sent));
    let seen = rounds.iter().map(|round| round.through.len()).min().unwrap_or(0);
    let judged = judge(&format!("p50 {p50:.2} ms, p99 {p99:.2} ms"), "p50 under 2 ms", p50 < 2.0);
    format!(
        "| {streams} streams, from the agent's write of a progress event to the caller's read | p50 {:.2} ms, p99 {:.2} ms | {seen} of {sent} events seen | {judged} |",
        direct[0], direct[1]
    )
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, load) in WAYS.iter().zip(&self.loads) {
            write!(f, "{name} {load}; ")?;
        }
        write!(f, "stolen {:.1}%", self.stolen_percent)
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([sync, through_sync], [stream, through_stream]) = (self.sync, self.stream);
        write!(
            f,
            "sync {sync:.2?} directly, {through_sync:.2?} through Crosspoint; stream {stream:.2?} directly, \
             {through_stream:.2?} through Crosspoint; fsync {:.2?}",
            self.fsync
        )
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = |delays: &[Duration]| (at_share(delays, 0.5), at_share(delays, 0.99));
        let ((p50, p99), (direct_p50, direct_p99)) = (shares(&self.through), shares(&self.direct));
        write!(
            f,
            "{} streams: progress seen after p50 {p50:.2?}, p99 {p99:.2?}, {} of {} events; directly p50 {direct_p50:.2?}, \
             p99 {direct_p99:.2?}",
            self.streams,
            self.through.len(),
            self.sent
        )
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
