//! Outcomes that recipients are owed until they were told.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::request::{Key, NewJob};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::Batch;
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::retention::Rule;
use crosspoint_engine::runtime::{Config, Denied, Engine, Submitted};
use crosspoint_engine::store::check::Flaw;
use crosspoint_engine::store::{Budget, Owed, OwedCount, Readers, Store};

use crate::rows::{self, DOCUMENT, NOW, batch, end, fresh, stepped};
use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, gated, keyed, never, new_job, stop, submit, until};
use crate::unwritable::{named_by_the_check, sql};

fn owing(seq: u64, recipient: &str) -> Job {
    let mut job = rows::job(seq);
    let request = Arc::make_mut(&mut job.request);
    (request.notify, request.key) = (Some(recipient.into()), Key::None);
    job
}

fn notifying(work: &str, recipient: &str) -> NewJob {
    NewJob { notify: Some(recipient.into()), ..new_job(work, "{}") }
}

fn telling(ids: impl IntoIterator<Item = JobId>) -> Batch {
    Batch { told: ids.into_iter().collect(), ..Batch::default() }
}

fn owed(readers: &Readers, recipient: &str) -> Vec<u64> {
    let owed = readers.owed(recipient, None, 100).expect("it can be read");
    owed.iter().map(|owed| owed.id.seq().0).collect()
}

