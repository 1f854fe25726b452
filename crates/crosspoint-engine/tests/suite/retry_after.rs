//! The pause that an agent asks for, and attempts that would be in vain (RUN-5).

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::request::Limits;
use crosspoint_engine::job::{Job, State};
use crosspoint_engine::machine::{Event, Step, pause};
use crosspoint_engine::policy::{Policy, RETRY_AFTER_MAX, Repeats};

use crate::made::{POLICY, T0, actions, at, entries, go, job, job_with, secs, start};

/// The only repeats are of work that has not begun, and there is time for them.
fn patient() -> Policy {
    Policy { repeats: Repeats::BeforeStart, silence: None, total: secs(10 * 24 * 3_600), ..POLICY }
}

fn refused(job: &Job, failed: Failed, policy: &Policy) -> Step {
    let running = go(job, start(), T0, policy).job;
    go(&running, Event::Finish { attempt: 1, result: Err(failed) }, T0, policy)
}

fn after(failure: Failure, retry_after: Duration) -> Failed {
    Failed::of(failure, Dispatched::No).asking_for(Some(retry_after))
}

/// How long the pause is that follows.
fn paused(step: &Step) -> Option<Duration> {
    match step.job.state {
        State::Retrying { until, .. } => Some(until.since(T0)),
        State::Queued | State::Running(_) | State::Waiting { .. } | State::Poisoned | State::Ended(_) => None,
    }
}

#[test]
fn an_agent_is_not_asked_again_before_it_wants_to_be() {
    for failure in [Failure::ResourceLimit, Failure::Unavailable] {
        let step = refused(&job(), after(failure, secs(40)), &patient());
        assert_eq!(paused(&step), Some(secs(40)), "{failure}");
        assert_eq!(pause(&step.job), secs(40));
    }
}

#[test]
fn a_shorter_pause_than_the_schedule_has_changes_nothing() {
    let usual = paused(&refused(&job(), Failed::of(Failure::Unavailable, Dispatched::No), &patient()));
    assert!(usual >= Some(secs(1)));
    assert_eq!(paused(&refused(&job(), after(Failure::Unavailable, secs(0)), &patient())), usual);
}

#[test]
fn a_pause_beyond_the_jobs_time_fails_it_at_once_and_a_repeat_is_safe() {
    let limits = Limits { total: Some(secs(60)), ..Limits::default() };
    for failure in [Failure::ResourceLimit, Failure::Unavailable] {
        let step = refused(&job_with(limits.clone()), after(failure, secs(60)), &patient());
        assert_eq!(entries(&step), [format!("3 failed({failure}, repeat safe)")]);
        let step = refused(&job_with(limits.clone()), after(failure, secs(59)), &patient());
        assert_eq!(paused(&step), Some(secs(59)));
    }
}

#[test]
fn a_pause_of_years_is_a_mistake_and_is_bounded() {
    let step = refused(&job(), after(Failure::ResourceLimit, Duration::MAX), &patient());
    assert_eq!(paused(&step), Some(RETRY_AFTER_MAX));
}

#[test]
fn a_part_of_a_second_is_a_whole_one() {
    let seconds = |millis| after(Failure::Unavailable, Duration::from_millis(millis)).retry_after_seconds;
    assert_eq!([0, 1, 1_000, 1_001].map(seconds), [0, 1, 1, 2]);
}

#[test]
fn a_pause_that_an_agent_asked_for_survives_a_restart_and_a_clock_that_is_set_back() {
    let waiting = refused(&job(), after(Failure::ResourceLimit, secs(4_000)), &patient()).job;
    let until = |job: &Job| match job.state {
        State::Retrying { until, .. } => until,
        State::Queued | State::Running(_) | State::Waiting { .. } | State::Poisoned | State::Ended(_) => T0,
    };
    let mut restarted = waiting.clone();
    restarted.come_back(at(1_000_000), 0, pause(&waiting));
    assert_eq!(until(&restarted), at(4_000_000), "the pause has gone on meanwhile");
    let mut set_back = waiting.clone();
    let now = T0.shifted(-9_000_000_000);
    set_back.come_back(now, 0, pause(&waiting));
    assert_eq!(until(&set_back), now.plus(secs(4_000)), "it is no longer than it was");
    let mut jumped = waiting;
    jumped.shift(7_000_000);
    assert_eq!((until(&jumped), pause(&jumped)), (at(4_007_000), secs(4_000)));
}

#[test]
fn what_would_be_in_vain_is_not_repeated_and_says_so() {
    for repeats in [Repeats::Always, Repeats::BeforeStart] {
        let refusal = Failed::of(Failure::Unauthenticated, Dispatched::No).by_agent();
        let step = refused(&job(), refusal, &Policy { repeats, ..patient() });
        assert_eq!(entries(&step), [format!("3 failed(unavailable, repeat {})", Repeat::Never.name())]);
        assert_eq!(actions(&step), ["mark agent Bad"]);
    }
}

#[test]
fn an_agent_without_room_has_answered_and_one_that_is_not_there_has_not() {
    let marks = |failure| actions(&refused(&job(), after(failure, secs(1)), &patient()));
    assert_eq!(marks(Failure::ResourceLimit), ["mark agent Good"]);
    assert_eq!(marks(Failure::Unavailable), ["mark agent Bad"]);
}
