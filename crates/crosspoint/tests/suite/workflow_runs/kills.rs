//! Killing the server or the command that drives runs, and the agents of their stages, at random moments.
//!
//! The agents keep a ledger of what they begin. Every output writes two pairs of files, and the files of a pair must
//! agree. An agent that finds the files of its own step there was begun again after it had finished.
//!
//! The ledger also says when to kill: after some more lines, so that a moment is in the middle of a run on any machine.
//! A kill counts only if it hit something: a process that died of it while its run was not over.

mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

use crate::store::crash::seed;
use crate::support::bridge_run::Ran;
use crate::support::persistent_callers::Dice;
use crate::support::server::{PATIENCE, until};
use crate::support::workflow_place::{Place, tree};

/// Number of kills in the suite, half of them in each test; `CROSSPOINT_KILLS` sets more.
const KILLS: usize = 50;

/// Kills in one round. A program that is cut short three times in a row waits for an operator, so there are fewer of
/// those that drive the run.
const DRIVER_KILLS: usize = 2;
const AGENT_KILLS: usize = 2;

/// Longest time between the line that chooses a moment and the kill. An agent lives for a little more than this.
const JITTER: Duration = Duration::from_millis(25);

/// Longest time between the start of a program and its kill, where it is killed before any stage begins.
const START_JITTER: Duration = Duration::from_millis(80);

/// What a run asks after its agent was killed. No agent fails by itself.
const KILLED: &str = "killed by signal 9";

/// The third stage sends the run back to the second twice. These are the steps that come of it.
const STEPS: [&str; 8] = ["s1.1", "s2.1", "s3.1", "s2.2", "s3.2", "s2.3", "s3.3", "s4.3"];

const AGENT: &str = r#": MARK; input=$(cat); iteration=${input#*'"iteration":'}; iteration=${iteration%%[!0-9]*}
key=$CROSSPOINT_WORK.$iteration; content="$key $CROSSPOINT_JOB_ID"
[ ! -e "pair/$key.a" ] || echo "again $key" >> "$LEDGER"
echo "begin $$ $content" >> "$LEDGER"; sleep 0.02
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

/// The agent, with a word by which its process is known.
fn agent(mark: &str, ledger: &Path, keys: &str) -> String {
    let argv = json!(["sh", "-c", AGENT.replace("MARK", mark)]);
    let env = json!(ledger);
    format!("[[agent]]\nname = \"worker\"\nexec = {argv}\nenv = {{ LEDGER = {env} }}\n{keys}\n")
}

/// The processes of the agents that have begun, in order. A line that is not whole yet is left out.
fn begun(ledger: &Path) -> Vec<i32> {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let begins = whole.lines().filter_map(|line| line.strip_prefix("begin ")?.split(' ').next()?.parse().ok());
    begins.collect()
}

/// Kills the agent of this process after a moment, if it is still there.
fn kill_agent(pid: i32, mark: &str, dice: &mut Dice) {
    // Once it is open, a number that was given to another process meanwhile does no harm.
    let Some(agent) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if String::from_utf8_lossy(&words).contains(mark) {
        some_moment(dice, JITTER);
        let _ = pidfd_send_signal(agent, Signal::KILL);
    }
}

/// This does not wait for anything: it makes a moment random.
fn some_moment(dice: &mut Dice, longest: Duration) {
    let micros = u64::try_from(longest.as_micros()).expect("it is small");
    thread::sleep(Duration::from_micros(dice.below(micros)));
}

/// A number below `end`.
fn below(dice: &mut Dice, end: usize) -> usize {
    usize::try_from(dice.below(end as u64)).expect("it is small")
}

