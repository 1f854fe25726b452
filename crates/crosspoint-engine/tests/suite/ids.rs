//! Ids tell nothing about other jobs, and find the right one, also in a store that is older than its key.

use crosspoint_engine::id::{Ids, JobId, Seq};
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Engine;
use crosspoint_engine::store::{Filter, Readers};
use rusqlite::Connection;
use uuid::Uuid;

use crate::older_store::of;
use crate::scratch::Scratch;
use crate::stage::{agent, echo, ended, new_job, start, stop, submit};

async fn begun(scratch: &Scratch) -> Engine {
    start(scratch, vec![agent("echo", echo)])
}

async fn made(engine: &Engine) -> JobId {
    ended(&submit(engine, new_job("echo", "{}")).await).await.id()
}

/// The job that is found by an id as callers write it.
async fn found(engine: &Engine, id: Uuid) -> Option<JobId> {
    let id = engine.job_id(&id.to_string())?;
    engine.job(id).await.expect("it can be read").map(|watch| watch.job().id())
}

#[tokio::test]
async fn an_id_finds_its_job_and_with_a_changed_bit_none() {
    let scratch = Scratch::new();
    let engine = begun(&scratch).await;
    let [one, two] = [made(&engine).await, made(&engine).await];
    assert_eq!([one.seq(), two.seq()], [Seq(1), Seq(2)]);
    for id in [one, two] {
        assert_eq!(found(&engine, id.uuid()).await, Some(id));
        for bit in 0..128 {
            let changed = Uuid::from_u128(id.uuid().as_u128() ^ (1 << bit));
            assert_eq!(found(&engine, changed).await, None, "bit {bit}");
            let read = engine.job_id(&changed.to_string()).expect("it is an id");
            assert_eq!(engine.place(read, Some("")).await.expect("it can be read"), None, "bit {bit}");
        }
        // What an earlier version would have called this job.
        assert_eq!(found(&engine, JobId::new(id.seq(), time_of(id), 1).uuid()).await, None);
    }
    assert_eq!(engine.job_id("1"), None);
    stop(engine).await;
}

fn time_of(id: JobId) -> crosspoint_contracts::time::Time {
    crosspoint_contracts::time::Time(((id.uuid().as_u128() >> 80) as i64) * 1000)
}

#[tokio::test]
async fn ids_are_the_same_after_a_restart_and_different_in_another_store() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let engine = begun(&scratch).await;
    let id = made(&engine).await;
    stop(engine).await;
    let engine = begun(&scratch).await;
    assert_eq!(found(&engine, id.uuid()).await, Some(id));
    stop(engine).await;
    let engine = begun(&other).await;
    made(&engine).await;
    assert_eq!(found(&engine, id.uuid()).await, None);
    stop(engine).await;
}

fn jobs(scratch: &Scratch) -> Vec<JobId> {
    let readers = Readers::open(&scratch.database()).expect("it can be read");
    let page = readers.list(&Filter { limit: 100, ..Filter::default() }).expect("it can be listed");
    page.jobs.iter().map(Job::id).collect()
}

/// Once as it is, and once with ids of a time that is far ahead: as if the clock had been set back since.
#[tokio::test]
async fn jobs_of_an_older_store_are_found_beside_new_ones() {
    for ahead in [false, true] {
        let scratch = of("schema-13");
        if ahead {
            let connection = Connection::open(scratch.database()).expect("it opens");
            let later = "UPDATE job SET id = CAST(x'0f0000000000' || substr(id, 7) AS BLOB)";
            assert_eq!(connection.execute(later, ()).expect("it is changed"), 4);
        }
        let older = jobs(&scratch);
        assert!(older.iter().all(|id| Ids::PLAIN.read(id.uuid()) == *id), "{older:?}");
        let engine = begun(&scratch).await;
        let new = made(&engine).await;
        assert_eq!(new.seq(), Seq(5));
        assert_ne!(Ids::PLAIN.read(new.uuid()).seq(), Seq(5), "it hides its number");
        for id in older.iter().chain([&new]) {
            assert_eq!(found(&engine, id.uuid()).await, Some(*id), "{ahead}");
        }
        stop(engine).await;
        let engine = begun(&scratch).await;
        for id in older.iter().chain([&new]) {
            assert_eq!(found(&engine, id.uuid()).await, Some(*id), "{ahead}, after a restart");
        }
        stop(engine).await;
    }
}

#[tokio::test]
async fn a_list_goes_on_behind_ids_that_the_store_made() {
    let scratch = of("schema-13");
    let older = jobs(&scratch);
    let engine = begun(&scratch).await;
    let new = made(&engine).await;
    let place = async |id, caller| engine.place(id, caller).await.expect("it can be read");
    assert_eq!((place(new, None).await, place(new, Some("")).await), (Some(Seq(5)), Some(Seq(5))));
    assert_eq!(place(new, Some("ann")).await, None, "it is of another caller");
    // An id of an earlier version can be made up: it is believed only if there is such a job, and it is the caller's.
    let made_up = JobId::new(Seq(4), time_of(older[0]), 1);
    assert_eq!(engine.job_id(&made_up.to_string()), Some(made_up));
    assert_eq!(place(made_up, Some("ann")).await, None);
    let [ops, ann] = [1, 0].map(|at| older[at]);
    assert_eq!((place(ops, Some("ann")).await, place(ann, Some("ann")).await), (None, Some(Seq(4))));
    stop(engine).await;
    // A removed job is still a place to go on from.
    let connection = Connection::open(scratch.database()).expect("it opens");
    connection.execute("DELETE FROM job WHERE seq = 5", ()).expect("it is removed");
    let engine = begun(&scratch).await;
    assert_eq!(found(&engine, new.uuid()).await, None);
    let place = async |caller| engine.place(new, Some(caller)).await.expect("it can be read");
    assert_eq!((place("").await, place("ann").await), (Some(Seq(5)), None));
    stop(engine).await;
}
