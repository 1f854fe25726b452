//! Opening a store only to read it: while a server runs, where none does, or a copy that nobody may write.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Fault, schema};

/// A connection that can change nothing. Fails where the file is not a store, or is one of a later version.
pub(super) fn to_read(path: &Path) -> Result<Connection, Fault> {
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(schema::Error::from)
        .and_then(recognised);
    let connection = match opened {
        Err(schema::Error::Database(error)) if needs_no_log(path, &error) => {
            Connection::open_with_flags(unchanging(path), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
                .map_err(schema::Error::from)
                .and_then(recognised)
        }
        opened => opened,
    };
    connection.map_err(|error| error.into_fault(path))
}

fn recognised(connection: Connection) -> Result<Connection, schema::Error> {
    let version = schema::recognise(&connection)?;
    // It cannot be changed, so that what it has not got is put before it.
    let trace = if version < schema::WITH_TRACE { ", NULL AS trace, NULL AS alias" } else { "" };
    let skew = if version < schema::WITH_SKEW { ", 0 AS skew, 0 AS cut_short, NULL AS had" } else { "" };
    if version < schema::IN_PARTS {
        connection.execute_batch(&format!(
            "CREATE TEMP VIEW job AS SELECT *{trace}{skew}, NULL AS memory FROM main.job;
            CREATE TEMP VIEW outcome AS SELECT *, NULL AS form, NULL AS text_start, NULL AS text_end, NULL AS text, NULL AS artifacts,
                NULL AS usage, NULL AS message, NULL AS code, NULL AS details, NULL AS kind, NULL AS document FROM main.outcome;"
        ))?;
    }
    if version < schema::WITH_SKEW {
        connection.execute_batch("CREATE TEMP VIEW aside AS SELECT NULL AS job, NULL AS at WHERE 0;")?;
    }
    Ok(connection)
}

/// A database with a log needs a file beside it, also to be read. Where that cannot be made, as on a backup that is write-protected, it can be
/// read without, if there is nothing in the log.
fn needs_no_log(path: &Path, error: &rusqlite::Error) -> bool {
    let refused = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    );
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    refused && path.is_file() && std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// The file as one that nobody changes.
fn unchanging(path: &Path) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Whether there is such a table: an older store may not have it.
pub(super) fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?.exists([table])
}
