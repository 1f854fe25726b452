//! The tables, as a list of steps. A store remembers how many of the steps it has taken.

use std::path::Path;

use crosspoint_contracts::time::Time;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use super::secret::{self, Secrets};
use super::{CHECKPOINT_PAGES_MAX, Fault, Options, PAGE_BYTES};
use crate::machine::End;
use crate::retention::Jumps;

/// The application id that marks a file as a store of Crosspoint: `CRPT`.
const APPLICATION_ID: i64 = 0x4352_5054;

/// The steps. Each is taken once, in order, and must never be changed afterwards, because existing stores have taken
/// it.
const STEPS: [&str; 16] = [
    // 1: jobs, the documents they came as, their events, their outcomes, and the state of agents. Rows have an owner
    // and an epoch from the first day, for the time when several orchestrators share a store.
    "CREATE TABLE job(
        seq INTEGER PRIMARY KEY, id BLOB NOT NULL, hash INTEGER, state INTEGER NOT NULL,
        caller TEXT NOT NULL, door TEXT NOT NULL, request_id TEXT NOT NULL, key TEXT, work TEXT NOT NULL, pinned TEXT,
        parent BLOB, priority INTEGER NOT NULL, limits TEXT, accepted_at INTEGER NOT NULL,
        input_start INTEGER NOT NULL, input_end INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, agent TEXT, attempts INTEGER NOT NULL, retries INTEGER NOT NULL, begun INTEGER NOT NULL,
        started_at INTEGER, waited INTEGER NOT NULL, until INTEGER, after TEXT, asked INTEGER, question BLOB,
        percent REAL, step BLOB, output_bytes INTEGER NOT NULL, answers BLOB,
        events INTEGER NOT NULL, head INTEGER NOT NULL, owner INTEGER NOT NULL, epoch INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE document(job INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE event(
        seq INTEGER PRIMARY KEY, job INTEGER NOT NULL, prev INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL,
        kind INTEGER NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, body BLOB
    ) STRICT;
    CREATE TABLE outcome(
        job INTEGER PRIMARY KEY, n INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER NOT NULL, failure TEXT, repeat TEXT,
        body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE agent(
        name TEXT PRIMARY KEY, drained INTEGER NOT NULL, breaker TEXT NOT NULL, failures INTEGER NOT NULL, until INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE meta(name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;",
    // 2: rules that were broken, by job. There are few, so an index costs nothing.
    "CREATE TABLE violation(
        seq INTEGER PRIMARY KEY, job INTEGER NOT NULL, at INTEGER NOT NULL, clause TEXT NOT NULL, what TEXT NOT NULL
    ) STRICT;
    CREATE INDEX violation_of_job ON violation(job);",
    // 3: agents that joined, so that their work is known while they are away.
    "CREATE TABLE member(
        name TEXT PRIMARY KEY, contract TEXT NOT NULL, works TEXT NOT NULL, policy TEXT NOT NULL, lease INTEGER NOT NULL,
        left_at INTEGER
    ) STRICT, WITHOUT ROWID;",
    // 4: removed jobs whose events have not all been removed, with the event to go on from.
    "CREATE TABLE leftover(job INTEGER PRIMARY KEY, head INTEGER NOT NULL) STRICT;",
    // 5: a search for jobs that failed or were cancelled looks for a few among a million. Jobs that complete never
    // touch this index: none of their states is ever in it.
    "CREATE INDEX job_gone_wrong ON job(state) WHERE state > 4;",
    // 6: the job's place in a trace; and the hash of the caller's id, where that is not the key and callers ask by it.
    "ALTER TABLE job ADD COLUMN trace TEXT; ALTER TABLE job ADD COLUMN alias INTEGER;",
    // 7: how much of a job's time does not count, how many attempts were cut short, and which agents had it before; and
    // jobs that are set aside because their changes cannot be written. Those have a table of their own, because not
    // even their rows can be written.
    "ALTER TABLE job ADD COLUMN skew INTEGER NOT NULL DEFAULT 0; ALTER TABLE job ADD COLUMN cut_short INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE job ADD COLUMN had TEXT;
    CREATE TABLE aside(job INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;",
    // 8: outcomes in parts, with the outputs in `body`; and what links remember of attempts under way. Earlier versions
    // recorded only in the text of the progress step that a request was put into a directory. That text is converted to
    // memory.
    "ALTER TABLE outcome ADD COLUMN form INTEGER; ALTER TABLE outcome ADD COLUMN text_start INTEGER;
    ALTER TABLE outcome ADD COLUMN text_end INTEGER; ALTER TABLE outcome ADD COLUMN text BLOB;
    ALTER TABLE outcome ADD COLUMN artifacts BLOB; ALTER TABLE outcome ADD COLUMN usage BLOB;
    ALTER TABLE outcome ADD COLUMN message BLOB; ALTER TABLE outcome ADD COLUMN code BLOB;
    ALTER TABLE outcome ADD COLUMN details BLOB; ALTER TABLE outcome ADD COLUMN kind TEXT;
    ALTER TABLE outcome ADD COLUMN document BLOB;
    ALTER TABLE job ADD COLUMN memory BLOB;
    UPDATE job SET memory = CAST('{\"asked_in\":\"' || substr(CAST(step AS TEXT), 48) || '}' AS BLOB)
        WHERE state IN (1, 3) AND CAST(step AS TEXT) LIKE '\"Waits for an answer: crosspoint bridge answer /%';
    UPDATE job SET memory = CAST('{\"asked_in\":\"' || substr(CAST(step AS TEXT), 11, instr(CAST(step AS TEXT), ': ') - 11) || '\"}' AS BLOB)
        WHERE state IN (1, 3) AND CAST(step AS TEXT) LIKE '\"Asked in /%: %';",
    // 9: how much a broken rule matters. Before, that was not known.
    "ALTER TABLE violation ADD COLUMN level TEXT NOT NULL DEFAULT 'error';",
    // 10: which blocks of output are the text of an outcome.
    "ALTER TABLE outcome ADD COLUMN printed_by INTEGER; ALTER TABLE outcome ADD COLUMN printed_start INTEGER;
    ALTER TABLE outcome ADD COLUMN printed_end INTEGER;",
    // 11: what requests are addressed to, what their answers repeat and which recipient is told of them; jobs that stay
    // with their agent; outcomes that recipients are owed, of which there are few; and what agents that joined said.
    "ALTER TABLE job ADD COLUMN addressed TEXT; ALTER TABLE job ADD COLUMN echo TEXT; ALTER TABLE job ADD COLUMN notify TEXT;
    ALTER TABLE job ADD COLUMN stays INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE member ADD COLUMN agent_type TEXT; ALTER TABLE member ADD COLUMN concurrency INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE member ADD COLUMN registration BLOB;
    CREATE TABLE owed(job INTEGER PRIMARY KEY, recipient TEXT NOT NULL) STRICT;
    CREATE INDEX owed_to ON owed(recipient);",
    // 12: how long the text of an outcome would be, if a part of it never came.
    "ALTER TABLE outcome ADD COLUMN whole_bytes INTEGER;",
    // 13: grants, with the digests of their tokens; and who did what. The numbers of that are never given again, so
    // that a reader that goes on after the last one it has seen misses nothing. And the jobs of callers that show who
    // they are: jobs of anybody never touch that index.
    "CREATE TABLE token(
        name TEXT PRIMARY KEY, role TEXT NOT NULL, agent TEXT, digest BLOB NOT NULL, created_at INTEGER NOT NULL,
        expires_at INTEGER, revoked_at INTEGER, former BLOB, former_until INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE audit(
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, who TEXT NOT NULL, act TEXT NOT NULL, job BLOB, object TEXT
    ) STRICT;
    CREATE INDEX job_of_caller ON job(caller, seq) WHERE caller <> '';",
    // 14: ids hide the numbers of jobs. The time of the last id that does not is the first six bytes of the greatest.
    "INSERT INTO meta(name, value) SELECT 'plain_ids_until', substr(max(id), 1, 6) FROM job HAVING count(*) > 0;",
    // 15: the name of the stage, of jobs that are stages of their parents. All others that have a parent repeat it.
    "ALTER TABLE job ADD COLUMN stage TEXT;",
    // 16: names that jobs were not accepted with, and that repeats of their requests came with: ids of callers at a
    // door, and without a door keys. There are few, and none is looked up by its hash here.
    "CREATE TABLE further_name(
        job INTEGER NOT NULL, n INTEGER NOT NULL, hash INTEGER NOT NULL, door TEXT, name TEXT NOT NULL, PRIMARY KEY(job, n)
    ) STRICT, WITHOUT ROWID;",
];

/// The first schema in which jobs have a trace and an alias.
pub(super) const WITH_TRACE: i64 = 6;

/// The first schema in which jobs record how much of their time does not count.
pub(super) const WITH_SKEW: i64 = 7;

/// The first schema in which outcomes are in parts and attempts have a memory.
pub(super) const IN_PARTS: i64 = 8;

/// The first schema in which broken rules have a level.
pub(super) const WITH_LEVELS: i64 = 9;

/// The first schema in which the text of an outcome may be in blocks of output.
pub(super) const WITH_PRINTED: i64 = 10;

/// The first schema in which outcomes are owed to recipients, and requests are addressed to types of agents.
pub(super) const WITH_OWED: i64 = 11;

/// The first schema in which an outcome may say that a part of its text never came.
pub(super) const WITH_WHOLE_BYTES: i64 = 12;

/// The first schema in which jobs may be stages of other jobs.
pub(super) const WITH_STAGES: i64 = 15;

/// The first schema in which jobs may have further names.
pub(super) const WITH_FURTHER_NAMES: i64 = 16;

/// The schema of this version.
pub(super) const KNOWN: i64 = STEPS.len() as i64;

pub(super) enum Error {
    Newer(i64),
    NotOurs,
    /// Ids of jobs can no longer be read.
    NoIdKey,
    /// The system gave no random numbers.
    NoChance,
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        Error::Database(error)
    }
}

impl Error {
    pub(super) fn into_fault(self, path: &Path) -> Fault {
        match self {
            Error::Newer(found) => Fault::Newer { path: path.to_owned(), found, known: KNOWN },
            Error::NotOurs => Fault::NotOurs { path: path.to_owned() },
            Error::NoIdKey => {
                let detail = "the key of the ids is missing, so no job would be found by its id".to_owned();
                Fault::Damaged { path: path.to_owned(), detail }
            }
            Error::NoChance => {
                let detail = "the system gave no random numbers".to_owned();
                Fault::Broken { path: path.to_owned(), detail }
            }
            Error::Database(error) => Fault::of(path, &error),
        }
    }
}

/// Checks that the file is a store or empty before anything in it is touched. Then sets how it is written, and takes
/// the missing steps.
pub(super) fn prepare(connection: &mut Connection, options: &Options) -> Result<Secrets, Error> {
    let version = match whose(connection)? {
        Whose::Ours(version) => version,
        Whose::Nobodys => 0,
    };
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
    // The log is synced at every commit, so that everything acknowledged survives a loss of power.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES_MAX.cast_signed())?;
    // A log that grew in a bad moment shrinks again.
    connection.pragma_update(None, "journal_size_limit", (CHECKPOINT_PAGES_MAX * PAGE_BYTES).cast_signed())?;
    connection.set_prepared_statement_cache_capacity(64);
    if let Some(bytes) = options.bytes_max {
        connection.query_row(&format!("PRAGMA max_page_count = {}", (bytes / PAGE_BYTES).max(64)), (), |_| Ok(()))?;
    }
    take_steps(connection, version, KNOWN)?;
    secret::ensure(connection)
}

/// What kind of file was found.
enum Whose {
    /// A store of this schema.
    Ours(i64),
    /// An empty file.
    Nobodys,
}

fn whose(connection: &Connection) -> Result<Whose, Error> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), (), |row| row.get::<_, i64>(0));
    let (version, application) = (number("user_version")?, number("application_id")?);
    if application != APPLICATION_ID {
        let nothing = application == 0 && version == 0 && tables(connection)? == 0;
        return if nothing { Ok(Whose::Nobodys) } else { Err(Error::NotOurs) };
    }
    if version > KNOWN { Err(Error::Newer(version)) } else { Ok(Whose::Ours(version)) }
}

