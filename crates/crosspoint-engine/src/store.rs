//! The embedded database: one file, one writer, any number of readers that never wait for it.
//!
//! Its one verb is [`Store::commit`]: it writes everything that came of a batch of commands, in one transaction with
//! one fsync. The shape of the tables decides the speed more than the database engine does. Rows are appended under
//! numbers that only grow. A job is one row that is overwritten, and its events hang on it by a pointer to the one
//! before. There is no index over anything random: request keys are in memory, and ids hold the row's number. A second
//! outcome is impossible by constraint: outcomes have a table of their own, with the job's number as its key.

mod audit;
pub mod check;
mod event_row;
mod export;
mod fault;
mod grant;
mod lock;
mod member;
mod name;
mod open;
mod outcome;
mod output;
mod owed;
mod purge;
mod read;
mod row;
mod said;
mod schema;
mod secret;
mod write;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crosspoint_contracts::time::Time;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::claim::Claim;
use crate::core::{Member, Standing};
use crate::grant::Grant;
use crate::id::Seq;
use crate::job::Job;
use crate::keys::{Hash, Keys};
use crate::machine::End;
use crate::retention::Jumps;
pub use audit::{AuditPage, AuditRow};
pub use export::{Numbers, Wanted};
pub use fault::Fault;
use lock::Lock;
pub use output::{BlockPlace, Stretch};
pub use owed::{Owed, OwedCount};
pub use purge::{Budget, Purged};
pub use read::{Filter, Found, LISTED_BYTES_MAX, Page, Places, Readers, Sizes};

/// Longest time that a reader or a checkpoint in the background may hold up the last checkpoint.
const LAST_CHECKPOINT_TIME_MAX: Duration = Duration::from_secs(1);

/// The name of the database within the data directory, where nothing else is configured.
pub const FILE_NAME: &str = "jobs.db";

/// How many pages of log make a checkpoint due. It runs in a thread of its own and copies nearly all of the log while
/// commits go on.
const CHECKPOINT_PAGES: u64 = 1_000;

/// After how many pages of log the writer copies the little that is left and begins the log anew. That must not be put
/// off: overwriting the log costs one trip to the disk a commit, growing it costs more.
const CHECKPOINT_PAGES_MAX: u64 = 2_000;

const PAGE_BYTES: u64 = 4_096;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database file.
    pub path: PathBuf,
    /// Largest size of the database in bytes; `None` lets it fill the disk.
    pub bytes_max: Option<u64>,
}

/// The one writer of a store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    next_event: i64,
    /// What this opening of the store knows of the epoch.
    claim: Claim,
    /// Whether another opening has overtaken this one, or the file is no longer there: nothing more is written then.
    lost: bool,
    /// Whether this opening is that of a server, which drives all jobs.
    serves: bool,
    checkpointer: Arc<Checkpointer>,
    /// How long the last commit took to be written to the log and synced.
    sync_time: Duration,
    /// Held as long as the store is open, so that no second process writes to it. It is the last member, so that it is
    /// dropped after the connection.
    lock: Lock,
}

/// What the store holds when it is opened.
pub struct Loaded {
    /// The jobs that have not ended.
    pub jobs: Vec<Job>,
    /// The keys of all jobs.
    pub keys: Keys,
    /// The number of the last job.
    pub last_seq: Seq,
    /// The stored state of agents.
    pub standings: Vec<(Arc<str>, Standing)>,
    /// The agents that have joined.
    pub members: Vec<Member>,
    /// All grants.
    pub grants: Vec<Grant>,
    /// Jobs that have an outcome although their rows do not say so.
    pub unrepaired: Vec<Seq>,
    /// When an orchestrator was last alive.
    pub alive_at: Option<Time>,
    /// How the last server ended.
    pub end: End,
    /// Jobs that were last driven, after that end, by a process that was not a server and only visited the store.
    pub visited: BTreeSet<Seq>,
}

impl Store {
    /// Returns the jumps of the clock that were seen.
    pub fn jumps(&self) -> Result<Jumps, Fault> {
        schema::jumps(&self.connection).map_err(|error| Fault::of(&self.path, &error))
    }

    /// Returns when an orchestrator was last alive.
    pub fn alive_at(&self) -> Result<Option<Time>, Fault> {
        schema::alive_at(&self.connection).map_err(|error| Fault::of(&self.path, &error))
    }
}

