//! Places where a test can have this process killed, as a power cut or an operator would.
//!
//! `CROSSPOINT_FAILPOINT=response.synced` kills the process, without any clean-up, when it comes to that place. Only
//! builds with debug assertions read the variable: a release build has no such places.

/// The environment variable that names the place.
pub const VARIABLE: &str = "CROSSPOINT_FAILPOINT";

/// Kills the process here if the variable names this place.
pub fn reached(what: &str, step: &str) {
    if cfg!(debug_assertions) && std::env::var(VARIABLE).is_ok_and(|place| place == format!("{what}.{step}")) {
        // Should the signal fail too, nothing can be done and nothing needs to be done.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