/// Returns the schema of an existing store.
pub(super) fn recognise(connection: &Connection) -> Result<i64, Error> {
    match whose(connection)? {
        Whose::Ours(version) if version > 0 => Ok(version),
        Whose::Ours(_) | Whose::Nobodys => Err(Error::NotOurs),
    }
}

fn tables(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
}

/// Takes the missing steps. Each step is one transaction, together with the number that records it, so that a crash in
/// between leaves a complete schema.
fn take_steps(connection: &mut Connection, from: i64, to: i64) -> rusqlite::Result<()> {
    for (step, number) in STEPS.iter().zip(1..=to).skip(usize::try_from(from).unwrap_or(0)) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Sets whether the log stays as it is when the connection is closed, instead of being copied into the database. A
/// store that is refused is left as it was found, above all if it belongs to another process.
pub(super) fn leave_log(connection: &Connection, leave: bool) -> rusqlite::Result<bool> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave)
}

/// Returns the number of the last opening that wrote.
pub(super) fn epoch(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(meta(connection, "epoch")?.unwrap_or(0))
}

/// Returns the number of the last opening by a server. Stores of earlier versions do not hold it: then all openings
/// count as a server's.
pub(super) fn server_epoch(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(meta(connection, "server_epoch")?.unwrap_or(i64::MAX))
}

