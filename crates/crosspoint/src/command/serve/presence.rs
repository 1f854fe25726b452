//! `server.json`: how other commands find a running server.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use crosspoint_contracts::time::Time;
use serde::Serialize;

use crate::config::SERVER_FILE;
use crate::local::{self, SCHEME};

#[derive(Serialize)]
struct Shown {
    url: String,
    /// The address of the socket beside a port, for commands of the server's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<String>,
    pid: u32,
    started_at: Time,
    version: &'static str,
}

/// The file exists as long as this value.
pub(super) struct Presence {
    path: PathBuf,
}

impl Presence {
    /// Writes the file whole or not at all: it is renamed into place.
    pub(super) fn announce(directory: &Path, url: &str, socket: Option<&Path>) -> Result<Presence> {
        let pid = std::process::id();
        let shown = Shown {
            url: url.to_owned(),
            socket: socket.map(|path| format!("{SCHEME}{}", path.display())),
            pid,
            started_at: crosspoint_engine::wall_clock::now(),
            version: env!("CARGO_PKG_VERSION"),
        };
        let path = directory.join(SERVER_FILE);
        local::make_directory(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let draft = directory.join(format!("{SERVER_FILE}.{pid}"));
        write_private(&draft, &serde_json::to_vec(&shown)?)
            .and_then(|()| fs::rename(&draft, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Presence { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a file for this user only. A file that a killed process left under that name is removed, and never written
/// through.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let _ = fs::remove_file(path);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.write_all(b"\n")
}
