//! What a check of a store can find.

use rusqlite::Connection;
use serde::Serialize;
use uuid::Uuid;

use crate::id::{JobId, Seq};

/// Something that is wrong with a store. It never contains content of callers or agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind of flaw.
    #[serde(serialize_with = "by_name")]
    pub flaw: Flaw,
    /// The number of the job that the finding is about.
    #[serde(serialize_with = "number")]
    pub seq: Option<Seq>,
    /// The job's id, where it can be read.
    pub id: Option<JobId>,
    /// What exactly is wrong, in words.
    pub what: String,
}

/// The kinds of flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// The database says that its file is damaged.
    Pages,
    /// Rows cannot be read.
    Unreadable,
    /// Something that every store has is missing.
    Meta,
    /// A job's id does not hold the job's number.
    Id,
    /// A job is in a state, or came through a door, that does not exist.
    State,
    /// The stored hash of a request key is not the hash of the key.
    Key,
    /// The document that a job came as is missing.
    Document,
    /// The input is not within the document.
    Input,
    /// A job has ended without an outcome, or has an outcome and has not ended, or the two contradict each other.
    Outcome,
    /// Events are missing or out of order.
    Events,
    /// Blocks of output are missing, or not where they should be.
    Output,
    /// The outcome of a job is owed to a recipient that its request does not name, or is not owed to the one that it
    /// names.
    Owed,
    /// A job is set aside, because its changes could not be written.
    Aside,
    /// Rows belong to no job.
    Stray,
}

impl Flaw {
    /// All kinds of flaws.
    pub const ALL: [Flaw; 14] = [
        Flaw::Pages,
        Flaw::Unreadable,
        Flaw::Meta,
        Flaw::Id,
        Flaw::State,
        Flaw::Key,
        Flaw::Document,
        Flaw::Input,
        Flaw::Outcome,
        Flaw::Events,
        Flaw::Output,
        Flaw::Owed,
        Flaw::Aside,
        Flaw::Stray,
    ];

    /// Returns the flaw's name, which never changes.
    pub fn name(self) -> &'static str {
        match self {
            Flaw::Pages => "pages",
            Flaw::Unreadable => "unreadable",
            Flaw::Meta => "meta",
            Flaw::Id => "id",
            Flaw::State => "state",
            Flaw::Key => "key",
            Flaw::Document => "document",
            Flaw::Input => "input",
            Flaw::Outcome => "outcome",
            Flaw::Events => "events",
            Flaw::Output => "output",
            Flaw::Owed => "owed",
            Flaw::Aside => "aside",
            Flaw::Stray => "stray",
        }
    }

    /// Returns what to do about the flaw.
    pub fn hint(self) -> &'static str {
        match self {
            Flaw::Pages | Flaw::Unreadable | Flaw::Meta | Flaw::Id | Flaw::State => {
                "stop the server, copy the store away with its -wal file, and restore a backup; crosspoint store export \
                 saves the jobs that can be read"
            }
            Flaw::Key => {
                "a repeat of this request may become a second job; restore a backup if callers repeat old requests"
            }
            Flaw::Document | Flaw::Input => {
                "the job cannot be run or retried as it came; restore a backup, or cancel it and submit it again"
            }
            Flaw::Outcome => {
                "how this job ended is not known for sure; restore a backup, or ask its agent and submit it again"
            }
            Flaw::Events | Flaw::Output => {
                "what happened to this job cannot be shown whole; its outcome counts. Restore a backup if it matters"
            }
            Flaw::Owed => {
                "its caller may never be told how it ends, and has to ask; restore a backup if many jobs are named"
            }
            Flaw::Aside => {
                "crosspoint jobs retry tries to go on with it, crosspoint jobs cancel ends it; if neither works, submit it again"
            }
            Flaw::Stray => "nothing is lost by it; the rows only take room",
        }
    }
}

/// Returns the id of a job, where it can be read.
pub(super) fn id_of(connection: &Connection, seq: Seq) -> Option<JobId> {
    let sql = "SELECT id FROM job WHERE seq = ?1";
    let id = connection.query_row(sql, [seq.0.cast_signed()], |row| row.get::<_, [u8; 16]>(0));
    id.ok().map(|bytes| JobId::of_row(seq, Uuid::from_bytes(bytes)))
}

fn by_name<S: serde::Serializer>(flaw: &Flaw, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(flaw.name())
}

#[expect(clippy::ref_option, reason = "serde gives it so")]
fn number<S: serde::Serializer>(seq: &Option<Seq>, serializer: S) -> Result<S::Ok, S::Error> {
    seq.map(|seq| seq.0).serialize(serializer)
}
