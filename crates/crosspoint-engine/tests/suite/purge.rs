//! Removing jobs: from the store, step by step, and by an engine that does other work meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::outcome::Status;
use crosspoint_engine::event::What;
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Origin, Phase, Request};
use crosspoint_engine::keys::Hash;
use crosspoint_engine::retention::Rule;
use crosspoint_engine::runtime::{Attempt, Config, Engine, Submitted};
use crosspoint_engine::store::{Budget, Filter, Purged, Readers, Store};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::rows::{self, DOCUMENT, batch, end, fresh, hash, note, stepped};
use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, gated, keyed, new_job, patience, reaches, stop, submit, until};

const ALL: Budget = Budget { rows: u64::MAX, bytes: u64::MAX };

fn open(scratch: &Scratch) -> (Store, Readers) {
    Store::open(&scratch.options()).expect("it opens")
}

fn accepted(store: &mut Store, seq: u64) -> Job {
    let job = rows::job(seq);
    store.commit(&batch([fresh(job.clone(), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    job
}

/// Stores a job that has printed the given number of blocks and ended.
fn done(store: &mut Store, seq: u64, blocks: u64) {
    const BLOCK: &[u8] = &[b'x'; 1_000];
    let mut job = accepted(store, seq);
    let mut entries = vec![note(&mut job, What::Started { attempt: 1, agent: "a".into() })];
    for at in 0..blocks {
        let block = Block(Bytes::from_static(BLOCK));
        entries.push(note(&mut job, What::Output { attempt: 1, offset: at * BLOCK.len() as u64, block }));
    }
    entries.push(end(&mut job, Status::Completed, "{}"));
    store.commit(&batch([stepped(job, entries)])).expect("it commits");
}

/// Counts the rows of each table that belongs to jobs.
fn counts(scratch: &Scratch) -> Vec<i64> {
    let connection = Connection::open(scratch.database()).expect("it opens");
    let count = |table| connection.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0));
    let tables = ["job", "document", "outcome", "event", "violation", "leftover"];
    tables.into_iter().map(|table| count(table).expect("it can be counted")).collect()
}

fn seqs(numbers: impl IntoIterator<Item = u64>) -> Vec<Seq> {
    numbers.into_iter().map(Seq).collect()
}

fn listed(readers: &Readers) -> Vec<u64> {
    let page = readers.list(&Filter { limit: 1_000, ..Filter::default() }).expect("it can be read");
    page.jobs.iter().map(|job| job.seq().0).collect()
}

#[test]
fn a_job_goes_with_everything_that_is_its_own_and_its_key_is_free() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    (1..=3).for_each(|seq| done(&mut store, seq, 2));
    let purged = store.purge(&seqs([1, 3]), ALL).expect("it can be purged");
    let key = |seq| (hash(&rows::job(seq)).expect("it has a key"), Seq(seq));
    assert_eq!(
        purged,
        Purged { rows: purged.rows, jobs: 2, kept: Vec::new(), keys: vec![key(1), key(3)], leftover: false }
    );
    assert_eq!(counts(&scratch), [1, 1, 1, 3, 0, 0]);
    assert_eq!(listed(&readers), [2]);
    assert!(readers.job(rows::id(1)).expect("it can be read").is_none());
    assert!(store.load().expect("it loads").keys.find(key(1).0, &[]).is_none());
}

#[test]
fn a_job_that_has_not_ended_stays_whoever_says_otherwise() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    accepted(&mut store, 1);
    let purged = store.purge(&seqs([1, 2]), ALL).expect("it can be purged");
    let none = Purged { rows: purged.rows, jobs: 2, kept: Vec::new(), keys: Vec::new(), leftover: false };
    assert_eq!(purged, none);
    assert_eq!(listed(&readers), [1]);
}

