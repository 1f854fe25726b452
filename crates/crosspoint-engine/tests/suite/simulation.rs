//! Thousands of made-up lives of the whole engine without its disk and its clock, each from a seed.
//!
//! The core is the real one. The disk, the agents, the callers and the clock around it are driven by dice. Beside it a
//! plain model keeps account of what must hold. To see one seed again:
//!
//! ```text
//! CROSSPOINT_SIM_SEED=17 cargo nextest run -p crosspoint-engine -E 'test(simulation::corpus)'
//! ```
//!
//! `CROSSPOINT_SIM_LINES=1000` prints that many last lines of the story instead of 60. `CROSSPOINT_SIM_SEEDS=100000`
//! runs that many seeds in all instead of the usual number. A seed that fails goes into `tests/seeds.txt`.

#[path = "simulation/agents.rs"]
mod agents;
#[path = "simulation/callers.rs"]
mod callers;
#[path = "simulation/decide.rs"]
mod decide;
#[path = "simulation/dice.rs"]
mod dice;
#[path = "simulation/disk.rs"]
mod disk;
#[path = "simulation/doubt.rs"]
mod doubt;
#[path = "simulation/grants.rs"]
mod grants;
#[path = "simulation/hear.rs"]
mod hear;
#[path = "simulation/known.rs"]
mod known;
#[path = "simulation/lives.rs"]
mod lives;
#[path = "simulation/members.rs"]
mod members;
#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/names.rs"]
mod names;
#[path = "simulation/owed.rs"]
mod owed;
#[path = "simulation/round.rs"]
mod round;
#[path = "simulation/rule.rs"]
mod rule;
#[path = "simulation/typed.rs"]
mod typed;
#[path = "simulation/watch.rs"]
mod watch;
#[path = "simulation/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use members::Cast;
use world::World;

/// Number of seeds in all, over the parts.
const SEEDS: u64 = 3_000;
const PARTS: u64 = 6;
/// Number of rounds with faults in each story. With another number the seeds of the corpus give other stories.
const STEPS: u64 = 150;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64, cast: Cast, traced: bool) -> (Result<(), String>, Vec<String>) {
    let mut world = World::new(seed, cast, traced);
    let verdict = catch_unwind(AssertUnwindSafe(|| world.run(STEPS)));
    let verdict = verdict.unwrap_or_else(|_| Err("a panic".to_owned()));
    (verdict, world.trace.unwrap_or_default())
}

/// Runs a seed. A seed that fails is run again, to tell its story.
fn run_or_tell(seed: u64, cast: Cast) {
    let (Err(wrong), _) = run(seed, cast, false) else { return };
    let (_, trace) = run(seed, cast, true);
    let lines = number("CROSSPOINT_SIM_LINES").map_or(60, |lines| lines as usize);
    let tail = trace.len().saturating_sub(lines);
    panic!(
        "seed {seed}, {cast:?}: {wrong}\n\n{}\n\nadd {seed} to tests/seeds.txt; again: CROSSPOINT_SIM_SEED={seed} \
         cargo nextest run -p crosspoint-engine -E 'test(simulation::corpus)'",
        trace[tail..].join("\n")
    );
}

fn part(part: u64) {
    let seeds = number("CROSSPOINT_SIM_SEEDS").unwrap_or(SEEDS);
    for seed in (1..=seeds).filter(|seed| seed % PARTS == part) {
        // In every part, a third of the seeds is about each cast.
        run_or_tell(seed, Cast::of(seed / PARTS));
    }
}

#[test]
fn seeds_of_part_0() {
    part(0);
}

#[test]
fn seeds_of_part_1() {
    part(1);
}

#[test]
fn seeds_of_part_2() {
    part(2);
}

#[test]
fn seeds_of_part_3() {
    part(3);
}

#[test]
fn seeds_of_part_4() {
    part(4);
}

#[test]
fn seeds_of_part_5() {
    part(5);
}

/// Something that the dice never reach would not be tested.
#[test]
fn the_dice_reach_everything() {
    let (mut tally, mut answered_again) = (BTreeMap::new(), 0);
    for seed in 1..=300 {
        let mut world = World::new(seed, Cast::of(seed), false);
        world.run(STEPS).expect("the other tests say what is wrong");
        for (what, times) in world.tally.iter().chain(&world.model.reached) {
            *tally.entry(*what).or_insert(0) += times;
        }
        answered_again += world.model.answered_again;
    }
    tally.insert("answered again", answered_again);
    let missing: Vec<&str> =
        REACHED.into_iter().filter(|what| tally.get(what).is_none_or(|times| *times == 0)).collect();
    assert!(missing.is_empty(), "never: {missing:?}; in all: {tally:#?}");
}

const REACHED: [&str; 85] = [
    "started",
    "progress",
    "output",
    "question",
    "answer",
    "answered again",
    "retrying",
    "interrupted",
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "unavailable",
    "invalid",
    "unauthenticated",
    "resource_limit",
    "unsupported",
    "agent_failed",
    "delegation",
    "conflict",
    "broken_contract",
    "internal",
    "dispatch",
    "resume",
    "stop",
    "deliver",
    "check",
    "check of a drop",
    "drops of a sick agent",
    "later at the agent's wish",
    "too late at the agent's wish",
    "round",
    "commit failed",
    "crash before commit",
    "crash after commit",
    "jump",
    "joined",
    "joined otherwise",
    "went away",
    "forgotten",
    "not forgotten",
    "not known",
    "repeat",
    "other work with the same key",
    "two keys of one hash",
    "a further name",
    "two names of two jobs",
    "full",
    "full of a work",
    "full for an agent",
    "forged",
    "set aside",
    "taken up",
    "visit",
    "rested",
    "clean end",
    "there after all",
    "overtaken",
    "purged",
    "poisoned",
    "a report came from an agent that never had the attempt",
    "a result came for an attempt that was never made",
    "an attempt that was given up reported its failure",
    "the agent was not done when the time for the attempt was over",
    "addressed to no agent",
    "another contract",
    "stays",
    "stays with one that is away",
    "a configured agent went away",
    "withdrawn by a link",
    "told the outcome",
    "told too early",
    "told the outcome again",
    "granted",
    "a name twice",
    "rotated",
    "not rotated",
    "revoked",
    "revoked again",
    "no such grant",
    "a good token",
    "an expired token",
    "a replaced token",
    "a revoked token",
    "an unknown token",
];

/// Every seed that ever failed, or the one given in the environment.
#[test]
fn corpus() {
    if let Some(seed) = number("CROSSPOINT_SIM_SEED") {
        return Cast::ALL.into_iter().for_each(|cast| run_or_tell(seed, cast));
    }
    let numbers = |line: &str| line.split('#').next().unwrap_or_default().trim().parse::<u64>().ok();
    let seeds: Vec<u64> = include_str!("../seeds.txt").lines().filter_map(numbers).collect();
    assert!(!seeds.is_empty(), "the corpus is not empty");
    for cast in Cast::ALL {
        seeds.iter().for_each(|seed| run_or_tell(*seed, cast));
    }
}
