//! The two files of the bridge contract, as requesters and responders leave and take them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::bridge_watcher::{Home, Inbox, Watcher};
use crate::support::server::{Server, until};

/// Leaves a file whole or not at all, as BRIDGE-7 says.
pub(crate) fn leave(directory: &Path, name: &str, text: &str) {
    let draft = directory.join(format!("draft{name}"));
    fs::write(&draft, text).expect("it can be written");
    fs::rename(&draft, directory.join(name)).expect("it can be put in its place");
}

/// Waits for a response, and takes it (BRIDGE-123). The request must be gone then too (BRIDGE-122).
pub(crate) fn taken(directory: &Path, request: &str, response: &str) -> String {
    let place = directory.join(response);
    let text = until("there is a response", || fs::read_to_string(&place).ok());
    until("the request is removed", || (!directory.join(request).exists()).then_some(()));
    fs::remove_file(&place).expect("it can be taken");
    text
}

/// A driver of these directories, for as long as both values are kept.
pub(crate) fn driven(server: &Server, directories: &[PathBuf]) -> (Watcher, Home) {
    let home = Home::new();
    let inboxes: Vec<Inbox> = directories.iter().cloned().map(Inbox::at).collect();
    let watcher = Watcher::of(server, &home, &inboxes.iter().collect::<Vec<_>>());
    (watcher, home)
}
