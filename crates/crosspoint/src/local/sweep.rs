//! Removes the sockets of killed processes.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::Way;

const PREFIX: &str = "command-";
const SUFFIX: &str = ".sock";

/// Returns the name of a socket of this process.
pub(super) fn name(pid: u32, chance: &str) -> String {
    format!("{PREFIX}{pid}-{chance}{SUFFIX}")
}

/// Removes sockets that are certainly unused. Doubtful ones stay: they do no harm.
pub(super) fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(is_left) {
        let _ = fs::remove_file(entry.path());
    }
}

/// Whether the process that made the socket is gone, and no process listens on it. Both are checked: the number of a
/// process in another container means nothing here, and a process that has just made its socket does not listen yet.
fn is_left(entry: &DirEntry) -> bool {
    let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
    let pid = entry.file_name().to_str().and_then(maker);
    is_socket && pid.is_some_and(is_gone) && is_deaf(&entry.path())
}

/// Returns the process in the name of a socket.
fn maker(name: &str) -> Option<Pid> {
    let (pid, _) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

fn is_deaf(path: &Path) -> bool {
    let tried = Way::to(path).and_then(|way| UnixStream::connect(way.path()));
    tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_made_a_socket() {
        let read = |name: &str| maker(name).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(read(&name(7, "abc")), Some(7));
        for other in ["server.sock", "command-7.sock", "command--1-a.sock", "command-0-a.sock", "command-7-a", "x"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
