//! Places where a test can have this process killed, as a power cut or an operator would, have the system fail, or have
//! the process wait while the test does something.
//!
//! `CROSSPOINT_KILL_AT=placed.3` kills the process, without any clean-up, when it comes to that place, and
//! `CROSSPOINT_FAIL_AT=placed.3` makes the system fail there with an input/output error. With
//! `CROSSPOINT_WAIT_AT=placed.3:/path/of/pipe` the process waits there until the named pipe was opened for writing and
//! closed. Only builds with debug assertions read the variables: a release build has no such places.

use std::sync::OnceLock;

use rustix::io::Errno;

/// The environment variable that names the place to be killed at.
pub const KILL: &str = "CROSSPOINT_KILL_AT";

/// The environment variable that names the place to fail at.
pub const FAIL: &str = "CROSSPOINT_FAIL_AT";

/// The environment variable that names the place to wait at, and the pipe.
pub const WAIT: &str = "CROSSPOINT_WAIT_AT";

/// Kills the process, waits or fails here if a variable names this place.
pub(super) fn reached(place: &str) -> Result<(), Errno> {
    static NAMED: OnceLock<[Option<String>; 3]> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let [kill, wait, fail] = NAMED.get_or_init(|| [KILL, WAIT, FAIL].map(|variable| std::env::var(variable).ok()));
    if kill.as_deref() == Some(place) {
        // Should the signal fail too, nothing can be done and nothing needs to be done.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    if let Some((named, pipe)) = wait.as_deref().and_then(|wait| wait.split_once(':'))
        && named == place
    {
        // What is read does not matter. A stop signal would not do: other threads go on for a moment.
        let _ = std::fs::read(pipe);
    }
    if fail.as_deref() == Some(place) { Err(Errno::IO) } else { Ok(()) }
}

/// The same for a place that is passed once per file.
pub(super) fn reached_for(place: &str, number: usize) -> Result<(), Errno> {
    if cfg!(debug_assertions) { reached(&format!("{place}.{number}")) } else { Ok(()) }
}
