//! What can be wrong with a store, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::id::Seq;

/// What is wrong with a store. Finding out damages nothing in it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A later version of Crosspoint wrote the store.
    #[error("the store {} has schema {found}, and this program knows schemas up to {known}; use the version that wrote it, or a later one", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// The store's schema.
        found: i64,
        /// The latest schema that this version knows.
        known: i64,
    },
    /// The file is something other than a store of Crosspoint.
    #[error("{} is not a store of crosspoint; name another file in [store] url, or move this one away", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The bytes in the store are not what was written.
    #[error("the store {} is damaged ({detail}); nothing in it was changed: copy it away with its -wal file, and restore a backup or ask for help", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What the database says.
        detail: String,
    },
    /// Another process uses the store.
    #[error("the store {} is in use by another process; stop that one, or give this one its own with --data DIR", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// There is no room left on the disk or within the configured limit.
    #[error("the store {} cannot grow: the disk or the configured [limits] store_bytes is full; make room, nothing that was accepted is lost", path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// The store may not be written.
    #[error("{} cannot be written ({detail}); give this user the right to, or name another place with --data DIR", path.display())]
    NotWritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        detail: String,
    },
    /// The data can never be written.
    #[error("the store {} does not take what is to be written ({detail})", path.display())]
    Unwritable {
        /// The database.
        path: PathBuf,
        /// What the database says.
        detail: String,
        /// The job that the data belongs to, if it belongs to one.
        job: Option<Seq>,
    },
    /// The store no longer belongs to this process.
    #[error("the store {} was taken over by another process, or is not at its place any more; this process writes nothing more to it: see which one is to have it, and start that one again", path.display())]
    Lost {
        /// The database.
        path: PathBuf,
    },
    /// Any other error while reading or writing.
    #[error("the store {} could not be read or written ({detail})", path.display())]
    Broken {
        /// The database.
        path: PathBuf,
        /// What the database says.
        detail: String,
    },
}

impl Fault {
    /// Converts an error of the database.
    pub(super) fn of(path: &Path, error: &rusqlite::Error) -> Fault {
        let path = path.to_owned();
        // The database's own text names tables and files, never values.
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Fault::Full { path },
            Some(ErrorCode::NotADatabase) => Fault::NotOurs { path },
            // The statements are right for the tables, so an error in them means that the file is damaged.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown | ErrorCode::TypeMismatch) => {
                Fault::Damaged { path, detail }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Fault::NotWritable { path, detail }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Fault::InUse { path },
            None if is_unreadable(error) => Fault::Damaged { path, detail },
            Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation) => Fault::Unwritable { path, detail, job: None },
            None if matches!(error, rusqlite::Error::StatementChangedRows(_)) => {
                Fault::Unwritable { path, detail, job: None }
            }
            _ => Fault::Broken { path, detail },
        }
    }

    /// Converts an error of the database that came from writing this job.
    pub(super) fn of_job(path: &Path, seq: Seq, error: &rusqlite::Error) -> Fault {
        let mut fault = Fault::of(path, error);
        if let Fault::Unwritable { job, .. } = &mut fault {
            *job = Some(seq);
        }
        fault
    }

    pub(super) fn directory(path: &Path, error: &io::Error) -> Fault {
        Fault::NotWritable { path: path.to_owned(), detail: error.to_string() }
    }
}

/// Whether a value was found that the store never writes, or a value was missing that it always writes.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows
            // A statement does not fit the tables: the definitions of the tables are in the file too.
            | rusqlite::Error::SqlInputError { .. }
    )
}
