//! What can be wrong with a store, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::id::Seq;

/// What is wrong with a store. Nothing of it is damaged by finding out.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A later version of us wrote it.
    #[error("the store {} has schema {found}, and this program knows schemas up to {known}; use the version that wrote it, or a later one", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It is something else.
    #[error("{} is not a store of crosspoint; name another file in [store] url, or move this one away", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Bytes in it are not what was written.
    #[error("the store {} is damaged ({detail}); nothing in it was changed: copy it away with its -wal file, and restore a backup or ask for help", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What the database says.
        detail: String,
    },
    /// Another process has it.
    #[error("the store {} is in use by another process; stop that one, or give this one its own with --data DIR", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// There is no room.
    #[error("the store {} cannot grow: the disk or the configured [limits] store_bytes is full; make room, nothing that was accepted is lost", path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// It may not be written.
    #[error("{} cannot be written ({detail}); give this user the right to, or name another place with --data DIR", path.display())]
    NotWritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        detail: String,
    },
    /// What is to be written can never be.
    #[error("the store {} does not take what is to be written ({detail})", path.display())]
    Unwritable {
        /// The database.
        path: PathBuf,
        /// What the database says.
        detail: String,
        /// The job that it is about, where it is about one.
        job: Option<Seq>,
    },
    /// It is not ours any more.
    #[error("the store {} was taken over by another process, or is not at its place any more; this process writes nothing more to it: see which one is to have it, and start that one again", path.display())]
    Lost {
        /// The database.
        path: PathBuf,
    },
    /// Anything else that reading or writing it met.
    #[error("the store {} could not be read or written ({detail})", path.display())]
    Broken {
        /// The database.
        path: PathBuf,
        /// What the database says.
        detail: String,
    },
}

impl Fault {
    /// What an error of the database means.
    pub(super) fn of(path: &Path, error: &rusqlite::Error) -> Fault {
        let path = path.to_owned();
        // The database's own text names tables and files, never values.
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Fault::Full { path },
            Some(ErrorCode::NotADatabase) => Fault::NotOurs { path },
            // Our statements are right for our tables, so what they stumble over is the file.
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

    /// What an error of the database means that came of writing this job.
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

/// Whether a value was found that we never write, or one was not found that we always do.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows
            // A statement that does not fit the tables: what is written of them is in the file, too.
            | rusqlite::Error::SqlInputError { .. }
    )
}