impl Store {
    /// Opens the store. Creates it if there is none, and brings an older one up to date.
    pub fn open(options: &Options) -> Result<(Store, Readers), Fault> {
        let path = &options.path;
        make_directory(path)?;
        let lock = Lock::take(path)?;
        let mut connection = Connection::open(path).map_err(|error| Fault::of(path, &error))?;
        schema::leave_log(&connection, true).map_err(|error| Fault::of(path, &error))?;
        let secrets = schema::prepare(&mut connection, options).map_err(|error| error.into_fault(path))?;
        let fault = |error: rusqlite::Error| Fault::of(path, &error);
        let next_event: i64 =
            connection.query_row("SELECT coalesce(max(seq), 0) + 1 FROM event", (), |row| row.get(0)).map_err(fault)?;
        let checkpointer = Checkpointer::start(path)?;
        let readers = Readers::new(path, secrets);
        let claim = Claim::Seen(schema::epoch(&connection).map_err(fault)?);
        let (lost, serves, sync_time) = (false, false, Duration::ZERO);
        let path = path.clone();
        let store = Store { connection, path, next_event, claim, lost, serves, checkpointer, sync_time, lock };
        Ok((store, readers))
    }

    /// Loads the jobs that have not ended, and the keys of all jobs.
    pub fn load(&self) -> Result<Loaded, Fault> {
        self.load_telling(|_, _| {})
    }

    /// Loads the same, and calls `ended` for every job that has ended, with the time of its end.
    pub fn load_telling(&self, ended: impl FnMut(Seq, Time)) -> Result<Loaded, Fault> {
        self.load_rows(ended).map_err(|error| Fault::of(&self.path, &error))
    }

    fn load_rows(&self, mut ended: impl FnMut(Seq, Time)) -> rusqlite::Result<Loaded> {
        // All reads see one moment.
        let moment = self.connection.unchecked_transaction()?;
        let mut keys = Keys::default();
        let (mut live, mut unrepaired) = (Vec::new(), Vec::new());
        // The newest jobs may have been removed, and their numbers must not be given again.
        let kept = "SELECT value FROM meta WHERE name = 'last_job'";
        let kept = moment.query_row(kept, (), |row| row::seq(row, 0)).optional()?;
        let (mut last_seq, mut last_at) = (Seq(0), None);
        // One pass over all jobs, with some columns each: this is what a start costs.
        let mut all = moment.prepare("SELECT seq, hash, state, updated_at, alias, epoch FROM job ORDER BY seq")?;
        let served = schema::server_epoch(&moment)?;
        let mut visited = BTreeSet::new();
        let mut rows = all.query(())?;
        while let Some(row) = rows.next()? {
            last_seq = Seq(row.get::<_, i64>(0)?.unsigned_abs());
            for hash in [row.get::<_, Option<i64>>(1)?, row.get(4)?].into_iter().flatten() {
                keys.claim(Hash(hash.cast_unsigned()), last_seq);
            }
            let updated_at = Time(row.get(3)?);
            last_at = last_at.max(Some(updated_at));
            if row.get::<_, i64>(2)? >= row::FIRST_END {
                // Nothing changes a row after the job's end.
                ended(last_seq, updated_at);
            } else if let Some(at) = read::ended_at(&moment, last_seq)? {
                ended(last_seq, at);
                unrepaired.push(last_seq);
            } else {
                live.push(last_seq);
                if row.get::<_, i64>(5)? > served {
                    visited.insert(last_seq);
                }
            }
        }
        name::load(&moment, &mut keys)?;
        let one = |seq: &Seq| read::job(&moment, *seq);
        let mut jobs = live.iter().map(one).filter_map(Result::transpose).collect::<rusqlite::Result<Vec<Job>>>()?;
        said::add(&moment, &mut jobs)?;
        let last_seq = last_seq.max(kept.unwrap_or(Seq(0)));
        let (standings, members, grants) = (row::standings(&moment)?, member::all(&moment)?, grant::all(&moment)?);
        // Stores of earlier versions do not hold this time: then an orchestrator was alive when the last row was
        // written.
        let alive_at = schema::alive_at(&moment)?.or(last_at);
        let end = schema::end(&moment)?;
        Ok(Loaded { jobs, keys, last_seq, standings, members, grants, unrepaired, alive_at, end, visited })
    }

