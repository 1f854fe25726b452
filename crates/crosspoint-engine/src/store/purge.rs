//! Removes jobs that need no longer be kept, a little at a time.
//!
//! Only the committing thread writes, so everything that it removes holds up commits. A step is therefore one short
//! transaction. The row of a job goes first, and with it everything but its events: from then on the job is gone for
//! every reader, also after a crash. Its events may be two gigabytes. Those that are left are remembered in a table, by
//! the last of them, and the next steps follow the chain from there. Numbers of jobs are never given twice: when the
//! newest row is removed, its number is kept.
//!
//! A stage stays as long as the job that it is a stage of: the job may come to it again, and would have it done again.

use rusqlite::{OptionalExtension, Transaction, params};
use uuid::Uuid;

use super::write::Error;
use super::{Fault, Store, name, outcome, row, secret};
use crate::id::{Ids, Seq};
use crate::keys::Hash;

/// Most that one step removes. The row that exceeds the budget is still removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rows of any table.
    pub rows: u64,
    /// Bytes in these rows.
    pub bytes: u64,
}

/// What a step has removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// How many rows of any table were removed.
    pub rows: u64,
    /// How many of the named jobs, from the first on, the step has dealt with.
    pub jobs: usize,
    /// Which of these were not removed, because they are stages of jobs that have not ended; each with its job.
    pub kept: Vec<(Seq, Seq)>,
    /// The request keys that are free again.
    pub keys: Vec<(Hash, Seq)>,
    /// Whether events of removed jobs are left.
    pub leftover: bool,
}

impl Budget {
    /// A few milliseconds' worth: mostly rows of a few hundred bytes, of which a dozen share a page.
    pub const STEP: Budget = Budget { rows: 1_000, bytes: 1 << 20 };
}

/// What a step has removed so far.
struct Spent {
    rows: u64,
    bytes: u64,
    budget: Budget,
}

impl Spent {
    fn row(&mut self, bytes: i64) {
        self.rows += 1;
        self.bytes += bytes.unsigned_abs();
    }

    fn is_over(&self) -> bool {
        self.rows >= self.budget.rows || self.bytes >= self.budget.bytes
    }
}

/// Estimated bytes that are written for each removed row. Rows of this length lie on pages that have to be written;
/// longer rows are mostly on pages of their own, which are only freed.
const ROW_BYTES: u64 = 300;

impl Store {
    /// Takes one step: removes what is left of removed jobs, then these jobs, as far as the budget goes. Skips jobs
    /// that have not ended.
    pub fn purge(&mut self, seqs: &[Seq], budget: Budget) -> Result<Purged, Fault> {
        let mut spent = Spent { rows: 0, bytes: 0, budget };
        let purged = self.purge_rows(seqs, &mut spent);
        let purged = purged.map_err(|error| error.into_fault(&self.path))?;
        self.checkpointer.written(spent.rows * ROW_BYTES);
        Ok(purged)
    }

    fn purge_rows(&mut self, seqs: &[Seq], spent: &mut Spent) -> Result<Purged, Error> {
        if seqs.is_empty() && self.connection.query_row(LEFTOVER, (), |_| Ok(())).optional()?.is_none() {
            return Ok(Purged::default());
        }
        self.transact(|transaction, _| Ok(purge_some(transaction, seqs, spent)?))
    }
}

/// Selects a removed job whose events have not all been removed.
const LEFTOVER: &str = "SELECT job, head FROM leftover ORDER BY job LIMIT 1";

fn purge_some(transaction: &Transaction<'_>, seqs: &[Seq], spent: &mut Spent) -> rusqlite::Result<Purged> {
    let mut purged = Purged::default();
    while !spent.is_over() {
        let read = |row: &rusqlite::Row<'_>| Ok((row::seq(row, 0)?, row.get::<_, i64>(1)?));
        let Some((seq, head)) = transaction.prepare_cached(LEFTOVER)?.query_row((), read).optional()? else {
            break;
        };
        let left = purge_events(transaction, seq, head, spent)?;
        set_leftover(transaction, seq, left)?;
    }
    let top: Option<i64> = transaction.query_row("SELECT max(seq) FROM job", (), |row| row.get(0))?;
    for seq in seqs {
        if spent.is_over() {
            break;
        }
        purged.jobs += 1;
        if let Some(job) = needed_by(transaction, *seq)? {
            purged.kept.push((*seq, job));
            continue;
        }
        purge_job(transaction, *seq, spent, &mut purged)?;
        if top == Some(seq.0.cast_signed()) {
            keep_number(transaction, *seq)?;
        }
    }
    purged.leftover = transaction.prepare_cached(LEFTOVER)?.query_row((), |_| Ok(())).optional()?.is_some();
    purged.rows = spent.rows;
    Ok(purged)
}

