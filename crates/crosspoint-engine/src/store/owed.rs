//! Outcomes that recipients are owed, as rows: one for each job whose recipient is not known to have been told.

use std::sync::Arc;

use crosspoint_contracts::time::Time;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use super::{Fault, Readers, row};
use crate::id::{JobId, Seq};

/// A job whose outcome is owed to a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The job.
    pub id: JobId,
    /// When the job ended; `None` while it goes on.
    pub ended_at: Option<Time>,
}

/// How many outcomes a recipient is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedCount {
    /// The name of the recipient.
    pub recipient: Arc<str>,
    /// How many jobs have ended whose outcome it was not told.
    pub jobs: u64,
    /// When the first of them ended.
    pub since: Time,
}

/// Writes that the outcome of a job is owed.
pub(super) fn insert(transaction: &Transaction<'_>, seq: Seq, recipient: &str) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO owed(job, recipient) VALUES (?1, ?2)")?;
    insert.execute(params![seq.0.cast_signed(), recipient])?;
    Ok(())
}

/// Writes that an outcome is no longer owed. The job may have been removed meanwhile, and its number is then no other
/// job's.
pub(super) fn told(transaction: &Transaction<'_>, id: JobId) -> rusqlite::Result<()> {
    let sql = "DELETE FROM owed WHERE job = ?1 AND EXISTS (SELECT 1 FROM job WHERE seq = ?1 AND id = ?2)";
    transaction.prepare_cached(sql)?.execute(params![id.seq().0.cast_signed(), id.as_bytes()])?;
    Ok(())
}

impl Readers {
    /// Returns jobs whose outcome this recipient is owed, after the job `after`, in the order in which they were
    /// accepted. Jobs that have not ended are among them.
    pub fn owed(&self, recipient: &str, after: Option<Seq>, limit: usize) -> Result<Vec<Owed>, Fault> {
        self.read(|connection| {
            let sql = "SELECT job.id, outcome.at, owed.job FROM owed JOIN job ON job.seq = owed.job
                LEFT JOIN outcome ON outcome.job = owed.job
                WHERE owed.recipient = ?1 AND owed.job > ?2 ORDER BY owed.job LIMIT ?3";
            let after = after.map_or(0, |seq| seq.0.cast_signed());
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let one = |row: &Row<'_>| {
                let ended_at = row.get::<_, Option<i64>>(1)?.map(Time);
                let id = JobId::of_row(row::seq(row, 2)?, Uuid::from_bytes(row.get(0)?));
                Ok(Owed { id, ended_at })
            };
            connection.prepare_cached(sql)?.query_map(params![recipient, after, limit], one)?.collect()
        })
    }

    /// Returns the recipients that are owed outcomes of jobs that have ended, ordered by name.
    pub fn owed_counts(&self) -> Result<Vec<OwedCount>, Fault> {
        self.read(|connection| {
            let sql =
                "SELECT owed.recipient, count(*), min(outcome.at) FROM owed JOIN outcome ON outcome.job = owed.job
                GROUP BY owed.recipient ORDER BY owed.recipient";
            let one = |row: &Row<'_>| {
                let jobs = row.get::<_, i64>(1)?.unsigned_abs();
                Ok(OwedCount { recipient: row.get(0)?, jobs, since: Time(row.get(2)?) })
            };
            connection.prepare_cached(sql)?.query_map((), one)?.collect()
        })
    }

    /// Returns the recipient that is owed the outcome of this job; `None` if none is, or if it was told.
    pub fn owed_to(&self, seq: Seq) -> Result<Option<Arc<str>>, Fault> {
        self.read(|connection| {
            let sql = "SELECT recipient FROM owed WHERE job = ?1";
            connection.prepare_cached(sql)?.query_row([seq.0.cast_signed()], |row| row.get(0)).optional()
        })
    }
}