/// Records that a new opening writes. If it is a server's, the note that the last server ended cleanly is removed.
pub(super) fn set_epoch(connection: &Connection, epoch: i64, serves: bool) -> rusqlite::Result<()> {
    set_meta(connection, "epoch", epoch)?;
    if serves {
        set_meta(connection, "server_epoch", epoch)?;
        connection.execute("DELETE FROM meta WHERE name = 'clean_end'", ())?;
    } else if meta(connection, "server_epoch")?.is_none() {
        set_meta(connection, "server_epoch", epoch.saturating_sub(1))?;
    }
    Ok(())
}

/// Returns when an orchestrator was last alive.
pub(super) fn alive_at(connection: &Connection) -> rusqlite::Result<Option<Time>> {
    Ok(meta(connection, "alive_at")?.map(Time))
}

pub(super) fn set_alive_at(connection: &Connection, at: Time) -> rusqlite::Result<()> {
    set_meta(connection, "alive_at", at.0)
}

/// Returns how the last server ended. Where none ever wrote, none was killed.
pub(super) fn end(connection: &Connection) -> rusqlite::Result<End> {
    let is_clean =
        epoch(connection)? == 0 || server_epoch(connection)? == 0 || meta(connection, "clean_end")?.is_some();
    Ok(if is_clean { End::Clean } else { End::Unclean })
}

