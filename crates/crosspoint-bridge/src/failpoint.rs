//! Places where a test can have this process killed, as a power cut or an operator would.
//!
//! `CROSSPOINT_FAILPOINT=response.synced` kills it, without any clean-up, when it comes to that place. Only builds with debug assertions look:
//! in a release there are no such places.

/// The variable that names the place.
pub const VARIABLE: &str = "CROSSPOINT_FAILPOINT";

/// Here the process ends if that is wanted.
pub fn reached(what: &str, step: &str) {
    if cfg!(debug_assertions) && std::env::var(VARIABLE).is_ok_and(|place| place == format!("{what}.{step}")) {
        // Nothing can be done about it if even that fails, and nothing needs to be.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