/// Its job may ask for it again, and would have it done again.
#[test]
fn a_stage_stays_until_its_job_has_ended() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let id = |seq| readers.ids().make(Seq(seq), rows::NOW, "");
    let stage_of = Origin::ChildOf { parent: id(1).uuid(), stage: "draft".into() };
    let job = |seq, origin| Job::accepted(Arc::new(Request { id: id(seq), origin, ..rows::request(seq) }));
    let (mut parent, mut stage) = (job(1, None), job(2, Some(stage_of)));
    for job in [&parent, &stage] {
        store.commit(&batch([fresh(job.clone(), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    }
    let ended = end(&mut stage, Status::Completed, "{}");
    store.commit(&batch([stepped(stage, vec![ended])])).expect("it commits");
    let purged = store.purge(&seqs([2]), ALL).expect("it can be purged");
    assert_eq!((purged.jobs, purged.kept, listed(&readers)), (1, vec![(Seq(2), Seq(1))], vec![2, 1]));
    let ended = end(&mut parent, Status::Completed, "{}");
    store.commit(&batch([stepped(parent, vec![ended])])).expect("it commits");
    let purged = store.purge(&seqs([2]), ALL).expect("it can be purged");
    assert_eq!((purged.jobs, purged.kept, listed(&readers)), (1, Vec::new(), vec![1]));
}

#[test]
fn numbers_go_on_when_everything_is_gone_and_the_store_is_opened_again() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch);
    (1..=4).for_each(|seq| done(&mut store, seq, 0));
    // First a job that is not the newest, then the newest, then all the others.
    for some in [vec![2], vec![4], vec![1, 3]] {
        store.purge(&seqs(some), ALL).expect("it can be purged");
        assert_eq!(store.load().expect("it loads").last_seq, Seq(4));
    }
    drop(store);
    let (mut store, _) = open(&scratch);
    assert_eq!(store.load().expect("it loads").last_seq, Seq(4));
    done(&mut store, 5, 0);
    assert_eq!(store.load().expect("it loads").last_seq, Seq(5));
    assert_eq!(counts(&scratch)[0], 1);
}

#[test]
fn a_long_job_goes_over_many_steps_and_is_not_there_from_the_first_on_also_after_a_crash() {
    let scratch = Scratch::new();
    let (mut store, mut readers) = open(&scratch);
    done(&mut store, 1, 500);
    done(&mut store, 2, 1);
    let budget = Budget { rows: 1_000, bytes: 20_000 };
    let mut named = seqs([1, 2]);
    let mut steps = 0;
    loop {
        let before = counts(&scratch)[3];
        let purged = store.purge(&named, budget).expect("it can be purged");
        let removed = before - counts(&scratch)[3];
        assert!(removed <= 21, "a step removes no more than it may, but {removed}");
        named.drain(..purged.jobs);
        steps += 1;
        assert!(readers.job(rows::id(1)).expect("it can be read").is_none());
        assert!(readers.event_places(Seq(1), 0).expect("it can be read").is_empty());
        assert!(readers.document(Seq(1)).expect("it can be read").is_none());
        assert!(readers.ending(Seq(1)).expect("it can be read").is_none());
        let whole = readers.event_places(Seq(2), 0).expect("it can be read").len();
        assert!(whole == 2 || named.is_empty(), "the other is whole or gone");
        if steps % 7 == 0 {
            drop(store);
            (store, readers) = open(&scratch);
        }
        if named.is_empty() && !purged.leftover {
            break;
        }
    }
    assert!(steps >= 25, "it took {steps} steps");
    assert_eq!(counts(&scratch), [0, 0, 0, 0, 0, 0]);
    assert_eq!(store.purge(&[], budget).expect("there is nothing to do"), Purged::default());
}

#[test]
fn lists_look_at_a_bounded_number_of_rows_and_pass_over_gaps() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let jobs = (1..=25_000).map(|seq| fresh(rows::job(seq), DOCUMENT.as_bytes(), Vec::new()));
    store.commit(&batch(jobs)).expect("it commits");
    let filter = Filter { work: Some("rare".to_owned()), limit: 50, ..Filter::default() };
    let (mut next, mut looked_at, mut pages) = (None, 0, 0);
    loop {
        let page = readers.list(&Filter { before: next, ..filter.clone() }).expect("it can be read");
        assert!(page.looked_at <= 10_000 && page.jobs.is_empty());
        looked_at += page.looked_at;
        pages += 1;
        next = page.next.map(JobId::seq);
        if next.is_none() {
            break;
        }
    }
    assert_eq!((looked_at, pages), (25_000, 3));
    let page = readers.list(&Filter { limit: 50, ..Filter::default() }).expect("it can be read");
    assert_eq!((page.jobs.len(), page.looked_at, page.next), (50, 50, Some(rows::id(24_951))));
    // Failed jobs are found without reading the jobs that did not fail.
    let connection = Connection::open(scratch.database()).expect("it opens");
    let outcome = "INSERT INTO outcome(job, n, at, status, failure, repeat, body) VALUES (7, 2, 0, ?1, 'internal', 'never', x'7b7d')";
    connection
        .execute("UPDATE job SET state = ?1 WHERE seq = 7", [Phase::Failed as i64])
        .expect("a row can be written");
    connection.execute(outcome, [Status::Failed as i64]).expect("a row can be written");
    let failed = Filter { phase: Some(Phase::Failed), limit: 50, ..Filter::default() };
    let page = readers.list(&failed).expect("it can be read");
    assert_eq!((page.jobs.len(), page.looked_at, page.next), (1, 1, None));
    connection.execute("DELETE FROM outcome", ()).expect("rows can go");
    connection.execute("UPDATE job SET state = 0 WHERE seq = 7", ()).expect("a row can be written");
    // Where most jobs are removed, unused numbers cost nothing.
    connection.execute("DELETE FROM job WHERE seq % 1000 != 1", ()).expect("rows can go");
    let page = readers.list(&filter).expect("it can be read");
    assert_eq!((page.looked_at, page.next), (25, None));
    let one =
        readers.list(&Filter { before: Some(Seq(5_000)), limit: 2, ..Filter::default() }).expect("it can be read");
    assert_eq!(one.jobs.iter().map(|job| job.seq().0).collect::<Vec<_>>(), [4_001, 3_001]);
}

