//! What a store was given at random when it was made, and keeps to itself: the salt of its request keys, and the key of
//! its ids.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use crate::id::Ids;
use crate::keys::Salt;

/// The first schema in which ids hide the numbers of jobs.
const WITH_HIDDEN_IDS: i64 = 14;

/// The secrets of a store.
pub(super) struct Secrets {
    pub(super) salt: Salt,
    pub(super) ids: Ids,
}

/// Reads the secrets. Makes those that are missing.
pub(super) fn ensure(connection: &Connection) -> rusqlite::Result<Secrets> {
    let salt = match salt(connection)? {
        Some(salt) => salt,
        None => {
            let salt = Salt(Uuid::new_v4());
            put(connection, "salt", salt.0.as_bytes())?;
            salt
        }
    };
    if value::<[u8; 32]>(connection, "id_key")?.is_none() {
        let halves = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes);
        put(connection, "id_key", halves.as_flattened())?;
    }
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

fn value<T: FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()
}

fn put(connection: &Connection, name: &str, bytes: &[u8]) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO meta(name, value) VALUES (?1, ?2)", rusqlite::params![name, bytes])?;
    Ok(())
}
