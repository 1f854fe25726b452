//! Lives of single jobs: events in, actions out.

use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Status, Text};
use crosspoint_contracts::printed::Printed;
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::request::Limits;
use crosspoint_engine::job::{Job, Phase, QuestionId};
use crosspoint_engine::machine::{End, Event, Refused, alarm, step};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};

use crate::made::{
    POLICY, T0, actions, after, answer, ask, at, dead, done, done_with, entries, failed, go, job, job_with, output,
    progress, secs, start,
};

fn running() -> Job {
    go(&job(), start(), T0, &POLICY).job
}

#[test]
fn a_job_is_done() {
    let mut told = Vec::new();
    let mut job = job();
    for (millis, event) in [(0, start()), (10, progress(1, 50.0)), (20, output(1, 0, "text")), (30, done(1))] {
        let step = go(&job, event, at(millis), &POLICY);
        told.extend(entries(&step));
        job = step.job;
    }
    assert_eq!(told, ["2 started(1, agent)", "3 progress(Some(50.0))", "4 output(1, 0+4)", "5 completed"]);
    let outcome = job.outcome().expect("it has ended");
    assert_eq!(outcome.outcome, Outcome::completed(Success::of(Body::of(&"done"))));
}

#[test]
fn silence_gives_an_attempt_up() {
    let running = running();
    assert_eq!(alarm(&running, &POLICY), Some(at(30_000)));
    assert!(go(&running, Event::Clock, at(29_999), &POLICY).entries.is_empty());
    let heard = go(&running, Event::Heard { attempt: 1 }, at(29_999), &POLICY).job;
    assert_eq!(alarm(&heard, &POLICY), Some(at(59_999)), "any sign of life will do");
    let step = go(&running, Event::Clock, at(30_000), &POLICY);
    assert_eq!(step.job.phase(), Phase::Retrying);
    assert_eq!(actions(&step), ["stop 1", "mark agent Bad"]);
    let careful = Policy { repeats: Repeats::BeforeStart, ..POLICY };
    let step = go(&running, Event::Clock, at(30_000), &careful);
    let failure = step.job.outcome().and_then(|outcome| outcome.why());
    assert_eq!(failure, Some((Failure::Timeout, Repeat::Unknown)), "it may have begun");
}

#[test]
fn silence_is_only_watched_where_the_agent_has_a_limit_and_a_request_may_lengthen_it() {
    let patient = Policy { silence: None, ..POLICY };
    assert_eq!(alarm(&running(), &patient), Some(at(100_000)), "its total alone");
    let asked_for = Limits { silence: Some(secs(60)), ..Limits::default() };
    let running = go(&job_with(asked_for), start(), T0, &POLICY).job;
    assert_eq!(alarm(&running, &POLICY), Some(at(60_000)));
    assert_eq!(alarm(&running, &patient), Some(at(100_000)));
}

#[test]
fn the_agents_total_counts_from_the_first_attempt_over_all_attempts() {
    let late = go(&job(), start(), at(50_000), &POLICY).job;
    let patient = Policy { silence: None, ..POLICY };
    assert_eq!(alarm(&late, &patient), Some(at(150_000)), "the time in the queue is not the agent's");
    let lost = failed(1, Failure::Unavailable, Dispatched::Yes);
    let again = after(late, [(at(60_000), lost), (at(70_000), Event::Clock), (at(80_000), start())], &patient);
    assert_eq!(alarm(&again, &patient), Some(at(150_000)), "a second attempt begins no new total");
    let step = go(&again, Event::Clock, at(150_000), &patient);
    assert_eq!(entries(&step), ["5 failed(timeout, repeat unknown)"]);
    assert_eq!(actions(&step), ["stop 2"]);
}

