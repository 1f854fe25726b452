//! Checks the rows of jobs, and what each job has once: its document, its outcome, its last event.

use crosspoint_contracts::request::{Door, Key};
use rusqlite::Row;
use uuid::Uuid;

use super::{Came, Check, Flaw, came};
use crate::id::{Ids, Seq};
use crate::job::Phase;
use crate::keys::Salt;
use crate::store::row::FIRST_END;
use crate::store::secret;

/// Most jobs that are looked at in one transaction.
const PAGE_ROWS: i64 = 500;

const SQL: &str = "SELECT j.seq, j.id, j.hash, j.state, j.caller, j.door, j.request_id, j.key, j.input_start, j.input_end,
        j.events, j.head, j.attempts, length(d.bytes), o.n, o.status, e.job, e.n, j.alias, j.notify,
        w.recipient
    FROM job j LEFT JOIN document d ON d.job = j.seq LEFT JOIN outcome o ON o.job = j.seq LEFT JOIN event e ON e.seq = j.head
        LEFT JOIN owed w ON w.job = j.seq
    WHERE j.seq > ?1 ORDER BY j.seq LIMIT ?2";

/// A finding: its kind, and what is wrong in words.
type Found = (Flaw, String);

impl Check<'_> {
    pub(super) fn jobs(&mut self) -> rusqlite::Result<()> {
        let salt = secret::salt(self.connection).ok().flatten();
        if salt.is_none() {
            let what = "the salt of the request keys is missing; a repeat of a request becomes a second job";
            self.found(Flaw::Meta, None, what.to_owned());
        }
        let ids = secret::ids(self.connection).ok().flatten();
        if ids.is_none() {
            let what = "the key of the ids is missing; no job is found by its id";
            self.found(Flaw::Meta, None, what.to_owned());
        }
        self.pages("job", |check, after| check.page_of_jobs(after, salt, ids.as_ref()))
    }

    fn page_of_jobs(&mut self, after: i64, salt: Option<Salt>, ids: Option<&Ids>) -> rusqlite::Result<Came> {
        let (mut at, mut rows_read, mut found) = (after, 0, Vec::new());
        let connection = self.connection;
        let mut page = || {
            let mut all = connection.prepare_cached(SQL)?;
            let mut rows = all.query([after, PAGE_ROWS])?;
            while let Some(row) = rows.next()? {
                at = row.get(0)?;
                rows_read += 1;
                let seq = Seq(at.unsigned_abs());
                let flaws = flaws(row, seq, salt, ids).unwrap_or_else(|error| {
                    vec![(Flaw::Unreadable, format!("a value of its row is none that is ever written: {error}"))]
                });
                found.extend(flaws.into_iter().map(|(flaw, what)| (flaw, seq, what)));
            }
            Ok(if rows_read < PAGE_ROWS { Came::End } else { Came::To(at) })
        };
        let came_to = page();
        self.checked.jobs += rows_read.unsigned_abs();
        for (flaw, seq, what) in found {
            self.found(flaw, Some(seq), what);
        }
        came(came_to, at)
    }
}

/// Returns everything that is wrong with one row and what belongs to it.
fn flaws(row: &Row<'_>, seq: Seq, salt: Option<Salt>, ids: Option<&Ids>) -> rusqlite::Result<Vec<Found>> {
    let id = row.get::<_, Vec<u8>>(1)?;
    let fits = |uuid| ids.is_none_or(|ids| ids.read(uuid).seq() == seq);
    let id_fits = Uuid::from_slice(&id).is_ok_and(fits);
    let id = (!id_fits).then(|| (Flaw::Id, "its id is not that of its number".to_owned()));
    let door = Door::from_name(row.get_ref(5)?.as_str()?);
    let phase = usize::try_from(row.get::<_, i64>(3)?).ok().and_then(|state| Phase::ALL.get(state));
    let state = match (phase, door) {
        (None, _) => Some("it is in no state that there is"),
        (_, None) => Some("it came by no door that there is"),
        (Some(Phase::Running | Phase::Waiting), _) if row.get::<_, i64>(12)? < 1 => {
            Some("it is said to be with an agent, and no attempt was ever begun")
        }
        (Some(_), Some(_)) => None,
    };
    let state = state.map(|what| (Flaw::State, what.to_owned()));
    let key = match (salt, door) {
        (Some(salt), Some(door)) => key(row, salt, door)?,
        _ => None,
    };
    let all = [id, state, key, document(row)?, outcome(row)?, head(row, seq)?, owed(row)?];
    Ok(all.into_iter().flatten().collect())
}

