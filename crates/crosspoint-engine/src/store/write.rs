//! Writing a batch.

use std::time::Instant;

use rusqlite::{Transaction, TransactionBehavior, params};

use super::{Fault, Store, member, row, schema};
use crate::core::{Batch, Written};
use crate::event::{Entry, What};
use crate::id::Seq;

/// A job's row without its head is about this long, in bytes; for guessing how much was written.
const ROW_BYTES: u64 = 200;

impl Store {
    /// Writes everything of a batch, or nothing; when it returns, it is on disk.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), Fault> {
        if batch.is_clean() {
            return Ok(());
        }
        let before = self.next_event;
        let written = self.commit_rows(batch);
        if written.is_err() {
            self.next_event = before;
        }
        let bytes = written.map_err(|error| Fault::of(&self.path, &error))?;
        self.checkpointer.written(bytes);
        Ok(())
    }

    fn commit_rows(&mut self, batch: &Batch) -> rusqlite::Result<u64> {
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)?;
        let epoch = self.epoch.map_or_else(|| schema::next_epoch(&transaction), Ok)?;
        let mut bytes = 0;
        for (seq, written) in &batch.jobs {
            bytes += ROW_BYTES + write_job(&transaction, *seq, written, &mut self.next_event, epoch)?;
        }
        for (name, standing) in &batch.agents {
            row::write_standing(&transaction, name, standing)?;
        }
        for (name, member) in &batch.members {
            match member {
                Some(member) => member::write(&transaction, member)?,
                None => member::forget(&transaction, name)?,
            }
        }
        for (seq, at, violation) in &batch.violations {
            // The job may be gone since it was looked at.
            let mut insert = transaction.prepare_cached(
                "INSERT INTO violation(job, at, clause, what)
                 SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM job WHERE seq = ?1)",
            )?;
            insert.execute(params![seq.0.cast_signed(), at.0, violation.clause, violation.what])?;
        }
        let began = Instant::now();
        transaction.commit()?;
        self.sync_time = began.elapsed();
        self.opened(epoch);
        Ok(bytes)
    }

    /// After the first transaction it is ours: the log is tidied up at the end. Should that fail, the next opening finds it.
    pub(super) fn opened(&mut self, epoch: i64) {
        if self.epoch.replace(epoch).is_none() {
            let _ = schema::leave_log(&self.connection, false);
        }
    }
}

/// Events first: the row of a job names the last of them.
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
            bytes += write_outcome(transaction, seq, entry)?;
            continue;
        }
        let prev = match head {
            Some(prev) => prev,
            None if written.fresh.is_some() => 0,
            None => head_of(transaction, seq)?,
        };
        bytes += write_event(transaction, *next_event, seq, prev, entry)?;
        head = Some(*next_event);
        *next_event += 1;
    }
    match &written.fresh {
        Some(fresh) => {
            row::insert_job(transaction, &written.job, fresh.hashes, head.unwrap_or(0), epoch)?;
            let mut insert = transaction.prepare_cached("INSERT INTO document(job, bytes) VALUES (?1, ?2)")?;
            insert.execute(params![seq.0.cast_signed(), &*fresh.document.0])?;
            bytes += fresh.document.0.len() as u64;
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
    let columns = row::event_columns(&entry.what);
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

/// A second outcome of one job breaks the table's key, and the whole transaction with it.
fn write_outcome(transaction: &Transaction<'_>, seq: Seq, entry: &Entry) -> rusqlite::Result<u64> {
    let What::Ended(outcome) = &entry.what else { return Ok(0) };
    let mut insert = transaction.prepare_cached(
        "INSERT INTO outcome(job, n, at, status, failure, repeat, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let (failure, repeat) = outcome.failure.map(|(failure, repeat)| (failure.name(), repeat.name())).unzip();
    insert.execute(params![
        seq.0.cast_signed(),
        entry.n,
        entry.at.0,
        outcome.status as i64,
        failure,
        repeat,
        &**outcome.body.bytes(),
    ])?;
    Ok(outcome.body.bytes().len() as u64)
}
