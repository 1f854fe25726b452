//! Writes a batch.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Transaction, TransactionBehavior, params};

use super::{Fault, Store, audit, event_row, grant, member, name, outcome, owed, row, schema};
use crate::claim::{Claim, Overtaken};
use crate::core::{Batch, Written};
use crate::event::{Entry, What};
use crate::id::Seq;

/// Estimated length in bytes of a job's row without its head, for guessing how much was written.
const ROW_BYTES: u64 = 200;

/// Why nothing was written.
pub(super) enum Error {
    Database(rusqlite::Error),
    /// This job cannot be written.
    Job(Seq, rusqlite::Error),
    /// The store no longer belongs to this process.
    Lost,
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        Error::Database(error)
    }
}

impl From<Overtaken> for Error {
    fn from(_: Overtaken) -> Error {
        Error::Lost
    }
}

impl Error {
    pub(super) fn into_fault(self, path: &Path) -> Fault {
        match self {
            Error::Database(error) => Fault::of(path, &error),
            Error::Job(seq, error) => Fault::of_job(path, seq, &error),
            Error::Lost => Fault::Lost { path: path.to_owned() },
        }
    }
}

impl Store {
    /// Writes everything of a batch, or nothing. When it returns, the batch is on disk.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), Fault> {
        if batch.is_empty() {
            return Ok(());
        }
        let before = self.next_event;
        let mut next_event = before;
        let written = self.transact(|transaction, epoch| write_rows(transaction, batch, &mut next_event, epoch));
        self.next_event = if written.is_ok() { next_event } else { before };
        let bytes = written.map_err(|error| error.into_fault(&self.path))?;
        self.checkpointer.written(bytes);
        Ok(())
    }

    /// Runs one transaction, if the store still belongs to this opening. When it returns, what was written is on disk.
    pub(super) fn transact<T>(
        &mut self,
        write: impl FnOnce(&Transaction<'_>, i64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let written = self.transact_or_fail(write);
        self.lost |= matches!(written, Err(Error::Lost));
        written
    }

    fn transact_or_fail<T>(
        &mut self,
        write: impl FnOnce(&Transaction<'_>, i64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.lost || !self.lock.is_in_place() {
            return Err(Error::Lost);
        }
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)?;
        let epoch = self.claim.check(schema::epoch(&transaction)?)?;
        if let Claim::Seen(_) = self.claim {
            schema::set_epoch(&transaction, epoch, self.serves)?;
        }
        let written = write(&transaction, epoch)?;
        let began = Instant::now();
        transaction.commit()?;
        self.sync_time = began.elapsed();
        if let Claim::Seen(_) = std::mem::replace(&mut self.claim, Claim::Ours(epoch)) {
            // After the first transaction the store belongs to this opening, so the log is copied into the database at
            // the end. If that fails, the next opening finds the log.
            let _ = schema::leave_log(&self.connection, false);
        }
        Ok(written)
    }
}

/// Writes all of a batch; returns roughly how many bytes that were.
fn write_rows(transaction: &Transaction<'_>, batch: &Batch, next_event: &mut i64, epoch: i64) -> Result<u64, Error> {
    let mut bytes = 0;
    for (seq, written) in &batch.jobs {
        let job = write_job(transaction, *seq, written, next_event, epoch);
        bytes += ROW_BYTES + job.map_err(|error| Error::Job(*seq, error))?;
    }
    // After the jobs: one of them may have been accepted in this batch.
    for (seq, further) in &batch.names {
        name::insert(transaction, *seq, further)?;
        bytes += ROW_BYTES;
    }
    for (seq, at) in &batch.aside {
        row::write_aside(transaction, *seq, *at).map_err(|error| Error::Job(*seq, error))?;
    }
    for seq in &batch.repaired {
        row::repair(transaction, *seq, epoch).map_err(|error| Error::Job(*seq, error))?;
    }
    // After the jobs: one of them may have ended in this batch.
    for id in &batch.told {
        owed::told(transaction, *id)?;
    }
    for (name, standing) in &batch.agents {
        row::write_standing(transaction, name, standing)?;
    }
    for (name, member) in &batch.members {
        match member {
            Some(member) => member::write(transaction, member)?,
            None => member::forget(transaction, name)?,
        }
    }
    for grant in batch.grants.values() {
        grant::write(transaction, grant)?;
    }
    for entry in &batch.audit {
        bytes += audit::append(transaction, entry)?;
    }
    write_violations(transaction, batch)?;
    if let Some(at) = batch.alive_at {
        schema::set_alive_at(transaction, at)?;
    }
    if let Some(jumps) = &batch.jumps {
        schema::set_jumps(transaction, jumps)?;
    }
    if batch.is_clean_end {
        schema::set_clean_end(transaction)?;
    }
    Ok(bytes)
}

