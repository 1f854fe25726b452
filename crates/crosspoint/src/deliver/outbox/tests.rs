//! Outboxes, with the time given and recipients that take what the test says.

use std::time::Duration;

use super::*;

const REFUSED: Trouble = Trouble { what: What::Status(500), retry_after: None };

fn job(seq: u64) -> JobId {
    JobId::new(Seq(seq), Time::default(), 1)
}

fn outbox(jobs: impl IntoIterator<Item = u64>) -> Outbox {
    let mut outbox = Outbox::new();
    assert_eq!(outbox.wants(), Some(None));
    outbox.filled(&[], true);
    jobs.into_iter().for_each(|seq| outbox.moved(job(seq), true));
    outbox
}

fn end(outbox: &mut Outbox, sending: Sending, trouble: Option<Trouble>, now: Instant) -> Option<Notable> {
    let end = trouble.map_or(End::Told, |trouble| End::Failed { trouble, taken: 0 });
    let sent = Sent { is_acknowledged: trouble.is_none(), end };
    outbox.sent(sending, sent, (now, Time::default()), 0.0)
}

/// Sends everything that may be sent until a time, one after the other, and returns when which job was told. Jobs for
/// which `takes` is false are refused.
fn run(outbox: &mut Outbox, mut now: Instant, until: Instant, takes: impl Fn(u64) -> bool) -> Vec<(u64, Duration)> {
    let (began, mut told) = (now, Vec::new());
    while now < until {
        while let Some(sending) = outbox.next(now) {
            let seq = sending.id.seq().0;
            let takes = takes(seq);
            end(outbox, sending, (!takes).then_some(REFUSED), now);
            if takes {
                told.push((seq, now - began));
            }
        }
        let Some(wakes_at) = outbox.wakes_at(now) else { break };
        assert!(wakes_at > now, "it would spin");
        now = wakes_at;
    }
    told
}

#[test]
fn a_job_whose_message_is_refused_holds_no_other_up_and_is_never_dropped() {
    let (mut outbox, now) = (outbox(1..=50), Instant::now());
    let told = run(&mut outbox, now, now + Duration::from_secs(3_600), |seq| seq != 7);
    assert_eq!(told.len(), 49);
    assert!(told.iter().all(|(_, after)| *after == Duration::ZERO), "{told:?}");
    let stumbled = outbox.stumbled(job(7)).expect("it is shown");
    assert!((18..=22).contains(&stumbled.tries), "pauses of five minutes: {stumbled:?}");
    let later = now + Duration::from_secs(3_600);
    let told = run(&mut outbox, later, later + Duration::from_secs(600), |_| true);
    assert_eq!(told.len(), 1);
    assert_eq!((outbox.stumbled(job(7)), outbox.failing()), (None, None));
}

/// Many such jobs look like a recipient that is away, until a message of another job is taken.
#[test]
fn hundreds_of_refused_jobs_do_not_keep_a_new_one_from_being_told() {
    let (mut outbox, now) = (outbox(0..500), Instant::now());
    let day = now + Duration::from_secs(86_400);
    assert_eq!(run(&mut outbox, now, day, |_| false), []);
    outbox.moved(job(1_000), true);
    let told = run(&mut outbox, day, day + Duration::from_secs(3_600), |seq| seq == 1_000);
    let (_, after) = told[0];
    assert!(after <= Duration::from_secs(300), "it is the next that is tried: {after:?}");
}

#[test]
fn a_recipient_that_is_back_is_told_everything_at_once() {
    let (mut outbox, now) = (outbox(0..500), Instant::now());
    let day = now + Duration::from_secs(86_400);
    run(&mut outbox, now, day, |_| false);
    let failing = outbox.failing().expect("it is shown");
    assert!((280..300).contains(&failing.tries), "{failing:?}");
    let told = run(&mut outbox, failing.next_at, day + Duration::from_secs(3_600), |_| true);
    assert_eq!(told.len(), 500);
    assert!(told.iter().all(|(_, after)| *after < Duration::from_secs(2)), "{told:?}");
    assert_eq!(outbox.wakes_at(day), None);
}

