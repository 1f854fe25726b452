//! Checks for rows that belong to jobs which are not there.

use super::{Came, Check, Flaw, came};
use crate::id::Seq;
use crate::store::open::has_table;

/// Most numbers of jobs that are looked at in one transaction.
const PAGE_NUMBERS: i64 = 20_000;

impl Check<'_> {
    pub(super) fn strays(&mut self) -> rusqlite::Result<()> {
        for (table, what) in [
            ("document", "there is a document of it, and no such job"),
            ("outcome", "there is an outcome of it, and no such job"),
            ("violation", "there is a broken rule of it, and no such job"),
            ("aside", "it is set aside, and there is no such job"),
            ("further_name", "there is a further name of it, and no such job"),
            ("owed", "its outcome is owed, and there is no such job"),
        ] {
            if has_table(self.connection, table)? {
                self.pages(table, |check, after| check.page_of(table, what, after))?;
            }
        }
        self.set_aside()?;
        self.leftovers()
    }

    /// Reports jobs that are set aside, and do not go on by themselves.
    fn set_aside(&mut self) -> rusqlite::Result<()> {
        if !has_table(self.connection, "aside")? {
            return Ok(());
        }
        let sql = "SELECT job FROM aside WHERE EXISTS (SELECT 1 FROM job WHERE seq = aside.job) ORDER BY job LIMIT ?1";
        let most = i64::try_from(super::TOLD_MAX).unwrap_or(i64::MAX);
        let aside: Vec<i64> =
            self.connection.prepare(sql)?.query_map([most], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for job in aside {
            let what = "it is set aside: what happened to it could not be written".to_owned();
            self.found(Flaw::Aside, Some(Seq(job.unsigned_abs())), what);
        }
        Ok(())
    }

    fn page_of(&mut self, table: &str, what: &str, after: i64) -> rusqlite::Result<Came> {
        // Begins at the next row that exists, so that unused numbers cost nothing.
        let first = format!("SELECT min(job) FROM {table} WHERE job > ?1");
        let stray = format!(
            "SELECT DISTINCT job FROM {table} WHERE job >= ?1 AND job < ?2 AND NOT EXISTS (SELECT 1 FROM job WHERE seq = {table}.job)"
        );
        let mut strays = Vec::new();
        let mut page = || {
            let moment = self.moment()?;
            let first: Option<i64> = moment.prepare_cached(&first)?.query_row([after], |row| row.get(0))?;
            let Some(first) = first else { return Ok(Came::End) };
            let end = first.saturating_add(PAGE_NUMBERS);
            let mut all = moment.prepare_cached(&stray)?;
            let mut rows = all.query([first, end])?;
            while let Some(row) = rows.next()? {
                strays.push(row.get::<_, i64>(0)?);
            }
            Ok(Came::To(end - 1))
        };
        let came_to = page();
        for job in strays {
            self.found(Flaw::Stray, Some(Seq(job.unsigned_abs())), what.to_owned());
        }
        came(came_to, after)
    }

    /// Events that are marked as left over from a removed job must not belong to a job that is there.
    fn leftovers(&mut self) -> rusqlite::Result<()> {
        if !has_table(self.connection, "leftover")? {
            return Ok(());
        }
        let sql = "SELECT job FROM leftover WHERE EXISTS (SELECT 1 FROM job WHERE seq = leftover.job)";
        let wrong: Vec<i64> =
            self.connection.prepare(sql)?.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for job in wrong {
            let what = "its events are marked as those of a job that is gone".to_owned();
            self.found(Flaw::Stray, Some(Seq(job.unsigned_abs())), what);
        }
        Ok(())
    }
}
