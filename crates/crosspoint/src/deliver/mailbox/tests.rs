//! Mailboxes, with the time given and messages that are mere ids.

use crosspoint_contracts::time::Time;

use super::*;

fn job(seq: u64) -> JobId {
    JobId::new(Seq(seq), Time::default(), 1)
}

fn shown(progress: i64) -> Shown {
    Shown::at(Time(progress))
}

fn mailbox(jobs: impl IntoIterator<Item = u64>) -> Mailbox {
    let mut mailbox = Mailbox::new();
    assert_eq!(mailbox.wants(), Some(None));
    mailbox.filled(&[], true);
    jobs.into_iter().for_each(|seq| mailbox.moved(job(seq), true));
    mailbox
}

fn ids(message: &str, job: &[&str]) -> Ids {
    Ids { message: message.into(), job: job.iter().map(|id| (*id).into()).collect() }
}

fn all(messages: &[&str]) -> Vec<Ids> {
    messages.iter().map(|message| ids(message, &["request"])).collect()
}

/// What the jobs of a pull are: those up to 9 have not ended, and the others have.
fn pull(mailbox: &mut Mailbox, progress: i64, now: Instant) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(id) = mailbox.next(now) {
        let seq = id.seq().0;
        let request = format!("request-{seq}");
        let of_job = [request.as_str(), "task"];
        if seq < 10 {
            if mailbox.wants_state(id, Some(shown(progress)), now) {
                let message = format!("state-{seq}-{progress}");
                mailbox.give_state(id, shown(progress), ids(&message, &of_job), now);
                messages.push(message);
            }
            continue;
        }
        let all: Vec<Ids> = (1..=3).map(|part| ids(&format!("part-{seq}-{part}"), &of_job)).collect();
        let Part::Rest(part) = mailbox.give_outcome(id, &all, |_| true) else { continue };
        messages.extend(part.into_iter().map(|at| all[at].message.to_string()));
    }
    messages
}

#[test]
fn what_was_not_acknowledged_comes_again_after_thirty_seconds_and_not_before() {
    let (mut mailbox, now) = (mailbox([1, 10]), Instant::now());
    let all = ["state-1-0", "part-10-1", "part-10-2", "part-10-3"];
    assert_eq!(pull(&mut mailbox, 0, now), all);
    assert_eq!(pull(&mut mailbox, 0, now + AGAIN_AFTER - Duration::from_millis(1)), [""; 0]);
    assert_eq!(mailbox.due(), Some(now + AGAIN_AFTER));
    assert_eq!(pull(&mut mailbox, 0, now + AGAIN_AFTER), all);
    assert_eq!(mailbox.acknowledge("part-10-1"), []);
    assert_eq!(mailbox.acknowledge("state-1-0"), []);
    assert_eq!(pull(&mut mailbox, 0, now + 2 * AGAIN_AFTER), ["part-10-2", "part-10-3"]);
}

#[test]
fn the_last_message_acknowledged_is_the_outcome_acknowledged() {
    for name in ["part-10-3", "request-10"] {
        let (mut mailbox, now) = (mailbox([10]), Instant::now());
        assert_eq!(pull(&mut mailbox, 0, now).len(), 3);
        assert_eq!(mailbox.acknowledge("nobody"), []);
        assert_eq!(mailbox.acknowledge(name), [job(10)]);
        // The store could not be told yet: it is tried again, and nothing is given again.
        let later = now + AGAIN_AFTER;
        assert_eq!(mailbox.next(later), Some(job(10)));
        assert_eq!(mailbox.give_outcome(job(10), &all(&["a", "b", "c"]), |_| true), Part::Acknowledged);
        mailbox.forget(job(10));
        assert_eq!((mailbox.acknowledge(name), mailbox.due()), (vec![], None));
        assert!(mailbox.given.is_empty() && mailbox.names.is_empty());
    }
}

#[test]
fn a_name_that_jobs_share_acknowledges_what_was_given_of_each() {
    let (mut mailbox, now) = (mailbox([1, 10, 11]), Instant::now());
    pull(&mut mailbox, 0, now);
    mailbox.moved(job(12), true);
    assert_eq!(mailbox.acknowledge("task"), [job(10), job(11)]);
    assert_eq!(pull(&mut mailbox, 0, now), ["part-12-1", "part-12-2", "part-12-3"]);
}

