//! Losses of power, simulated byte by byte.
//!
//! A store is written and, at every acknowledgement, its files are copied. From these copies the directories are made
//! that a loss of power could have left: what was synced by an acknowledgement is there, and of what was written later
//! any part is there, cut off, zeroed, garbled, half written, or written in another order. Each must open, and hold
//! exactly what was there at this acknowledgement or at a later one: no acknowledged job lost, no batch in half.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::outcome::Status;
use crosspoint_engine::core::{Batch, Written};
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Running, State};
use crosspoint_engine::store::{Budget, Filter, Readers, Store};
use rusqlite::Connection;

use crate::grants::{audited, who};
use crate::rows::{self, NOW, batch, end, fresh, note, stepped, whole, whole_entry};
use crate::scratch::{Dice, Scratch};

/// Who is told the outcomes of every second job.
const RECIPIENT: &str = "one";
const SECTOR: usize = 512;
const PAGE: usize = 4_096;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The files as they were when a commit returned.
struct Ack {
    database: Vec<u8>,
    log: Vec<u8>,
    /// Length of this and earlier commits in the log. Behind it may be remains of an earlier log.
    synced: usize,
    /// Everything that the store held.
    picture: String,
}

/// A store at work: jobs come, move and end, as the dice fall.
struct Life {
    scratch: Scratch,
    store: Store,
    readers: Readers,
    dice: Dice,
    live: Vec<Job>,
    ended: Vec<Seq>,
    count: u64,
}

impl Life {
    fn begin(seed: u64) -> Life {
        let scratch = Scratch::new();
        let (store, readers) = Store::open(&scratch.options()).expect("it opens");
        Life { scratch, store, readers, dice: Dice(seed), live: Vec::new(), ended: Vec::new(), count: 0 }
    }

    /// One commit of several jobs, new and old, with documents of up to a few pages.
    fn commit(&mut self) -> Ack {
        let mut written = Vec::new();
        for _ in 0..=self.dice.below(2) {
            self.count += 1;
            let document = vec![b'x'; self.dice.below(6_000)];
            let mut job = rows::job(self.count);
            Arc::make_mut(&mut job.request).notify = self.count.is_multiple_of(2).then(|| RECIPIENT.into());
            self.live.push(job.clone());
            written.push(fresh(job, &document, Vec::new()));
        }
        for at in (0..self.live.len() - written.len()).rev() {
            if self.dice.below(3) == 0 {
                written.push(self.step(at));
            }
        }
        let told = self.ended.iter().filter(|_| self.dice.below(4) == 0).map(|seq| rows::id(seq.0)).collect();
        self.store.commit(&audited(Batch { told, ..batch(written) })).expect("it commits");
        self.look()
    }

