//! Effects: what agents have done, counted by themselves, while answers are lost at random, agents are killed, attempts
//! are repeated and callers send their requests again. Each effect comes once where that is promised, and where it
//! cannot be known the job says so.

mod agents;
mod callers;
mod kinds;
mod ledger;
mod processes;
mod proxy;
mod restarts;
mod scripted;
mod verdict;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use self::agents::{CALLED, CALLING, called, calling, configured};
use self::callers::{Accepted, Ended};
use self::kinds::KINDS;
use self::ledger::Ledgers;
use self::proxy::Proxy;
use self::restarts::{Alive, Restarted};
use self::verdict::{HEAD, Row, Trouble};
use crate::store::crash::seed;
use crate::support::persistent_callers::Dice;
use crate::support::server::{Server, until};

/// How many of a hundred exchanges are lost, on every connection.
const LOSSES: u64 = 20;

const CALLERS: u32 = 4;

/// Kills the server when about a third of all work is done, and starts it again.
fn kill_server(server: &mut Server, ledgers: &Ledgers) {
    let programs = ["exec", "exec_once", "program", "program_once"];
    until("the programs are at it", || programs.iter().all(|kind| ledgers.count(kind) >= 20).then_some(()));
    server.kill();
    server.restart_in_place();
}

/// Waits for the ends of all jobs.
fn ends(accepted: &[Accepted], server: SocketAddr, lossy: SocketAddr) -> Vec<Ended> {
    thread::scope(|scope| {
        let part = accepted.len().div_ceil(CALLERS as usize);
        let end = |part: &[Accepted]| part.iter().map(|one| callers::end(one, server, lossy)).collect::<Vec<_>>();
        let waiting: Vec<_> = accepted.chunks(part).map(|part| scope.spawn(move || end(part))).collect();
        waiting.into_iter().flat_map(|thread| thread.join().expect("it waits in peace")).collect()
    })
}

#[test]
fn each_effect_comes_once_where_that_is_promised_and_else_it_is_on_record_that_it_is_not_known() {
    let mut dice = Dice(seed());
    let ledgers = Ledgers::new();
    let proxy = |kind: &'static str| (kind, Proxy::unopened(LOSSES, dice.below(u64::MAX)));
    let proxies: BTreeMap<&str, Proxy> = CALLED.into_iter().chain(CALLING).map(proxy).collect();
    let mut server = Server::with(&configured(&ledgers, &proxies), &["--log", "warn"]);
    let address = server.address();
    let lossy = Proxy::before(address, LOSSES, dice.below(u64::MAX));
    let mut agents: Vec<Restarted<'_>> = called(&ledgers, &proxies);
    agents.extend(calling(&ledgers, &proxies, &server));
    let (done, is_done) = mpsc::channel();
    let mut ended = thread::scope(|scope| {
        scope.spawn({
            let lossy = lossy.address();
            move || callers::close_breakers(lossy, &is_done)
        });
        let running: Vec<_> = agents.iter_mut().map(|agent| scope.spawn(|| agent.go(&ledgers, address))).collect();
        until("the workers have joined", || all_known(&server).then_some(()));
        let submitting: Vec<_> = (0..CALLERS)
            .map(|caller| (caller, dice.below(u64::MAX)))
            .map(|(caller, seed)| {
                let lossy = lossy.address();
                scope.spawn(move || callers::submit((caller, CALLERS), lossy, seed))
            })
            .collect();
        kill_server(&mut server, &ledgers);
        let accepted: Vec<Accepted> = submitting.into_iter().flat_map(|one| one.join().expect("it submits")).collect();
        let alive: Vec<Alive> = running.into_iter().map(|agent| agent.join().expect("it is killed often")).collect();
        let ended = ends(&accepted, address, lossy.address());
        drop((alive, done));
        ended
    });
    ended.sort_by_key(|ended| ended.number);
    let restarts = restarts_of(&agents);
    judge(&ended, &ledgers, |kind| trouble(&proxies, &restarts, kind));
    nothing_else_is_there(&server, &ended);
}

/// Whether all works are known, also those of agents that are not configured.
fn all_known(server: &Server) -> bool {
    let known = server.get("/api/v1/agents").text();
    ["\"joined\"", "\"joined_once\""].iter().all(|name| known.contains(name))
}

fn restarts_of(agents: &[Restarted<'_>]) -> BTreeMap<&'static str, usize> {
    let of = |agent: &Restarted<'_>| agent.kinds.iter().map(|kind| (*kind, agent.restarts())).collect::<Vec<_>>();
    agents.iter().flat_map(of).collect()
}

/// What happened on the way to the agents of a kind. Agents that live in the server were killed with it.
fn trouble(proxies: &BTreeMap<&str, Proxy>, restarts: &BTreeMap<&str, usize>, kind: &str) -> Trouble {
    let proxy = proxies.get(kind).or_else(|| proxies.get(kind.strip_suffix("_once")?));
    Trouble {
        answers_lost: proxy.map_or(0, Proxy::answers_lost),
        requests_lost: proxy.map_or(0, Proxy::requests_lost),
        restarts: restarts.get(kind).copied().unwrap_or(1),
    }
}

/// Prints the table, and checks every promise.
fn judge(ended: &[Ended], ledgers: &Ledgers, trouble: impl Fn(&str) -> Trouble) {
    let mut rows = Vec::new();
    for kind in KINDS {
        let jobs: Vec<&Ended> = ended.iter().filter(|ended| ended.kind == kind.name).collect();
        rows.push(Row::of(*kind, trouble(kind.name), &jobs, &ledgers.effects(kind.name)));
    }
    let table: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let _ = writeln!(std::io::stderr().lock(), "{HEAD}\n{table}");
    let faults: Vec<String> = rows.into_iter().flat_map(|row| row.faults).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Checks that the server has no other jobs, none without an outcome, and that each has one outcome and no second.
fn nothing_else_is_there(server: &Server, ended: &[Ended]) {
    let mut found = BTreeMap::<String, usize>::new();
    let mut next = Some(String::new());
    while let Some(before) = next {
        let page = server.get(&format!("/api/v1/jobs?limit=500{before}")).json();
        for job in page["jobs"].as_array().expect("a page has jobs") {
            assert!(["completed", "failed"].contains(&job["state"].as_str().unwrap_or_default()), "{job}");
            if job["parent"].is_null() {
                *found.entry(job["request_id"].as_str().expect("it has one").to_owned()).or_default() += 1;
            }
        }
        next = page["next"].as_str().map(|next| format!("&before={next}"));
    }
    let expected = ended.iter().map(|ended| (format!("{}-{}", ended.kind, ended.number), 1)).collect();
    assert_eq!(found, expected, "every request is one job");
    for ended in ended {
        let id = ended.job["id"].as_str().expect("an id");
        let stream = server.fetch(&format!("/api/v1/jobs/{id}/events")).text();
        let is_end = |line: &&str| ["event: completed", "event: failed", "event: cancelled"].contains(line);
        assert_eq!(stream.lines().filter(is_end).count(), 1, "{stream}");
    }
}
