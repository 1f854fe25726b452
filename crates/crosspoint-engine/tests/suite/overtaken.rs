//! A second writer: only one process writes to a store, and a process that was overtaken writes nothing more.

use std::fs;
use std::time::Duration;

use crosspoint_engine::claim::Claim;
use crosspoint_engine::id::Seq;
use crosspoint_engine::runtime::Readiness;
use crosspoint_engine::store::{Fault, Options, Store};

use crate::rows::{self, DOCUMENT, batch, fresh};
use crate::scratch::Scratch;
use crate::stage::{self, new_job, submit};
use crate::unwritable::{agents, sql};

#[test]
fn a_link_to_the_database_leads_to_the_same_lock_and_no_file_beside_it_counts() {
    let scratch = Scratch::new();
    let (store, _) = Store::open(&scratch.options()).expect("it opens");
    let link = scratch.path().join("link.db");
    std::os::unix::fs::symlink(scratch.database(), &link).expect("a link can be made");
    for entry in fs::read_dir(scratch.path()).expect("it can be listed").flatten() {
        if entry.path().extension().is_some_and(|end| end == "lock") {
            fs::remove_file(entry.path()).expect("it can be removed");
        }
    }
    for path in [link.clone(), scratch.database()] {
        let second = Store::open(&Options { path, bytes_max: None });
        assert!(matches!(second, Err(Fault::InUse { .. })));
    }
    drop(store);
    assert!(Store::open(&Options { path: link, bytes_max: None }).is_ok(), "it is free again");
}

#[test]
fn a_writer_that_was_overtaken_writes_nothing_more() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    // Simulates another process that opened the store where locks do not hold.
    sql(&scratch, "UPDATE meta SET value = value + 1 WHERE name = 'epoch'");
    for _ in 0..2 {
        let refused = store.commit(&batch([fresh(rows::job(2), DOCUMENT.as_bytes(), Vec::new())]));
        assert!(matches!(refused, Err(Fault::Lost { .. })), "{refused:?}");
        assert!(matches!(store.probe(), Err(Fault::Lost { .. })));
    }
    drop(store);
    let (store, _) = Store::open(&scratch.options()).expect("it opens");
    assert_eq!(store.load().expect("it loads").last_seq, Seq(1));
}

#[test]
fn a_writer_that_was_overtaken_before_its_first_commit_writes_nothing() {
    let scratch = Scratch::new();
    drop(Store::open(&scratch.options()).expect("it opens"));
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    sql(&scratch, "INSERT INTO meta VALUES ('epoch', 5) ON CONFLICT(name) DO UPDATE SET value = 5");
    let refused = store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())]));
    assert!(matches!(refused, Err(Fault::Lost { .. })), "{refused:?}");
    assert_eq!(Claim::Seen(5).check(5), Ok(6));
}

#[tokio::test]
async fn an_engine_whose_database_was_moved_away_writes_nothing_more_and_ends() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    submit(&engine, new_job("echo", "1")).await;
    let away = scratch.path().join("away.db");
    fs::rename(scratch.database(), &away).expect("it can be moved");
    assert!(engine.submit(new_job("echo", "2")).await.is_err(), "it would be found by nobody");
    tokio::time::timeout(Duration::from_secs(60), engine.died()).await.expect("it ends");
    assert!(matches!(engine.readiness(), Readiness::Failing(fault) if matches!(*fault, Fault::Lost { .. })));
}
