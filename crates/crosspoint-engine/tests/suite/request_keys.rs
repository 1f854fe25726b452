//! What makes a repeat the same job (ALL-1), as far as the core decides it.

use std::sync::Arc;

use crosspoint_engine::core::{Batch, Command, Origin, Reply, Room, Submission};
use crosspoint_engine::id::Seq;
use crosspoint_engine::keys::{Hash, Keys, Other};
use crosspoint_engine::machine::Event;

use crate::made::{T0, request};
use crate::town::{Town, agent, origin, submission};

fn submit(town: &mut Town, hash: u64, others: &[Seq]) -> Reply {
    let submission = Submission {
        others: others.iter().map(|seq| Other { seq: *seq, had: 0 }).collect(),
        ..submission(request(0, "work"), Some(hash))
    };
    town.tell(&Command::Submit(Arc::new(submission)))
}

fn town() -> Town {
    Town::new(vec![agent("a", &["work"], 1)])
}

#[test]
fn a_repeat_is_known_also_before_anything_is_committed() {
    let mut town = town();
    let submission = Command::Submit(Arc::new(submission(request(0, "work"), Some(7))));
    let mut batch = Batch::default();
    let first = town.core.apply(&submission, T0, &mut batch);
    let second = town.core.apply(&submission, T0, &mut batch);
    assert!(matches!(first, Reply::Accepted(job) if job.seq() == Seq(1)));
    assert!(matches!(second, Reply::Known(Seq(1))), "{second:?}");
    assert_eq!(batch.jobs.len(), 1);
}

#[test]
fn a_repeat_is_known_also_after_the_end() {
    let mut town = town();
    submit(&mut town, 7, &[]);
    town.happens(Seq(1), Event::Cancel);
    assert!(matches!(submit(&mut town, 7, &[]), Reply::Known(Seq(1))));
}

#[test]
fn a_repeat_is_known_when_there_is_no_room_or_its_work_is_gone() {
    let mut keys = Keys::default();
    keys.claim(Hash(7), Seq(1));
    let agents = vec![agent("a", &["another work"], 1)];
    let mut town = Town::of(Origin { keys, last_seq: Seq(1), room: Room::of(0), ..origin(agents) });
    assert!(matches!(submit(&mut town, 7, &[]), Reply::Known(Seq(1))));
}

#[test]
fn two_keys_of_one_hash_are_two_jobs() {
    let mut town = town();
    submit(&mut town, 7, &[]);
    assert!(matches!(submit(&mut town, 7, &[Seq(1)]), Reply::Accepted(job) if job.seq() == Seq(2)));
    assert!(matches!(submit(&mut town, 7, &[]), Reply::Known(Seq(1))));
    assert!(matches!(submit(&mut town, 7, &[Seq(1)]), Reply::Known(Seq(2))), "whose key that is");
    assert!(matches!(submit(&mut town, 7, &[Seq(1), Seq(2)]), Reply::Accepted(job) if job.seq() == Seq(3)));
    assert!(matches!(submit(&mut town, 8, &[]), Reply::Accepted(_)));
}

#[test]
fn what_is_refused_takes_no_key_and_no_number() {
    let mut town = town();
    let unknown = Command::Submit(Arc::new(submission(request(0, "unheard"), Some(7))));
    assert!(matches!(town.tell(&unknown), Reply::Rejected(_)));
    assert!(matches!(submit(&mut town, 7, &[]), Reply::Accepted(job) if job.seq() == Seq(1)));
}

#[test]
fn without_a_name_the_request_id_is_the_jobs_own() {
    let mut town = town();
    let nameless = Submission { nameless: true, ..submission(request(0, "work"), None) };
    let reply = town.tell(&Command::Submit(Arc::new(nameless)));
    let Reply::Accepted(job) = reply else { panic!("it is accepted") };
    assert_eq!(*job.request.request_id, job.id().to_string());
}
