//! Further names of jobs, as rows: names that jobs were not accepted with, and that repeats of their requests came with
//! (ALL-1).
//!
//! There are few. As all hashes, theirs are looked up in memory; the rows are ordered by the job.

use crosspoint_contracts::request::Door;
use rusqlite::{Connection, Row, Transaction, params};

use super::{Fault, Readers, row};
use crate::id::Seq;
use crate::keys::{FurtherName, Hash, Keys, Name};

/// Writes a further name of a job.
pub(super) fn insert(transaction: &Transaction<'_>, seq: Seq, further: &FurtherName) -> rusqlite::Result<()> {
    // The caller is told that the name is the job's, so the job must be there.
    let mut insert = transaction.prepare_cached(
        "INSERT INTO further_name(job, n, hash, door, name)
         SELECT ?1, (SELECT count(*) FROM further_name WHERE job = ?1) + 1, ?2, ?3, ?4
         WHERE EXISTS (SELECT 1 FROM job WHERE seq = ?1)",
    )?;
    let FurtherName { hash, name } = further;
    let row = params![seq.0.cast_signed(), hash.0.cast_signed(), name.door.map(Door::name), &*name.text];
    match insert.execute(row)? {
        1 => Ok(()),
        other => Err(rusqlite::Error::StatementChangedRows(other)),
    }
}

/// Adds the keys of all further names.
pub(super) fn load(connection: &Connection, keys: &mut Keys) -> rusqlite::Result<()> {
    let mut all = connection.prepare("SELECT job, hash FROM further_name ORDER BY job")?;
    let mut rows = all.query(())?;
    while let Some(found) = rows.next()? {
        keys.add_further(hash(found, 1)?, row::seq(found, 0)?);
    }
    Ok(())
}

/// Removes the further names of a job that is removed, and returns their hashes.
pub(super) fn remove(transaction: &Transaction<'_>, seq: Seq) -> rusqlite::Result<Vec<Hash>> {
    let mut rows = transaction.prepare_cached("DELETE FROM further_name WHERE job = ?1 RETURNING hash")?;
    rows.query_map([seq.0.cast_signed()], |row| hash(row, 0))?.collect()
}

/// Reads a name from the columns `door` and `name`.
pub(super) fn read(row: &Row<'_>, door: usize) -> rusqlite::Result<Name> {
    let named = |word: Box<str>| Door::from_name(&word).unwrap_or(Door::Native);
    Ok(Name { door: row.get::<_, Option<Box<str>>>(door)?.map(named), text: row.get(door + 1)? })
}

fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    Ok(Hash(row.get::<_, i64>(column)?.cast_unsigned()))
}

impl Readers {
    /// Returns the names of a job that its request did not come with.
    pub fn further_names(&self, seq: Seq) -> Result<Vec<Name>, Fault> {
        self.read(|connection| {
            let sql = "SELECT door, name FROM further_name WHERE job = ?1 ORDER BY n";
            connection.prepare_cached(sql)?.query_map([seq.0.cast_signed()], |row| read(row, 0))?.collect()
        })
    }
}