/// Number of kills of one test.
fn kills() -> usize {
    let kills = std::env::var("CROSSPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    kills.div_ceil(2)
}

/// Whether all files of the last step are there. A run without them is not over.
fn is_written(repo: &Path) -> bool {
    let last = STEPS[STEPS.len() - 1];
    ["a", "b"].iter().all(|end| repo.join(format!("pair/{last}.{end}")).exists())
}

/// Kills that hit something.
#[derive(Clone, Copy, Debug, Default)]
struct Hits {
    drivers: usize,
    agents: usize,
}

impl Hits {
    fn sum(self) -> usize {
        self.drivers + self.agents
    }
}

/// Plays rounds until there were enough kills. Every round has some, or else the kills hit nothing.
fn enough_kills(mut round: impl FnMut(usize, &mut Dice) -> Hits) {
    let mut dice = Dice(seed());
    let mut all = Hits::default();
    for number in 0..kills() {
        let hits = round(number, &mut dice);
        all = Hits { drivers: all.drivers + hits.drivers, agents: all.agents + hits.agents };
        if all.sum() >= kills() {
            break;
        }
    }
    assert!(all.sum() >= kills() && all.drivers > 0 && all.agents > 0, "of {} kills: {all:?}", kills());
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

/// Number of stages that failed, each because its agent was killed.
fn failed_stages(jobs: &[Value]) -> usize {
    jobs.iter().filter(|job| job["state"] == "failed" && job["origin"]["stage"].is_string()).count()
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
    /// The run, once it was accepted.
    id: Option<String>,
    hits: Hits,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Driver,
    Agent,
}

impl Round {
    fn new(number: usize) -> Round {
        let place = Place::new();
        let mark = format!("round-{number}-of-{}", std::process::id());
        let agent = agent(&mark, &place.file("ledger"), "");
        place.write("killed.toml", &format!("{}{agent}", stages()));
        Round { place, mark, id: None, hits: Hits::default() }
    }

    /// The id of the run, if it was accepted.
    fn accepted(&self) -> Option<String> {
        let listed = self.place.crosspoint(&["workflow", "list", "--json"]);
        if listed.code != 0 {
            // There is no store yet.
            assert!(!self.store_exists(), "{listed:?}");
            return None;
        }
        assert!(listed.stdout.lines().count() <= 1, "it is one run: {listed:?}");
        let run: Value = serde_json::from_str(listed.stdout.lines().next()?).expect("JSON");
        Some(text(&run["id"]))
    }

    fn store_exists(&self) -> bool {
        self.place.file(".crosspoint/jobs.db").exists()
    }

    fn begin(&self) -> Child {
        let mut command = match &self.id {
            Some(id) => self.place.command(&["workflow", "resume", id]),
            None => self.place.command(&["workflow", "run", "killed.toml", "--root", "repo"]),
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Which of them is killed next, until there were enough kills of both.
    fn victim(&self, dice: &mut Dice) -> Option<Victim> {
        match (self.hits.drivers < DRIVER_KILLS, self.hits.agents < AGENT_KILLS) {
            (true, true) => Some([Victim::Driver, Victim::Agent][below(dice, 2)]),
            (true, false) => Some(Victim::Driver),
            (false, true) => Some(Victim::Agent),
            (false, false) => None,
        }
    }

    /// Kills the driver or its agent when the agents have begun some more stages, unless the driver has ended before.
    fn kill(&self, driver: &mut Child, victim: Victim, dice: &mut Dice) {
        let ledger = self.place.file("ledger");
        // A driver may also be killed before it begins a stage. There are enough stages for the most of all kills.
        let more = below(dice, 2) + usize::from(victim == Victim::Agent);
        let wanted = begun(&ledger).len() + more;
        let begun = until("stages begin", || {
            if driver.try_wait().expect("it can be asked").is_some() {
                return Some(None);
            }
            let begun = begun(&ledger);
            (begun.len() >= wanted && self.store_exists()).then_some(Some(begun))
        });
        let Some(begun) = begun else { return };
        match victim {
            Victim::Driver => {
                some_moment(dice, if more == 0 { START_JITTER } else { JITTER });
                driver.kill().expect("it can be killed");
            }
            Victim::Agent => kill_agent(begun[begun.len() - 1], &self.mark, dice),
        }
    }

    fn go(&mut self, dice: &mut Dice) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut driver = self.begin();
            let victim = self.victim(dice);
            if let Some(victim) = victim {
                self.kill(&mut driver, victim, dice);
            }
            let ran: Ran = driver.wait_with_output().expect("it ends").into();
            let is_over = is_written(&self.place.repo());
            if self.id.is_none() {
                self.id = self.accepted();
            }
            match (ran.code, victim) {
                (0, _) => return,
                // A driver that had accepted no run yet, or had done all of it, was killed in vain.
                (-9, Some(Victim::Driver)) => self.hits.drivers += usize::from(self.id.is_some() && !is_over),
                (3, Some(Victim::Agent)) => self.answer(&ran),
                _ => panic!("{victim:?}: {ran:?}"),
            }
            assert!(Instant::now() < until, "{ran:?}");
        }
    }

    /// A run waits only where an agent was killed.
    fn answer(&mut self, ran: &Ran) {
        assert!(ran.stderr.contains("agent_failed") && ran.stderr.contains(KILLED), "{ran:?}");
        let id = self.id.as_deref().expect("there is a run");
        let answered = self.place.crosspoint(&["jobs", "answer", id, "--text", "go on"]);
        assert_eq!(answered.code, 0, "{answered:?}");
        self.hits.agents += 1;
    }

    fn check(&self) {
        assert_eq!(self.accepted(), self.id, "it is one run");
        let listed = self.place.crosspoint(&["jobs", "list", "--json", "--limit", "500"]);
        let jobs: Vec<Value> = listed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        is_whole(&self.place.repo(), &self.place.file("ledger"), &jobs);
        assert_eq!(failed_stages(&jobs), self.hits.agents, "stages fail where their agents are killed: {jobs:?}");
    }
}

#[test]
fn no_kill_of_a_command_or_its_agents_repeats_or_halves_a_stage() {
    enough_kills(|number, dice| {
        let mut round = Round::new(number);
        round.go(dice);
        round.check();
        round.hits
    });
}
