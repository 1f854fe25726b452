//! Checks the further names of jobs.

use crosspoint_contracts::request::Door;
use rusqlite::Row;

use super::{Came, Check, Flaw, came};
use crate::id::Seq;
use crate::keys::Salt;
use crate::store::{open, secret};

/// Most rows that are looked at in one transaction: a job has few.
const PAGE_ROWS: i64 = 500;

/// A page ends with the names of one job, so that the next one begins behind it.
const SQL: &str = "SELECT f.job, f.hash, f.door, f.name, j.caller FROM further_name f LEFT JOIN job j ON j.seq = f.job
    WHERE f.job > ?1
        AND f.job <= coalesce((SELECT job FROM further_name WHERE job > ?1 ORDER BY job LIMIT 1 OFFSET ?2), ?3)
    ORDER BY f.job";

impl Check<'_> {
    /// Checks that each further name has the hash by which it is found.
    pub(super) fn names(&mut self) -> rusqlite::Result<()> {
        let Some(salt) = secret::salt(self.connection).ok().flatten() else { return Ok(()) };
        if !open::has_table(self.connection, "further_name")? {
            return Ok(());
        }
        self.pages("further_name", |check, after| check.page_of_names(after, salt))
    }

    fn page_of_names(&mut self, after: i64, salt: Salt) -> rusqlite::Result<Came> {
        let (mut at, mut wrong) = (after, Vec::new());
        let connection = self.connection;
        let mut page = || {
            let mut all = connection.prepare_cached(SQL)?;
            let mut rows = all.query([after, PAGE_ROWS, i64::MAX])?;
            while let Some(row) = rows.next()? {
                at = row.get(0)?;
                if !fits(row, salt)? {
                    wrong.push(Seq(at.unsigned_abs()));
                }
            }
            Ok(if at == after { Came::End } else { Came::To(at) })
        };
        let came_to = page();
        for seq in wrong {
            self.found(Flaw::Key, Some(seq), "the hash of a further name of it is not that of the name".to_owned());
        }
        came(came_to, at)
    }
}

/// Whether the hash is that of the name. Names of jobs that are not there are strays.
fn fits(row: &Row<'_>, salt: Salt) -> rusqlite::Result<bool> {
    let Some(caller) = row.get_ref(4)?.as_str_or_null()? else { return Ok(true) };
    let door = match row.get_ref(2)?.as_str_or_null()?.map(Door::from_name) {
        Some(None) => return Ok(false),
        door => door.flatten(),
    };
    Ok(salt.hash_of(caller, door, row.get_ref(3)?.as_str()?).0.cast_signed() == row.get::<_, i64>(1)?)
}