fn key(row: &Row<'_>, salt: Salt, door: Door) -> rusqlite::Result<Option<Found>> {
    let hash = row.get::<_, Option<i64>>(2)?;
    let key = match row.get::<_, Option<Box<str>>>(7)? {
        Some(key) => Key::Other(key),
        None if hash.is_none() => Key::None,
        None => Key::RequestId,
    };
    let expected = |key: &Key| -> rusqlite::Result<Option<i64>> {
        let hash = salt.hash(row.get_ref(4)?.as_str()?, door, row.get_ref(6)?.as_str()?, key);
        Ok(hash.map(|hash| hash.0.cast_signed()))
    };
    let alias = row.get::<_, Option<i64>>(18)?;
    let fits = expected(&key)? == hash && (alias.is_none() || expected(&Key::RequestId)? == alias);
    Ok((!fits).then(|| (Flaw::Key, "the hash of its request key is not that of the key".to_owned())))
}

fn document(row: &Row<'_>) -> rusqlite::Result<Option<Found>> {
    let (start, end): (i64, i64) = (row.get(8)?, row.get(9)?);
    Ok(match row.get::<_, Option<i64>>(13)? {
        None => Some((Flaw::Document, "the document that it came as is missing".to_owned())),
        Some(bytes) if start < 0 || start > end || end > bytes => {
            Some((Flaw::Input, format!("its input is from {start} to {end} of a document of {bytes} bytes")))
        }
        Some(_) => None,
    })
}

fn outcome(row: &Row<'_>) -> rusqlite::Result<Option<Found>> {
    let state: i64 = row.get(3)?;
    let what = match row.get::<_, Option<i64>>(14)? {
        None if state >= FIRST_END => "it has ended, and its outcome is missing".to_owned(),
        None => return Ok(None),
        Some(_) if state < FIRST_END => "it has an outcome, and has not ended".to_owned(),
        Some(_) if row.get::<_, i64>(15)? + FIRST_END != state => "its outcome contradicts its state".to_owned(),
        Some(n) if n != row.get::<_, i64>(10)? => format!("its outcome is event {n}, and not its last"),
        Some(_) => return Ok(None),
    };
    Ok(Some((Flaw::Outcome, what)))
}

/// Checks that the outcome is owed to the recipient that the request names. Once the job has ended, the recipient may
/// have been told.
fn owed(row: &Row<'_>) -> rusqlite::Result<Option<Found>> {
    let (named, owed) = (row.get::<_, Option<Box<str>>>(19)?, row.get::<_, Option<Box<str>>>(20)?);
    let has_ended = row.get::<_, i64>(3)? >= FIRST_END;
    let what = match (named, owed) {
        (Some(_), None) if !has_ended => "its outcome is owed to nobody, and its request names a recipient",
        (named, Some(owed)) if named.as_ref() != Some(&owed) => {
            "its outcome is owed to a recipient that its request does not name"
        }
        (_, _) => return Ok(None),
    };
    Ok(Some((Flaw::Owed, what.to_owned())))
}

/// Checks the last event before the outcome: it must be there, belong to this job, and have the expected number.
fn head(row: &Row<'_>, seq: Seq) -> rusqlite::Result<Option<Found>> {
    let ended = i64::from(row.get::<_, i64>(3)? >= FIRST_END);
    let expected = row.get::<_, i64>(10)? - ended;
    let what = match (row.get::<_, i64>(11)?, row.get::<_, Option<i64>>(16)?, row.get::<_, Option<i64>>(17)?) {
        // The acceptance is the first event, and is in the job's row.
        (0, _, _) if expected == 1 => return Ok(None),
        (0, _, _) => format!("it has had {expected} events, and its row names none of them"),
        (_, Some(job), Some(n)) if job.unsigned_abs() == seq.0 && n == expected => return Ok(None),
        (_, Some(job), Some(n)) if job.unsigned_abs() == seq.0 => {
            format!("its last event is number {n}, and should be {expected}")
        }
        (_, Some(_), _) => "the event that should be its last is another job's".to_owned(),
        (_, None, _) => "its last event is missing".to_owned(),
    };
    Ok(Some((Flaw::Events, what)))
}
