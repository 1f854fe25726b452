//! What a store was given at random when it was made, and keeps to itself: the salt of its request keys, and the key of
//! its ids.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::schema::Error;
use crate::id::Ids;
use crate::keys::Salt;

/// The first schema in which ids hide the numbers of jobs.
const WITH_HIDDEN_IDS: i64 = 14;

/// The secrets of a store.
pub(super) struct Secrets {
    pub(super) salt: Salt,
    pub(super) ids: Ids,
}

/// Reads the secrets. Makes those that are missing, unless there are jobs that would not be found without them.
pub(super) fn ensure(connection: &Connection) -> Result<Secrets, Error> {
    if value::<[u8; 32]>(connection, "id_key")?.is_none() {
        // A crash may have come between the last step of the schema and the key. Then no job has a hidden id yet.
        if has_hidden_ids(connection)? {
            return Err(Error::NoIdKey);
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| Error::NoChance)?;
        put(connection, "id_key", &key)?;
    }
    let salt = match salt(connection)? {
        Some(salt) => salt,
        None => {
            let salt = Salt(Uuid::new_v4());
            put(connection, "salt", salt.0.as_bytes())?;
            salt
        }
    };
    Ok(Secrets { salt, ids: ids(connection)?.unwrap_or(Ids::PLAIN) })
}

/// Returns the salt of the request keys.
pub(super) fn salt(connection: &Connection) -> rusqlite::Result<Option<Salt>> {
    Ok(value(connection, "salt")?.map(|bytes| Salt(Uuid::from_bytes(bytes))))
}

/// Returns what makes and reads the ids of this store; `None` if the key is missing. A store of an earlier version has
/// none.
pub(super) fn ids(connection: &Connection) -> rusqlite::Result<Option<Ids>> {
    if connection.query_row("PRAGMA user_version", (), |row| row.get::<_, i64>(0))? < WITH_HIDDEN_IDS {
        return Ok(Some(Ids::PLAIN));
    }
    let until = value::<[u8; 6]>(connection, "plain_ids_until")?;
    let until = until.map(|bytes| bytes.iter().fold(0, |millis, byte| (millis << 8) | u64::from(*byte)));
    Ok(value(connection, "id_key")?.map(|key| Ids::hidden(key, until.map_or(0, |until| until + 1))))
}

/// Whether the id of any job hides its number: then it was made after the last one that does not.
fn has_hidden_ids(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM job WHERE substr(id, 1, 6)
        > coalesce((SELECT value FROM meta WHERE name = 'plain_ids_until'), x''))";
    connection.query_row(sql, (), |row| row.get(0))
}

fn value<T: FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()
}

fn put(connection: &Connection, name: &str, bytes: &[u8]) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO meta(name, value) VALUES (?1, ?2)", rusqlite::params![name, bytes])?;
    Ok(())
}
