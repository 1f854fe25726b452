//! Reads what is on disk, over separate connections: readers never wait for the writer, and the writer never waits for
//! them.
//!
//! Every read is short, because a long one keeps the log from being copied into the database.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::request::Door;
use crosspoint_contracts::time::Time;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::secret::Secrets;
use super::{Fault, event_row, open, outcome, row};
use crate::event::{Entry, What};
use crate::id::{Ids, JobId, Seq};
use crate::job::{Ending, Job, Phase};
use crate::keys::Salt;

/// Most connections that are kept for the next reader; further ones are opened as needed and closed again.
const KEPT_MAX: usize = 8;

/// Most jobs that one page looks at, so that a search for something rare among a million jobs becomes many short reads.
const LOOKED_AT_MAX: u64 = 10_000;

/// Longest outcome in bytes that is read for a list: a page of five hundred jobs is for looking, not for fetching.
pub const LISTED_BYTES_MAX: usize = 4 << 10;

/// Read access to a store. Clones share the connections.
#[derive(Clone)]
pub struct Readers(Arc<Inner>);

struct Inner {
    path: PathBuf,
    secrets: Secrets,
    kept: Mutex<Vec<Connection>>,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only jobs in this phase.
    pub phase: Option<Phase>,
    /// Only jobs of this work.
    pub work: Option<String>,
    /// Only jobs that this agent has or had last, or that must go to it.
    pub agent: Option<String>,
    /// Only jobs from this door.
    pub door: Option<Door>,
    /// Only jobs of this caller.
    pub caller: Option<Arc<str>>,
    /// Only jobs older than this one.
    pub before: Option<Seq>,
    /// Most jobs to return.
    pub limit: usize,
}

/// Most links of a chain of events that are followed in one read: a few milliseconds' worth.
pub(super) const PLACES_MAX: usize = 4_096;

/// Where some events of a job are, the last first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The places of the events.
    pub places: Vec<i64>,
    /// Where to go on, if there are more.
    pub rest: Option<i64>,
}

/// Some jobs, the youngest first.
#[derive(Debug)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The job behind which to go on, which may be none of these; `None` where there are no more.
    pub next: Option<JobId>,
    /// How many rows were looked at for this page.
    pub looked_at: u64,
}

/// A rule that was broken about a job.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Found {
    /// When the rule was broken.
    pub at: Time,
    /// The id of the clause.
    pub clause: String,
    /// How much it matters: `error` or `warning`.
    pub level: String,
    /// How the clause was broken.
    pub what: String,
}

impl Found {
    /// Reads a row of time, clause, level and text.
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
        Ok(Found { at: Time(row.get(0)?), clause: row.get(1)?, level: row.get(2)?, what: row.get(3)? })
    }
}

/// The size of a store in bytes; `None` where it cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The size of the database file.
    pub database: Option<u64>,
    /// The size of the log.
    pub log: Option<u64>,
}

impl Readers {
    pub(super) fn new(path: &Path, secrets: Secrets) -> Readers {
        Readers(Arc::new(Inner { path: path.to_owned(), secrets, kept: Mutex::default() }))
    }

    /// Returns the salt of the store's keys.
    pub fn salt(&self) -> Salt {
        self.0.secrets.salt
    }

    /// Returns what makes and reads the ids of the store's jobs.
    pub fn ids(&self) -> &Ids {
        &self.0.secrets.ids
    }

    /// Returns how large the store is, according to the file system. The database is not read.
    pub fn sizes(&self) -> Sizes {
        let mut log = self.0.path.as_os_str().to_owned();
        log.push("-wal");
        let bytes = |path: &Path| std::fs::metadata(path).ok().map(|file| file.len());
        Sizes { database: bytes(&self.0.path), log: bytes(Path::new(&log)) }
    }

    /// Returns the job with this id.
    pub fn job(&self, id: JobId) -> Result<Option<Job>, Fault> {
        Ok(self.read(|connection| job(connection, id.seq()))?.filter(|job| job.id() == id))
    }

    /// Returns the job with this number.
    pub fn job_at(&self, seq: Seq) -> Result<Option<Job>, Fault> {
        self.read(|connection| job(connection, seq))
    }

    /// Returns the document that a job came as.
    pub fn document(&self, seq: Seq) -> Result<Option<Block>, Fault> {
        let sql = "SELECT bytes FROM document WHERE job = ?1";
        let bytes = self.read(|connection| {
            connection.prepare_cached(sql)?.query_row([seq.0.cast_signed()], |row| row.get::<_, Vec<u8>>(0)).optional()
        })?;
        Ok(bytes.map(|bytes| Block(Bytes::from(bytes))))
    }

