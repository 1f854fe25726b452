//! Places where a test can have this process killed, as a power cut or an operator would, or have the system fail.
//!
//! `CROSSPOINT_KILL_AT=placed.3` kills the process, without any clean-up, when it comes to that place, and
//! `CROSSPOINT_FAIL_AT=placed.3` makes the system fail there with an input/output error. Only builds with debug
//! assertions read the variables: a release build has no such places.

use std::sync::OnceLock;

use rustix::io::Errno;

/// The environment variable that names the place to be killed at.
pub const KILL: &str = "CROSSPOINT_KILL_AT";

/// The environment variable that names the place to fail at.
pub const FAIL: &str = "CROSSPOINT_FAIL_AT";

/// Kills the process or fails here if a variable names this place.
pub(super) fn reached(place: &str) -> Result<(), Errno> {
    static NAMED: OnceLock<[Option<String>; 2]> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let [kill, fail] = NAMED.get_or_init(|| [KILL, FAIL].map(|variable| std::env::var(variable).ok()));
    if kill.as_deref() == Some(place) {
        // Should the signal fail too, nothing can be done and nothing needs to be done.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    if fail.as_deref() == Some(place) { Err(Errno::IO) } else { Ok(()) }
}

/// The same for a place that is passed once per file.
pub(super) fn reached_for(place: &str, number: usize) -> Result<(), Errno> {
    if cfg!(debug_assertions) { reached(&format!("{place}.{number}")) } else { Ok(()) }
}
