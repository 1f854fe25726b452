//! A request with two names, a key and the id of a task, makes both of them names of its job (ALL-1, TASK-5).

use std::sync::Arc;

use crosspoint_contracts::Contract;
use crosspoint_contracts::request::{Door, Key, NewJob};
use crosspoint_engine::core::{Command, Rejected, Repeats, Reply, Submission};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::keys::{FURTHER_NAMES_MAX, FurtherName, Hash, Hashes, Name};
use crosspoint_engine::runtime::{Engine, Submitted, Unaccepted};
use crosspoint_engine::store::check::{CheckNote, Flaw, check};
use crosspoint_engine::store::{Budget, Readers, Store};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::made::request;
use crate::scratch::Scratch;
use crate::stage::{agent, echo, ended, gated, keyed, start, stop, submit};
use crate::town::{self, Town};

const TASK: Door = Door::Contract(Contract::Task);

fn task(id: &str, input: &str) -> NewJob {
    NewJob { door: TASK, ..keyed("slow", input, id) }
}

fn headed(key: &str, id: &str) -> NewJob {
    NewJob { key: Key::Other(key.into()), ..task(id, "{}") }
}

async fn repeats(engine: &Engine, new: NewJob) -> JobId {
    match engine.submit(new).await {
        Ok(Submitted::Repeat(watch)) => watch.job().id(),
        Ok(Submitted::New(_)) => panic!("it is a repeat, and ran again"),
        Err(unaccepted) => panic!("{unaccepted:?}"),
    }
}

async fn found(engine: &Engine, id: &str) -> Option<JobId> {
    Some(engine.find(TASK, "", id).await.expect("the store can be read")?.job().id())
}

/// The names of the job are `a`, `b`, `c` and the keys `one` and `two`, whichever of them a request has.
async fn is_known_by_all(engine: &Engine, first: JobId) {
    for id in ["a", "b", "c"] {
        assert_eq!(found(engine, id).await, Some(first), "{id}");
        assert_eq!(repeats(engine, task(id, "{}")).await, first, "{id} without its key");
        assert_eq!(repeats(engine, headed("two", id)).await, first, "{id}");
        let other = engine.submit(task(id, "[1]")).await;
        assert!(matches!(other, Err(Unaccepted::Conflict(job)) if job.id() == first), "{id} with another input");
    }
}

#[tokio::test]
async fn a_name_that_came_with_a_repeat_is_the_jobs_from_then_on() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    let first = submit(&engine, headed("one", "a")).await.job().id();
    for again in [headed("one", "b"), headed("two", "a"), headed("two", "c"), headed("one", "b")] {
        assert_eq!(repeats(&engine, again).await, first);
    }
    is_known_by_all(&engine, first).await;
    gate.add_permits(1);
    ended(&engine.job(first).await.expect("it can be read").expect("it is there")).await;
    is_known_by_all(&engine, first).await;
    stop(engine).await;
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    is_known_by_all(&engine, first).await;
    let other = submit(&engine, headed("three", "d")).await.job().id();
    assert!(other != first && found(&engine, "e").await.is_none());
    gate.add_permits(1);
    stop(engine).await;
}

#[tokio::test]
async fn two_names_of_two_jobs_are_a_conflict_and_change_neither() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("slow", echo)]);
    let first = submit(&engine, headed("one", "a")).await.job().id();
    let second = submit(&engine, task("b", "{}")).await.job().id();
    assert!(matches!(engine.submit(headed("one", "b")).await, Err(Unaccepted::TwoJobs)), "the input is the same");
    assert_eq!((found(&engine, "a").await, found(&engine, "b").await), (Some(first), Some(second)));
    stop(engine).await;
}

#[tokio::test]
async fn a_task_that_joins_work_of_another_door_by_its_key_has_its_id_from_then_on() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("slow", echo)]);
    let native = NewJob { key: Key::Other("one".into()), ..keyed("slow", "{}", "n") };
    let first = submit(&engine, native).await.job().id();
    assert_eq!(repeats(&engine, headed("one", "a")).await, first);
    assert_eq!(found(&engine, "a").await, Some(first));
    assert_eq!(repeats(&engine, task("a", "{}")).await, first);
    let unnamed = engine.find(TASK, "", "n").await.expect("the store can be read");
    assert!(unnamed.is_none(), "that is its id at another door");
    assert!(engine.find(TASK, "x", "a").await.expect("the store can be read").is_none(), "another caller's");
    stop(engine).await;
}

/// A store with a job that has two further names, which are on disk.
async fn filled() -> Scratch {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("slow", echo)]);
    ended(&submit(&engine, headed("one", "a")).await).await;
    for again in [headed("one", "b"), headed("two", "a")] {
        repeats(&engine, again).await;
    }
    stop(engine).await;
    scratch
}