/// Most broken rules that are kept of one job: an agent that breaks rules without end must not fill the store.
const VIOLATIONS_MAX: i64 = 100;

fn write_violations(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    for (seq, at, violation) in &batch.violations {
        // The job may have been removed since it was looked up.
        let mut insert = transaction.prepare_cached(
            "INSERT INTO violation(job, at, clause, what, level)
             SELECT ?1, ?2, ?3, ?4, ?6 WHERE EXISTS (SELECT 1 FROM job WHERE seq = ?1)
             AND (SELECT count(*) FROM violation WHERE job = ?1) < ?5",
        )?;
        let seq = seq.0.cast_signed();
        let level = violation.level.name();
        insert.execute(params![seq, at.0, violation.clause, violation.what, VIOLATIONS_MAX, level])?;
    }
    Ok(())
}

/// Writes the events first, because the row of a job names the last of them.
fn write_job(
    transaction: &Transaction<'_>,
    seq: Seq,
    written: &Written,
    next_event: &mut i64,
    epoch: i64,
) -> rusqlite::Result<u64> {
    let mut bytes = 0;
    let mut head = None;
    for entry in &written.entries {
        if let What::Ended(_) = entry.what {
            bytes += outcome::write(transaction, seq, entry)?;
            continue;
        }
        let prev = match head {
            Some(prev) => prev,
            None if written.accepted.is_some() => 0,
            None => head_of(transaction, seq)?,
        };
        bytes += write_event(transaction, *next_event, seq, prev, entry)?;
        head = Some(*next_event);
        *next_event += 1;
    }
    match &written.accepted {
        Some(accepted) => {
            row::insert_job(transaction, &written.job, accepted.hashes, head.unwrap_or(0), epoch)?;
            let mut insert = transaction.prepare_cached("INSERT INTO document(job, bytes) VALUES (?1, ?2)")?;
            insert.execute(params![seq.0.cast_signed(), &*accepted.document.0])?;
            bytes += accepted.document.0.len() as u64;
            if let Some(recipient) = &written.job.request.notify {
                owed::insert(transaction, seq, recipient)?;
            }
        }
        None => row::update_job(transaction, &written.job, head, epoch)?,
    }
    Ok(bytes)
}

fn head_of(transaction: &Transaction<'_>, seq: Seq) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached("SELECT head FROM job WHERE seq = ?1")?
        .query_row([seq.0.cast_signed()], |row| row.get(0))
}

fn write_event(transaction: &Transaction<'_>, at: i64, seq: Seq, prev: i64, entry: &Entry) -> rusqlite::Result<u64> {
    let columns = event_row::event_columns(&entry.what);
    let mut insert = transaction.prepare_cached(
        "INSERT INTO event(seq, job, prev, n, at, kind, number, place, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    insert.execute(params![
        at,
        seq.0.cast_signed(),
        prev,
        entry.n,
        entry.at.0,
        columns.kind,
        columns.number,
        columns.place,
        columns.body.as_deref(),
    ])?;
    Ok(columns.body.map_or(0, |body| body.len() as u64))
}