#[test]
fn a_requests_total_counts_from_acceptance_in_every_state() {
    let limits = Limits { total: Some(secs(10)), ..Limits::default() };
    let queued = job_with(limits);
    let running = go(&queued, start(), at(1_000), &POLICY).job;
    let waiting = go(&running, ask(1, "?"), at(2_000), &POLICY).job;
    let retrying = go(&running, failed(1, Failure::Timeout, Dispatched::No), at(2_000), &POLICY).job;
    for (job, repeat) in [(&queued, "unknown"), (&running, "unknown"), (&waiting, "unknown"), (&retrying, "unknown")] {
        let step = go(job, Event::Clock, at(10_000), &POLICY);
        let last = entries(&step).pop().expect("an outcome");
        assert!(last.ends_with(&format!("failed(timeout, repeat {repeat})")), "{last} of {:?}", job.phase());
        assert!(go(job, Event::Clock, at(9_999), &POLICY).job.outcome().is_none());
    }
}

#[test]
fn people_may_take_their_time() {
    let waiting = go(&running(), ask(1, "which?"), at(20_000), &POLICY).job;
    assert_eq!(alarm(&waiting, &POLICY), None, "neither silence nor the agent's total");
    let step = go(&waiting, answer("that"), at(1_000_000), &POLICY);
    assert_eq!(actions(&step), [r#"deliver 1 "that""#]);
    assert_eq!(step.job.waited, secs(980));
    assert_eq!(alarm(&step.job, &POLICY), Some(at(1_030_000)), "the silence begins anew");
    let patient = Policy { silence: None, ..POLICY };
    assert_eq!(alarm(&step.job, &patient), Some(at(1_080_000)), "and 80 s of the total are left");
}

#[test]
fn a_success_of_an_attempt_that_was_given_up_ends_the_job_and_stops_the_other() {
    let second =
        after(running(), [(at(30_000), Event::Clock), (at(32_000), Event::Clock), (at(32_000), start())], &POLICY);
    let step = go(&second, done_with(1, "late"), at(33_000), &POLICY);
    assert_eq!(step.job.phase(), Phase::Completed);
    assert_eq!(actions(&step), ["stop 2"]);
    assert!(step.violation.is_none(), "this job's work was done");
    let failed = go(&second, failed(1, Failure::AgentFailed, Dispatched::Yes), at(33_000), &POLICY);
    assert_eq!(failed.job.phase(), Phase::Running, "its failure counts for nothing");
    let pausing = go(&running(), Event::Clock, at(30_000), &POLICY).job;
    assert_eq!(
        go(&pausing, done(1), at(30_500), &POLICY).job.phase(),
        Phase::Completed,
        "also before the other begins"
    );
}

#[test]
fn cancel_and_completion_race_and_the_first_stands() {
    let cancelled = go(&running(), Event::Cancel, at(1), &POLICY);
    assert_eq!(actions(&cancelled), ["stop 1"]);
    let late = go(&cancelled.job, done(1), at(2), &POLICY);
    assert_eq!(late.job.outcome(), cancelled.job.outcome());
    assert_eq!(late.violation.map(|violation| violation.clause), Some("ALL-9.3"));
    let completed = go(&running(), done(1), at(1), &POLICY).job;
    assert_eq!(
        step(&completed, Event::Cancel, at(2), &POLICY).map(|_| ()),
        Err(Refused::Ended(Phase::Completed)),
        "too late"
    );
    let again = go(&cancelled.job, Event::Cancel, at(3), &POLICY);
    assert_eq!(again.job.outcome(), cancelled.job.outcome(), "cancelling twice is no error and no second outcome");
    assert!(again.entries.is_empty() && again.actions.is_empty());
}

#[test]
fn what_was_answered_is_not_asked_again() {
    let both = after(
        running(),
        [
            (at(1), ask(1, "which?")),
            (at(2), answer("that")),
            (at(3), ask(1, "sure?")),
            (at(4), answer("yes")),
            (at(5), Event::Interrupted(End::Unclean)),
            (at(6), start()),
        ],
        &POLICY,
    );
    let first = go(&both, ask(2, "which?"), at(7), &POLICY);
    assert_eq!((first.job.phase(), actions(&first)), (Phase::Running, vec![r#"deliver 2 "that""#.to_owned()]));
    let second = go(&first.job, ask(2, "sure?"), at(8), &POLICY);
    assert_eq!(actions(&second), [r#"deliver 2 "yes""#]);
    let third = go(&second.job, ask(2, "why?"), at(9), &POLICY);
    assert_eq!(third.job.phase(), Phase::Waiting, "this is new");
    let other = go(&both, ask(2, "what?"), at(7), &POLICY);
    assert_eq!(other.job.phase(), Phase::Waiting, "the attempt took another turn");
    let other = go(&other.job, answer("this"), at(8), &POLICY).job;
    let asked = go(&other, ask(2, "sure?"), at(9), &POLICY);
    assert_eq!(asked.job.phase(), Phase::Waiting, "and what follows is another question, in the same words");
}

/// An answer that says what it answers is taken once, however often it is sent, and for no other question.
#[test]
fn an_answer_to_a_question_is_no_answer_to_the_next() {
    let answer = |text: &str, number| Event::Answer {
        answer: super::made::body(text),
        to: Some(QuestionId { attempt: 1, number }),
    };
    let asked = after(running(), [(at(1), ask(1, "which?"))], &POLICY);
    assert!(matches!(step(&asked, answer("that", 1), at(2), &POLICY), Err(Refused::OtherQuestion)));
    let answered = go(&asked, answer("that", 0), at(2), &POLICY).job;
    let again = go(&answered, answer("that", 0), at(3), &POLICY);
    assert!(again.actions.is_empty() && again.entries.is_empty(), "it was taken already");
    assert!(matches!(step(&answered, answer("this", 0), at(3), &POLICY), Err(Refused::NotWaiting(_))));
    let next = go(&answered, ask(1, "sure?"), at(4), &POLICY).job;
    let again = go(&next, answer("that", 0), at(5), &POLICY);
    assert_eq!((again.job.phase(), again.actions.len()), (Phase::Waiting, 0), "the next question is still open");
    assert!(matches!(step(&next, answer("this", 0), at(5), &POLICY), Err(Refused::OtherQuestion)));
    assert_eq!(go(&next, answer("yes", 1), at(6), &POLICY).job.phase(), Phase::Running);
}

/// An attempt that is taken up asks again, and a person answers at the same moment. The answer would be given to the
/// next question if this one were asked once more.
#[test]
fn a_question_that_was_answered_just_before_is_not_asked_again() {
    let question = |answered| {
        let question = crosspoint_contracts::reply::Question::read(super::made::body("which?"));
        Event::Ask { attempt: 1, question, answered: Some(answered) }
    };
    let asked = after(running(), [(at(1), question(0)), (at(2), answer("that"))], &POLICY);
    let again = go(&asked, question(0), at(3), &POLICY);
    assert_eq!((again.job.phase(), again.actions.is_empty()), (Phase::Running, true), "the answer is on its way");
    assert!(matches!(step(&again.job, answer("this"), at(4), &POLICY), Err(Refused::NotWaiting(_))));
    let next = go(&again.job, question(1), at(5), &POLICY);
    assert_eq!(next.job.phase(), Phase::Waiting, "the same words later are another question");
}

#[test]
fn progress_is_told_ten_times_a_second_and_the_last_is_never_lost() {
    let mut job = running();
    let mut told = Vec::new();
    for millis in 0..1_000 {
        let mut step = go(&job, progress(1, millis as f64 / 10.0), at(millis), &POLICY);
        if alarm(&step.job, &POLICY) == Some(at(millis)) {
            step = go(&step.job, Event::Clock, at(millis), &POLICY);
        }
        told.extend(step.entries);
        job = step.job;
    }
    assert_eq!(told.len(), 10);
    assert!(told.windows(2).all(|two| two[1].at.since(two[0].at) >= Duration::from_millis(100)));
    assert_eq!(alarm(&job, &POLICY), Some(at(1_000)), "what was held back is due");
    assert_eq!(entries(&go(&job, Event::Clock, at(1_000), &POLICY)), ["13 progress(Some(99.9))"]);
    assert_eq!(entries(&go(&job, done(1), at(999), &POLICY)), ["13 progress(Some(99.9))", "14 completed"]);
}

#[test]
fn a_clock_that_jumps_changes_no_length() {
    let hour = 3_600_000_000_i64;
    let patient = Policy { silence: None, ..POLICY };
    let pausing = go(&running(), failed(1, Failure::Timeout, Dispatched::Yes), at(1_000), &POLICY).job;
    let limits = Limits { total: Some(secs(10)), ..Limits::default() };
    let waiting = go(&running(), ask(1, "?"), at(1_000), &POLICY).job;
    for micros in [hour, -hour, 400 * 24 * hour] {
        for (job, policy) in [
            (running(), &POLICY),
            (running(), &patient),
            (pausing.clone(), &POLICY),
            (job_with(limits.clone()), &POLICY),
            (waiting.clone(), &POLICY),
        ] {
            let mut moved = job.clone();
            moved.shift(micros);
            let expected = alarm(&job, policy).map(|at| at.shifted(micros));
            assert_eq!(alarm(&moved, policy), expected, "{:?} by {micros}", job.phase());
        }
        let mut moved = waiting.clone();
        moved.shift(micros);
        let answered = go(&moved, answer("!"), at(4_000).shifted(micros), &POLICY).job;
        assert_eq!(answered.waited, secs(3));
        let mut queued = job();
        queued.shift(micros);
        let started = go(&queued, start(), at(5_000).shifted(micros), &patient).job;
        assert_eq!(alarm(&started, &patient), Some(at(105_000).shifted(micros)), "also of what starts afterwards");
    }
}

#[test]
fn what_our_own_end_cut_short_is_no_repeat() {
    let mut job = running();
    for round in 1..=20 {
        let cut = go(&job, Event::Interrupted(End::Unclean), at(round), &POLICY);
        assert_eq!(cut.job.phase(), Phase::Queued);
        job = go(&cut.job, start(), at(round), &POLICY).job;
    }
    assert_eq!((job.attempts, job.retries), (21, 0));
    let careful = Policy { repeats: Repeats::BeforeStart, ..POLICY };
    let lost = go(&job, failed(21, Failure::Unavailable, Dispatched::No), at(30), &careful);
    assert_eq!(lost.job.phase(), Phase::Retrying, "this attempt never began, and the others are not held against it");
    let last = go(&job, failed(21, Failure::Unauthenticated, Dispatched::No), at(30), &careful);
    assert_eq!(last.job.outcome().map(|outcome| outcome.status), Some(Status::Failed));
}

#[test]
fn an_attempt_that_goes_on_without_us_is_taken_up() {
    let resuming = Policy { recovery: Recovery::Resume, ..POLICY };
    let printed = go(&running(), output(1, 0, "four"), at(1_000), &resuming).job;
    let step = go(&printed, Event::Interrupted(End::Unclean), at(500_000), &resuming);
    assert_eq!(actions(&step), ["resume 1"]);
    assert!(step.entries.is_empty());
    assert_eq!(alarm(&step.job, &Policy { total: secs(10_000), ..resuming.clone() }), Some(at(530_000)));
    let more = go(&step.job, output(1, 4, "more"), at(500_001), &resuming);
    assert_eq!(entries(&more), ["4 output(1, 4+4)"]);
}

#[test]
fn a_new_attempt_prints_from_the_beginning() {
    let printed = go(&running(), output(1, 0, "four"), at(1_000), &POLICY).job;
    let again = after(printed, [(at(2_000), Event::Interrupted(End::Unclean)), (at(3_000), start())], &POLICY);
    assert_eq!(entries(&go(&again, output(2, 0, "four"), at(4_000), &POLICY)), ["6 output(2, 0+4)"]);
}

#[test]
fn a_job_that_dies_with_its_agent_is_begun_again_a_few_times_and_then_fails() {
    let resuming = Policy { recovery: Recovery::Resume, repeats: Repeats::BeforeStart, silence: None, ..POLICY };
    let mut job = running();
    for attempt in 1..=3 {
        let step = go(&job, dead(attempt), at(u64::from(attempt) * 20_000), &resuming);
        assert_eq!((step.job.phase(), actions(&step)), (Phase::Retrying, vec![]), "its breaker is not told");
        let later = at(u64::from(attempt) * 20_000 + 10_000);
        job = after(step.job, [(later, Event::Clock), (later, start())], &resuming);
    }
    let step = go(&job, dead(4), at(90_000), &resuming);
    let failure = step.job.outcome().and_then(|outcome| outcome.why());
    assert_eq!(failure, Some((Failure::Unavailable, Repeat::Unknown)), "a job that kills whoever does it ends too");
    let refused = failed(4, Failure::Unavailable, Dispatched::No);
    let step = go(
        &job,
        refused,
        at(90_000),
        &Policy {
            schedule: crosspoint_contracts::request::Schedule { attempts_max: 1, ..resuming.schedule },
            ..resuming.clone()
        },
    );
    let failure = step.job.outcome().and_then(|outcome| outcome.why());
    assert_eq!(failure, Some((Failure::Unavailable, Repeat::Unknown)), "an attempt before it may have begun");
    let once = Policy { recovery: Recovery::ResumeOnce, ..resuming };
    assert_eq!(go(&running(), dead(1), at(1), &once).job.phase(), Phase::Failed);
}

#[test]
fn what_never_left_us_goes_back_to_the_queue_and_is_no_repeat() {
    let mut job = running();
    for attempt in 1..=20 {
        let step = go(&job, Event::Withdrawn { attempt }, at(u64::from(attempt)), &POLICY);
        assert_eq!((step.job.phase(), step.job.begun), (Phase::Queued, false));
        job = go(&step.job, start(), at(u64::from(attempt)), &POLICY).job;
    }
    assert_eq!((job.attempts, job.retries), (21, 0));
}

#[test]
fn limits_of_time_never_overflow() {
    let endless = Policy { silence: Some(Duration::MAX), total: Duration::MAX, ..POLICY };
    let limits = Limits { total: Some(Duration::MAX), silence: Some(Duration::MAX), ..Limits::default() };
    let running = go(&job_with(limits), start(), T0, &endless).job;
    let step = go(&running, Event::Clock, at(u64::from(u32::MAX)), &endless);
    assert_eq!(step.job.phase(), Phase::Running);
}

#[test]
fn a_result_whose_text_was_not_all_sent_is_no_result() {
    let printed = |start, end| {
        let text = Some(Text::Printed(Printed { attempt: 1, start, end }));
        Event::Finish { attempt: 1, result: Ok(Success { text, ..Success::default() }) }
    };
    let said = go(&running(), output(1, 0, "text"), at(10), &POLICY).job;
    let ended = go(&said, printed(1, 4), at(20), &POLICY).job;
    assert_eq!(ended.outcome().and_then(|outcome| outcome.printed()), Some(Printed { attempt: 1, start: 1, end: 4 }));
    for (start, end) in [(0, 5), (3, 2)] {
        let step = go(&said, printed(start, end), at(20), &POLICY);
        let why = step.job.outcome().and_then(|outcome| outcome.why());
        assert_eq!(why, Some((Failure::BrokenContract, Repeat::Unknown)), "from {start} to {end}");
    }
}