    /// Makes this opening that of a server, from its first transaction on. How a server ends is remembered; how a visit
    /// ends is not.
    pub fn serve(&mut self) {
        self.serves = true;
    }

    /// Whether anything was written since the store was opened.
    pub fn has_written(&self) -> bool {
        matches!(self.claim, Claim::Ours(_))
    }

    /// Returns how long the last commit took to be written to the log and synced: the part of it that the disk decides.
    pub fn sync_time(&self) -> Duration {
        self.sync_time
    }

    /// Checks whether the store still belongs to this opening, without writing anything.
    pub fn look(&self) -> Result<(), Fault> {
        let lost = || Fault::Lost { path: self.path.clone() };
        if self.lost || !self.lock.is_in_place() {
            return Err(lost());
        }
        let found = schema::epoch(&self.connection).map_err(|error| Fault::of(&self.path, &error))?;
        self.claim.check(found).map(|_| ()).map_err(|_| lost())
    }

    /// Checks whether the store can be written at present. Called after a commit failed, before work is taken again.
    pub fn probe(&mut self) -> Result<(), Fault> {
        let probed = self.transact(|transaction, _| schema::probe(transaction).map_err(write::Error::from));
        probed.map_err(|error| error.into_fault(&self.path))
    }
}

fn make_directory(path: &Path) -> Result<(), Fault> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else { return Ok(()) };
    if directory.is_dir() {
        return Ok(());
    }
    // Directories are made one after the other, from the first that is missing, because the directory above each has to
    // be synced.
    let missing: Vec<&Path> = directory.ancestors().take_while(|above| !is_there(above)).collect();
    for new in missing.into_iter().rev() {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(new) {
            Ok(()) => sync_directory(new),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Fault::directory(directory, &error)),
        }
    }
    Ok(())
}

fn is_there(directory: &Path) -> bool {
    directory.as_os_str().is_empty() || directory.exists()
}

/// Syncs the directory above a path, where directories can be synced. The name of a file is in the directory above it,
/// so that the file survives a loss of power.
fn sync_directory(of: &Path) {
    let above = of.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(above).and_then(|above| above.sync_all());
}

/// Options for files that only this user can read: what agents are given and say is private. The database gives its log
/// the same permissions.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Copies the log into the database, in its own thread and over its own connection.
struct Checkpointer {
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Default)]
struct Due {
    pages: u64,
    stop: bool,
}

impl Checkpointer {
    fn start(path: &Path) -> Result<Arc<Checkpointer>, Fault> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| Fault::of(path, &error))?;
        let checkpointer = Arc::new(Checkpointer { due: Mutex::default(), changed: Condvar::new() });
        let own = checkpointer.clone();
        let run = move || {
            while own.wait() {
                // A passive checkpoint copies what it can without waiting. The rest is copied the next time.
                if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())) {
                    tracing::warn!(%error, "the log could not be copied into the database");
                }
            }
        };
        let spawned = thread::Builder::new().name("checkpoint".to_owned()).spawn(run);
        spawned.map_err(|error| Fault::directory(path, &error))?;
        Ok(checkpointer)
    }

    /// Waits until a checkpoint is due; `false` says that none will be.
    fn wait(&self) -> bool {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        while due.pages < CHECKPOINT_PAGES && !due.stop {
            due = self.changed.wait(due).unwrap_or_else(PoisonError::into_inner);
        }
        due.pages = 0;
        !due.stop
    }

    fn written(&self, bytes: u64) {
        // A commit touches the last page of some tables whatever it writes.
        const PAGES_A_COMMIT: u64 = 6;
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.pages += bytes / PAGE_BYTES + PAGES_A_COMMIT;
        if due.pages >= CHECKPOINT_PAGES {
            self.changed.notify_one();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.lost {
            // Another process may be writing, so the log is left to it.
            let _ = schema::leave_log(&self.connection, true);
        } else if let Claim::Ours(_) = self.claim {
            // After a clean end the one file holds everything, so that it can be copied alone. If the checkpoint fails,
            // the next opening finds the log.
            let _ = self.connection.busy_timeout(LAST_CHECKPOINT_TIME_MAX);
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
        }
        self.checkpointer.due.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.checkpointer.changed.notify_one();
    }
}
