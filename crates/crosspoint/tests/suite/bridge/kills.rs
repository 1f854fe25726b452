//! Killing each participant of a bridge: at every step of writing and removing, and at random moments.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crosspoint_bridge::{WRITE_STEPS, failpoint};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::bridge_directory::Directory;
use crate::support::bridge_run::{COUNTS, Ran, is_to};
use crate::support::persistent_callers::Dice;
use crate::support::programs::{bash, children_of, pids};
use crate::support::server::{PATIENCE, Server};

#[test]
fn a_driver_that_dies_at_any_step_goes_on_from_there() {
    let writes = ["response", "record"].into_iter().flat_map(|what| WRITE_STEPS.map(|step| format!("{what}.{step}")));
    let steps = [
        "driver.asked",
        "driver.claimed",
        "driver.answered",
        "driver.responded",
        "driver.removed",
        "removal.moved",
        "removal.unlinked",
    ];
    for point in writes.chain(steps.map(str::to_owned)) {
        let place = Directory::configured(COUNTS);
        let command = ["./asks", "2", "counts"];
        let killed: Ran =
            place.driver(&[], &command).env(failpoint::VARIABLE, &point).output().expect("it starts").into();
        assert_eq!(killed.code, -9, "{point} {killed:?}");
        let ran = place.run(&[], &command);
        assert_eq!(ran.code, 0, "{point} {ran:?}");
        place.is_answered(2);
        let ran: Vec<String> = place.lines("ran");
        assert_eq!(ran.len(), 2, "each question was asked once: {point} {ran:?}");
        // An unfinished file is removed by a driver that comes after a minute.
        let left: Vec<String> = place.bridge_files().into_iter().filter(|name| !name.contains(".tmp-")).collect();
        assert_eq!(left, [""; 0], "{point}");
    }
}

/// The record is removed in one step. Killed before it, the program is resumed. Killed after it, the program begins
/// anew and is never resumed.
#[test]
fn a_driver_that_dies_while_it_forgets_does_not_remember_later() {
    let place = Directory::configured(COUNTS);
    let command = ["./asks", "1", "counts"];
    let killed_at = |point: &str| -> Ran {
        place.driver(&[], &command).env(failpoint::VARIABLE, point).output().expect("it starts").into()
    };
    // The request is gone, so only the record is left to remove.
    assert_eq!(killed_at("driver.removed").code, -9);
    let ran = killed_at("record.discarded");
    assert_eq!((ran.code, place.bridge_files()), (-9, vec![]), "{ran:?}");
    place.is_answered(1);
    for _ in 0..2 {
        // The program begins anew and finds its answers. A resume would show in its arguments.
        assert_eq!(place.run(&[], &command).code, 0);
    }
    assert_eq!(place.lines("calls"), ["1 counts", "1 counts --resume", "1 counts", "1 counts"]);
}

/// The record is not renamed first, because a renamed record could be put back.
#[test]
fn a_record_is_never_half_removed() {
    let place = Directory::configured(COUNTS);
    let command = ["./asks", "1", "counts"];
    for (point, code) in [("driver.removed", -9), ("removal.moved", 0)] {
        let ran: Ran = place.driver(&[], &command).env(failpoint::VARIABLE, point).output().expect("it starts").into();
        assert_eq!(ran.code, code, "{point} {ran:?}");
    }
    assert_eq!(place.bridge_files(), [""; 0]);
}

/// Number of kills in the suite; `CROSSPOINT_KILLS` sets more.
const KILLS: u64 = 50;

const QUESTIONS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Driver,
    Requester,
    Agent,
}

/// One requester with its questions, until it has its answers.
struct Round {
    number: u64,
    place: Directory,
    options: Vec<String>,
    kills: Vec<Victim>,
}

impl Round {
    fn begin(&self) -> Child {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let mut driver = self.place.driver(&options, &["./asks", &QUESTIONS.to_string(), "works"]);
        driver.env("ROUND", self.number.to_string());
        driver.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Kills a participant at a random moment, unless the driver ends before there is one to kill.
    fn kill(&mut self, driver: &mut Child, dice: &mut Dice) {
        let victims = [Victim::Driver, Victim::Driver, Victim::Requester, Victim::Agent];
        let victim = victims[usize::try_from(dice.below(4)).expect("it is small")];
        // This does not wait for anything: it makes the moment random.
        thread::sleep(Duration::from_micros(dice.below(if victim == Victim::Driver { 300_000 } else { 50_000 })));
        while driver.try_wait().expect("it can be asked").is_none() {
            let found = match victim {
                Victim::Driver => Some(driver.id()),
                Victim::Requester => {
                    // The keeper is between the requester and the driver.
                    let keepers = children_of(driver.id()).into_iter();
                    keepers.flat_map(children_of).find(|pid| is_requester(*pid))
                }
                Victim::Agent => pids().into_iter().find(|pid| words_of(*pid).contains(&self.mark())),
            };
            if let Some(pid) = found.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
                // This does not wait for anything either: the victim dies at a random step of its work.
                thread::sleep(Duration::from_micros(dice.below(10_000)));
                // The process may have just ended. Then the next one is waited for.
                if kill_process(pid, Signal::KILL).is_ok() {
                    self.kills.push(victim);
                    return;
                }
            }
        }
    }