    /// Lists jobs, the youngest first. A page may hold fewer jobs than were asked for and still say where to go on.
    pub fn list(&self, filter: &Filter) -> Result<Page, Fault> {
        self.read(|connection| list(connection, filter))
    }

    /// Returns the places of a job's events after number `after`, in order, for [`Readers::events_at`].
    pub fn event_places(&self, seq: Seq, after: u32) -> Result<Vec<i64>, Fault> {
        let (mut all, mut from) = (Vec::new(), None);
        loop {
            let page = self.some_event_places(seq, after, from)?;
            all.extend(page.places);
            from = page.rest;
            if from.is_none() {
                all.reverse();
                return Ok(all);
            }
        }
    }

    /// Returns the places of a job's events after number `after`, the last first, from the last event on or from where
    /// an earlier call stopped. Each event names the one before it, so a long history is read backwards; no call does
    /// so for long.
    ///
    /// Neither the first nor the last event is among them: the acceptance is in the job's row, the outcome in its own
    /// table.
    pub fn some_event_places(&self, seq: Seq, after: u32, from: Option<i64>) -> Result<Places, Fault> {
        self.read(|connection| {
            let head = "SELECT head FROM job WHERE seq = ?1";
            let mut head = connection.prepare_cached(head)?;
            let mut at = match from {
                Some(from) => from,
                None => head.query_row([seq.0.cast_signed()], |row| row.get(0)).optional()?.unwrap_or(0),
            };
            let mut one = connection.prepare_cached("SELECT prev, n FROM event WHERE seq = ?1")?;
            let mut places = Vec::new();
            while at != 0 {
                let found = one.query_row([at], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)));
                let Some((prev, n)) = there(connection, seq, found)? else { return Ok(Places::default()) };
                if n <= after {
                    break;
                }
                if places.len() == PLACES_MAX {
                    return Ok(Places { places, rest: Some(at) });
                }
                places.push(at);
                // An earlier event has a smaller number. In a damaged store it may not, and the chain would never end.
                at = if prev < at { prev } else { return Err(rusqlite::Error::IntegralValueOutOfRange(0, prev)) };
            }
            Ok(Places { places, rest: None })
        })
    }

    /// Returns the events of a job at some places. If the job is removed meanwhile, returns those that were still
    /// there.
    pub fn events_at(&self, seq: Seq, places: &[i64]) -> Result<Vec<Entry>, Fault> {
        self.read(|connection| {
            // The job is part of the condition, because places of removed events are used again after a restart.
            let sql = "SELECT n, at, kind, number, place, body FROM event WHERE seq = ?1 AND job = ?2";
            let mut one = connection.prepare_cached(sql)?;
            let number = seq.0.cast_signed();
            let all =
                places.iter().map(|place| there(connection, seq, one.query_row([*place, number], event_row::event)));
            all.map_while(Result::transpose).collect()
        })
    }

    /// Returns a job's last event, once the job has ended.
    pub fn ending(&self, seq: Seq) -> Result<Option<Entry>, Fault> {
        self.read(|connection| {
            let found = outcome::read(connection, seq)?;
            Ok(found.map(|(n, ended)| Entry { n, at: ended.at, what: What::Ended(Arc::new(ended)) }))
        })
    }

    /// Returns the rules that were broken about a job.
    pub fn violations(&self, seq: Seq) -> Result<Vec<Found>, Fault> {
        self.read(|connection| {
            let sql = "SELECT at, clause, level, what FROM violation WHERE job = ?1 ORDER BY seq LIMIT 100";
            connection.prepare_cached(sql)?.query_map([seq.0.cast_signed()], Found::read)?.collect()
        })
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Fault> {
        let kept = self.kept().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let found = read(&connection).map_err(|error| Fault::of(&self.0.path, &error))?;
        let mut kept = self.kept();
        if kept.len() < KEPT_MAX {
            kept.push(connection);
        }
        Ok(found)
    }

    fn connect(&self) -> Result<Connection, Fault> {
        let connection = open::to_read(&self.0.path)?;
        // Eight connections of an idle server should not hold two megabytes each.
        let sized = connection.pragma_update(None, "cache_size", -512);
        sized.map_err(|error| Fault::of(&self.0.path, &error))?;
        Ok(connection)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts that a part of a job is missing only if the job is gone too.
pub(super) fn there<T>(connection: &Connection, seq: Seq, found: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    let Err(rusqlite::Error::QueryReturnedNoRows) = found else { return found.map(Some) };
    let job = connection.prepare_cached("SELECT 1 FROM job WHERE seq = ?1")?.exists([seq.0.cast_signed()])?;
    if job { Err(rusqlite::Error::QueryReturnedNoRows) } else { Ok(None) }
}

/// Returns the job with this number.
pub(super) fn job(connection: &Connection, seq: Seq) -> rusqlite::Result<Option<Job>> {
    let sql = format!("SELECT {} FROM job WHERE seq = ?1", row::JOB_COLUMNS);
    let mut one = connection.prepare_cached(&sql)?;
    let mut rows = one.query([seq.0.cast_signed()])?;
    let Some(found) = rows.next()? else { return Ok(None) };
    Ok(Some(row::job(found, seq, outcome_of(connection, seq, found.get(1)?)?)?))
}

/// Returns when a job ended, according to its outcome alone.
pub(super) fn ended_at(connection: &Connection, seq: Seq) -> rusqlite::Result<Option<Time>> {
    let sql = "SELECT at FROM outcome WHERE job = ?1";
    connection.prepare_cached(sql)?.query_row([seq.0.cast_signed()], |row| Ok(Time(row.get(0)?))).optional()
}

/// Returns the outcome. It is read only for a job that has ended.
fn outcome_of(connection: &Connection, seq: Seq, state: i64) -> rusqlite::Result<Option<Arc<Ending>>> {
    if state < row::FIRST_END {
        return Ok(None);
    }
    Ok(outcome::read(connection, seq)?.map(|(_, ended)| Arc::new(ended)))
}

/// Lists jobs in two parts: the few columns that are filtered by are read of every row, and the wanted rows are then
/// read whole. The limit counts rows and not numbers, of which many may be unused.
fn list(connection: &Connection, filter: &Filter) -> rusqlite::Result<Page> {
    let before = filter.before.map_or(i64::MAX, |seq| i64::try_from(seq.0).unwrap_or(i64::MAX));
    let gone_wrong = filter.phase.filter(|phase| [Phase::Failed, Phase::Cancelled].contains(phase));
    // This repeats the condition of the index, without which the index is not used.
    let mut narrowed =
        gone_wrong.map(|phase| format!("AND state > 4 AND state = {}", phase as i64)).unwrap_or_default();
    // A caller's own jobs have an index, so that a page of them says nothing about those of others.
    let caller = filter.caller.as_deref().filter(|caller| !caller.is_empty());
    if caller.is_some() {
        narrowed = "AND caller = ?2 AND caller <> ''".to_owned();
    }
    let columns = "seq, state, work, coalesce(agent, pinned), door, caller, id";
    let sql = format!("SELECT {columns} FROM job WHERE seq < ?1 {narrowed} ORDER BY seq DESC");
    let mut all = connection.prepare_cached(&sql)?;
    let mut rows = match caller {
        Some(caller) => all.query(rusqlite::params![before, caller])?,
        None => all.query([before])?,
    };
    let (mut jobs, mut looked_at, mut next) = (Vec::new(), 0, None);
    // As long as this statement runs, all other statements of the connection see the same moment.
    while let Some(found) = rows.next()? {
        if jobs.len() >= filter.limit || looked_at >= LOOKED_AT_MAX {
            return Ok(Page { jobs, next, looked_at });
        }
        looked_at += 1;
        let seq = row::seq(found, 0)?;
        next = Some(JobId::of_row(seq, Uuid::from_bytes(found.get(6)?)));
        if filter.wants(found)? {
            jobs.extend(listed(connection, seq)?);
        }
    }
    Ok(Page { jobs, next: None, looked_at })
}

impl Filter {
    /// Whether this row is wanted; it has the columns that [`list`] selects.
    fn wants(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
        let is = |column: usize, wanted: Option<&str>| match wanted {
            None => Ok(true),
            Some(wanted) => Ok::<bool, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()? == Some(wanted)),
        };
        let state = match self.phase {
            None => true,
            Some(phase) => row.get::<_, i64>(1)? == phase as i64,
        };
        let is_of_agent = is(2, self.work.as_deref())? && is(3, self.agent.as_deref())?;
        Ok(state && is_of_agent && is(4, self.door.map(Door::name))? && is(5, self.caller.as_deref())?)
    }
}

/// Returns a job as lists show it.
fn listed(connection: &Connection, seq: Seq) -> rusqlite::Result<Option<Job>> {
    let sql = format!("SELECT {} FROM job WHERE seq = ?1", row::JOB_COLUMNS);
    let mut one = connection.prepare_cached(&sql)?;
    let mut rows = one.query([seq.0.cast_signed()])?;
    let Some(found) = rows.next()? else { return Ok(None) };
    let ended = found.get::<_, i64>(1)? >= row::FIRST_END;
    let outcome = if ended { outcome::listed(connection, seq)? } else { None };
    Ok(Some(row::job(found, seq, outcome)?))
}
