//! Workers and servers that are killed, stopped and cut off under load: everything ends once, and no program outlives
//! its worker.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::programs::{alive_for, nothing_runs_for};
use crate::support::server::{Server, until};
use crate::support::workers::Worker;

/// Writes a line when it starts, and works for as long as its input says.
const PROGRAM: [&str; 3] = [
    "python3",
    "-c",
    "import json, os, sys, time\n\
     job = os.environ['CROSSPOINT_JOB_ID']\n\
     file = os.open('started', os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n\
     os.write(file, (job + '\\n').encode())\n\
     time.sleep(json.loads(sys.stdin.readline())['seconds'])\n\
     print(json.dumps({'job': job}))",
];

fn submit(server: &Server, seconds: f64) -> String {
    let job = server.submit(&json!({"work": "dig", "input": {"seconds": seconds}}).to_string());
    job["id"].as_str().expect("a job has an id").to_owned()
}

/// How often the program was started for each job.
fn starts(directory: &Path) -> BTreeMap<String, usize> {
    let mut starts = BTreeMap::new();
    for job in fs::read_to_string(directory.join("started")).unwrap_or_default().lines() {
        *starts.entry(job.to_owned()).or_insert(0) += 1;
    }
    starts
}

/// The one outcome of a job that was done.
fn done_once(server: &Server, job: &str) -> Value {
    let ended = until("it ends", || Some(server.job(job)).filter(|job| job["outcome"].is_object()));
    assert_eq!(ended["outcome"]["outputs"], json!({"job": job}), "{ended}");
    let events = server.get(&format!("/api/v1/jobs/{job}/events")).text();
    assert_eq!(events.matches("event: completed").count(), 1, "{events}");
    ended
}

#[test]
fn what_a_killed_worker_had_is_done_by_others_and_nothing_of_it_lives_on() {
    let server = Server::start();
    let short = ["--lease-seconds", "5", "--concurrency", "3"];
    let mut dead = Worker::joined(&server, "digger", &[&short[..], &["--work", "dig"]].concat(), &PROGRAM);
    let long: Vec<String> = (0..3).map(|_| submit(&server, 1_000.0)).collect();
    until("it has all three", || (starts(server.directory()).len() == 3).then_some(()));
    // One worker of the same agent, and one of another agent with the same work.
    let _same = Worker::joined(&server, "digger", &[&short[..], &["--work", "dig"]].concat(), &PROGRAM);
    let other = Worker::start_as(&server, "spade", "dig", &short, &PROGRAM);
    other.says("has joined");
    let jobs: Vec<String> = (0..12).map(|_| submit(&server, 0.05)).collect();
    dead.kill();
    for job in &jobs {
        done_once(&server, job);
    }
    for job in &long {
        begun_again(&server, job);
        assert_eq!(server.post(&format!("/api/v1/jobs/{job}/cancel"), "").status, 200);
        nothing_runs_for(job);
    }
    assert!(jobs.iter().all(|job| starts(server.directory())[job] <= 2), "one may have been with the dead one");
}

/// Checks that the job is begun again elsewhere, and only there.
fn begun_again(server: &Server, job: &str) {
    until("it is begun again", || (starts(server.directory()).get(job) == Some(&2)).then_some(()));
    assert_eq!(server.in_state(job, "running")["attempts"], 2);
    until("only once", || (alive_for(job).len() == 1).then_some(()));
}

#[test]
fn killing_the_server_under_load_makes_no_worker_do_anything_twice() {
    let mut server = Server::start();
    let more = ["--lease-seconds", "20", "--concurrency", "3", "--work", "dig"];
    let _workers: Vec<Worker> = (0..2).map(|_| Worker::joined(&server, "digger", &more, &PROGRAM)).collect();
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.extend((0..8).map(|_| submit(&server, 0.3)));
        until("some are under way", || (starts(server.directory()).len() + 4 >= jobs.len()).then_some(()));
        server.kill();
        server.restart();
    }
    for job in &jobs {
        done_once(&server, job);
    }
    let starts = starts(server.directory());
    let twice: Vec<_> = starts.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty() && starts.len() == jobs.len(), "{twice:?}");
}