#[test]
fn a_rule_that_was_broken_about_a_job_that_is_gone_is_not_written() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch);
    done(&mut store, 1, 0);
    let violation = crosspoint_engine::event::Violation { clause: "ALL-9", level: Level::Error, what: "late".into() };
    let mut late = batch([]);
    late.violations.push((Seq(1), rows::NOW, violation.clone()));
    store.commit(&late).expect("it commits");
    assert_eq!(counts(&scratch)[4], 1);
    store.purge(&seqs([1]), ALL).expect("it can be purged");
    store.commit(&late).expect("it commits");
    assert_eq!(counts(&scratch)[4], 0);
    assert_eq!(store.load().expect("it loads").keys.find(Hash(0), &[]), None);
}

fn keeping(scratch: &Scratch, agents: Vec<stage::Agent>, retention: Rule) -> Engine {
    Engine::start(Config { retention, ..stage::config(scratch, agents) }).expect("it starts")
}

const AT_ONCE: Rule = Rule { age: Some(Duration::from_millis(1)), jobs: None, age_min: Duration::ZERO };

#[tokio::test]
async fn a_job_that_is_gone_was_never_there_and_its_request_is_a_new_job() {
    let scratch = Scratch::new();
    let engine = keeping(&scratch, vec![agent("echo", stage::echo)], AT_ONCE);
    let first = submit(&engine, keyed("echo", "{}", "r")).await;
    let id = ended(&first).await.id();
    until("it is gone", async || engine.job(id).await.expect("it can be read").is_none()).await;
    assert!(engine.follow(id, 0).await.expect("it can be read").is_none());
    assert!(engine.cancel(id).await.is_err() && engine.retry(id, None).await.is_err());
    let again = submit(&engine, keyed("echo", "{}", "r")).await.job();
    assert_eq!((again.seq(), again.id() == id), (Seq(2), false));
    until("both are gone", async || engine.purged().jobs == 2).await;
    stop(engine).await;
    let engine = keeping(&scratch, vec![agent("echo", stage::echo)], AT_ONCE);
    assert_eq!(submit(&engine, keyed("echo", "{}", "r")).await.job().seq(), Seq(3));
    stop(engine).await;
}

/// An agent that has stages done, says so, and goes on until the gate opens.
fn staging(stages: usize, staged: &Arc<Semaphore>, gate: &Arc<Semaphore>) -> stage::Agent {
    let (staged, gate) = (staged.clone(), gate.clone());
    agent("run", move |attempt: Attempt| {
        let (staged, gate) = (staged.clone(), gate.clone());
        async move {
            for number in 0..stages {
                let new = keyed("echo", "{}", &format!("s{number}"));
                ended(&attempt.stage("draft", new, None).await.expect("it is accepted")).await;
            }
            staged.add_permits(1);
            drop(gate.acquire().await);
            stage::success("{}")
        }
    })
}

async fn all(engine: &Engine) -> Vec<u64> {
    let page = engine.list(Filter { limit: 100, ..Filter::default() }).await.expect("it can be read");
    page.jobs.iter().map(|job| job.seq().0).collect()
}

#[tokio::test]
async fn a_stage_goes_when_its_job_has_gone_on_for_long_and_ended() {
    let scratch = Scratch::new();
    let (gate, staged) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let agents = vec![agent("echo", stage::echo), staging(1, &staged, &gate)];
    let engine = keeping(&scratch, agents, AT_ONCE);
    let run = submit(&engine, new_job("run", "{}")).await;
    staged.acquire().await.expect("the stage ends").forget();
    ended(&submit(&engine, new_job("echo", "{}")).await).await;
    until("the other job is gone", async || engine.purged().jobs == 1).await;
    assert_eq!(all(&engine).await, [2, 1]);
    gate.add_permits(1);
    ended(&run).await;
    until("all are gone", async || engine.purged().jobs == 3).await;
    stop(engine).await;
}