#[test]
fn what_is_worth_a_line_is_said_once() {
    let (mut outbox, now) = (outbox(1..=3), Instant::now());
    let out: Vec<Sending> = std::iter::from_fn(|| outbox.next(now)).collect();
    let said: Vec<_> = out.into_iter().map(|sending| end(&mut outbox, sending, Some(REFUSED), now)).collect();
    assert_eq!(said, [Some(Notable::Stumbled), Some(Notable::Away), None]);
    let next = outbox.failing().expect("it fails").next_at;
    let probe = outbox.next(next).expect("one is tried");
    assert!(outbox.next(next).is_none(), "and no other");
    assert_eq!(outbox.wakes_at(next + Duration::from_secs(1)), None, "nothing is to be done before it has ended");
    assert_eq!(end(&mut outbox, probe, Some(REFUSED), next), None);
    let next = outbox.failing().expect("it fails").next_at;
    let probe = outbox.next(next).expect("one is tried");
    assert_eq!(end(&mut outbox, probe, None, next), Some(Notable::Back));
}

#[test]
fn what_was_taken_is_not_sent_again() {
    let (mut outbox, now) = (outbox([1]), Instant::now());
    let sending = outbox.next(now).expect("it is owed");
    let failed = End::Failed { trouble: REFUSED, taken: 3 };
    outbox.sent(sending, Sent { is_acknowledged: true, end: failed }, (now, Time::default()), 0.0);
    let due = now + Duration::from_secs(1);
    assert_eq!(outbox.wakes_at(now), Some(due));
    assert_eq!(outbox.next(due).expect("it is tried again").taken, 3);
}

/// A store that cannot be read says nothing about the recipient.
#[test]
fn a_job_that_cannot_be_read_is_tried_again_and_closes_no_gate() {
    let (mut outbox, now) = (outbox(1..=20), Instant::now());
    let unread = Trouble::of(What::Unreadable);
    for _ in 0..20 {
        let sending = outbox.next(now).expect("it may pass");
        end(&mut outbox, sending, Some(unread), now);
    }
    assert_eq!((outbox.failing(), outbox.wakes_at(now)), (None, Some(now + Duration::from_secs(1))));
}

#[test]
fn an_outcome_does_not_wait_for_the_pause_of_the_state_before_it() {
    let (mut outbox, now) = (outbox([]), Instant::now());
    outbox.moved(job(1), false);
    for _ in 0..8 {
        let now = outbox.wakes_at(now).unwrap_or(now);
        let sending = outbox.next(now).expect("it is tried");
        end(&mut outbox, sending, Some(REFUSED), now);
    }
    outbox.moved(job(1), false);
    assert!(outbox.next(now).is_none(), "another state waits");
    outbox.moved(job(1), true);
    assert!(outbox.next(now).is_some());
}

#[test]
fn a_job_that_was_told_otherwise_is_gone() {
    let (mut outbox, now) = (outbox([1, 2]), Instant::now());
    let sending = outbox.next(now).expect("it is owed");
    outbox.forget(job(1));
    outbox.forget(job(2));
    end(&mut outbox, sending, Some(REFUSED), now);
    assert!(outbox.next(now + Duration::from_secs(3_600)).is_none() && outbox.known.is_empty());
}

/// Nothing was sent, so the gate stays as it is, and its time may have come.
#[test]
fn a_job_that_cannot_be_read_while_the_recipient_is_away_has_a_pause_of_its_own() {
    let (mut outbox, mut now) = (outbox(0..3), Instant::now());
    for _ in 0..2 {
        let sending = outbox.next(now).expect("it may be sent");
        end(&mut outbox, sending, Some(REFUSED), now);
    }
    now = outbox.gate.opens_at().expect("it is away");
    let sending = outbox.next(now).expect("it may be tried");
    end(&mut outbox, sending, Some(Trouble { what: What::Unreadable, retry_after: None }), now);
    assert!(outbox.stumbled(sending.id).is_some_and(|stumbled| stumbled.next_at > now), "it would spin");
    let next = outbox.next(now).expect("another may be tried");
    assert_ne!(next.id, sending.id);
}

#[test]
fn pauses_begin_anew_whenever_a_message_of_the_job_is_taken() {
    let (mut outbox, mut now) = (outbox([1]), Instant::now());
    for taken in 1..=40 {
        for is_acknowledged in [true, false] {
            let sending = outbox.next(now).expect("it may be sent");
            let sent = Sent { is_acknowledged, end: End::Failed { trouble: REFUSED, taken } };
            outbox.sent(sending, sent, (now, Time::default()), 0.0);
            let wakes_at = outbox.wakes_at(now).expect("it is tried again");
            assert!(wakes_at - now <= Duration::from_secs(4), "{:?} after {taken}", wakes_at - now);
            now = wakes_at;
        }
    }
}
