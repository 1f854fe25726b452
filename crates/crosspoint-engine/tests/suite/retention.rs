//! Which jobs have been kept long enough, compared with a slow and plain model.

use std::time::Duration;

use crosspoint_contracts::time::Time;
use crosspoint_engine::id::Seq;
use crosspoint_engine::retention::{Ended, Jumps, Rule};
use proptest::prelude::*;

use crate::made::{T0, at, secs};

const AGE: Duration = Duration::from_secs(100);

/// Longest delay between when a job may be removed and when it is.
const PART: Duration = Duration::from_millis(100);

fn by_age() -> Rule {
    Rule { age: Some(AGE), jobs: None, age_min: Duration::ZERO }
}

#[test]
fn jobs_go_when_they_are_old_enough_and_those_that_ended_first_before_the_others() {
    let mut ended = Ended::new(by_age(), Jumps::default());
    // The jobs are accepted in one order and end in another.
    for (seq, millis) in [(3, 0), (1, 5_000), (2, 50_000)] {
        ended.note(Seq(seq), at(millis));
    }
    assert!(!ended.is_due(T0.plus(AGE)));
    assert!(ended.is_due(T0.plus(AGE + PART)));
    assert_eq!(ended.take(T0.plus(AGE + PART), 10), [Seq(3)]);
    assert_eq!(ended.take(T0.plus(AGE + secs(60)), 1), [Seq(1)]);
    assert_eq!(ended.take(T0.plus(AGE + secs(60)), 10), [Seq(2)]);
    assert!(ended.is_empty() && ended.alarm().is_none());
}

#[test]
fn too_many_jobs_go_however_young_they_are() {
    let mut ended = Ended::new(Rule { age: Some(AGE), jobs: Some(3), age_min: Duration::ZERO }, Jumps::default());
    for seq in 1..=5 {
        ended.note(Seq(seq), at(10 * seq));
    }
    assert_eq!(ended.take(at(50), 10), [Seq(1), Seq(2)]);
    assert_eq!(ended.len(), 3);
    assert_eq!(ended.take(at(50), 10), []);
}

#[test]
fn without_a_rule_nothing_is_remembered_and_nothing_goes() {
    let mut ended = Ended::new(Rule::FOR_EVER, Jumps::default());
    ended.note(Seq(1), Time(0));
    assert!(ended.is_empty() && !ended.is_due(Time::NEVER));
}

#[test]
fn a_clock_that_jumps_makes_no_job_older_or_younger() {
    let year = 365 * 86_400 * 1_000_000_i64;
    for jump in [year, -year] {
        let mut ended = Ended::new(by_age(), Jumps::default());
        ended.note(Seq(1), T0);
        ended.jumped(at(5_000).shifted(jump), jump);
        // The next job ends ten seconds later, by a clock that shows another year.
        ended.note(Seq(2), at(10_000).shifted(jump));
        assert_eq!(ended.take(T0.plus(AGE).shifted(jump), 10), []);
        assert_eq!(ended.take(T0.plus(AGE + secs(5)).shifted(jump), 10), [Seq(1)]);
        assert_eq!(ended.take(T0.plus(AGE + secs(11)).shifted(jump), 10), [Seq(2)]);
    }
}

#[derive(Clone, Debug)]
enum Happens {
    Ends { ago_millis: u64 },
    Passes { millis: u64 },
    Jumps { micros: i64 },
    Purges { most: usize },
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0..400_000_u64).prop_map(|ago_millis| Happens::Ends { ago_millis }),
        3 => (0..40_000_u64).prop_map(|millis| Happens::Passes { millis }),
        1 => (-10_000_000_000..10_000_000_000_i64).prop_map(|micros| Happens::Jumps { micros }),
        3 => (0..8_usize).prop_map(|most| Happens::Purges { most }),
    ]
}

proptest! {
    #[test]
    fn nothing_goes_too_soon_nothing_stays_too_long_and_nothing_goes_twice(
        story in prop::collection::vec(happens(), 1..200),
        jobs in prop::option::of(0..20_u64),
    ) {
        let mut ended = Ended::new(Rule { age: Some(AGE), jobs, age_min: Duration::ZERO }, Jumps::default());
        // The model: when each job ended, by a clock that never jumps.
        let mut model: Vec<(Seq, Time)> = Vec::new();
        let (mut steady, mut wall, mut jumped, mut jumped_at) = (T0, T0, 0, Time::default());
        for (happens, seq) in story.into_iter().zip(1..) {
            match happens {
                Happens::Ends { ago_millis } => {
                    // A job that ended before a jump was noted before the jump.
                    let ago = Duration::from_millis(ago_millis).min(steady.since(jumped_at));
                    model.push((Seq(seq), steady.minus(ago)));
                    ended.note(Seq(seq), wall.minus(ago));
                }
                Happens::Passes { millis } => {
                    let time = Duration::from_millis(millis);
                    (steady, wall) = (steady.plus(time), wall.plus(time));
                }
                Happens::Jumps { micros } => {
                    (wall, jumped, jumped_at) = (wall.shifted(micros), jumped + micros, steady);
                    ended.jumped(wall, jumped);
                }
                Happens::Purges { most } => {
                    let taken = ended.take(wall, most);
                    prop_assert!(taken.len() <= most);
                    for seq in &taken {
                        let at = model.iter().position(|(known, _)| known == seq);
                        let (_, end) = model.remove(at.expect("it is there, and goes once"));
                        let over = jobs.is_some_and(|jobs| model.len() as u64 >= jobs);
                        prop_assert!(over || end.plus(AGE) <= steady, "{seq:?} goes too soon");
                        let first = model.iter().map(|(_, end)| *end).min().unwrap_or(Time::NEVER);
                        prop_assert!(end.minus(PART) <= first, "{seq:?} goes before one that ended first");
                    }
                    if taken.len() < most {
                        let late = model.iter().filter(|(_, end)| end.plus(AGE + PART) <= steady);
                        prop_assert_eq!(late.count(), 0);
                        prop_assert!(jobs.is_none_or(|jobs| model.len() as u64 <= jobs));
                    }
                }
            }
            prop_assert_eq!(ended.len(), model.len() as u64);
        }
    }
}