#[test]
fn a_worker_that_was_out_of_touch_for_longer_than_its_lease_kills_what_it_has() {
    let server = Server::start();
    let more = ["--lease-seconds", "5", "--concurrency", "1", "--work", "dig"];
    let first = Worker::joined(&server, "digger", &more, &PROGRAM);
    let job = submit(&server, 15.0);
    until("it runs", || (starts(server.directory()).get(&job) == Some(&1)).then_some(()));
    first.signal("STOP");
    let _second = Worker::start(&server, "digger", &more, &PROGRAM);
    until("another has it", || (starts(server.directory()).get(&job) == Some(&2)).then_some(()));
    first.signal("CONT");
    until("only one goes on", || (alive_for(&job).len() == 1).then_some(()));
    let ended = done_once(&server, &job);
    assert_eq!(ended["attempts"], 2);
    assert!(ended["violations"].is_null(), "{ended}");
    assert_eq!(starts(server.directory())[&job], 2);
}

#[test]
fn a_worker_whose_server_is_gone_for_good_kills_its_programs_after_a_lease() {
    let mut server = Server::start();
    let more = ["--lease-seconds", "5", "--work", "dig"];
    let worker = Worker::joined(&server, "digger", &more, &PROGRAM);
    let job = submit(&server, 1_000.0);
    until("it runs", || (alive_for(&job).len() == 1).then_some(()));
    server.kill();
    worker.says("1 program was killed");
    nothing_runs_for(&job);
    // The server comes back, and the worker with it: the job is begun again.
    server.restart();
    assert_eq!(
        until("it is begun again", || Some(server.job(&job)).filter(|job| job["attempts"] == 2))["agent"],
        "digger"
    );
}

#[test]
fn a_worker_that_killed_what_it_had_is_not_given_it_as_if_it_had_never_arrived() {
    let server = Server::start();
    let more = ["--lease-seconds", "5", "--concurrency", "1", "--repeatable", "false", "--work", "dig"];
    let worker = Worker::joined(&server, "digger", &more, &PROGRAM);
    let job = submit(&server, 1_000.0);
    until("it runs", || (starts(server.directory()).get(&job) == Some(&1)).then_some(()));
    // The worker's open call for work keeps the session alive at the server, which does not know how long it stood
    // still.
    server.signal("STOP");
    worker.says("1 program was killed");
    server.signal("CONT");
    let ended = server.ended(&job);
    assert_eq!(ended["outcome"]["failure"]["code"], "unavailable", "{ended}");
    assert_eq!((&ended["attempts"], starts(server.directory())[&job]), (&json!(1), 1), "it was begun once");
    // The worker goes on working.
    done_once(&server, &submit(&server, 0.0));
}

/// When the lease is over, programs that still run are killed. A program that has ended only needs to be reported.
#[test]
fn what_came_of_a_program_is_kept_for_longer_than_a_lease() {
    let mut server = Server::start();
    let more = ["--lease-seconds", "10", "--concurrency", "2", "--repeatable", "false", "--work", "dig"];
    let worker = Worker::joined(&server, "digger", &more, &PROGRAM);
    let (long, short) = (submit(&server, 1_000.0), submit(&server, 1.0));
    until("both run", || (starts(server.directory()).len() == 2).then_some(()));
    server.kill();
    worker.says("1 program was killed");
    server.restart();
    let done = done_once(&server, &short);
    assert_eq!((&done["attempts"], starts(server.directory())[&short]), (&json!(1), 1), "it was done once");
    assert_eq!(server.ended(&long)["outcome"]["failure"]["code"], "unavailable");
}

#[test]
fn work_that_no_worker_has_taken_does_not_fail_by_silence() {
    let server = Server::start();
    let more = ["--lease-seconds", "5", "--silence-seconds", "3", "--work", "dig"];
    let mut dead = Worker::joined(&server, "digger", &more, &PROGRAM);
    dead.kill();
    let job = submit(&server, 0.0);
    until("it is known that no worker is there", || {
        assert!(server.job(&job)["outcome"].is_null(), "no worker has it: {}", server.job(&job));
        server.get("/api/v1/agents/digger").json()["away_since"].is_string().then_some(())
    });
    server.in_state(&job, "queued");
    let _worker = Worker::joined(&server, "digger", &more, &PROGRAM);
    done_once(&server, &job);
    assert_eq!(starts(server.directory())[&job], 1);
}
