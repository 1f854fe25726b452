//! When failed attempts are repeated (MSG-5, TASK-7).

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::request::{ATTEMPTS_MAX, Backoff, DELAY_MAX, Limits, Schedule};
use crosspoint_contracts::time::Time;
use crosspoint_engine::event::What;
use crosspoint_engine::job::{Phase, State};
use crosspoint_engine::machine::Event;
use crosspoint_engine::policy::{Policy, Repeats};
use proptest::prelude::*;

use crate::made::{POLICY, T0, failed, go, job, job_with, start};

const BACKOFFS: [Backoff; 3] = [Backoff::Exponential, Backoff::Linear, Backoff::Fixed];

/// Fails attempt after attempt, each as soon as it may begin. Returns the pauses, the last phase and the number of
/// attempts.
fn pauses(limits: Limits, policy: &Policy, dispatched: Dispatched) -> (Vec<Duration>, Phase, u32) {
    let (mut job, mut now, mut pauses) = (job_with(limits), T0, Vec::new());
    loop {
        job = go(&job, start(), now, policy).job;
        job = go(&job, failed(job.attempts, Failure::Unavailable, dispatched), now, policy).job;
        let State::Retrying { until, .. } = job.state else { return (pauses, job.phase(), job.attempts) };
        pauses.push(until.since(now));
        let early = go(&job, Event::Clock, Time(until.0 - 1), policy);
        assert_eq!(early.job.phase(), Phase::Retrying, "not a microsecond too early");
        job = go(&job, Event::Clock, until, policy).job;
        assert_eq!(job.phase(), Phase::Queued);
        now = until;
    }
}

#[test]
fn four_attempts_at_least_one_two_and_four_seconds_apart() {
    let (pauses, phase, attempts) = pauses(Limits::default(), &POLICY, Dispatched::Yes);
    assert_eq!((phase, attempts, pauses.len()), (Phase::Failed, 4, 3));
    for (pause, least) in pauses.iter().zip([1, 2, 4].map(Duration::from_secs)) {
        assert!(*pause >= least && *pause <= least.mul_f64(1.5), "{pause:?} for {least:?}");
    }
}

#[test]
fn what_has_begun_is_repeated_only_where_that_is_allowed() {
    let careful = Policy { repeats: Repeats::BeforeStart, ..POLICY };
    assert_eq!(pauses(Limits::default(), &careful, Dispatched::Yes).2, 1, "it may have begun");
    assert_eq!(pauses(Limits::default(), &careful, Dispatched::No).2, 4, "it surely has not");
    assert_eq!(pauses(Limits::default(), &POLICY, Dispatched::Yes).2, 4, "the operator says that it does no harm");
    let wanted = Limits { retry: Some(Schedule::DEFAULT), ..Limits::default() };
    assert_eq!(pauses(wanted, &careful, Dispatched::Yes).2, 4, "the request says that repeating is wanted");
}

#[test]
fn only_three_failures_are_repeated() {
    for failure in Failure::ALL {
        let running = go(&job(), start(), T0, &POLICY).job;
        let after = go(&running, failed(1, failure, Dispatched::No), T0, &POLICY).job;
        let repeated = [Failure::Timeout, Failure::Unavailable, Failure::ResourceLimit].contains(&failure);
        let end = if failure == Failure::Cancelled { Phase::Cancelled } else { Phase::Failed };
        let phase = if repeated { Phase::Retrying } else { end };
        assert_eq!(after.phase(), phase, "{failure}");
    }
}

#[test]
fn a_request_brings_its_own_schedule_within_our_limits() {
    let of = |attempts_max, backoff, first_millis| {
        let retry = Schedule { attempts_max, backoff, first: Duration::from_millis(first_millis) };
        let patient = Policy { total: Duration::from_secs(1 << 40), ..POLICY };
        pauses(Limits { retry: Some(retry), ..Limits::default() }, &patient, Dispatched::Yes)
    };
    let (linear, _, attempts) = of(3, Backoff::Linear, 500);
    assert_eq!(attempts, 3);
    assert!(linear[0] >= Duration::from_millis(500) && linear[1] >= Duration::from_millis(1_000));
    assert_eq!(of(1, Backoff::Fixed, 500).2, 1, "one attempt is no repeat");
    assert_eq!(of(0, Backoff::Fixed, 500).2, 1, "nobody can ask for none: it has begun");
    assert_eq!(of(u32::MAX, Backoff::Fixed, 1).2, ATTEMPTS_MAX);
    let (long, ..) = of(10, Backoff::Exponential, 3_000_000);
    assert!(long.iter().all(|pause| *pause <= DELAY_MAX.mul_f64(1.5)), "{long:?}");
}

#[test]
fn no_repeat_is_planned_for_after_the_end() {
    let policy = Policy { total: Duration::from_millis(900), ..POLICY };
    let running = go(&job(), start(), T0, &policy).job;
    let ended = go(&running, failed(1, Failure::Unavailable, Dispatched::No), T0, &policy);
    let [entry] = &*ended.entries else { panic!("one event") };
    let What::Ended(outcome) = &entry.what else { panic!("the pause alone is longer than the job may take") };
    assert_eq!(outcome.why().map(|(failure, _)| failure), Some(Failure::Unavailable), "and it says why");
}

proptest! {
    #[test]
    fn the_default_is_that_of_the_message_contract(attempt in 1_u32..40, chance in any::<f64>()) {
        let ours = Schedule::DEFAULT.delay_before(attempt, chance);
        let chance = if chance.is_nan() { 0.0 } else { chance.clamp(0.0, 1.0) };
        let least = [0, 1, 2, 4].get(attempt as usize - 1).map(|seconds| Duration::from_secs(*seconds));
        prop_assert_eq!(ours, least.map(|least| least + least.mul_f64(0.5 * chance)));
    }

    #[test]
    fn jitter_only_lengthens_and_by_at_most_half(
        attempts_max in any::<u32>(), backoff in 0_usize..3, first in any::<u64>(), attempt in any::<u32>(), chance in any::<f64>(),
    ) {
        let schedule = Schedule { attempts_max, backoff: BACKOFFS[backoff], first: Duration::from_micros(first) };
        let least = schedule.delay_before(attempt, 0.0);
        let delay = schedule.delay_before(attempt, chance);
        prop_assert_eq!(least.is_none(), attempt > attempts_max.min(ATTEMPTS_MAX));
        prop_assert_eq!(least.is_some(), delay.is_some());
        if let (Some(least), Some(delay)) = (least, delay) {
            prop_assert!(least <= DELAY_MAX && delay >= least);
            prop_assert!(delay <= least.mul_f64(1.5) + Duration::from_micros(1));
        }
    }

    #[test]
    fn pauses_never_shrink(backoff in 0_usize..3, first in 0_u64..10_000_000_000, attempt in 2_u32..9) {
        let schedule = Schedule { attempts_max: 10, backoff: BACKOFFS[backoff], first: Duration::from_micros(first) };
        prop_assert!(schedule.delay_before(attempt, 0.0) <= schedule.delay_before(attempt + 1, 0.0));
    }
}