/// A long run would push out everything else.
#[tokio::test]
async fn stages_of_a_job_that_goes_on_do_not_count() {
    let scratch = Scratch::new();
    let (gate, staged) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let agents = vec![agent("echo", stage::echo), staging(6, &staged, &gate)];
    let rule = Rule { age: None, jobs: Some(3), age_min: Duration::ZERO };
    let engine = keeping(&scratch, agents, rule);
    let run = submit(&engine, new_job("run", "{}")).await;
    staged.acquire().await.expect("the stages end").forget();
    for count in 1..=5 {
        ended(&submit(&engine, new_job("echo", "{}")).await).await;
        let gone = u64::saturating_sub(count, 3);
        until("one goes for each beyond the third", async || engine.purged().jobs == gone).await;
    }
    assert_eq!(all(&engine).await, [12, 11, 10, 7, 6, 5, 4, 3, 2, 1]);
    gate.add_permits(1);
    ended(&run).await;
    until("three are left", async || all(&engine).await.len() == 3).await;
    stop(engine).await;
}

#[tokio::test]
async fn the_oldest_go_where_there_are_too_many_and_those_that_live_stay() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let agents = || vec![agent("echo", stage::echo), gated("slow", &gate)];
    let engine = keeping(&scratch, agents(), Rule { age: None, jobs: Some(3), age_min: Duration::ZERO });
    let slow = submit(&engine, new_job("slow", "{}")).await;
    reaches(&slow, crosspoint_engine::job::Phase::Running).await;
    for _ in 0..10 {
        ended(&submit(&engine, new_job("echo", "{}")).await).await;
    }
    until("seven are gone", async || engine.purged().jobs == 7).await;
    assert_eq!(all(&engine).await, [11, 10, 9, 1]);
    // This job was accepted first but ended last, so the others are removed before it.
    gate.add_permits(1);
    ended(&slow).await;
    until("one more is gone", async || engine.purged().jobs == 8).await;
    assert_eq!(all(&engine).await, [11, 10, 1]);
    stop(engine).await;
    // A stricter rule applies to the jobs that are already stored.
    let engine = keeping(&scratch, agents(), Rule { age: None, jobs: Some(1), age_min: Duration::ZERO });
    until("two more are gone", async || engine.purged().jobs == 2).await;
    // After a start, jobs that ended within the same minute are removed in any order.
    assert_eq!(all(&engine).await.len(), 1);
    stop(engine).await;
}

#[tokio::test]
async fn a_follower_of_a_job_that_is_removed_meanwhile_comes_to_a_clean_end() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch);
    done(&mut store, 1, 300);
    drop(store);
    // A follower that has read some of the events keeps the places of the rest.
    let engine = keeping(&scratch, vec![agent("echo", stage::echo)], Rule::FOR_EVER);
    let mut follow = engine.follow(rows::id(1), 0).await.expect("it can be read").expect("it is there");
    for n in 1..=100 {
        assert_eq!(follow.next(patience()).await.expect("it can be read").map(|entry| entry.n), Some(n));
    }
    let writer = Connection::open(scratch.database()).expect("it opens");
    writer.execute_batch("DELETE FROM job; DELETE FROM event; DELETE FROM outcome").expect("rows can go");
    while follow.next(patience()).await.expect("there is no fault in this").is_some() {}
    assert!(follow.is_done());
    stop(engine).await;
}

/// Every commit that is requested during a purge is made while the purge goes on, and waits for only a small part of
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_on_while_many_jobs_are_removed() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch);
    const JOBS: u64 = 10_000;
    let ended_jobs = (1..=JOBS).map(|seq| {
        let mut job = rows::job(seq);
        let last = end(&mut job, Status::Completed, "{}");
        fresh(job, DOCUMENT.as_bytes(), vec![last])
    });
    store.commit(&batch(ended_jobs)).expect("it commits");
    drop(store);
    let engine = keeping(
        &scratch,
        vec![agent("echo", stage::echo)],
        Rule { age: Some(Duration::from_secs(1)), jobs: None, age_min: Duration::ZERO },
    );
    let mut most = 0;
    while engine.purged().jobs < JOBS / 2 {
        let before = engine.purged().steps;
        match engine.submit(new_job("echo", "{}")).await {
            Ok(Submitted::New(_)) => {}
            Ok(Submitted::Repeat(_)) => panic!("it is no repeat"),
            Err(unaccepted) => panic!("{unaccepted:?}"),
        }
        most = most.max(engine.purged().steps - before);
    }
    until("all are gone", async || engine.purged().jobs >= JOBS).await;
    let steps = engine.purged().steps;
    assert!(steps >= 30, "it was done in {steps} steps, so that nobody could come in between");
    assert!(most <= steps / 2, "one commit waited for {most} of {steps} steps");
    stop(engine).await;
}