    fn step(&mut self, at: usize) -> Written {
        let mut job = self.live[at].clone();
        if self.dice.below(3) == 0 {
            let status = Status::ALL[self.dice.below(3)];
            let last = end(&mut job, status, &format!(r#"{{"outputs":"{}"}}"#, "o".repeat(self.dice.below(3_000))));
            self.ended.push(self.live.swap_remove(at).seq());
            return stepped(job, vec![last]);
        }
        job.attempts += 1;
        job.state = State::Running(Running {
            attempt: job.attempts,
            heard_at: job.updated_at,
            timed_from: job.updated_at,
            asked: 0,
            taken_up_at: None,
        });
        job.memory = (self.dice.below(2) == 0).then(|| Block(Bytes::from(vec![b'm'; 1 + self.dice.below(5_000)])));
        let block = Block(Bytes::from(vec![b'y'; self.dice.below(2_000)]));
        let attempt = job.attempts;
        let started = note(&mut job, What::Started { attempt, agent: "a".into() });
        let printed = note(&mut job, What::Output { attempt, offset: 0, block });
        self.live[at] = job.clone();
        stepped(job, vec![started, printed])
    }

    /// One step of removing jobs, with a budget too small for some of them.
    fn purge(&mut self) -> Ack {
        let budget = Budget { rows: 1 + self.dice.below(12) as u64, bytes: 4_000 };
        let purged = self.store.purge(&self.ended, budget).expect("it can be purged");
        self.ended.drain(..purged.jobs);
        self.look()
    }

    fn look(&self) -> Ack {
        let log = fs::read(self.scratch.log()).expect("the log is there");
        Ack {
            database: fs::read(self.scratch.database()).expect("the database is there"),
            synced: written_of(&log),
            log,
            picture: picture(&self.readers),
        }
    }

    /// Copies the log into the database, as the checkpointing thread does now and then. The next commit begins the log
    /// anew.
    fn checkpoint(&self) -> Ack {
        let connection = Connection::open(self.scratch.database()).expect("it opens");
        let (busy, frames, copied): (i64, i64, i64) = connection
            .query_row("PRAGMA wal_checkpoint(FULL)", (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .expect("a checkpoint can be made");
        assert_eq!((busy, frames), (0, copied), "all of the log was copied");
        self.look()
    }
}

/// Number of bytes in a log that belong to its present header: frames bear the salt of the header.
fn written_of(log: &[u8]) -> usize {
    let salt = |at: usize| log.get(at..at + 8);
    let is_frame = |at: &usize| salt(*at + 8) == salt(16) && *at + FRAME_HEADER + PAGE <= log.len();
    let places = (LOG_HEADER..).step_by(FRAME_HEADER + PAGE);
    places.take_while(is_frame).last().map_or(LOG_HEADER, |at| at + FRAME_HEADER + PAGE)
}

/// The pages that are in a log, which are those that a checkpoint writes.
fn pages_of(log: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes")) as usize;
    let end = written_of(log);
    let mut pages: Vec<usize> = (LOG_HEADER..end).step_by(FRAME_HEADER + PAGE).map(number).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// Everything that a store holds.
fn picture(readers: &Readers) -> String {
    let page = readers.list(&Filter { limit: 10_000, ..Filter::default() }).expect("it can be read");
    assert_eq!(page.next, None);
    let mut picture = format!("{:?}\n{}\n", readers.owed(RECIPIENT, None, usize::MAX).ok(), who(readers));
    for job in page.jobs.iter().rev() {
        let places = readers.event_places(job.seq(), 0).expect("it can be read");
        let mut entries = readers.events_at(job.seq(), &places).expect("it can be read");
        entries.extend(readers.ending(job.seq()).expect("it can be read"));
        assert!(entries.iter().map(|entry| entry.n).eq(2..=job.events), "events are whole");
        assert_eq!(job.outcome().is_some(), job.phase().is_end());
        let entries: Vec<String> = entries.iter().map(whole_entry).collect();
        let document = readers.document(job.seq()).expect("it can be read").expect("it is there");
        picture += &format!("{}\n{entries:?}\n{document:?}\n", whole(job));
    }
    picture
}

/// Opens what a loss of power left, and returns which of these acknowledgements it corresponds to, if any.
fn as_of(database: &[u8], log: &[u8], acks: &[Ack], what: &str) -> Option<usize> {
    let scratch = Scratch::new();
    fs::write(scratch.database(), database).expect("it can be written");
    fs::write(scratch.log(), log).expect("it can be written");
    let (mut store, readers) = Store::open(&scratch.options()).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let loaded = store.load().unwrap_or_else(|fault| panic!("{what}: {fault}"));
    assert!(loaded.jobs.iter().all(|job| job.outcome().is_none() && job.request.accepted_at == NOW));
    let found = picture(&readers);
    purge_the_rest(&mut store, &scratch.database());
    acks.iter().rposition(|ack| ack.picture == found)
}

fn survives(database: &[u8], log: &[u8], acks: &[Ack], what: &str) -> usize {
    let as_of = as_of(database, log, acks, what);
    as_of.unwrap_or_else(|| panic!("{what}: what is there is no acknowledged state, or one before"))
}

/// A possible state of what was not yet synced: each byte from `from` on is old, new, or neither.
fn torn(before: &[u8], after: &[u8], from: usize, dice: &mut Dice) -> (Vec<u8>, &'static str) {
    let span = after.len() - from;
    let cut = from + dice.below(span + 1);
    let mut bytes = after.to_vec();
    let what = match dice.below(6) {
        0 => {
            bytes.truncate(cut);
            "cut off"
        }
        1 => {
            bytes[cut..].fill(0);
            "zeroed"
        }
        2 => {
            bytes[cut..].iter_mut().for_each(|byte| *byte = dice.roll().to_be_bytes()[0]);
            "garbled"
        }
        3 => {
            let one = cut.min(bytes.len() - 1);
            bytes[one] ^= 1 << dice.below(8);
            "one bit flipped"
        }
        4 => {
            tear_sectors(before, &mut bytes, from, dice);
            "half written"
        }
        _ => {
            // The first frame of what came later is old, and the rest is new.
            let end = (from + FRAME_HEADER + PAGE).min(bytes.len());
            let old = |at: usize| before.get(at).copied().unwrap_or(0);
            (from..end).for_each(|at| bytes[at] = old(at));
            "out of order"
        }
    };
    (bytes, what)
}

/// Each sector is old, new, empty or garbage.
fn tear_sectors(before: &[u8], bytes: &mut [u8], from: usize, dice: &mut Dice) {
    for sector in (from / SECTOR)..bytes.len().div_ceil(SECTOR) {
        let range = (sector * SECTOR).max(from)..((sector + 1) * SECTOR).min(bytes.len());
        match dice.below(4) {
            0 => range.for_each(|at| bytes[at] = before.get(at).copied().unwrap_or(0)),
            1 => bytes[range].fill(0),
            2 => range.for_each(|at| bytes[at] = dice.roll().to_be_bytes()[0]),
            _ => {}
        }
    }
}

/// Tears everything behind every acknowledgement, several times. Returns how often something later survived.
fn tear_behind_each(acks: &[Ack], tears: usize, seed: u64) -> usize {
    let mut dice = Dice(seed);
    let mut later = 0;
    for at in 0..acks.len() - 1 {
        for _ in 0..tears {
            let until = (at + 1 + dice.below(3)).min(acks.len() - 1);
            let (ack, last) = (&acks[at], &acks[until]);
            assert!(ack.database == last.database && ack.log[..ack.synced] == last.log[..ack.synced]);
            let (log, how) = torn(&ack.log, &last.log, ack.synced, &mut dice);
            let what = format!("seed {seed}, acknowledgement {at} of what became {until}, {how}");
            later += survives(&ack.database, &log, &acks[at..=until], &what).min(1);
        }
    }
    later
}

#[test]
fn what_the_first_log_had_not_synced_may_be_torn() {
    let mut life = Life::begin(1);
    let mut acks = vec![life.look()];
    acks.extend((0..40).map(|_| life.commit()));
    let later = tear_behind_each(&acks, 4, 11);
    assert!(later > 0, "some tears must leave a later state, or they are all the same");
}

#[test]
fn what_a_later_log_had_not_synced_may_be_torn() {
    let mut life = Life::begin(2);
    (0..30).for_each(|_| drop(life.commit()));
    let before = life.checkpoint();
    let acks: Vec<Ack> = (0..25).map(|_| life.commit()).collect();
    assert!(acks[0].log[..LOG_HEADER] != before.log[..LOG_HEADER], "the log began anew");
    assert!(acks[0].synced < acks[0].log.len(), "behind it are remains of the one before");
    let later = tear_behind_each(&acks, 4, 12);
    assert!(later > 0, "some tears must leave a later state, or they are all the same");
}

#[test]
fn what_a_purge_had_not_synced_may_be_torn() {
    let mut life = Life::begin(8);
    (0..30).for_each(|_| drop(life.commit()));
    assert!(life.ended.len() > 5);
    let mut acks = vec![life.checkpoint()];
    acks.extend((0..30).map(|turn| if turn % 3 == 0 { life.commit() } else { life.purge() }));
    tear_behind_each(&acks[1..], 4, 18);
}

/// Removes what is left of removed jobs, and checks that no row without a job remains.
fn purge_the_rest(store: &mut Store, database: &Path) {
    while store.purge(&[], Budget { rows: 3, bytes: 1_000 }).expect("it can be purged").leftover {}
    let connection = Connection::open(database).expect("it opens");
    for table in ["event", "document", "outcome"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE job NOT IN (SELECT seq FROM job)");
        assert_eq!(connection.query_row(&sql, (), |row| row.get::<_, i64>(0)), Ok(0), "{table}");
    }
}

#[test]
fn a_loss_of_what_was_synced_would_be_seen() {
    let mut life = Life::begin(7);
    let acks = [life.commit(), life.commit()];
    let cut = &acks[1].log[..acks[1].synced - 1];
    assert_eq!(as_of(&acks[1].database, cut, &acks[1..], "one byte short"), None);
    assert_eq!(as_of(&acks[1].database, cut, &acks, "one byte short"), Some(0));
}

#[test]
fn a_commit_may_be_cut_off_at_any_sector_and_around_every_frame() {
    let mut life = Life::begin(3);
    (0..6).for_each(|_| drop(life.commit()));
    let acks = [life.commit(), life.commit(), life.commit()];
    let (first, last) = (&acks[0], &acks[2]);
    let frames =
        (first.synced..=last.log.len()).step_by(FRAME_HEADER + PAGE).flat_map(|at| [at - 1, at, at + 1, at + 24]);
    let sectors = (first.synced..last.log.len()).step_by(SECTOR);
    let mut as_of = [0; 3];
    for cut in frames.chain(sectors).filter(|cut| (first.synced..=last.log.len()).contains(cut)) {
        as_of[survives(&first.database, &last.log[..cut], &acks, &format!("cut off at {cut}"))] += 1;
        // The full length, with zeros behind the cut.
        let zeroed = [&last.log[..cut], &vec![0; last.log.len() - cut]].concat();
        survives(&first.database, &zeroed, &acks, &format!("nothing behind {cut}"));
    }
    assert!(as_of.iter().all(|count| *count > 0), "each of the three is somewhere all there is: {as_of:?}");
}

#[test]
fn pages_may_be_torn_while_the_log_is_copied_into_the_database() {
    let mut life = Life::begin(4);
    let mut dice = Dice(14);
    for round in 0..4 {
        (0..10).for_each(|_| drop(life.commit()));
        let ack = life.commit();
        let copied = life.checkpoint();
        assert!(copied.log == ack.log && copied.database != ack.database);
        let pages = pages_of(&ack.log);
        for tear in 0..30 {
            // The file has its old length, its new length, or any length in between.
            let length = ack.database.len() + dice.below(copied.database.len() - ack.database.len() + 1);
            let mut database = copied.database.clone();
            database.truncate(length);
            for page in &pages {
                let range = ((page - 1) * PAGE).min(length)..(page * PAGE).min(length);
                let start = range.start;
                let before = ack.database.get(start..).unwrap_or_default();
                tear_sectors(before, &mut database[range], 0, &mut dice);
            }
            let what = format!("round {round}, tear {tear}: {} pages torn of {length} bytes", pages.len());
            survives(&database, &ack.log, std::slice::from_ref(&ack), &what);
        }
    }
}

#[test]
fn commits_may_be_torn_while_the_log_before_them_is_copied() {
    let mut life = Life::begin(5);
    let mut dice = Dice(15);
    (0..10).for_each(|_| drop(life.commit()));
    let ack = life.commit();
    // A reader of the earlier state holds the log, so that the commits after the checkpoint go behind what was copied.
    let reader = Connection::open(life.scratch.database()).expect("it opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM job").expect("it reads");
    let copied = life.checkpoint();
    let acks = [copied, life.commit(), life.commit()];
    assert!(acks[2].log[..ack.synced] == ack.log[..ack.synced], "the log goes on");
    let pages = pages_of(&ack.log);
    for tear in 0..60 {
        let mut database = acks[0].database.clone();
        for page in &pages {
            let range = (page - 1) * PAGE..page * PAGE;
            tear_sectors(&[], &mut database[range], 0, &mut dice);
        }
        let (log, how) = torn(&acks[0].log, &acks[2].log, ack.synced, &mut dice);
        survives(&database, &log, &acks, &format!("tear {tear}: {how}"));
    }
}

#[test]
fn the_log_may_be_torn_where_it_begins_anew() {
    let mut life = Life::begin(6);
    (0..12).for_each(|_| drop(life.commit()));
    let before = life.checkpoint();
    let acks = [before, life.commit()];
    let (old, new) = (&acks[0].log, &acks[1].log);
    assert!(old[..LOG_HEADER] != new[..LOG_HEADER], "the log began anew");
    // First the header is written and synced, while all frames are the old ones.
    for cut in 0..=LOG_HEADER {
        let log = [&new[..cut], &old[cut..]].concat();
        assert_eq!(survives(&acks[0].database, &log, &acks, &format!("{cut} bytes of header")), 0);
        let log = [&old[..cut], &vec![0xa5; LOG_HEADER - cut], &old[LOG_HEADER..]].concat();
        survives(&acks[0].database, &log, &acks, &format!("garbage from {cut} of the header on"));
    }
    // Then the frames, over the old ones.
    let mut dice = Dice(16);
    for tear in 0..60 {
        let (log, how) = torn(old, new, LOG_HEADER, &mut dice);
        survives(&acks[0].database, &log, &acks, &format!("tear {tear}: {how}"));
    }
}
