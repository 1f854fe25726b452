//! Reads everything of a store, job after job, for an export.
//!
//! No read is long: numbers of jobs are read page by page, and what belongs to a job piece by piece, so that the log
//! can be copied in between. A job may therefore be removed while it is read; the reader is told so.

use std::path::Path;

use crosspoint_contracts::time::Time;

use super::check::is_damage;
use super::read::Found;
use super::secret::{self, Secrets};
use super::{Fault, Readers, member, open, row};
use crate::core::{Member, Standing};
use crate::id::{Ids, Seq};
use crate::job::Phase;

/// Most rows that are looked at in one read.
const LOOKED_AT_MAX: i64 = 10_000;

/// Most broken rules that are read at a time.
const FOUND_MAX: i64 = 500;

/// Some jobs, in the order in which they were accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The numbers of the jobs.
    pub seqs: Vec<Seq>,
    /// The last job that was looked at; `None` where there are no more.
    pub next: Option<Seq>,
    /// Whether what comes after it cannot be read.
    pub stuck: bool,
}

/// Which jobs are read.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Jobs in one of these phases; in any phase if the list is empty.
    pub phases: Vec<Phase>,
    /// Jobs that were accepted at this time or later.
    pub since: Option<Time>,
}

impl Readers {
    /// Opens an existing store for reading only. It changes nothing in the store, also while a server runs.
    pub fn open(path: &Path) -> Result<Readers, Fault> {
        let connection = open::to_read(path)?;
        // A store that has lost its secrets can still be read, but not asked for a job by its id.
        let salt = secret::salt(&connection).ok().flatten().unwrap_or_default();
        let ids = secret::ids(&connection).ok().flatten().unwrap_or(Ids::PLAIN);
        Ok(Readers::new(path, Secrets { salt, ids }))
    }

    /// Returns the wanted jobs after this one.
    pub fn numbers(&self, after: Seq, wanted: &Wanted) -> Result<Numbers, Fault> {
        self.read(|connection| {
            let sql = "SELECT seq, state, accepted_at FROM job WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let mut all = connection.prepare_cached(sql)?;
            let mut rows = all.query([after.0.cast_signed(), LOOKED_AT_MAX])?;
            let (mut seqs, mut looked_at, mut last) = (Vec::new(), 0, after);
            loop {
                let (seq, is_wanted) = match rows.next() {
                    Ok(Some(found)) => (row::seq(found, 0)?, wanted.wants(found)),
                    Ok(None) => break,
                    // What was read before the damage is good.
                    Err(error) if is_damage(&error) => return Ok(Numbers { seqs, next: Some(last), stuck: true }),
                    Err(error) => return Err(error),
                };
                (looked_at, last) = (looked_at + 1, seq);
                // A job in an unknown state cannot be filtered. It is included, and reported as unreadable.
                if is_wanted.unwrap_or(true) {
                    seqs.push(seq);
                }
            }
            Ok(Numbers { seqs, next: (looked_at == LOOKED_AT_MAX).then_some(last), stuck: false })
        })
    }

    /// Returns the rules that were broken about a job, after the violation row `after`, and the number of the last row
    /// returned. Repeated calls read all of them, however many there are.
    pub fn violations_after(&self, seq: Seq, after: i64) -> Result<(Vec<Found>, i64), Fault> {
        self.read(|connection| {
            if !open::has_table(connection, "violation")? {
                return Ok((Vec::new(), after));
            }
            let sql =
                "SELECT at, clause, level, what, seq FROM violation WHERE job = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
            let mut all = connection.prepare_cached(sql)?;
            let mut rows = all.query([seq.0.cast_signed(), after, FOUND_MAX])?;
            let (mut found, mut last) = (Vec::new(), after);
            while let Some(row) = rows.next()? {
                found.push(Found::read(row)?);
                last = row.get(4)?;
            }
            Ok((found, last))
        })
    }

    /// Returns the agents that have joined.
    pub fn members(&self) -> Result<Vec<Member>, Fault> {
        self.read(
            |connection| if open::has_table(connection, "member")? { member::all(connection) } else { Ok(Vec::new()) },
        )
    }

    /// Returns the stored state of agents.
    pub fn standings(&self) -> Result<Vec<(std::sync::Arc<str>, Standing)>, Fault> {
        self.read(row::standings)
    }

    /// Returns the schema of the store, and the number of the last job there ever was, where that can be read.
    pub fn origin(&self) -> Result<(i64, Option<Seq>), Fault> {
        self.read(|connection| {
            let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
            let sql = "SELECT max(coalesce((SELECT max(seq) FROM job), 0), coalesce((SELECT value FROM meta WHERE name = 'last_job'), 0))";
            match connection.query_row(sql, (), |row| row::seq(row, 0)) {
                Err(error) if is_damage(&error) => Ok((version, None)),
                last => Ok((version, Some(last?))),
            }
        })
    }
}

impl Wanted {
    /// Whether this row is wanted; it has the columns that [`Readers::numbers`] selects.
    fn wants(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
        let (state, accepted_at) = (row.get::<_, i64>(1)?, Time(row.get(2)?));
        let phase = self.phases.is_empty() || self.phases.iter().any(|phase| *phase as i64 == state);
        Ok(phase && self.since.is_none_or(|since| accepted_at >= since))
    }
}
