//! Looks for damage: checks whether everything that the engine relies on holds in a store.
//!
//! The check only reads, and may run while a server writes. The database's own check of its file comes first, and is
//! one long read. After that each table is read page by page. Every page is one short transaction, so that what is said
//! about a job is true of one moment. Nothing is collected, so a million jobs take as much memory as a thousand. Where
//! a page of the file cannot be read, that is a finding, and the check goes on behind it.
//!
//! In reading order: `flaw` is what can be found, `jobs` checks the rows of jobs and what each job has once, `names`
//! checks what else callers know jobs by, `events` follows the chains of events, and `strays` looks for rows of jobs
//! that are not there.

mod events;
mod flaw;
mod jobs;
mod names;
mod strays;

use std::path::Path;

use rusqlite::{Connection, ErrorCode, Transaction};

pub use flaw::{Finding, Flaw};

use super::{Fault, audit, grant, member, open, row};
use crate::id::Seq;

/// Most findings that are reported; further ones are only counted.
pub const TOLD_MAX: u64 = 10_000;

/// Most lines that the database's own check may report.
const LINES_MAX: i64 = 1_000;

/// What is reported while a store is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckNote {
    /// Something is wrong.
    Finding(Finding),
    /// How far the check is.
    Progress {
        /// What is checked at present.
        what: &'static str,
        /// The row that the check has come to.
        at: u64,
        /// The last row there is.
        of: u64,
    },
}

/// How much was looked at, and how much was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many jobs were looked at.
    pub jobs: u64,
    /// How many events were looked at, without acceptances and outcomes.
    pub events: u64,
    /// How many flaws were found.
    pub findings: u64,
}

/// Checks a store. Fails only where nothing can be said about it: it is not there, is not a store of Crosspoint, or is
/// of a later version.
pub fn check(path: &Path, tell: &mut dyn FnMut(CheckNote)) -> Result<Checked, Fault> {
    let connection = open::to_read(path)?;
    let mut check = Check { connection: &connection, tell, checked: Checked::default() };
    check.everything().map_err(|error| Fault::of(path, &error))?;
    Ok(check.checked)
}

struct Check<'c> {
    connection: &'c Connection,
    tell: &'c mut dyn FnMut(CheckNote),
    checked: Checked,
}

/// How far a page of rows came.
enum Came {
    /// To this row; there may be more.
    To(i64),
    /// To the end of the table.
    End,
    /// To this row; what is behind it cannot be read.
    Stuck { at: i64, error: rusqlite::Error },
}

impl Check<'_> {
    fn everything(&mut self) -> rusqlite::Result<()> {
        self.file()?;
        self.jobs()?;
        self.names()?;
        self.events()?;
        self.agents()?;
        self.audit()?;
        self.strays()
    }

    fn found(&mut self, flaw: Flaw, job: Option<Seq>, what: String) {
        self.checked.findings += 1;
        if self.checked.findings > TOLD_MAX {
            return;
        }
        let id = job.and_then(|seq| flaw::id_of(self.connection, seq));
        (self.tell)(CheckNote::Finding(Finding { flaw, seq: job, id, what }));
    }

    /// Reports what the database says about its own file: pages, cells, indexes.
    fn file(&mut self) -> rusqlite::Result<()> {
        (self.tell)(CheckNote::Progress { what: "pages", at: 0, of: 0 });
        let connection = self.connection;
        let mut all = connection.prepare(&format!("PRAGMA integrity_check({LINES_MAX})"))?;
        let mut rows = all.query(())?;
        loop {
            let line = match rows.next() {
                Ok(Some(row)) => row.get::<_, String>(0)?,
                Ok(None) => return Ok(()),
                Err(error) if is_damage(&error) => error.to_string(),
                Err(error) => return Err(error),
            };
            if line == "ok" {
                return Ok(());
            }
            // The database names tables, pages and rows, never values.
            self.found(Flaw::Pages, None, line.replace('\n', "; "));
        }
    }

    /// Checks that the stored state of agents, and the grants, can be read, as they are at every start.
    fn agents(&mut self) -> rusqlite::Result<()> {
        let mut read = vec![("agent", row::standings(self.connection).map(drop))];
        if open::has_table(self.connection, "member")? {
            read.push(("member", member::check(self.connection)));
        }
        if open::has_table(self.connection, "token")? {
            read.push(("token", grant::all(self.connection).map(drop)));
        }
        for (table, read) in read {
            match read {
                Ok(()) => {}
                Err(error) if is_damage(&error) => {
                    self.found(Flaw::Unreadable, None, format!("rows of {table} cannot be read: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks that every entry of the audit can be read.
    fn audit(&mut self) -> rusqlite::Result<()> {
        if !open::has_table(self.connection, "audit")? {
            return Ok(());
        }
        self.pages("audit", |check, after| {
            let page = match audit::page(check.connection, after) {
                Err(error) if is_damage(&error) => return Ok(Came::Stuck { at: after, error }),
                page => page?,
            };
            for seq in page.unread {
                check.found(Flaw::Unreadable, None, format!("row {seq} of audit cannot be read"));
            }
            Ok(page.next.map_or(Came::End, Came::To))
        })
    }

    /// Goes through a table page by page. A part that cannot be read is a finding, and is skipped in growing steps.
    fn pages(
        &mut self,
        table: &'static str,
        mut page: impl FnMut(&mut Self, i64) -> rusqlite::Result<Came>,
    ) -> rusqlite::Result<()> {
        let column = if ["job", "event", "audit"].contains(&table) { "seq" } else { "job" };
        let sql = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        let last = match self.connection.query_row(&sql, (), |row| row.get::<_, i64>(0)) {
            Err(error) if is_damage(&error) => i64::MAX,
            last => last?,
        };
        let (mut after, mut step) = (0_i64, 1_i64);
        loop {
            (self.tell)(CheckNote::Progress { what: table, at: after.unsigned_abs(), of: last.unsigned_abs() });
            match page(self, after)? {
                Came::End => return Ok(()),
                Came::To(row) => (after, step) = (row, 1),
                Came::Stuck { at, error } => {
                    if step == 1 {
                        let what = format!("rows of {table} after {at} cannot be read: {error}");
                        self.found(Flaw::Unreadable, None, what);
                    }
                    after = at.max(after).saturating_add(step);
                    step = step.saturating_mul(2);
                    if after >= last {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Begins a transaction that sees one moment of the store, for a page.
    fn moment(&self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.unchecked_transaction()
    }
}

/// Whether an error is damage to report, and not something that prevents the check.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::TypeMismatch | ErrorCode::Unknown),
        // The value is not of the type that the store writes.
        None => true,
    }
}

/// Turns damage on a page into [`Came::Stuck`].
fn came(result: rusqlite::Result<Came>, at: i64) -> rusqlite::Result<Came> {
    match result {
        Err(error) if is_damage(&error) => Ok(Came::Stuck { at, error }),
        other => other,
    }
}
