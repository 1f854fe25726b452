//! `command.json`: how commands reach another command of this user that does work without a server.
//!
//! A command that does work has the store alone until the work rests. Commands that look at jobs, or answer one, ask it
//! over its socket meanwhile. The file is believed as little as `server.json`, and names a socket alone. One directory
//! may have several stores, so the file says which one the command has.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::left;
use crate::config::{COMMAND_FILE, Config};
use crate::local::SCHEME;

/// What the file says.
#[derive(Deserialize, Serialize)]
pub(super) struct Working {
    pub(super) url: String,
    pub(super) pid: u32,
    store: PathBuf,
}

/// The file of this command. It is there as long as this value.
pub(super) struct Note {
    path: PathBuf,
    text: Vec<u8>,
}

impl Note {
    /// Writes the file whole or not at all. A command works without it, only alone.
    pub(super) fn leave(config: &Config, socket: &Path) -> Option<Note> {
        let url = format!("{SCHEME}{}", socket.display());
        let store = std::path::absolute(&config.store.path).ok()?;
        let working = Working { url, pid: std::process::id(), store };
        let path = config.data.join(COMMAND_FILE);
        let text = serde_json::to_vec(&working).ok()?;
        write(&path, &text).ok()?;
        Some(Note { path, text })
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&draft);
    File::options().write(true).create_new(true).mode(0o600).open(&draft)?.write_all(text)?;
    fs::rename(draft, path)
}

impl Drop for Note {
    fn drop(&mut self) {
        // Another command, with another store, may have written its own meanwhile.
        if fs::read(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the command that does work with this store, if it left its address.
pub(super) fn found(config: &Config) -> Option<Working> {
    let working: Working = serde_json::from_str(&left::command(&config.data)?).ok()?;
    (std::path::absolute(&config.store.path).ok()? == working.store).then_some(working)
}
