//! Every kind of damage is found, named and attributed to the right job, and an undamaged store is reported as such.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_engine::id::Seq;
use crosspoint_engine::retention::Rule;
use crosspoint_engine::runtime::{Config, Engine};
use crosspoint_engine::store::check::{CheckNote, Checked, Finding, Flaw, check};
use crosspoint_engine::store::{Budget, Fault, Readers, Store};
use rusqlite::Connection;

use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, keyed, never, new_job, reaches, start, stop, submit};

/// An agent that fails once, then prints three blocks and asks a question, which is answered.
fn eventful() -> stage::Agent {
    let run = agent("eventful", |mut attempt| async move {
        if attempt.number() == 1 {
            attempt.output(Bytes::from_static(b"lost ")).await.map_err(|_| gone())?;
            return stage::failed(Failure::Unavailable, Dispatched::No);
        }
        for block in [&b"one "[..], b"two ", b"three"] {
            attempt.output(Bytes::from_static(block)).await.map_err(|_| gone())?;
        }
        stage::success("{}")
    });
    stage::with_policy(run, crosspoint_engine::policy::Policy { output_bytes_max: 100, ..crate::made::POLICY })
}

fn gone() -> crosspoint_contracts::reply::Failed {
    crosspoint_contracts::reply::Failed::of(Failure::Internal, Dispatched::Yes)
}

/// Rows that no version writes: works and a policy that are not whole, a number below zero, a role and an act that do
/// not exist.
const UNREADABLE: [&str; 5] = [
    "INSERT INTO member(name, contract, works, policy, lease) VALUES ('a', 'pull', '[\"dig\"', '{}', 1)",
    "INSERT INTO member(name, contract, works, policy, lease) VALUES ('a', 'pull', '[]', '{}', 1)",
    "UPDATE agent SET failures = -1",
    "INSERT INTO token(name, role, digest, created_at) VALUES ('t', 'owner', zeroblob(32), 1)",
    "INSERT INTO audit(at, who, act) VALUES (1, 'ann', 'sing')",
];

/// Number of jobs in the store: done, eventful, running, failed.
const JOBS: u64 = 4;

