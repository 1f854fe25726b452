//! Killing the server or the command that drives runs, and the agents of their stages, at random moments.
//!
//! The agents keep a ledger of what they begin. Every output writes two pairs of files, and the files of a pair must
//! agree. An agent that finds the files of its own step there was begun again after it had finished.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::store::crash::seed;
use crate::support::bridge_run::Ran;
use crate::support::persistent_callers::Dice;
use crate::support::programs::pids;
use crate::support::server::{PATIENCE, Server};
use crate::support::workflow_place::{Place, tree};

/// Number of kills in the suite; `CROSSPOINT_KILLS` sets more.
const KILLS: u64 = 50;

/// Kills in one round. A program that is cut short three times in a row waits for an operator, so there are fewer of
/// those that drive the run.
const DRIVER_KILLS: usize = 2;
const AGENT_KILLS: usize = 2;

/// The third stage sends the run back to the second twice. These are the steps that come of it.
const STEPS: [&str; 8] = ["s1.1", "s2.1", "s3.1", "s2.2", "s3.2", "s2.3", "s3.3", "s4.3"];

const AGENT: &str = r#": MARK; input=$(cat); iteration=${input#*'"iteration":'}; iteration=${iteration%%[!0-9]*}
key=$CROSSPOINT_WORK.$iteration; content="$key $CROSSPOINT_JOB_ID"
[ ! -e "pair/$key.a" ] || echo "again $key" >> "$LEDGER"
echo "begin $content" >> "$LEDGER"; sleep 0.02
left=create; [ ! -e left ] || left=update
advice=proceed; [ "$key" != s3.1 ] && [ "$key" != s3.2 ] || advice=retry
file() { printf '{"path":"%s","operation":"%s","content":"%s"}' "$1" "$2" "$content"; }
printf '{"success":true,"summary":"Did %s.","notes":["%s"],"recommendation":"%s","artifacts":[%s,%s,%s,%s]}' \
  "$key" "$key" "$advice" "$(file "pair/$key.a" create)" "$(file left $left)" "$(file right $left)" \
  "$(file "pair/$key.b" create)""#;

fn stages() -> String {
    let stage = |action: &str| {
        let retry = if action == "s3" { "retry = { goto = \"s2\", limit = 5 }\n" } else { "" };
        format!("[[stage]]\nid = \"{action}\"\nagent = \"worker\"\naction = \"{action}\"\n{retry}")
    };
    format!("name = \"killed\"\n{}", ["s1", "s2", "s3", "s4"].map(stage).concat())
}

/// The agent, with a word by which it is found among the processes.
fn agent(mark: &str, ledger: &Path, keys: &str) -> String {
    let argv = json!(["sh", "-c", AGENT.replace("MARK", mark)]);
    let env = json!(ledger);
    format!("[[agent]]\nname = \"worker\"\nexec = {argv}\nenv = {{ LEDGER = {env} }}\n{keys}\n")
}

/// Programs of agents that have this mark. A supervisor may have it too for a moment, but is no shell.
fn agents_of(mark: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.starts_with(b"sh\0") && String::from_utf8_lossy(&words).contains(mark)
    };
    pids().into_iter().filter(is_it).collect()
}