    /// The text by which the agent of this round is recognised.
    fn mark(&self) -> String {
        format!("round-{}-of-{}", self.number, std::process::id())
    }

    /// Runs the same command until it succeeds, and kills meanwhile.
    fn go(&mut self, kills: usize, dice: &mut Dice) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut driver = self.begin();
            if self.kills.len() < kills {
                self.kill(&mut driver, dice);
            }
            let ran: Ran = driver.wait_with_output().expect("it ends").into();
            match ran.code {
                0 => return,
                -9 | 137 => {}
                _ => panic!("{:?} {ran:?}", self.kills),
            }
            assert!(Instant::now() < until, "{:?} {ran:?}", self.kills);
        }
    }

    /// Checks that every answer is to its own question, and that only as many failed as agents were killed.
    fn check(&self) {
        let answers = self.place.answers();
        assert_eq!(answers.len(), QUESTIONS, "lost: {:?}", self.kills);
        for (question, answer) in answers.iter().enumerate() {
            is_to(answer, question, self.number);
        }
        let failed = answers.iter().filter(|answer| answer["status"] != "success").count();
        let agents = self.kills.iter().filter(|victim| **victim == Victim::Agent).count();
        assert!(failed <= agents, "{failed} {:?} {answers:?}", self.kills);
        let left: Vec<String> = self.place.bridge_files().into_iter().filter(|name| !name.contains(".tmp-")).collect();
        assert_eq!(left, [""; 0], "{:?}", self.kills);
    }
}

fn words_of(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Supervisors of agents are also children of a driver that is its own server, and for a moment have its command line.
fn is_requester(pid: u32) -> bool {
    let words = words_of(pid);
    words.contains("asks") && !words.contains("bridge run")
}

/// An agent that takes a moment. The word after its script identifies it among the processes.
fn works(mark: &str) -> String {
    let script = format!(": {mark}; echo \"$CROSSPOINT_JOB_ID\" >> ran; sleep 0.03; cat");
    bash("works", &script, "")
}

/// A new seed for every run, or the seed of a run that failed.
fn seed() -> u64 {
    let given = std::env::var("CROSSPOINT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()));
    let _ = writeln!(std::io::stderr().lock(), "CROSSPOINT_SEED={seed}");
    seed
}

/// Without a server, an agent that died with its driver runs again, for the same job (ALL-3). An agent that was killed
/// alone has failed, once.
#[test]
fn without_a_server_no_kill_loses_crosses_or_repeats_a_question() {
    let mut dice = Dice(seed());
    let (mut killed, mut number) = (0, 0);
    while killed < kills() / 2 {
        number += 1;
        let place = Directory::configured("");
        let mut round = Round { number, place, options: vec!["--max-iterations=9".to_owned()], kills: Vec::new() };
        round.place.write("crosspoint.toml", &works(&round.mark()));
        round.go(6, &mut dice);
        round.check();
        let jobs: BTreeSet<String> = round.place.lines("ran").into_iter().collect();
        let agents = round.kills.iter().filter(|victim| **victim == Victim::Agent).count();
        assert!((QUESTIONS - agents..=QUESTIONS).contains(&jobs.len()), "asked twice: {:?} {jobs:?}", round.kills);
        assert_eq!(jobs_in(&round.place), QUESTIONS, "{:?}", round.kills);
        killed += round.kills.len() as u64;
    }
}

/// With a server, each agent runs once, whatever happens to driver and requester.
#[test]
fn with_a_server_no_kill_loses_crosses_or_repeats_a_question() {
    let mut dice = Dice(seed());
    let (mut killed, mut number) = (0, 0);
    while killed < kills() / 2 {
        number += 1;
        let place = Directory::configured("");
        let mut round = Round { number, place, options: Vec::new(), kills: Vec::new() };
        let server = Server::configured(&works(&round.mark()));
        round.options = vec!["--max-iterations=9".to_owned(), "--server".to_owned(), server.url()];
        round.go(6, &mut dice);
        round.check();
        let ran = std::fs::read_to_string(server.directory().join("ran")).unwrap_or_default();
        let jobs: BTreeSet<&str> = ran.lines().collect();
        assert_eq!(ran.lines().count(), jobs.len(), "run twice: {:?} {ran}", round.kills);
        let there = server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
        assert_eq!(there, Some(QUESTIONS), "asked twice: {:?}", round.kills);
        killed += round.kills.len() as u64;
    }
}

fn kills() -> u64 {
    std::env::var("CROSSPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

/// Number of jobs in the store of a place.
fn jobs_in(place: &Directory) -> usize {
    let mut list = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    list.args(["jobs", "list", "--json"]).current_dir(place.path()).env_remove("CROSSPOINT_SERVER").env_remove("HOME");
    let output = list.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is UTF-8").lines().count()
}
