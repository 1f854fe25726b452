//! Stores that cannot be used: each is refused with the reason, and left as it was.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::outcome::Status;
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;
use crosspoint_engine::store::{Fault, Filter, Options, Readers, Store};
use rusqlite::Connection;

use crate::rows::{self, DOCUMENT, batch, end, fresh, note};
use crate::scratch::{Dice, Scratch};

/// All non-empty files of a directory, except the index of the log, which is rebuilt whenever the log is read.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("it can be listed").map(|entry| entry.expect("it can be read").path());
    let paths = entries.filter(|path| !path.to_string_lossy().ends_with("-shm"));
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("it can be read"));
    paths.map(read).filter(|(_, bytes)| !bytes.is_empty()).collect()
}

/// Opens a store that must be refused, and checks that its files did not change.
fn refused(scratch: &Scratch) -> Fault {
    let before = files(scratch.path());
    let fault = Store::open(&scratch.options()).err().expect("it is refused");
    assert!(files(scratch.path()) == before, "{fault}: the files were changed");
    assert!(!fault.to_string().is_empty());
    fault
}

/// Fills a store with jobs of several kinds.
pub(crate) fn filled(scratch: &Scratch, jobs: u64) {
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    store.commit(&some_jobs(jobs)).expect("it commits");
}

fn some_jobs(jobs: u64) -> crosspoint_engine::core::Batch {
    let one = |seq: u64| {
        let mut job = rows::job(seq);
        let block = Block(Bytes::from(vec![b'y'; 300]));
        let mut entries = vec![
            note(&mut job, What::Started { attempt: 1, agent: "a".into() }),
            note(&mut job, What::Output { attempt: 1, offset: 0, block }),
        ];
        if seq.is_multiple_of(2) {
            entries.push(end(&mut job, Status::Completed, r#"{"status":"completed","outputs":{}}"#));
        }
        fresh(job, DOCUMENT.repeat(30).as_bytes(), entries)
    };
    batch((1..=jobs).map(one))
}

pub(crate) fn sqlite(path: &Path) -> Connection {
    Connection::open(path).expect("it opens")
}

#[test]
fn a_newer_schema_is_refused_by_its_number() {
    for ahead in [1, 1_000] {
        let scratch = Scratch::new();
        filled(&scratch, 3);
        let connection = sqlite(&scratch.database());
        let known: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0)).expect("it has one");
        connection.pragma_update(None, "user_version", known + ahead).expect("it can be set");
        drop(connection);
        let fault = refused(&scratch);
        let Fault::Newer { found, known: ours, .. } = fault else { panic!("{fault}") };
        assert_eq!((found, ours), (known + ahead, known));
    }
}

#[test]
fn a_newer_schema_that_is_still_in_the_log_is_refused_and_the_log_left_alone() {
    let origin = Scratch::new();
    filled(&origin, 3);
    let connection = sqlite(&origin.database());
    connection.pragma_update(None, "user_version", 99).expect("it can be set");
    // As a crash leaves the store: the log is not yet copied into the database.
    let scratch = Scratch::new();
    fs::copy(origin.database(), scratch.database()).expect("it can be copied");
    fs::copy(origin.log(), scratch.log()).expect("it can be copied");
    assert!(matches!(refused(&scratch), Fault::Newer { found: 99, .. }));
}

#[test]
fn what_is_no_database_is_refused() {
    let mut dice = Dice(1);
    let mut noise = || (0..20_000).map(|_| dice.roll().to_be_bytes()[0]).collect::<Vec<u8>>();
    let contents: [Vec<u8>; 5] = [
        b"[server]\nlisten = \"127.0.0.1:7420\"\n".to_vec(),
        b"SQLite format 2\0".repeat(100),
        vec![b'x'; 4_096],
        noise(),
        [b"SQLite format 3\0".to_vec(), noise()].concat(),
    ];
    for content in contents {
        let scratch = Scratch::new();
        fs::write(scratch.database(), &content).expect("it can be written");
        let fault = refused(&scratch);
        assert!(matches!(fault, Fault::NotOurs { .. } | Fault::Damaged { .. }), "{fault}");
    }
}