fn kill(pid: u32) -> bool {
    Pid::from_raw(pid.cast_signed()).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

/// This does not wait for anything: it makes a moment random.
fn some_moment(dice: &mut Dice, micros_max: u64) {
    thread::sleep(Duration::from_micros(dice.below(micros_max)));
}

/// Kills an agent within a moment, if there is one.
fn kill_an_agent(mark: &str, dice: &mut Dice) -> bool {
    let until = Instant::now() + Duration::from_millis(400);
    while Instant::now() < until {
        let found = agents_of(mark);
        if let Some(pid) = found.first() {
            some_moment(dice, 20_000);
            return kill(*pid);
        }
    }
    false
}

fn kills() -> u64 {
    std::env::var("CROSSPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

/// Checks one repository and the jobs of its run, when the run is completed.
fn is_whole(repo: &Path, ledger: &Path, jobs: &[Value]) {
    let ledger = fs::read_to_string(ledger).expect("it is there");
    let again: Vec<&str> = ledger.lines().filter(|line| line.starts_with("again")).collect();
    assert_eq!(again, [""; 0], "a finished stage ran again:\n{ledger}");
    let mut names: Vec<String> = fs::read_dir(repo).expect("it is there").flatten().map(|entry| name(&entry)).collect();
    names.sort_unstable();
    assert_eq!(names, ["left", "pair", "right"], "there are leftovers:\n{ledger}");
    let read = |path: &str| fs::read_to_string(repo.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(read("left"), read("right"));
    assert!(read("left").starts_with("s4.3 "), "{}", read("left"));
    assert_eq!(tree(&repo.join("pair")).len(), 2 * STEPS.len());
    let done = jobs.iter().filter(|job| job["state"] == "completed" && job["origin"]["stage"].is_string());
    let done: BTreeMap<String, String> = done.map(|job| (text(&job["id"]), text(&job["origin"]["stage"]))).collect();
    assert_eq!(done.len(), STEPS.len(), "each step was done once:\n{ledger}");
    for step in STEPS {
        let (one, other) = (read(&format!("pair/{step}.a")), read(&format!("pair/{step}.b")));
        assert_eq!(one, other);
        let job = one.rsplit(' ').next().expect("a word");
        let stage = step.split('.').next().map(str::to_owned);
        assert_eq!(done.get(job), stage.as_ref(), "the files of {step} are those of its job:\n{ledger}");
    }
    for line in ledger.lines() {
        let job = line.rsplit(' ').next().expect("a word");
        assert!(jobs.iter().any(|known| known["id"] == job), "a stage without a job: {line}");
    }
}

fn name(entry: &fs::DirEntry) -> String {
    entry.file_name().into_string().expect("UTF-8")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// One run of a command, until it is completed.
struct Round {
    place: Place,
    mark: String,
    drivers: usize,
    agents: usize,
    answers: usize,
}

impl Round {
    fn new(number: u64) -> Round {
        let place = Place::new();
        let mark = format!("round-{number}-of-{}", std::process::id());
        let agent = agent(&mark, &place.file("ledger"), "");
        place.write("killed.toml", &format!("{}{agent}", stages()));
        Round { place, mark, drivers: 0, agents: 0, answers: 0 }
    }

    /// The id of the run, if it was accepted.
    fn id(&self) -> Option<String> {
        let listed = self.place.crosspoint(&["workflow", "list", "--json"]);
        if listed.code != 0 {
            // There is no store yet.
            assert!(!self.place.file(".crosspoint/jobs.db").exists(), "{listed:?}");
            return None;
        }
        assert!(listed.stdout.lines().count() <= 1, "it is one run: {listed:?}");
        let run: Value = serde_json::from_str(listed.stdout.lines().next()?).expect("JSON");
        Some(text(&run["id"]))
    }

    fn begin(&self) -> Child {
        let mut command = match self.id() {
            Some(id) => self.place.command(&["workflow", "resume", &id]),
            None => self.place.command(&["workflow", "run", "killed.toml", "--root", "repo"]),
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    fn kill(&mut self, driver: &Child, dice: &mut Dice) {
        if self.drivers < DRIVER_KILLS && (self.agents == AGENT_KILLS || dice.below(2) == 0) {
            some_moment(dice, 1_500_000);
            if kill(driver.id()) {
                self.drivers += 1;
            }
        } else if self.agents < AGENT_KILLS {
            some_moment(dice, 500_000);
            self.agents += usize::from(kill_an_agent(&self.mark, dice));
        }
    }

    fn go(&mut self, dice: &mut Dice) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut driver = self.begin();
            self.kill(&driver, dice);
            // A killed process is a zombie until it is waited for.
            let _ = driver.try_wait();
            let ran: Ran = driver.wait_with_output().expect("it ends").into();
            match ran.code {
                0 => return,
                -9 => {}
                3 => self.answer(&ran),
                _ => panic!("{ran:?}"),
            }
            assert!(Instant::now() < until, "{ran:?}");
        }
    }

    /// A run waits only where an agent was killed.
    fn answer(&mut self, ran: &Ran) {
        assert!(ran.stderr.contains("agent_failed") && self.answers < self.agents, "{ran:?}");
        let id = self.id().expect("there is a run");
        let answered = self.place.crosspoint(&["jobs", "answer", &id, "--text", "go on"]);
        assert_eq!(answered.code, 0, "{answered:?}");
        self.answers += 1;
    }

    fn check(&self) {
        let listed = self.place.crosspoint(&["jobs", "list", "--json", "--limit", "500"]);
        let jobs: Vec<Value> = listed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        is_whole(&self.place.repo(), &self.place.file("ledger"), &jobs);
    }
}

#[test]
fn no_kill_of_a_command_or_its_agents_repeats_or_halves_a_stage() {
    let mut dice = Dice(seed());
    let (mut killed, mut number) = (0, 0);
    while killed < kills() / 2 {
        number += 1;
        let mut round = Round::new(number);
        round.go(&mut dice);
        round.check();
        killed += (round.drivers + round.agents) as u64;
    }
}

const RUNS: usize = 3;

/// Several runs of one server, each in a repository of its own.
struct Runs {
    places: Vec<Place>,
    marks: Vec<String>,
    ids: Vec<String>,
}

impl Runs {
    fn begin(number: u64) -> (Server, Runs) {
        let places: Vec<Place> = (0..RUNS).map(|_| Place::new()).collect();
        let marks: Vec<String> =
            (0..RUNS).map(|run| format!("round-{number}-run-{run}-of-{}", std::process::id())).collect();
        let roots: Vec<Value> = places.iter().map(|place| json!(place.path())).collect();
        let keys = "contract = \"workflow\"\nwork = [\"s1\", \"s2\", \"s3\", \"s4\"]";
        let agents = (0..RUNS).map(|run| {
            let agent = agent(&marks[run], &places[run].file("ledger"), keys);
            agent.replace("\"worker\"", &format!("\"worker-{run}\""))
        });
        let server =
            Server::configured(&format!("[workflow]\nroots = {}\n{}", json!(roots), agents.collect::<String>()));
        let begin = |run: usize| {
            let definition = stages().replace("\"worker\"", &format!("\"worker-{run}\""));
            server.run_workflow(&definition, &places[run].repo())
        };
        let ids = (0..RUNS).map(begin).collect();
        (server, Runs { places, marks, ids })
    }

    /// Answers runs that wait because an agent was killed, and returns whether all are completed.
    fn are_done(&self, server: &Server) -> bool {
        let mut done = 0;
        for id in &self.ids {
            let run = server.job(id);
            match run["state"].as_str().expect("a text") {
                "waiting" => {
                    assert!(text(&run["question"]["prompt"]).contains("agent_failed"), "{run}");
                    server.answer_run(id, &json!("go on"));
                }
                "completed" => done += 1,
                "failed" | "cancelled" => panic!("{run}"),
                _ => {}
            }
        }
        done == RUNS
    }
}

#[test]
fn no_kill_of_a_server_or_its_agents_repeats_or_halves_a_stage() {
    let mut dice = Dice(seed());
    let (mut killed, mut number) = (0, 0);
    while killed < kills() / 2 {
        number += 1;
        let (mut server, runs) = Runs::begin(number);
        for _ in 0..DRIVER_KILLS + AGENT_KILLS {
            if dice.below(2) == 0 {
                let run = usize::try_from(dice.below(RUNS as u64)).expect("it is small");
                killed += u64::from(kill_an_agent(&runs.marks[run], &mut dice));
            }
            runs.are_done(&server);
        }
        for _ in 0..DRIVER_KILLS {
            some_moment(&mut dice, 700_000);
            server.kill();
            server.restart();
            killed += 1;
            runs.are_done(&server);
        }
        crate::support::server::until("all runs are completed", || runs.are_done(&server).then_some(()));
        for (place, id) in runs.places.iter().zip(&runs.ids) {
            is_whole(&place.repo(), &place.file("ledger"), &server.stages_of(id));
        }
    }
}