pub(super) fn set_clean_end(connection: &Connection) -> rusqlite::Result<()> {
    set_meta(connection, "clean_end", 1)
}

/// Returns the jumps of the clock that were seen. A list that cannot be read counts as empty.
pub(super) fn jumps(connection: &Connection) -> rusqlite::Result<Jumps> {
    let sql = "SELECT value FROM meta WHERE name = 'jumps'";
    let text: Option<String> = connection.prepare_cached(sql)?.query_row((), |row| row.get(0)).optional()?;
    let log: Option<Vec<(i64, i64)>> = text.and_then(|text| serde_json::from_str(&text).ok());
    let log = log.unwrap_or_default().into_iter().map(|(after, micros)| (Time(after), micros));
    Ok(Jumps::new(log.collect()))
}

pub(super) fn set_jumps(connection: &Connection, jumps: &Jumps) -> rusqlite::Result<()> {
    let log: Vec<(i64, i64)> = jumps.log().iter().map(|(after, micros)| (after.0, *micros)).collect();
    let sql = "INSERT INTO meta(name, value) VALUES ('jumps', ?1) ON CONFLICT(name) DO UPDATE SET value = ?1";
    connection.prepare_cached(sql)?.execute([serde_json::to_string(&log).unwrap_or_default()])?;
    Ok(())
}

fn meta(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?.query_row([name], |row| row.get(0)).optional()
}

fn set_meta(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta(name, value) VALUES (?1, ?2) ON CONFLICT(name) DO UPDATE SET value = ?2";
    connection.prepare_cached(sql)?.execute(rusqlite::params![name, value])?;
    Ok(())
}

/// Writes a page's worth and removes it again: as much room as a small commit needs.
pub(super) fn probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO meta(name, value) VALUES ('probe', zeroblob(4096)) ON CONFLICT(name) DO UPDATE SET value = zeroblob(4096)",
        (),
    )?;
    connection.execute("DELETE FROM meta WHERE name = 'probe'", ())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::*;

    #[test]
    fn every_commit_is_synced() {
        let path = std::env::temp_dir().join(format!("crosspoint-synced-{}.db", std::process::id()));
        let (store, _) = Store::open(&Options { path: path.clone(), bytes_max: None }).expect("it opens");
        let setting = |name: &str| {
            let value = store
                .connection
                .query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, rusqlite::types::Value>(0));
            value.expect("the pragma is there")
        };
        assert_eq!(setting("synchronous"), rusqlite::types::Value::Integer(2), "2 is FULL");
        assert_eq!(setting("journal_mode"), rusqlite::types::Value::Text("wal".to_owned()));
        drop(store);
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }

    #[test]
    fn a_store_of_the_first_schema_is_brought_forward_with_what_is_in_it() {
        let mut connection = Connection::open_in_memory().expect("memory is there");
        take_steps(&mut connection, 0, 1).expect("the first step works");
        connection.execute("INSERT INTO meta VALUES ('kept', 1)", ()).expect("a row can be written");
        let options = Options { path: "unused".into(), bytes_max: None };
        assert!(prepare(&mut connection, &options).is_ok());
        let number = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).expect(sql);
        assert_eq!(number("PRAGMA user_version"), KNOWN);
        assert_eq!(number("SELECT value FROM meta WHERE name = 'kept'"), 1);
        assert_eq!(number("SELECT count(*) FROM violation"), 0);
    }
}
