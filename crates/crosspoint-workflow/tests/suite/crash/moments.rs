//! Kills at moments that no place in the code names.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use crosspoint_workflow::repository::recover;

use crate::process::{long_output, start};
use crate::scratch::{Scratch, written};

/// How many kills there are for each that is asked for, at most. On a busy machine a process runs past the moment.
const TRIES_FACTOR: usize = 6;

/// How far the step is, as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Nothing is planned.
    Begun,
    /// Files are staged.
    Planned,
    /// Files are renamed to their places.
    Committed,
    Done,
}

impl Phase {
    /// Asks in the order in which the journal is renamed, so that a rename in between is not missed.
    fn of(scratch: &Scratch) -> Phase {
        let names = [("plan", Phase::Planned), ("commit", Phase::Committed), ("done", Phase::Done)];
        let is_there = |name: &str| scratch.record().join(format!("step-1.{name}.json")).exists();
        names.into_iter().find(|(name, _)| is_there(name)).map_or(Phase::Begun, |(_, phase)| phase)
    }
}

/// Kills in one phase, spread over as long as it seems to last.
struct Aim {
    phase: Phase,
    hits: usize,
    span: Duration,
}

impl Aim {
    /// Returns the phase in which the process was killed.
    fn kill(&mut self, scratch: &Scratch, part: f64) -> Phase {
        let mut child = start("long output", scratch.path());
        self.wait(scratch, &mut child);
        let moment = Instant::now() + self.span.mul_f64(part);
        while Instant::now() < moment {
            std::thread::yield_now();
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let phase = Phase::of(scratch);
        // The kill came in the phase or after it, never before: the phase had begun.
        self.span = self.span.mul_f64(if phase == self.phase { 1.1 } else { 0.7 });
        phase
    }

    fn wait(&self, scratch: &Scratch, child: &mut Child) {
        while Phase::of(scratch) < self.phase && child.try_wait().expect("it can be asked").is_none() {
            std::thread::yield_now();
        }
    }
}

/// The disk does not matter to a process that is killed, and waiting for it would take most of the time.
fn filled() -> Scratch {
    let scratch = Scratch::in_memory();
    (0..40).for_each(|number| scratch.put(&format!("old/f{number}"), "old"));
    scratch
}

/// Recovers the repository, and applies the output again.
fn goes_on(scratch: &Scratch, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>, phase: Phase) {
    recover(&scratch.record()).expect("it can be recovered");
    let tree = scratch.tree();
    // After the commit mark the output counts.
    let expected = if phase >= Phase::Committed { after } else { before };
    assert!(tree == *expected, "{phase:?}: {:?}", tree.keys());
    assert_eq!(written(&scratch.apply(1, &long_output())).len(), 80);
    assert!(scratch.tree() == *after, "{phase:?}");
}

#[test]
fn killed_at_any_moment_it_is_all_or_none() {
    let rounds: usize = std::env::var("CROSSPOINT_TEST_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(50);
    let (before, whole, began) = (filled().tree(), filled(), Instant::now());
    assert!(start("long output", whole.path()).wait().expect("it ends").success());
    let (span, after) = (began.elapsed(), whole.tree());
    let mut aims = [Phase::Begun, Phase::Planned, Phase::Committed].map(|phase| Aim { phase, hits: 0, span });
    let wanted = rounds.div_ceil(aims.len());
    let (mut tries, mut part) = (0, 0.0_f64);
    while let Some(aim) = aims.iter_mut().filter(|aim| aim.hits < wanted).min_by_key(|aim| aim.hits) {
        tries += 1;
        assert!(tries <= rounds * TRIES_FACTOR, "too few kills came in the phase {:?}: {}", aim.phase, aim.hits);
        let scratch = filled();
        let phase = aim.kill(&scratch, part);
        goes_on(&scratch, &before, &after, phase);
        // Multiples of the golden ratio are spread evenly, however many there are.
        part = (part + 0.618_034).fract();
        if let Some(hit) = aims.iter_mut().find(|aim| aim.phase == phase) {
            hit.hits += 1;
        }
    }
}