#[test]
fn the_database_of_another_program_is_refused() {
    let made = [
        "CREATE TABLE song(name TEXT); INSERT INTO song VALUES ('la')",
        "PRAGMA application_id = 1; CREATE TABLE song(name TEXT)",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 1",
        "PRAGMA journal_mode = WAL; CREATE TABLE job(seq INTEGER PRIMARY KEY)",
    ];
    for sql in made {
        let scratch = Scratch::new();
        let connection = sqlite(&scratch.database());
        connection.execute_batch(sql).expect("it can be made");
        // Refused while the other program has the store open, and afterwards.
        assert!(matches!(refused(&scratch), Fault::NotOurs { .. }), "{sql}");
        drop(connection);
        assert!(matches!(refused(&scratch), Fault::NotOurs { .. }), "{sql}");
    }
}

#[test]
fn a_store_that_has_lost_the_key_of_its_ids_is_refused() {
    let scratch = Scratch::new();
    let lose = || sqlite(&scratch.database()).execute_batch("DELETE FROM meta WHERE name = 'id_key'");
    drop(Store::open(&scratch.options()).expect("it opens"));
    lose().expect("it can be removed");
    // A crash can come before the key is written. No job needs it yet.
    filled(&scratch, 3);
    lose().expect("it can be removed");
    let fault = refused(&scratch);
    assert!(matches!(fault, Fault::Damaged { .. }) && fault.to_string().contains("the key of the ids"), "{fault}");
}

/// Reads everything in the store and returns the first fault.
fn read_all(store: &Store, readers: &Readers) -> Result<(), Fault> {
    store.load()?;
    let page = readers.list(&Filter { limit: 1_000, ..Filter::default() })?;
    for job in page.jobs {
        let places = readers.event_places(job.seq(), 0)?;
        readers.events_at(job.seq(), &places)?;
        let document = readers.document(job.seq())?;
        let _input = document.and_then(|document| job.request.input_in(&document));
        readers.ending(job.seq())?;
        readers.violations(job.seq())?;
    }
    Ok(())
}

/// Opens a store with one changed byte, and returns whether the change was detected.
fn flipped(bytes: &[u8], at: usize, mask: u8) -> bool {
    let scratch = Scratch::new();
    let mut bytes = bytes.to_vec();
    bytes[at] ^= mask;
    fs::write(scratch.database(), &bytes).expect("it can be written");
    let what = format!("byte {at} changed by {mask:#x}");
    let fault = match Store::open(&scratch.options()) {
        Ok((store, readers)) => read_all(&store, &readers).err(),
        Err(fault) => Some(fault),
    };
    if let Some(fault) = &fault {
        assert!(fs::read(scratch.database()).expect("it can be read") == bytes, "{what}: {fault}, and was changed");
    }
    match &fault {
        None | Some(Fault::Damaged { .. } | Fault::NotOurs { .. }) => {}
        // These bytes include the number of the schema, and those that decide whether the file may be written.
        Some(Fault::Newer { .. } | Fault::NotWritable { .. }) if at < 100 => {}
        Some(other) => panic!("{what}: {other}"),
    }
    fault.is_some()
}

#[test]
fn a_damaged_byte_is_harmless_or_named_and_never_a_panic() {
    let scratch = Scratch::new();
    filled(&scratch, 12);
    let bytes = fs::read(scratch.database()).expect("it can be read");
    let mut dice = Dice(2);
    let mut seen = 0;
    // Every byte of the file's header, the beginning of every page, and random places.
    let pages = (0..bytes.len()).step_by(4_096).flat_map(|page| (page..page + 16).chain([page + 4_095]));
    let anywhere: Vec<usize> = (0..250).map(|_| dice.below(bytes.len())).collect();
    let positions: Vec<usize> = (0..100).chain(pages).chain(anywhere).collect();
    for at in &positions {
        let mask = [1, 0x80, 0xff, 0x10][dice.below(4)];
        seen += usize::from(flipped(&bytes, *at, mask));
    }
    assert!(seen > positions.len() / 10, "only {seen} of {} were seen", positions.len());
}

