//! Grants as rows. Tokens are in no row, only their digests.

use std::sync::Arc;

use crosspoint_contracts::time::Time;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};

use super::{Fault, Readers, open};
use crate::grant::{Digest, Former, Grant, Role};

/// Writes a grant, in place of the row that it has.
pub(super) fn write(transaction: &Transaction<'_>, grant: &Grant) -> rusqlite::Result<()> {
    let mut write = transaction.prepare_cached(
        "INSERT INTO token(name, role, agent, digest, created_at, expires_at, revoked_at, former, former_until)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT(name) DO UPDATE SET
            digest = ?4, created_at = ?5, expires_at = ?6, revoked_at = ?7, former = ?8, former_until = ?9",
    )?;
    write.execute(params![
        &*grant.name,
        grant.role.word(),
        grant.role.agent().map(|name| &**name),
        grant.digest.as_bytes(),
        grant.created_at.0,
        grant.expires_at.map(|at| at.0),
        grant.revoked_at.map(|at| at.0),
        grant.former.as_ref().map(|former| former.digest.as_bytes()),
        grant.former.as_ref().map(|former| former.until.0),
    ])?;
    Ok(())
}

/// Reads all grants. A row that cannot be read is an error: what it would let in or keep out is not known.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Grant>> {
    let sql = "SELECT name, role, agent, digest, created_at, expires_at, revoked_at, former, former_until FROM token";
    connection.prepare(sql)?.query_map((), one)?.collect()
}

impl Readers {
    /// Returns all grants. Their digests are no tokens.
    pub fn grants(&self) -> Result<Vec<Grant>, Fault> {
        // An older store has none.
        self.read(|connection| if open::has_table(connection, "token")? { all(connection) } else { Ok(Vec::new()) })
    }
}

fn one(row: &Row<'_>) -> rusqlite::Result<Grant> {
    let time = |column: usize| row.get::<_, Option<i64>>(column).map(|at| at.map(Time));
    let unknown = || rusqlite::Error::FromSqlConversionFailure(1, Type::Text, "no such role".into());
    let agent: Option<Arc<str>> = row.get(2)?;
    let role = Role::from_word(row.get_ref(1)?.as_str()?, agent).ok_or_else(unknown)?;
    let former = match row.get::<_, Option<[u8; 32]>>(7)? {
        Some(digest) => Some(Former { digest: Digest::from_bytes(digest), until: Time(row.get(8)?) }),
        None => None,
    };
    Ok(Grant {
        name: row.get(0)?,
        role,
        digest: Digest::from_bytes(row.get(3)?),
        created_at: Time(row.get(4)?),
        expires_at: time(5)?,
        revoked_at: time(6)?,
        former,
    })
}
