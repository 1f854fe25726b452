//! Opens a store for reading only: while a server runs, while none runs, or a write-protected copy.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Fault, schema};

/// Opens a connection that cannot change anything. Fails where the file is not a store, or is one of a later version.
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
    // The store cannot be changed, so views supply the columns that an older schema lacks.
    let trace = if version < schema::WITH_TRACE { ", NULL AS trace, NULL AS alias" } else { "" };
    let skew = if version < schema::WITH_SKEW { ", 0 AS skew, 0 AS cut_short, NULL AS had" } else { "" };
    let parts = if version < schema::IN_PARTS {
        ", NULL AS form, NULL AS text_start, NULL AS text_end, NULL AS text, NULL AS artifacts, NULL AS usage, NULL AS message,
        NULL AS code, NULL AS details, NULL AS kind, NULL AS document"
    } else {
        ""
    };
    let memory = if version < schema::IN_PARTS { ", NULL AS memory" } else { "" };
    let owed =
        if version < schema::WITH_OWED { ", NULL AS addressed, NULL AS echo, NULL AS notify, 0 AS stays" } else { "" };
    if version < schema::WITH_STAGES {
        connection.execute_batch(&format!(
            "CREATE TEMP VIEW job AS SELECT *{trace}{skew}{memory}{owed}, NULL AS stage FROM main.job;"
        ))?;
    }
    if version < schema::WITH_OWED {
        connection.execute_batch("CREATE TEMP VIEW owed AS SELECT NULL AS job, NULL AS recipient WHERE 0;")?;
        if has_table(&connection, "member")? {
            let registered = ", NULL AS agent_type, 0 AS concurrency, NULL AS registration";
            connection.execute_batch(&format!("CREATE TEMP VIEW member AS SELECT *{registered} FROM main.member;"))?;
        }
    }
    if version < schema::WITH_FURTHER_NAMES {
        connection.execute_batch(
            "CREATE TEMP VIEW further_name AS
                SELECT NULL AS job, NULL AS n, NULL AS hash, NULL AS door, NULL AS name WHERE 0;",
        )?;
    }
    let printed = if version < schema::WITH_PRINTED {
        ", NULL AS printed_by, NULL AS printed_start, NULL AS printed_end"
    } else {
        ""
    };
    if version < schema::WITH_WHOLE_BYTES {
        connection.execute_batch(&format!(
            "CREATE TEMP VIEW outcome AS SELECT *{parts}{printed}, NULL AS whole_bytes FROM main.outcome;"
        ))?;
    }
    if version < schema::WITH_LEVELS && has_table(&connection, "violation")? {
        connection.execute_batch("CREATE TEMP VIEW violation AS SELECT *, 'error' AS level FROM main.violation;")?;
    }
    if version < schema::WITH_SKEW {
        connection.execute_batch("CREATE TEMP VIEW aside AS SELECT NULL AS job, NULL AS at WHERE 0;")?;
    }
    Ok(connection)
}

/// Whether a database can be read without its log. A database with a log needs a file beside it, also for reading.
/// Where that file cannot be created, as for a write-protected backup, the database can be read without it if the log
/// is empty.
fn needs_no_log(path: &Path, error: &rusqlite::Error) -> bool {
    let refused = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    );
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    refused && path.is_file() && std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// Returns a URI that opens the file as one that never changes.
fn unchanging(path: &Path) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Whether the store has such a table: an older store may not.
pub(super) fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?.exists([table])
}
