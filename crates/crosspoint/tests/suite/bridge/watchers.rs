//! `crosspoint bridge watch`, killed and started again, and several watchers on one directory: each request is done
//! once.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use crate::support::bridge_caller;
use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE, id};
use crate::support::bridge_watcher::{Watcher, noted, noting, prompt_of, watch};
use crate::support::persistent_callers::Dice;
use crate::support::server::{Server, until};

/// Where a driver can be killed, in the order in which it gets there.
const PLACES: [&str; 16] = [
    "record.created",
    "record.written",
    "record.synced",
    "record.renamed",
    "record.kept",
    "driver.claimed",
    "driver.answered",
    "response.created",
    "response.written",
    "response.synced",
    "response.renamed",
    "response.kept",
    "driver.responded",
    "removal.moved",
    "removal.unlinked",
    "driver.removed",
];

/// The names without temporary files of killed processes, which are swept when they are a minute old.
fn names(inbox: &Directory) -> Vec<String> {
    inbox.names().into_iter().filter(|name| !name.contains(".tmp-")).collect()
}

#[test]
fn killed_at_any_step_it_goes_on_at_the_next_start_and_nothing_is_done_twice() {
    let home = Directory::temporary();
    let runs = home.file("runs");
    let server = Server::configured(&noting("noting", &runs, "0"));
    for (number, place) in PLACES.iter().enumerate() {
        let inbox = home.make(place);
        let mut command = watch(&home, "log", &["--server", &server.url()], &[&inbox]);
        let mut watcher = Watcher::started(&home, "log", command.env("CROSSPOINT_FAILPOINT", place));
        inbox.leave_request(&id(number), "noting", place);
        assert_eq!(watcher.wait().code(), None, "it was killed at {place}");
        let mut watcher = Watcher::of(&server, &home, &[&inbox]);
        assert_eq!(prompt_of(&inbox.response_to(&id(number))), *place);
        until(&format!("only the response after {place}: {:?}", inbox.names()), || {
            (names(&inbox) == [RESPONSE]).then_some(())
        });
        assert_eq!(watcher.stop().code(), Some(0));
        assert_eq!(names(&inbox), [RESPONSE], "after {place}");
    }
    assert_eq!(noted(&runs), (0..PLACES.len()).map(id).collect::<Vec<_>>());
}

/// Without a server the watcher opens the store itself, and takes up its own jobs again.
#[test]
fn a_watcher_without_a_server_goes_on_with_its_own_jobs() {
    let home = Directory::temporary();
    let runs = home.file("runs");
    home.write("crosspoint.toml", &noting("noting", &runs, "0"));
    let places = ["driver.claimed", "driver.answered", "response.synced", "driver.responded", "removal.moved"];
    for (number, place) in places.iter().enumerate() {
        let inbox = home.make(place);
        let mut command = watch(&home, "log", &[], &[&inbox]);
        let mut watcher = Watcher::started(&home, "log", command.env("CROSSPOINT_FAILPOINT", place));
        inbox.leave_request(&id(number), "noting", place);
        assert_eq!(watcher.wait().code(), None, "it was killed at {place}");
        let mut watcher = Watcher::start(&home, &format!("log-{number}"), &[], &[&inbox]);
        assert_eq!(prompt_of(&inbox.response_to(&id(number))), *place);
        // The response may be there before the watcher says that it is watching.
        watcher.says("watching");
        assert_eq!(watcher.stop().code(), Some(0));
    }
    assert_eq!(noted(&runs), (0..places.len()).map(id).collect::<Vec<_>>(), "each once");
}

#[test]
fn a_job_that_died_with_its_watcher_is_taken_up_by_the_next() {
    let home = Directory::temporary();
    let runs = home.file("runs");
    home.write("crosspoint.toml", &noting("noting", &runs, "1"));
    let inbox = home.make("inbox");
    let mut watcher = Watcher::start(&home, "log", &[], &[&inbox]);
    inbox.leave_request(&id(1), "noting", "hello");
    watcher.says("handed in");
    watcher.kill();
    let mut watcher = Watcher::start(&home, "log", &[], &[&inbox]);
    assert_eq!(prompt_of(&inbox.response_to(&id(1))), "hello");
    assert_eq!(watcher.stop().code(), Some(0));
}

