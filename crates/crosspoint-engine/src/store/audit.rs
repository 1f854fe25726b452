//! Who did what, as rows that are appended and never changed.

use std::time::Duration;

use crosspoint_contracts::time::Time;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};
use uuid::Uuid;

use super::check::is_damage;
use super::{Fault, Readers, Store, open};
use crate::audit::{Act, AuditEntry};
use crate::retention::Jumps;

/// Estimated length in bytes of a row without its names.
const ROW_BYTES: u64 = 40;

/// Most rows that are looked at in one read, or in one step of removing.
const LOOKED_AT_MAX: i64 = 1_000;

/// An entry with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// The number of the entry. Numbers grow, and none is given twice.
    pub seq: i64,
    /// The entry.
    pub entry: AuditEntry,
}

/// Some entries, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The entries that can be read.
    pub rows: Vec<AuditRow>,
    /// The numbers of entries that cannot be read.
    pub unread: Vec<i64>,
    /// Where to go on; `None` where there are no more.
    pub next: Option<i64>,
}

/// Appends an entry; returns roughly how many bytes that were.
pub(super) fn append(transaction: &Transaction<'_>, entry: &AuditEntry) -> rusqlite::Result<u64> {
    let sql = "INSERT INTO audit(at, who, act, job, object) VALUES (?1, ?2, ?3, ?4, ?5)";
    let job = entry.job.as_ref().map(Uuid::as_bytes);
    let (who, object) = (&*entry.who, entry.object.as_deref());
    transaction.prepare_cached(sql)?.execute(params![entry.at.0, who, entry.act.word(), job, object])?;
    Ok(ROW_BYTES + (who.len() + object.map_or(0, str::len)) as u64)
}

/// Reads the entries after this number. A row that cannot be read is named, and does not hide the others.
pub(super) fn page(connection: &Connection, after: i64) -> rusqlite::Result<AuditPage> {
    let sql = "SELECT seq, at, who, act, job, object FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut all = connection.prepare_cached(sql)?;
    let mut rows = all.query([after, LOOKED_AT_MAX])?;
    let (mut page, mut looked_at, mut last) = (AuditPage::default(), 0, after);
    while let Some(row) = rows.next()? {
        last = row.get(0)?;
        looked_at += 1;
        match one(row) {
            Ok(entry) => page.rows.push(AuditRow { seq: last, entry }),
            Err(error) if is_damage(&error) => page.unread.push(last),
            Err(error) => return Err(error),
        }
    }
    page.next = (looked_at == LOOKED_AT_MAX).then_some(last);
    Ok(page)
}

fn one(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let unknown = || rusqlite::Error::FromSqlConversionFailure(3, Type::Text, "no such act".into());
    Ok(AuditEntry {
        at: Time(row.get(1)?),
        who: row.get(2)?,
        act: Act::from_word(row.get_ref(3)?.as_str()?).ok_or_else(unknown)?,
        job: row.get::<_, Option<[u8; 16]>>(4)?.map(Uuid::from_bytes),
        object: row.get(5)?,
    })
}

impl Readers {
    /// Returns entries of the audit after the entry with this number.
    pub fn audit(&self, after: i64) -> Result<AuditPage, Fault> {
        self.read(|connection| {
            // An older store has none.
            if open::has_table(connection, "audit")? { page(connection, after) } else { Ok(AuditPage::default()) }
        })
    }
}

impl Store {
    /// Takes one step of removing entries that are older than this: looks at the oldest thousand, and returns how many
    /// of them it has removed. A clock that jumped makes no entry older.
    pub fn purge_audit(&mut self, age: Duration, jumps: &Jumps, now: Time) -> Result<u64, Fault> {
        let old = self.old_entries(age, jumps, now).map_err(|error| Fault::of(&self.path, &error))?;
        if old.is_empty() {
            return Ok(0);
        }
        let removed = self.transact(|transaction, _| {
            let mut remove = transaction.prepare_cached("DELETE FROM audit WHERE seq = ?1")?;
            for seq in &old {
                remove.execute([seq])?;
            }
            Ok(())
        });
        removed.map_err(|error| error.into_fault(&self.path))?;
        let count = old.len() as u64;
        self.checkpointer.written(count * ROW_BYTES);
        Ok(count)
    }

    /// Returns the numbers of the entries that are old enough, among the oldest.
    fn old_entries(&self, age: Duration, jumps: &Jumps, now: Time) -> rusqlite::Result<Vec<i64>> {
        let mut first = self.connection.prepare_cached("SELECT seq, at FROM audit ORDER BY seq LIMIT ?1")?;
        let rows = first.query_map([LOOKED_AT_MAX], |row| Ok((row.get::<_, i64>(0)?, Time(row.get(1)?))))?;
        let is_old =
            |row: &rusqlite::Result<(i64, Time)>| row.as_ref().map_or(true, |(_, at)| jumps.age(*at, now) >= age);
        rows.filter(is_old).map(|row| row.map(|(seq, _)| seq)).collect()
    }
}