#[test]
fn only_the_latest_state_is_given_and_at_once() {
    let (mut mailbox, now) = (mailbox([1]), Instant::now());
    assert_eq!(pull(&mut mailbox, 0, now), ["state-1-0"]);
    mailbox.moved(job(1), true);
    assert_eq!(pull(&mut mailbox, 0, now + AGAIN_AFTER / 2), [""; 0], "nothing of it shows");
    assert_eq!(mailbox.due(), Some(now + AGAIN_AFTER), "and that puts nothing off");
    mailbox.moved(job(1), true);
    assert_eq!(pull(&mut mailbox, 7, now + AGAIN_AFTER / 2), ["state-1-7"]);
    assert_eq!(mailbox.acknowledge("state-1-0"), [], "an earlier one is of no interest");
    assert_eq!(pull(&mut mailbox, 7, now + 2 * AGAIN_AFTER), ["state-1-7"]);
    mailbox.acknowledge("request-1");
    assert_eq!(pull(&mut mailbox, 7, now + 4 * AGAIN_AFTER), [""; 0]);
    mailbox.moved(job(1), true);
    assert_eq!(pull(&mut mailbox, 7, now + 4 * AGAIN_AFTER), [""; 0], "acknowledged, and nothing new shows");
    mailbox.moved(job(1), true);
    assert_eq!(pull(&mut mailbox, 8, now + 4 * AGAIN_AFTER), ["state-1-8"]);
}

/// The job ends while the acknowledgement of its state is on its way.
#[test]
fn an_acknowledged_state_does_not_keep_back_the_outcome() {
    let (mut mailbox, now) = (mailbox([1]), Instant::now());
    pull(&mut mailbox, 0, now);
    mailbox.moved(job(1), true);
    assert_eq!(mailbox.acknowledge("request-1"), []);
    assert_eq!(mailbox.next(now), Some(job(1)));
    mailbox.moved(job(1), true);
    assert!(!mailbox.wants_state(job(1), Some(shown(0)), now) && !mailbox.wants_state(job(1), None, now));
    assert_eq!(mailbox.next(now), Some(job(1)), "it has moved while it was looked at");
    assert_eq!(mailbox.give_outcome(job(1), &all(&["x"]), |_| true), Part::Rest(vec![0]));
    assert_eq!(mailbox.acknowledge("x"), [job(1)]);
}

#[test]
fn messages_for_which_there_is_no_room_are_the_next() {
    let (mut mailbox, now) = (mailbox([10, 11]), Instant::now());
    let ids = all(&["a", "b", "c", "d"]);
    let give = |mailbox: &mut Mailbox, most: usize| {
        assert_eq!(mailbox.next(now), Some(job(10)));
        let mut room = 0..most;
        let has_room = |_| room.next().is_some();
        match mailbox.give_outcome(job(10), &ids, has_room) {
            Part::Rest(part) | Part::Beginning(part) => part,
            Part::Acknowledged => panic!("it is not"),
        }
    };
    assert_eq!(give(&mut mailbox, 0), [0; 0]);
    assert_eq!(give(&mut mailbox, 1), [0]);
    assert_eq!(mailbox.acknowledge("request"), [], "there is more");
    assert_eq!(give(&mut mailbox, 2), [1, 2]);
    assert_eq!(mailbox.acknowledge("c"), []);
    assert_eq!(mailbox.acknowledge("d"), [], "it was not given yet");
    assert_eq!(give(&mut mailbox, 9), [3]);
    assert_eq!(mailbox.next(now), Some(job(11)), "now it is the turn of others");
    let later = now + AGAIN_AFTER;
    assert_eq!(mailbox.next(later), Some(job(10)));
    assert_eq!(mailbox.give_outcome(job(10), &ids, |_| true), Part::Rest(vec![1, 3]));
    assert_eq!(mailbox.acknowledge("d"), [job(10)], "the last one ends it");
}

/// The recipient went away while its messages were on their way.
#[test]
fn a_pull_that_is_given_up_loses_nothing() {
    let (mut mailbox, now) = (mailbox([10]), Instant::now());
    assert_eq!(mailbox.next(now), Some(job(10)));
    assert_eq!(mailbox.next(now), None);
    assert_eq!(pull(&mut mailbox, 0, now + AGAIN_AFTER).len(), 3);
}