async fn filled() -> Scratch {
    let scratch = Scratch::new();
    let fail = agent("fail", |_| async { stage::failed(Failure::AgentFailed, Dispatched::Yes) });
    let engine = start(&scratch, vec![agent("echo", stage::echo), eventful(), agent("never", never), fail]);
    ended(&submit(&engine, keyed("echo", r#"{"a":1}"#, "r")).await).await;
    ended(&submit(&engine, new_job("eventful", "{}")).await).await;
    reaches(&submit(&engine, new_job("never", "{}")).await, crosspoint_engine::job::Phase::Running).await;
    ended(&submit(&engine, new_job("fail", "{}")).await).await;
    stop(engine).await;
    scratch
}

fn findings(scratch: &Scratch) -> (Checked, Vec<Finding>) {
    let mut found = Vec::new();
    let checked = check(&scratch.database(), &mut |told| {
        if let CheckNote::Finding(finding) = told {
            found.push(finding);
        }
    });
    (checked.expect("it can be checked"), found)
}

fn damage(scratch: &Scratch, sql: &str) {
    let connection = Connection::open(scratch.database()).expect("it opens");
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Copies a store, so that each damage starts from an undamaged one.
fn copy(of: &Scratch) -> Scratch {
    let copy = Scratch::new();
    fs::copy(of.database(), copy.database()).expect("it can be copied");
    if of.log().exists() {
        fs::copy(of.log(), copy.log()).expect("it can be copied");
    }
    copy
}

#[tokio::test]
async fn a_store_that_is_whole_is_said_to_be() {
    let scratch = filled().await;
    let (checked, found) = findings(&scratch);
    assert_eq!(found, []);
    assert_eq!((checked.jobs, checked.findings), (JOBS, 0));
    assert!(checked.events >= 10, "{checked:?}");
}

#[tokio::test]
async fn every_kind_of_damage_is_named_with_its_job() {
    let whole = filled().await;
    let second = "(SELECT min(seq) FROM event WHERE job = 2 AND kind = 3)";
    let last = "(SELECT max(seq) FROM event WHERE job = 2)";
    let cases: Vec<(Flaw, u64, String)> = vec![
        (Flaw::Id, 1, "UPDATE job SET id = (SELECT id FROM job WHERE seq = 2) WHERE seq = 1".into()),
        (Flaw::State, 4, "UPDATE job SET state = 9 WHERE seq = 4; DELETE FROM outcome WHERE job = 4".into()),
        (Flaw::State, 3, "UPDATE job SET door = 'window' WHERE seq = 3".into()),
        (Flaw::State, 3, "UPDATE job SET attempts = 0 WHERE seq = 3".into()),
        (Flaw::Key, 1, "UPDATE job SET hash = hash + 1 WHERE seq = 1".into()),
        (Flaw::Key, 1, "UPDATE job SET request_id = 's' WHERE seq = 1".into()),
        (Flaw::Document, 1, "DELETE FROM document WHERE job = 1".into()),
        (Flaw::Input, 1, "UPDATE document SET bytes = x'7b7d' WHERE job = 1".into()),
        (Flaw::Input, 1, "UPDATE job SET input_start = input_end + 1 WHERE seq = 1".into()),
        (Flaw::Outcome, 1, "DELETE FROM outcome WHERE job = 1".into()),
        (Flaw::Outcome, 3, "INSERT INTO outcome(job, n, at, status, failure, repeat, body) SELECT 3, n, at, status, failure, repeat, body FROM outcome WHERE job = 1".into()),
        (Flaw::Outcome, 4, "UPDATE outcome SET status = 2 WHERE job = 4".into()),
        (Flaw::Outcome, 4, "UPDATE outcome SET n = n + 1 WHERE job = 4".into()),
        (Flaw::Events, 2, format!("DELETE FROM event WHERE seq = {second}")),
        (Flaw::Events, 2, format!("DELETE FROM event WHERE seq = {last}")),
        (Flaw::Events, 2, format!("UPDATE event SET n = n + 1 WHERE seq = {second}")),
        (Flaw::Events, 2, format!("UPDATE event SET prev = 0 WHERE seq = {last}")),
        (Flaw::Events, 2, format!("UPDATE event SET kind = 77 WHERE seq = {second}")),
        (Flaw::Events, 1, "UPDATE job SET head = 0 WHERE seq = 1".into()),
        (Flaw::Events, 1, format!("UPDATE job SET head = {last} WHERE seq = 1")),
        (Flaw::Output, 2, format!("UPDATE event SET body = x'00' WHERE seq = {last}")),
        (Flaw::Output, 2, format!("UPDATE event SET place = place + 1 WHERE seq = {last}")),
        (Flaw::Output, 2, "UPDATE job SET output_bytes = 5 WHERE seq = 2".into()),
        (Flaw::Stray, 2, "INSERT INTO event SELECT 1000, job, prev, n, at, kind, number, place, body FROM event WHERE job = 2 LIMIT 1".into()),
        (Flaw::Stray, 9, "INSERT INTO event SELECT 1000, 9, prev, n, at, kind, number, place, body FROM event WHERE job = 2 LIMIT 1".into()),
        (Flaw::Stray, 9, "INSERT INTO document VALUES (9, x'7b7d')".into()),
        (Flaw::Stray, 9, "INSERT INTO outcome(job, n, at, status, failure, repeat, body) SELECT 9, n, at, status, failure, repeat, body FROM outcome WHERE job = 1".into()),
        (Flaw::Stray, 9, "INSERT INTO violation VALUES (1, 9, 0, 'ALL-9', 'late', 'error')".into()),
        (Flaw::Stray, 1, "INSERT INTO leftover VALUES (1, 1)".into()),
        (Flaw::Stray, 9, "INSERT INTO aside VALUES (9, 1)".into()),
        (Flaw::Aside, 3, "INSERT INTO aside VALUES (3, 1)".into()),
        (Flaw::Owed, 3, "UPDATE job SET notify = 'someone' WHERE seq = 3".into()),
    ];
    let mut flaws = BTreeSet::new();
    for (flaw, job, sql) in cases {
        let scratch = copy(&whole);
        damage(&scratch, &sql);
        let (checked, found) = findings(&scratch);
        assert!(checked.findings > 0, "{sql}: nothing was found");
        let named = found.iter().any(|finding| finding.flaw == flaw && finding.seq == Some(Seq(job)));
        assert!(named, "{sql}: {found:?}");
        assert!(
            found.iter().all(|finding| finding.seq.is_some_and(|seq| [job, 2].contains(&seq.0))),
            "{sql}: {found:?}"
        );
        flaws.insert(flaw);
    }
    let scratch = copy(&whole);
    damage(&scratch, "DELETE FROM meta WHERE name IN ('salt', 'id_key')");
    let (_, found) = findings(&scratch);
    assert_eq!(found.iter().map(|finding| finding.flaw).collect::<Vec<_>>(), [Flaw::Meta, Flaw::Meta]);
    flaws.insert(Flaw::Meta);
    for sql in UNREADABLE {
        let scratch = copy(&whole);
        damage(&scratch, "INSERT INTO agent VALUES ('a', 0, 'closed', 0, NULL) ON CONFLICT DO NOTHING");
        damage(&scratch, sql);
        let (_, found) = findings(&scratch);
        assert_eq!(found.iter().map(|finding| finding.flaw).collect::<Vec<_>>(), [Flaw::Unreadable], "{sql}");
    }
    // These two are reported for files that are damaged below the tables.
    flaws.extend([Flaw::Pages, Flaw::Unreadable]);
    assert_eq!(flaws, BTreeSet::from(Flaw::ALL));
}

/// Overwrites pages in the middle of the file with garbage: the database's own check reports them, and the undamaged
/// rest is still checked.
#[tokio::test]
async fn pages_that_are_damaged_are_told_and_what_is_behind_them_is_still_looked_at() {
    const PAGE: usize = 4_096;
    let whole = Scratch::new();
    let engine = start(&whole, vec![agent("echo", stage::echo)]);
    let input = format!(r#"{{"text":"{}"}}"#, "x".repeat(300));
    // A page may hold more than a hundred events, and the check skips as much again behind it.
    for _ in 0..600 {
        ended(&submit(&engine, new_job("echo", &input)).await).await;
    }
    stop(engine).await;
    damage(&whole, "PRAGMA wal_checkpoint(TRUNCATE)");
    let bytes = fs::read(whole.database()).expect("it can be read");
    let leaves: Vec<usize> = (4..bytes.len() / PAGE).filter(|page| bytes[page * PAGE] == 0x0d).collect();
    assert!(leaves.len() > 40, "there are pages to damage");
    let mut unreadable = 0;
    for page in leaves.iter().skip(leaves.len() / 3).step_by(7) {
        let scratch = Scratch::new();
        let mut torn = bytes.clone();
        torn[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        fs::write(scratch.database(), torn).expect("it can be written");
        let (checked, found) = findings(&scratch);
        assert_eq!(found.first().map(|finding| finding.flaw), Some(Flaw::Pages), "page {page}: {found:?}");
        unreadable += u64::from(found.iter().any(|finding| finding.flaw == Flaw::Unreadable));
        assert!(checked.jobs > 200 || checked.events > 200, "page {page}: little was looked at: {checked:?}");
        assert!(checked.findings < 400, "page {page}: {checked:?}");
    }
    assert!(unreadable > 0);
}

#[tokio::test]
async fn what_is_left_of_a_job_that_is_gone_is_no_damage() {
    let scratch = filled().await;
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    let purged = store.purge(&[Seq(2)], Budget { rows: 4, bytes: u64::MAX }).expect("it can be purged");
    assert!(purged.leftover, "some events are left");
    // The store is found whole while it is open, too.
    assert_eq!(findings(&scratch).1, []);
    drop(store);
    assert_eq!(findings(&scratch).1, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_written_meanwhile_is_whole_at_every_moment() {
    let scratch = Scratch::new();
    let rule = Rule { age: Some(Duration::from_millis(20)), jobs: None, age_min: Duration::ZERO };
    let config = Config { retention: rule, ..stage::config(&scratch, vec![agent("echo", stage::echo), eventful()]) };
    let engine = Engine::start(config).expect("it starts");
    let (done, mut checks) = (std::sync::atomic::AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        let (engine, done) = (&engine, &done);
        let handle = tokio::runtime::Handle::current();
        scope.spawn(move || {
            handle.block_on(async {
                while engine.purged().jobs < 300 {
                    ended(&submit(engine, new_job("echo", "{}")).await).await;
                }
            });
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let (_, found) = findings(&scratch);
            assert_eq!(found, []);
            checks += 1;
        }
    });
    assert!(checks > 1, "it was checked meanwhile");
    stop(engine).await;
}

#[test]
fn what_is_not_a_store_or_of_a_later_version_cannot_be_checked() {
    let scratch = Scratch::new();
    let fault = || check(&scratch.database(), &mut |_| {}).expect_err("there is nothing to check");
    fs::write(scratch.database(), "not a database, but long enough to look like something else entirely")
        .expect("written");
    assert!(matches!(fault(), Fault::NotOurs { .. }));
    fs::write(scratch.database(), "").expect("written");
    assert!(matches!(fault(), Fault::NotOurs { .. }));
    fs::remove_file(scratch.database()).expect("removed");
    drop(Store::open(&scratch.options()).expect("it opens"));
    damage(&scratch, "PRAGMA user_version = 99");
    assert!(matches!(fault(), Fault::Newer { found: 99, .. }));
}

/// A backup that is read-only can be checked where it lies.
#[cfg(unix)]
#[tokio::test]
async fn a_copy_that_may_not_be_written_can_be_checked() {
    use std::os::unix::fs::PermissionsExt;
    let whole = filled().await;
    damage(&whole, "PRAGMA wal_checkpoint(TRUNCATE)");
    let scratch = Scratch::new();
    fs::copy(whole.database(), scratch.database()).expect("it can be copied");
    let set = |mode| fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).expect("rights can be set");
    set(0o500);
    let checked = findings(&scratch);
    set(0o700);
    assert_eq!((checked.0.jobs, checked.1), (JOBS, vec![]));
}

#[tokio::test]
async fn a_store_of_an_earlier_schema_can_be_checked_and_read_without_being_changed() {
    let scratch = filled().await;
    let older = "ALTER TABLE job DROP COLUMN trace; ALTER TABLE job DROP COLUMN alias; PRAGMA user_version = 5";
    damage(&scratch, older);
    // Ids had their number in the clear.
    damage(&scratch, "UPDATE job SET id = unhex(printf('01a1eb7f0ff87000800000%02x00000000', seq * 4))");
    let before = fs::read(scratch.database()).expect("it can be read");
    let (checked, found) = findings(&scratch);
    assert_eq!((checked.jobs, found.len()), (JOBS, 0), "{found:?}");
    let readers = Readers::open(&scratch.database()).expect("it can be read");
    let job = readers.job_at(Seq(1)).expect("it can be read").expect("it is there");
    assert_eq!((&*job.request.request_id, job.request.trace.as_deref()), ("r", None));
    drop(readers);
    assert_eq!(fs::read(scratch.database()).expect("it can be read"), before);
}

#[tokio::test]
async fn an_alias_that_is_not_that_of_the_id_is_found() {
    let scratch = filled().await;
    damage(&scratch, "UPDATE job SET alias = 7 WHERE seq = 1");
    let (_, found) = findings(&scratch);
    assert_eq!(found.iter().map(|finding| finding.flaw).collect::<Vec<_>>(), [Flaw::Key]);
}