/// Stores four jobs for two recipients, of which all but the last have ended.
fn filled(scratch: &Scratch) -> (Store, Readers) {
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    let recipients = ["one", "two", "one", "one"];
    for (seq, recipient) in (1..).zip(recipients) {
        let mut job = owing(seq, recipient);
        store.commit(&batch([fresh(job.clone(), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
        if seq < 4 {
            let last = end(&mut job, Status::Completed, "{}");
            store.commit(&batch([stepped(job, vec![last])])).expect("it commits");
        }
    }
    // The rows are made by hand, with ids as earlier versions made them.
    sql(scratch, "INSERT INTO meta(name, value) VALUES ('plain_ids_until', x'ffffffffffff')");
    (store, readers)
}

#[test]
fn a_job_is_owed_from_its_acceptance_until_its_recipient_was_told() {
    let scratch = Scratch::new();
    let (mut store, readers) = filled(&scratch);
    let since = Time(NOW.0 + 2);
    let ended_at = Some(since);
    let all = readers.owed("one", None, 100).expect("it can be read");
    let expected = [(1, ended_at), (3, ended_at), (4, None)];
    assert_eq!(all, expected.map(|(seq, ended_at)| Owed { id: rows::id(seq), ended_at }));
    assert_eq!(readers.owed("one", Some(Seq(1)), 1).expect("it can be read"), all[1..2]);
    assert_eq!(readers.owed("nobody", None, 100).expect("it can be read"), []);
    let count = |recipient: &str, jobs| OwedCount { recipient: recipient.into(), jobs, since };
    assert_eq!(readers.owed_counts().expect("they can be read"), [count("one", 2), count("two", 1)]);
    // Another id with the number of a job is not that job.
    store.commit(&telling([rows::id(1), JobId::new(Seq(3), NOW, 99), rows::id(1)])).expect("it commits");
    assert_eq!((owed(&readers, "one"), owed(&readers, "two")), (vec![3, 4], vec![2]));
    assert_eq!(readers.owed_to(Seq(1)).expect("it can be read"), None);
    assert_eq!(readers.owed_to(Seq(3)).expect("it can be read").as_deref(), Some("one"));
    drop((store, readers));
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    assert_eq!((owed(&readers, "one"), owed(&readers, "two")), (vec![3, 4], vec![2]), "and so it stays");
    assert_eq!(named_by_the_check(&scratch), []);

    // A job that goes takes with it what is owed of it.
    let all = Budget { rows: u64::MAX, bytes: u64::MAX };
    store.purge(&[Seq(2), Seq(3)], all).expect("they can be purged");
    assert_eq!((owed(&readers, "one"), owed(&readers, "two")), (vec![4], vec![]));
    assert_eq!(readers.owed_counts().expect("they can be read"), []);
    assert_eq!(named_by_the_check(&scratch), []);
}

#[test]
fn a_commit_that_fails_owes_nothing_and_has_told_nobody() {
    let scratch = Scratch::new();
    let (mut store, readers) = filled(&scratch);
    sql(&scratch, "CREATE TRIGGER stubborn BEFORE INSERT ON job BEGIN SELECT RAISE(ABORT, 'no'); END");
    let mut both = batch([fresh(owing(5, "one"), DOCUMENT.as_bytes(), Vec::new())]);
    both.told.push(rows::id(1));
    assert!(store.commit(&both).is_err());
    assert_eq!(owed(&readers, "one"), [1, 3, 4]);
    sql(&scratch, "DROP TRIGGER stubborn");
    store.commit(&both).expect("it commits");
    assert_eq!(owed(&readers, "one"), [3, 4, 5]);
}

#[test]
fn what_is_owed_wrongly_is_found() {
    let cases = [
        ("DELETE FROM owed WHERE job = 4", vec![(Flaw::Owed, Some(Seq(4)))]),
        ("DELETE FROM owed WHERE job = 3", vec![]),
        ("UPDATE owed SET recipient = 'two' WHERE job = 3", vec![(Flaw::Owed, Some(Seq(3)))]),
        ("UPDATE job SET notify = NULL WHERE seq = 3", vec![(Flaw::Owed, Some(Seq(3)))]),
        ("INSERT INTO owed VALUES (9, 'one')", vec![(Flaw::Stray, Some(Seq(9)))]),
    ];
    for (damage, found) in cases {
        let scratch = Scratch::new();
        drop(filled(&scratch));
        sql(&scratch, damage);
        assert_eq!(named_by_the_check(&scratch), found, "{damage}");
    }
}

#[tokio::test]
async fn a_recipient_is_owed_over_restarts_and_never_again_once_it_was_told() {
    let (scratch, gate) = (Scratch::new(), Arc::new(tokio::sync::Semaphore::new(0)));
    let agents = || vec![gated("slow", &gate), agent("echo", stage::echo)];
    let engine = stage::start(&scratch, agents());
    let plain = ended(&submit(&engine, new_job("echo", "{}")).await).await;
    assert_eq!(engine.owed_to(&plain).await.expect("it can be read"), None);
    let slow = submit(&engine, notifying("slow", "one")).await;
    let done = ended(&submit(&engine, notifying("echo", "one")).await).await;
    let ids = async |engine: &Engine| -> Vec<JobId> {
        engine.owed("one", None, 10).await.expect("it can be read").iter().map(|owed| owed.id).collect()
    };
    assert_eq!(ids(&engine).await, [slow.job().id(), done.id()]);
    let too_early = engine.told(slow.job().id()).await;
    assert!(matches!(too_early, Err(Denied::NotEnded(job)) if job.id() == slow.job().id()), "there is no outcome");
    let counts = engine.owed_counts().await.expect("they can be read");
    assert_eq!(counts.iter().map(|count| (&*count.recipient, count.jobs)).collect::<Vec<_>>(), [("one", 1)]);
    stop(engine).await;

    let engine = stage::start(&scratch, agents());
    assert_eq!(ids(&engine).await, [slow.job().id(), done.id()], "a restart forgets nothing");
    engine.told(done.id()).await.expect("it can be written");
    engine.told(done.id()).await.expect("telling it again changes nothing");
    engine.told(crate::rows::id(7)).await.expect("nor does telling of no job");
    assert_eq!(engine.owed_to(&done).await.expect("it can be read"), None);
    // A repeat of the work that an operator asks for is not the recipient's.
    let again = engine.retry(done.id(), None).await.expect("it has ended").expect("it is accepted");
    let Submitted::New(again) = again else { panic!("it is a new job") };
    assert_eq!(ended(&again).await.request.notify, None);
    // The task of the attempt before the restart may still wait at the gate.
    gate.add_permits(2);
    let watch = engine.job(slow.job().id()).await.expect("it can be read").expect("it is there");
    let job = ended(&watch).await;
    assert_eq!(engine.owed_to(&job).await.expect("it can be read").as_deref(), Some("one"));
    stop(engine).await;
    let engine = stage::start(&scratch, agents());
    assert_eq!(ids(&engine).await, [job.id()]);
    stop(engine).await;
}

/// The files are copied while the server runs, as a kill would leave them.
#[tokio::test]
async fn a_kill_between_acceptance_outcome_and_telling_loses_nothing() {
    let (scratch, gate) = (Scratch::new(), Arc::new(tokio::sync::Semaphore::new(0)));
    let engine = stage::start(&scratch, vec![gated("slow", &gate)]);
    let killed = |what: &str, due: &[JobId], phase: Phase| {
        let copy = Scratch::new();
        std::fs::copy(scratch.database(), copy.database()).expect("it can be copied");
        std::fs::copy(scratch.log(), copy.log()).expect("it can be copied");
        let (store, readers) = Store::open(&copy.options()).expect("it opens");
        let found = readers.owed("one", None, 10).expect("it can be read");
        assert_eq!(found.iter().map(|owed| owed.id).collect::<Vec<_>>(), due, "{what}");
        let job = readers.job_at(Seq(1)).expect("it can be read").expect("it is there");
        assert_eq!(job.phase(), phase, "{what}");
        assert!(found.iter().all(|owed| owed.ended_at.is_some() == phase.is_end()), "{what}");
        drop(store);
        assert_eq!(named_by_the_check(&copy), [], "{what}");
    };
    let watch = submit(&engine, notifying("slow", "one")).await;
    let id = watch.job().id();
    stage::reaches(&watch, Phase::Running).await;
    killed("after acceptance", &[id], Phase::Running);
    gate.add_permits(1);
    ended(&watch).await;
    killed("after the outcome", &[id], Phase::Completed);
    engine.told(id).await.expect("it can be written");
    killed("after telling", &[], Phase::Completed);
    stop(engine).await;
}

#[tokio::test]
async fn a_repeated_request_is_owed_once_and_retention_takes_what_is_owed_along() {
    let scratch = Scratch::new();
    let retention = Rule { age: Some(Duration::from_millis(20)), jobs: None, age_min: Duration::ZERO };
    let config =
        Config { retention, ..stage::config(&scratch, vec![agent("echo", stage::echo), agent("never", never)]) };
    let engine = Engine::start(config).expect("it starts");
    let request = || NewJob { notify: Some("one".into()), ..keyed("never", "{}", "r") };
    let watch = submit(&engine, request()).await;
    assert!(matches!(engine.submit(request()).await, Ok(Submitted::Repeat(_))));
    assert_eq!(engine.owed("one", None, 10).await.expect("it can be read").len(), 1);
    let gone = ended(&submit(&engine, notifying("echo", "two")).await).await;
    until("it was removed", async || engine.owed("two", None, 10).await.expect("it can be read").is_empty()).await;
    assert!(engine.job(gone.id()).await.expect("it can be read").is_none());
    engine.told(gone.id()).await.expect("it is gone, which is fine");
    assert_eq!(watch.job().phase(), Phase::Running);
    stop(engine).await;
    assert_eq!(named_by_the_check(&scratch), []);
}