/// Returns the job that needs this one: one that has not ended, of which it is a stage.
fn needed_by(transaction: &Transaction<'_>, seq: Seq) -> rusqlite::Result<Option<Seq>> {
    let sql = "SELECT parent FROM job WHERE seq = ?1 AND stage IS NOT NULL";
    let mut stage = transaction.prepare_cached(sql)?;
    let parent = stage.query_row([seq.0.cast_signed()], |row| row.get::<_, [u8; 16]>(0)).optional()?;
    let Some(parent) = parent.map(Uuid::from_bytes) else { return Ok(None) };
    let ids = secret::ids(transaction)?.unwrap_or(Ids::PLAIN);
    let job = ids.read(parent).seq();
    let mut live = transaction.prepare_cached("SELECT 1 FROM job WHERE seq = ?1 AND id = ?2 AND state < ?3")?;
    let is_live = live.exists(params![job.0.cast_signed(), parent.as_bytes(), row::FIRST_END])?;
    Ok(is_live.then_some(job))
}

fn purge_job(transaction: &Transaction<'_>, seq: Seq, spent: &mut Spent, purged: &mut Purged) -> rusqlite::Result<()> {
    let number = seq.0.cast_signed();
    let mut job =
        transaction.prepare_cached("DELETE FROM job WHERE seq = ?1 AND state >= ?2 RETURNING hash, head, alias")?;
    let read = |row: &rusqlite::Row<'_>| Ok(([row.get::<_, Option<i64>>(0)?, row.get(2)?], row.get::<_, i64>(1)?));
    let Some((hashes, head)) = job.query_row([number, row::FIRST_END], read).optional()? else { return Ok(()) };
    spent.row(0);
    purged.keys.extend(hashes.into_iter().flatten().map(|hash| (Hash(hash.cast_unsigned()), seq)));
    for hash in name::remove(transaction, seq)? {
        spent.row(0);
        purged.keys.push((hash, seq));
    }
    let outcome = format!("DELETE FROM outcome WHERE job = ?1 RETURNING {}", outcome::BYTES);
    for sql in [
        "DELETE FROM document WHERE job = ?1 RETURNING length(bytes)",
        &outcome,
        "DELETE FROM violation WHERE job = ?1 RETURNING 0",
        "DELETE FROM aside WHERE job = ?1 RETURNING 0",
        "DELETE FROM owed WHERE job = ?1 RETURNING 0",
    ] {
        let mut rows = transaction.prepare_cached(sql)?;
        let mut rows = rows.query([number])?;
        while let Some(row) = rows.next()? {
            spent.row(row.get(0)?);
        }
    }
    let left = purge_events(transaction, seq, head, spent)?;
    if left != 0 { set_leftover(transaction, seq, left) } else { Ok(()) }
}

/// Removes events from the last one on, and returns the event to go on with; 0 if there is none.
fn purge_events(transaction: &Transaction<'_>, seq: Seq, head: i64, spent: &mut Spent) -> rusqlite::Result<i64> {
    let sql = "DELETE FROM event WHERE seq = ?1 AND job = ?2 RETURNING prev, coalesce(length(body), 0)";
    let mut one = transaction.prepare_cached(sql)?;
    let mut at = head;
    while at != 0 && !spent.is_over() {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        // A broken chain ends here. Only a check can find what lies behind the break.
        let Some((prev, bytes)) = one.query_row([at, seq.0.cast_signed()], read).optional()? else { return Ok(0) };
        spent.row(bytes);
        at = if prev < at { prev } else { 0 };
    }
    Ok(at)
}

fn set_leftover(transaction: &Transaction<'_>, seq: Seq, head: i64) -> rusqlite::Result<()> {
    let number = seq.0.cast_signed();
    if head == 0 {
        transaction.prepare_cached("DELETE FROM leftover WHERE job = ?1")?.execute([number])?;
    } else {
        let sql = "INSERT INTO leftover(job, head) VALUES (?1, ?2) ON CONFLICT(job) DO UPDATE SET head = ?2";
        transaction.prepare_cached(sql)?.execute([number, head])?;
    }
    Ok(())
}

/// Keeps the number of the newest row, which is removed, so that it is not given again.
fn keep_number(transaction: &Transaction<'_>, seq: Seq) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta(name, value) VALUES ('last_job', ?1)
        ON CONFLICT(name) DO UPDATE SET value = max(value, ?1)";
    transaction.prepare_cached(sql)?.execute(params![seq.0.cast_signed()])?;
    Ok(())
}
