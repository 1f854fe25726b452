//! The time that a request allows for each attempt (ALL-4).

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::request::{Limits, Schedule};
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::machine::{End, Event, alarm};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::runtime::Attempt;

use crate::made::{POLICY, T0, actions, after, answer, ask, at, done, entries, failed, go, job_with, secs, start};
use crate::scratch::Scratch;
use crate::stage::{self, ended, new_job, stop, submit};

/// Agents that are never silent, so that only the time of the attempt matters.
const PATIENT: Policy = Policy { silence: None, ..POLICY };

fn limited(seconds: u64) -> Job {
    let limits = Limits { attempt: Some(secs(seconds)), ..Limits::default() };
    go(&job_with(limits), start(), T0, &PATIENT).job
}

#[test]
fn an_attempt_that_takes_too_long_is_given_up_like_a_silent_one_and_repeated() {
    let running = limited(40);
    assert_eq!(alarm(&running, &PATIENT), Some(at(40_000)));
    assert_eq!(alarm(&running, &POLICY), Some(at(30_000)), "silence comes first");
    let heard = go(&running, Event::Heard { attempt: 1 }, at(39_000), &PATIENT).job;
    assert!(go(&heard, Event::Clock, at(39_999), &PATIENT).entries.is_empty());
    let step = go(&heard, Event::Clock, at(40_000), &PATIENT);
    assert_eq!(step.job.phase(), Phase::Retrying, "a sign of life does not lengthen it");
    assert_eq!(actions(&step), ["stop 1", "mark agent Bad"]);
    let violation = step.violation.expect("the agent broke a rule");
    assert_eq!(violation.clause, "ALL-4.2");
    assert_eq!(violation.what, "the agent was not done when the time for the attempt was over");
    let second = after(step.job, [(at(42_000), Event::Clock), (at(50_000), start())], &PATIENT);
    assert_eq!(alarm(&second, &PATIENT), Some(at(90_000)), "the next attempt has as long");
    let careful = Policy { repeats: Repeats::BeforeStart, ..PATIENT };
    let step = go(&heard, Event::Clock, at(40_000), &careful);
    let why = step.job.outcome().and_then(|outcome| outcome.why());
    assert_eq!(why, Some((Failure::Timeout, Repeat::Unknown)), "it may have begun");
}

#[test]
fn the_time_of_an_attempt_stands_still_while_people_are_asked() {
    let waiting = go(&limited(40), ask(1, "which?"), at(10_000), &PATIENT).job;
    assert_eq!(alarm(&waiting, &PATIENT), None);
    let other = go(&waiting, ask(1, "what?"), at(100_000), &PATIENT).job;
    let running = go(&other, answer("that"), at(500_000), &PATIENT).job;
    assert_eq!(alarm(&running, &PATIENT), Some(at(530_000)), "30 s of it are left");
    let unasked = go(&waiting, Event::Unasked { attempt: 1 }, at(60_000), &PATIENT).job;
    let at_work = Job { pending: None, ..unasked };
    assert_eq!(alarm(&at_work, &PATIENT), Some(at(90_000)));
}

#[test]
fn the_time_of_an_attempt_counts_anew_after_a_restart_and_moves_with_the_clock() {
    let resuming = Policy { recovery: Recovery::Resume, ..PATIENT };
    let interrupted = Event::Interrupted(End::Unclean);
    let running = go(&limited(40), interrupted.clone(), at(35_000), &resuming).job;
    assert_eq!(alarm(&running, &resuming), Some(at(75_000)));
    // Also of an attempt that waits for a person: what it waited before is not counted twice.
    let waiting = go(&limited(40), ask(1, "which?"), at(10_000), &resuming).job;
    let waiting = go(&waiting, interrupted, at(35_000), &resuming).job;
    let running = go(&waiting, answer("that"), at(50_000), &resuming).job;
    assert_eq!(alarm(&running, &resuming), Some(at(90_000)));
    let mut jumped = limited(40);
    jumped.shift(3_600_000_000);
    assert_eq!(alarm(&jumped, &PATIENT), Some(at(3_640_000)));
}

#[test]
fn the_agents_total_does_not_cut_short_what_the_request_allows_for_its_attempts() {
    // The agent's total of 100 s is shorter than one attempt.
    let running = limited(200);
    assert_eq!(alarm(&running, &PATIENT), Some(at(200_000)));
    let lost = failed(1, Failure::Unavailable, Dispatched::Yes);
    let second = after(running, [(at(190_000), lost), (at(195_000), Event::Clock), (at(195_000), start())], &PATIENT);
    assert_eq!(alarm(&second, &PATIENT), Some(at(395_000)));
    let step = go(&second, done(2), at(394_000), &PATIENT);
    assert_eq!(step.job.phase(), Phase::Completed);
    // Four attempts and the longest pauses between them: 4 * 200 s and 10.5 s.
    let once = Schedule { attempts_max: 1, ..Schedule::DEFAULT };
    for (schedule, total) in [(Schedule::DEFAULT, 810_500), (once, 200_000)] {
        let policy = Policy { schedule, ..PATIENT };
        let queued = Job { state: crosspoint_engine::job::State::Queued, ..limited(200) };
        assert_eq!(alarm(&queued, &policy), Some(at(total)));
        let step = go(&queued, Event::Clock, at(total), &policy);
        assert_eq!(entries(&step), ["3 failed(timeout, repeat unknown)"]);
    }
    let short = Job { state: crosspoint_engine::job::State::Queued, ..limited(1) };
    assert_eq!(alarm(&short, &PATIENT), Some(at(100_000)), "nor does it lengthen what is long enough");
    let mut total = Limits { attempt: Some(secs(200)), ..Limits::default() };
    total.total = Some(secs(10));
    let both = go(&job_with(total), start(), T0, &PATIENT).job;
    assert_eq!(alarm(&both, &PATIENT), Some(at(10_000)), "the request's own total counts");
}

#[tokio::test]
async fn the_task_of_an_attempt_that_takes_too_long_is_stopped_and_the_next_one_succeeds() {
    let scratch = Scratch::new();
    let slow = stage::agent("slow", |attempt: Attempt| async move {
        if attempt.number() == 1 {
            attempt.stopped().await;
            return stage::failed(Failure::Cancelled, Dispatched::Yes);
        }
        stage::echo(attempt).await
    });
    let schedule = Schedule { first: Duration::from_millis(1), ..Schedule::DEFAULT };
    let policy = Policy { repeats: Repeats::SameAgent, schedule, ..Policy::default() };
    let engine = stage::start(&scratch, vec![stage::with_policy(slow, policy)]);
    let mut new = new_job("slow", "{}");
    new.limits.attempt = Some(Duration::from_millis(200));
    let job = ended(&submit(&engine, new).await).await;
    // On a machine that is slow just now, the second attempt takes too long as well.
    assert_eq!((job.phase(), job.attempts), (Phase::Completed, job.retries + 1));
    assert!(job.attempts > 1);
    let violations = engine.violations(job.id()).await.expect("they can be read");
    assert!(!violations.is_empty() && violations.iter().all(|found| found.clause == "ALL-4.2"), "{violations:?}");
    stop(engine).await;
}