#[test]
fn events_that_lead_back_to_themselves_are_damage_and_no_loop() {
    let scratch = Scratch::new();
    filled(&scratch, 2);
    let connection = sqlite(&scratch.database());
    connection.execute("UPDATE event SET prev = seq WHERE job = 1", ()).expect("it can be damaged");
    drop(connection);
    let (_store, readers) = Store::open(&scratch.options()).expect("it opens");
    assert!(matches!(readers.event_places(Seq(1), 0), Err(Fault::Damaged { .. })));
    assert_eq!(readers.event_places(Seq(2), 0).expect("the other is whole").len(), 2);
}

#[test]
fn a_store_that_is_cut_short_is_damaged() {
    let scratch = Scratch::new();
    filled(&scratch, 12);
    let bytes = fs::read(scratch.database()).expect("it can be read");
    for cut in [100, 4_000, 4_096, 8_192, bytes.len() / 2, bytes.len() - 4_096] {
        let scratch = Scratch::new();
        fs::write(scratch.database(), &bytes[..cut]).expect("it can be written");
        match Store::open(&scratch.options()) {
            Ok((store, readers)) => assert!(matches!(read_all(&store, &readers), Err(Fault::Damaged { .. })), "{cut}"),
            Err(Fault::Damaged { .. } | Fault::NotOurs { .. }) => {}
            Err(other) => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn a_second_opening_is_refused_as_long_as_the_first_is_there() {
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    for _ in 0..3 {
        let fault = Store::open(&scratch.options()).err();
        assert!(matches!(fault, Some(Fault::InUse { .. })));
    }
    store.commit(&some_jobs(2)).expect("the first goes on");
    drop(store);
    // Readers that are still open do not keep the store locked.
    let (second, _) = Store::open(&scratch.options()).expect("it opens");
    assert_eq!(second.load().expect("it loads").last_seq, Seq(2));
    assert!(readers.job(rows::id(1)).expect("it can be read").is_some());
}

/// Another process that holds the store's lock until it is told to end or is killed.
fn holder(scratch: &Scratch) -> Child {
    let lock = scratch.path().join("jobs.db.lock");
    let mut child = Command::new("flock")
        .arg(lock)
        .args(["sh", "-c", "echo held; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock is there");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it says so");
    assert_eq!(line, "held\n");
    child
}

#[test]
fn a_second_process_is_refused_as_long_as_the_first_is_there() {
    let scratch = Scratch::new();
    filled(&scratch, 2);
    let mut first = holder(&scratch);
    assert!(matches!(refused(&scratch), Fault::InUse { .. }));
    drop(first.stdin.take());
    assert!(first.wait().expect("it ends").success());
    let (store, _) = Store::open(&scratch.options()).expect("it opens");
    assert_eq!(store.load().expect("it loads").last_seq, Seq(2));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    fs::write(&file, "a file").expect("it can be written");
    let directory = scratch.path().join("directory");
    fs::create_dir(&directory).expect("it can be made");
    // These places fail for every user, also for those whom no permission stops.
    let places = [
        PathBuf::from("/dev/null/data/jobs.db"),
        PathBuf::from("/proc/data/jobs.db"),
        PathBuf::from("/proc/self/jobs.db"),
        file.join("jobs.db"),
        directory.clone(),
    ];
    for path in places {
        let fault = Store::open(&Options { path: path.clone(), bytes_max: None }).err();
        assert!(matches!(fault, Some(Fault::NotWritable { .. })), "{}: {fault:?}", path.display());
    }
    assert_eq!(fs::read(&file).expect("it can be read"), b"a file");
    assert_eq!(fs::read_dir(&directory).expect("it is still one").count(), 0);
}
