//! What it costs to ask for tokens: the native door of an open server, of one with a token, and of one with many.

use std::fmt::{self, Write as _};
use std::io::{Read, Write as _};
use std::net::TcpStream;

use crate::call::Call;
use crate::load::{self, Load};
use crate::report::{Report, judge, median};
use crate::run_report::{HEADS, PROCESSORS, cells};
use crate::serving::Server;
use crate::{Extent, machine};

/// The servers that are compared, in the order of the table.
const WAYS: [&str; 3] = ["open, no token", "closed, one caller", "closed, many tokens"];

/// Least share of the rate: of the open server, and of the one with one caller. What differs by less than the second
/// is not told apart from chance.
const SHARES: [(f64, &str); 2] = [(0.97, "at least 97%"), (0.98, "at least 98%: nothing measurable")];

/// All servers at one number of clients, in the order of [`WAYS`].
struct Rates {
    loads: [Load; 3],
    stolen_percent: f64,
}

/// A server, and the call with the token that it wants.
struct Asked {
    server: Server,
    call: Call,
}

pub(crate) fn measure(extent: Extent, report: &mut Report) {
    let rates = [1, 32, 128].map(|clients| (clients, rates(extent, clients)));
    let rounds = rates
        .iter()
        .flat_map(|(clients, rounds)| rounds.iter().map(move |round| format!("- tokens, {clients} clients: {round}")));
    report.section(&page(extent, &rates), rounds.collect());
}

impl Asked {
    /// Starts a server and makes tokens for this many callers. The one that calls is in the middle of them.
    fn start(name: &str, tokens: usize) -> Asked {
        let server = Server::start(name);
        let call = Call::native("echo");
        let Some(others) = tokens.checked_sub(1) else { return Asked { server, call } };
        let admin = made(&server, None, r#"{"name":"admin","for":"admin"}"#);
        let caller = |number: usize| made(&server, Some(&admin), &format!(r#"{{"name":"c-{number}","for":"caller"}}"#));
        (0..others / 2).for_each(|number| drop(caller(number)));
        let token = caller(others / 2);
        (others / 2 + 1..tokens).for_each(|number| drop(caller(number)));
        Asked { server, call: call.with_token(token) }
    }
}

/// Has a token made.
fn made(server: &Server, admin: Option<&str>, wanted: &str) -> String {
    let (address, bytes) = (&server.address, wanted.len());
    let by = admin.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let mut stream = TcpStream::connect(address).expect("the server is there");
    let head = format!("POST /api/v1/tokens HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{by}");
    let sent = write!(stream, "{head}content-type: application/json\r\ncontent-length: {bytes}\r\n\r\n{wanted}");
    sent.expect("it can be sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    let (_, body) = answer.split_once("\r\n\r\n").expect("it has a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
    body["token"].as_str().expect("it has a token").to_owned()
}

/// All servers in turns. A disturbed round is measured again, three times at most.
fn rates(extent: Extent, clients: usize) -> Vec<Rates> {
    let time = extent.seconds / 2;
    let mut rounds = Vec::new();
    let mut tries = 0;
    while rounds.len() < extent.rounds {
        let asked = [("open", 0), ("closed", 1), ("many", extent.tokens)].map(|(name, many)| Asked::start(name, many));
        let stolen = machine::Stolen::now();
        let mut loads: [Option<Load>; 3] = [const { None }; 3];
        for way in (0..asked.len()).map(|way| (way + tries) % asked.len()) {
            let Asked { server, call } = &asked[way];
            let watched = [server.pid(), server.pid(), std::process::id()];
            loads[way] = Some(load::run(&server.address, clients, time, call, &watched));
        }
        let loads = loads.map(|load| load.expect("every server was asked"));
        let round = Rates { loads, stolen_percent: stolen.percent() };
        eprintln!("{clients} clients: {round}");
        tries += 1;
        if round.stolen_percent < 5.0 || tries >= extent.rounds + 3 {
            rounds.push(round);
        }
    }
    rounds
}

fn page(extent: Extent, rates: &[(usize, Vec<Rates>)]) -> String {
    let mut text = format!(
        "Through the native door to the built-in echo; *many* are {} tokens. {PROCESSORS} The agent is the server.\n\n\
         | clients | server | {HEADS} | result | target |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        extent.tokens
    );
    for (clients, rounds) in rates {
        for (way, name) in WAYS.iter().enumerate() {
            let loads: Vec<&Load> = rounds.iter().map(|round| &round.loads[way]).collect();
            let judged = way.checked_sub(1).map_or_else(|| " | ".to_owned(), |before| against(rounds, before));
            let _ = writeln!(text, "| {clients} | {name} | {} | {judged} |", cells(&loads));
        }
    }
    text
}

/// Compares each server with the one before it.
fn against(rounds: &[Rates], before: usize) -> String {
    let share = median(rounds.iter().map(|round| round.loads[before + 1].rate / round.loads[before].rate).collect());
    let (least, target) = SHARES[before];
    judge(&format!("{:.1}% of {}", share * 1e2, WAYS[before]), target, share >= least)
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, load) in WAYS.iter().zip(&self.loads) {
            write!(f, "{name} {load}; ")?;
        }
        write!(f, "stolen {:.1}%", self.stolen_percent)
    }
}
