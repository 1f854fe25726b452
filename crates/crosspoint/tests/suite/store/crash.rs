//! Killing the server again and again under load: every acknowledged job is there, ends, and ends once.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::process::Child;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::store::sync::Watched;
use crate::support::persistent_callers::{Callers, Dice, Known, Wish, send};
use crate::support::server::{Server, until};

/// Number of kills of the server in the suite; `CROSSPOINT_KILLS` sets more.
const KILLS: u64 = 50;

const CALLERS: usize = 6;

/// A new seed for every run, or the seed of a run that failed. It is printed, and shown if the test fails.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("CROSSPOINT_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = given.unwrap_or_else(now);
    let _ = writeln!(std::io::stderr().lock(), "CROSSPOINT_SEED={seed}");
    seed
}

fn kills() -> u64 {
    std::env::var("CROSSPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

/// Kills the server at a random moment after the callers have had some answers.
fn kill_under_load(server: &mut Server, callers: &Callers, dice: &mut Dice) {
    let enough = callers.acknowledged() + usize::try_from(dice.below(40)).expect("it is small");
    until("callers are answered", || (callers.acknowledged() >= enough).then_some(()));
    // This does not wait for anything: it makes the moment random.
    thread::sleep(Duration::from_micros(dice.below(4_000)));
    callers.set_address(None);
    server.kill();
}

/// Kills the server before it can have said that it is ready, or just then.
fn kill_while_it_starts(server: &Server, dice: &mut Dice) {
    let mut child: Child = server.command().spawn().expect("the program starts");
    // This does not wait for anything: it makes the moment random.
    thread::sleep(Duration::from_micros(dice.below(40_000)));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn whatever_was_acknowledged_ends_once_however_often_the_server_is_killed() {
    let seed = seed();
    let mut dice = Dice(seed);
    let mut server = Server::with("", &["--log", "warn"]);
    let callers = Callers::default();
    callers.set_address(Some(server.address()));
    thread::scope(|scope| {
        for name in 0..CALLERS {
            let (callers, seed) = (&callers, dice.below(u64::MAX));
            scope.spawn(move || callers.call(name, seed));
        }
        for _ in 0..kills() {
            kill_under_load(&mut server, &callers, &mut dice);
            for _ in 0..dice.below(3) {
                kill_while_it_starts(&server, &mut dice);
            }
            server.restart();
            callers.set_address(Some(server.address()));
        }
        callers.finish();
    });
    let known = callers.known();
    assert!(known.len() as u64 > kills(), "the callers were hardly at it");
    for (request_id, one) in &known {
        go_on(&callers, one);
        let job = callers.insist("GET", &format!("/api/v1/jobs/{}?wait=60", one.id), "", &[200]).json();
        callers.learn(request_id, &job);
        ended_as_wished(one, &job);
        told_once(&callers, one);
    }
    nothing_else_is_there(&callers, &known);
    // All this still holds after one more start.
    assert!(server.stop().success());
    server.restart();
    callers.set_address(Some(server.address()));
    for (request_id, one) in &known {
        callers.learn(request_id, &callers.insist("GET", &format!("/api/v1/jobs/{}", one.id), "", &[200]).json());
    }
}

/// Releases a job that was under way at three kills in a row, and so waits for an operator.
fn go_on(callers: &Callers, known: &Known) {
    let job = callers.insist("GET", &format!("/api/v1/jobs/{}", known.id), "", &[200]).json();
    if job["stuck"]["reason"].as_str().is_some_and(|reason| reason.starts_with("poison")) {
        callers.insist("POST", &format!("/api/v1/jobs/{}/retry", known.id), "", &[202]);
    }
}

fn ended_as_wished(known: &Known, job: &Value) {
    let outcome = &job["outcome"];
    match known.wish {
        Wish::Echo | Wish::Slow => assert_eq!(outcome["outputs"], known.input, "{job}"),
        Wish::Ask => assert_eq!(outcome["outputs"]["answer"]["for"], known.input["by"], "{job}"),
        Wish::Fail => assert_eq!(outcome["failure"]["code"], "agent_failed", "{job}"),
        Wish::Cancel => assert_eq!(outcome["status"], "cancelled", "{job}"),
    }
    assert!(job["violations"].is_null(), "{job}");
}

/// Checks that its events are numbered without a gap, and that the outcome is the last of them and the only one.
fn told_once(callers: &Callers, known: &Known) {
    let stream = callers.insist("GET", &format!("/api/v1/jobs/{}/events", known.id), "", &[200]).text();
    let of = |field: &str| -> Vec<String> {
        stream.lines().filter_map(|line| line.strip_prefix(field)).map(|text| text.trim().to_owned()).collect()
    };
    let (ids, events) = (of("id:"), of("event:"));
    assert!(ids.iter().map(String::as_str).eq((1..=ids.len()).map(|n| n.to_string()).collect::<Vec<_>>()), "{stream}");
    let is_end = |event: &&String| ["completed", "failed", "cancelled"].contains(&event.as_str());
    assert_eq!(events.iter().filter(is_end).count(), 1, "{stream}");
    assert!(events.last().is_some_and(|event| is_end(&event)), "{stream}");
    assert_eq!(events.first().map(String::as_str), Some("accepted"));
    // Every attempt but the last was cut short by a kill, and nothing else was.
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert!(count("started") <= count("interrupted") + 1, "{stream}");
    assert!(count("answer") <= 1, "nobody is asked for what they have answered: {stream}");
}

/// Checks that the server has every job that the callers know, once, and no other.
fn nothing_else_is_there(callers: &Callers, known: &BTreeMap<String, Known>) {
    let mut found = BTreeMap::new();
    let mut next = Some(String::new());
    while let Some(before) = next {
        let page = callers.insist("GET", &format!("/api/v1/jobs?limit=500{before}"), "", &[200]).json();
        for job in page["jobs"].as_array().expect("a page has jobs") {
            let request_id = job["request_id"].as_str().expect("it has one").to_owned();
            let twice = found.insert(request_id, job["id"].clone());
            assert_eq!(twice, None, "{job} is there twice");
        }
        next = page["next"].as_str().map(|next| format!("&before={next}"));
    }
    let expected: BTreeMap<String, Value> =
        known.iter().map(|(request_id, known)| (request_id.clone(), json!(known.id))).collect();
    assert_eq!(found, expected);
}

/// An agent that has joined and reports that it has done the work of all others.
fn forge(callers: &Callers, address: &dyn Fn() -> Option<SocketAddr>) -> usize {
    const SESSION: &str = "00000000-0000-4000-8000-000000000007";
    let mut forged = 0;
    while !callers.is_done() {
        let Some(address) = address() else { continue };
        let join = json!({"session": SESSION, "work": ["forging"], "concurrency": 1}).to_string();
        let _ = send(address, "POST", "/api/v1/agents/forger/join", &join);
        let Some(page) = send(address, "GET", "/api/v1/jobs?limit=20", "").filter(|page| page.status == 200) else {
            continue;
        };
        let report = |job: &Value| json!({"id": job["id"], "attempt": 1, "result": {"outputs": {"forged": true}}});
        let reports: Vec<Value> = page.json()["jobs"].as_array().expect("a list").iter().map(report).collect();
        let body = json!({"session": SESSION, "reports": reports}).to_string();
        let Some(answer) = send(address, "POST", "/api/v1/agents/forger/report", &body) else { continue };
        if answer.status == 200 {
            let said = answer.json();
            assert!(said["reports"].as_array().expect("a list").iter().all(|word| word == "gone"), "{said}");
            forged += reports.len();
        }
    }
    forged
}

/// Number of kills in a row, with a clock that is set, syncs that fail and an agent that forges reports in between.
const STORM_KILLS: u64 = 12;

#[test]
fn kills_jumps_failed_commits_and_a_forging_neighbour_lose_double_and_cross_nothing() {
    let seed = seed();
    let mut dice = Dice(seed);
    // A clock that is set forward while no server runs cannot be told from time that passed, and one that is set back
    // then is a jump. Over many kills that adds up to years.
    let mut watched = Watched::with("[store]\nretention_days = 36500\n");
    let callers = Callers::default();
    callers.set_address(Some(watched.server.address()));
    let kills = if std::env::var_os("CROSSPOINT_KILLS").is_some() { kills() } else { STORM_KILLS };
    let forged = thread::scope(|scope| {
        for name in 0..CALLERS {
            let (callers, seed) = (&callers, dice.below(u64::MAX));
            scope.spawn(move || callers.call(name, seed));
        }
        let forger = scope.spawn(|| forge(&callers, &|| callers.address()));
        for _ in 0..kills {
            // So far that every clock of a job would be over.
            let clocks = [0, 7_200, -7_200, 259_200, -259_200];
            if dice.below(2) == 0 {
                watched.set_clock(clocks[usize::try_from(dice.below(5)).expect("it is small")]);
            }
            let fails = dice.below(3);
            if fails > 0 {
                until("callers are answered", || (callers.acknowledged() > 0).then_some(()));
                watched.fail(true);
                // This does not wait for anything: it makes random how much is sent while nothing can be committed.
                thread::sleep(Duration::from_micros(dice.below(20_000)));
            }
            // Some servers are killed while nothing can be committed.
            if fails == 2 {
                callers.set_address(None);
                watched.server.kill();
            }
            if fails > 0 {
                watched.fail(false);
            }
            if fails < 2 {
                kill_under_load(&mut watched.server, &callers, &mut dice);
            }
            if dice.below(3) == 0 {
                watched.set_clock(clocks[usize::try_from(dice.below(5)).expect("it is small")]);
            }
            watched.server.restart();
            callers.set_address(Some(watched.server.address()));
        }
        callers.finish();
        forger.join().expect("it forges in vain")
    });
    assert!(forged > 0, "nobody forged anything");
    let known = callers.known();
    for (request_id, one) in &known {
        go_on(&callers, one);
        let job = callers.insist("GET", &format!("/api/v1/jobs/{}?wait=60", one.id), "", &[200]).json();
        callers.learn(request_id, &job);
        let broken = job["violations"].as_array().cloned().unwrap_or_default();
        assert!(broken.iter().all(|one| one["clause"] == "ALL-2"), "only the neighbour broke a rule: {job}");
        ended_as_wished(one, &without_violations(job));
        told_once(&callers, one);
    }
    nothing_else_is_there(&callers, &known);
}

fn without_violations(mut job: Value) -> Value {
    job.as_object_mut().map(|members| members.remove("violations"));
    job
}

#[test]
fn a_server_that_is_killed_while_it_makes_its_store_starts_the_next_time() {
    let mut dice = Dice(seed());
    for _ in 0..5 {
        let mut server = Server::with("", &["--log", "warn"]);
        server.kill();
        std::fs::remove_dir_all(server.data()).expect("it can be removed");
        for _ in 0..6 {
            kill_while_it_starts(&server, &mut dice);
        }
        server.restart();
        assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status, 200);
    }
}

#[test]
fn a_server_that_is_killed_as_soon_as_it_has_started_loses_nothing() {
    let mut server = Server::with("", &["--log", "warn"]);
    let id = server.submit(r#"{"work":"slow_echo","input":{"seconds":600}}"#)["id"].as_str().expect("an id").to_owned();
    for starts in 2..12 {
        server.kill();
        server.restart();
        if starts % 3 == 1 {
            // Three times in a row: the job may be what kills the server, until an operator says otherwise.
            server.in_state(&id, "waiting");
            server.post(&format!("/api/v1/jobs/{id}/retry"), "");
        }
        let job = server.in_state(&id, "running");
        assert_eq!(job["attempts"], starts);
    }
    let cancelled = server.post(&format!("/api/v1/jobs/{id}/cancel"), "").json();
    assert_eq!(cancelled["outcome"]["status"], "cancelled");
}