/// A new seed for every run, or the seed of a run that failed.
fn seed() -> u64 {
    let given = std::env::var("CROSSPOINT_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = given.unwrap_or_else(now);
    let _ = writeln!(std::io::stderr().lock(), "CROSSPOINT_SEED={seed}");
    seed
}

#[test]
fn killed_at_random_it_loses_crosses_and_repeats_nothing() {
    let (home, mut dice) = (Directory::temporary(), Dice(seed()));
    let runs = home.file("runs");
    let server = Server::configured(&noting("noting", &runs, "0.02"));
    let inboxes = home.make_many(4);
    let all: Vec<&Directory> = inboxes.iter().collect();
    let mut number = 0;
    for _ in 0..12 {
        let mut watcher = Watcher::of(&server, &home, &all);
        let first = number;
        for inbox in &inboxes {
            inbox.leave_request(&id(number), "noting", &format!("prompt {number}"));
            number += 1;
        }
        // This does not wait for anything: it makes the moment random.
        thread::sleep(Duration::from_millis(dice.below(250)));
        watcher.kill();
        let mut watcher = Watcher::of(&server, &home, &all);
        for (at, inbox) in inboxes.iter().enumerate() {
            let response = inbox.response_to(&id(first + at));
            assert_eq!(prompt_of(&response), format!("prompt {}", first + at));
        }
        watcher.kill();
        for inbox in &inboxes {
            // As the requester would.
            inbox.remove(RESPONSE);
        }
    }
    assert_eq!(noted(&runs), (0..number).map(id).collect::<Vec<_>>());
    let stale = inboxes.iter().flat_map(Directory::names).filter(|name| name.contains("stale")).count();
    assert_eq!(stale, 0, "its own responses are known");
}

#[test]
fn two_watchers_of_one_server_do_each_request_once() {
    let home = Directory::temporary();
    let runs = home.file("runs");
    let server = Server::configured(&noting("noting", &runs, "0.01"));
    let inboxes = home.make_many(5);
    let all: Vec<&Directory> = inboxes.iter().collect();
    let url = server.url();
    let mut one = Watcher::start(&home, "one", &["--server", &url], &all);
    let two = Watcher::start(&home, "two", &["--server", &url], &all);
    for round in 0..4 {
        for (at, inbox) in inboxes.iter().enumerate() {
            inbox.leave_request(&id(round * 5 + at), "noting", &format!("prompt {round} {at}"));
        }
        for (at, inbox) in inboxes.iter().enumerate() {
            let response = inbox.response_to(&id(round * 5 + at));
            assert_eq!(prompt_of(&response), format!("prompt {round} {at}"));
            inbox.remove(RESPONSE);
        }
        if round == 2 {
            one.kill();
        }
    }
    for inbox in &inboxes {
        inbox.holds_only(&[]);
    }
    assert_eq!(noted(&runs), (0..20).map(id).collect::<Vec<_>>());
    // The last log lines of the killed watcher may be missing.
    assert!(one.count(" answered") + two.count(" answered") <= 20, "{}{}", one.log(), two.log());
}

#[test]
fn two_watchers_of_two_stores_do_each_request_once_and_leave_what_the_other_has() {
    let home = Directory::temporary();
    let (runs, go) = (home.file("runs"), home.file("go"));
    let wait = format!("until [ -e {} ]; do sleep 0.02; done; echo 0", go.display());
    let agents = noting("noting", &runs, "0") + &noting("slow", &runs, &format!("$({wait})"));
    let servers = [Server::configured(&agents), Server::configured(&agents)];
    let inboxes = home.make_many(5);
    let all: Vec<&Directory> = inboxes.iter().collect();
    let start = |at: usize| Watcher::start(&home, &at.to_string(), &["--server", &servers[at].url()], &all);
    let mut watchers = [start(0), start(1)];
    for (at, inbox) in inboxes.iter().enumerate() {
        inbox.leave_request(&id(at), "noting", "x");
    }
    for (at, inbox) in inboxes.iter().enumerate() {
        inbox.response_to(&id(at));
        inbox.holds_only(&[RESPONSE]);
    }
    // One of the watchers has this request when it is killed.
    inboxes[0].leave_request(&id(5), "slow", "y");
    let has =
        until("somebody has it", || watchers.iter().position(|watcher| watcher.count("agent=slow handed in") > 0));
    watchers[has].kill();
    let other = 1 - has;
    watchers[other].says("handed in to a server with another store");
    // Another request beside it is taken, which does not affect the watcher that has the first.
    inboxes[0].leave(".agent-request-phase2.json", &bridge_caller::request(&id(6), "noting", "z"));
    assert_eq!(prompt_of(&inboxes[0].response_in(".agent-response-phase2.json", &id(6))), "z");
    assert!(inboxes[0].file(REQUEST).exists());
    fs::write(go, "").expect("it can be written");
    watchers[has] = start(has);
    assert_eq!(prompt_of(&inboxes[0].response_to(&id(5))), "y");
    inboxes[0].holds_only(&[".agent-response-phase2.json", ".agent-response.json", ".agent-response.json.stale-1"]);
    assert_eq!(noted(&runs), (0..7).map(id).collect::<Vec<_>>());
    assert_eq!(watchers[other].count("handed in to a server with another store"), 1, "{}", watchers[other].log());
}