#[tokio::test]
async fn names_go_with_their_job_and_are_free_again() {
    let scratch = filled().await;
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    let id = Name { door: Some(TASK), text: "b".into() };
    let key = Name { door: None, text: "two".into() };
    assert_eq!(readers.further_names(Seq(1)).expect("they can be read"), [id, key]);
    let purged = store.purge(&[Seq(1)], Budget::STEP).expect("it can be removed");
    assert_eq!(purged.keys.len(), 4);
    assert_eq!(readers.further_names(Seq(1)).expect("they can be read"), []);
    assert!(store.load().expect("it can be read").keys.is_empty());
    drop((store, readers));
    let engine = start(&scratch, vec![agent("slow", echo)]);
    assert!(matches!(engine.submit(task("b", "[1]")).await, Ok(Submitted::New(_))));
    stop(engine).await;
}

#[tokio::test]
async fn a_name_that_is_not_found_by_its_hash_or_whose_job_is_gone_is_found_by_a_check() {
    let flaws = |scratch: &Scratch, sql: &str| {
        Connection::open(scratch.database()).and_then(|store| store.execute_batch(sql)).expect("it can be damaged");
        let mut flaws = Vec::new();
        check(&scratch.database(), &mut |told| {
            if let CheckNote::Finding(finding) = told {
                flaws.push(finding.flaw);
            }
        })
        .expect("it can be checked");
        flaws
    };
    let scratch = filled().await;
    assert_eq!(flaws(&scratch, ""), []);
    assert_eq!(flaws(&scratch, "UPDATE further_name SET name = 'c' WHERE door = 'task'"), [Flaw::Key]);
    assert_eq!(flaws(&scratch, "UPDATE further_name SET door = 'none'"), [Flaw::Key, Flaw::Key]);
    assert_eq!(flaws(&scratch, "UPDATE further_name SET job = 9"), [Flaw::Stray]);
    let older = "DROP TABLE further_name; PRAGMA user_version = 15";
    assert_eq!(flaws(&scratch, older), []);
    let as_it_is = Readers::open(&scratch.database()).expect("it can be read");
    assert_eq!(as_it_is.further_names(Seq(1)).expect("they can be read"), []);
}

fn claim(seq: u64, hash: u64, had: usize) -> Command {
    let hashes = Hashes { key: Some(Hash(1)), alias: Some(Hash(hash)) };
    let name = FurtherName { hash: Hash(hash), name: Name { door: Some(TASK), text: hash.to_string().into() } };
    let repeats = Some(Repeats { seq: Seq(seq), names: vec![name], had });
    let submission = Submission { hashes, repeats, ..town::submission(request(0, "work"), Some(1)) };
    Command::Submit(Arc::new(submission))
}

fn with_jobs(hashes: &[u64]) -> Town {
    let mut town = Town::new(vec![town::agent("a", &["work"], 1)]);
    for hash in hashes {
        let first = Command::Submit(Arc::new(town::submission(request(0, "work"), Some(*hash))));
        assert!(matches!(town.tell(&first), Reply::Accepted(_)));
        assert!(town.batch.names.is_empty(), "a first request has no further names");
    }
    town
}

#[test]
fn a_job_has_so_many_further_names_and_no_more() {
    let mut town = with_jobs(&[1]);
    for had in 0..FURTHER_NAMES_MAX {
        assert!(matches!(town.tell(&claim(1, 100 + had as u64, had)), Reply::Claimed), "{had}");
        assert_eq!((town.batch.names.len(), town.batch.is_empty()), (1, false));
    }
    assert!(matches!(town.tell(&claim(1, 99, FURTHER_NAMES_MAX)), Reply::Rejected(Rejected::TooManyNames)));
    assert!(town.batch.names.is_empty());
}

#[test]
fn of_two_repeats_that_come_at_once_the_second_is_compared_with_what_the_first_has_claimed() {
    let mut town = with_jobs(&[1]);
    assert!(matches!(town.tell(&claim(1, 2, 0)), Reply::Claimed));
    assert!(matches!(town.tell(&claim(1, 2, 0)), Reply::Known(Seq(1))));
    assert!(town.batch.names.is_empty());
    assert!(matches!(town.tell(&claim(1, 2, 1)), Reply::Claimed), "another name of the same hash");
}

#[test]
fn a_name_that_another_job_may_have_is_not_claimed_before_that_is_known() {
    let mut town = with_jobs(&[1, 2]);
    assert!(matches!(town.tell(&claim(1, 2, 0)), Reply::MayBeOf(Seq(2))));
    assert!(town.batch.names.is_empty());
}

/// The job that a request repeats was removed before its names were claimed: the request is a new job.
#[test]
fn a_repeat_of_a_job_that_is_gone_is_a_new_job() {
    let mut town = with_jobs(&[]);
    assert!(matches!(town.tell(&claim(7, 2, 0)), Reply::Accepted(job) if job.seq() == Seq(1)));
}
