//! Leaks on purpose, in the build with the feature `leaks` alone: what a careless line would do in each of these
//! places. They show that the canary test (`tests/suite/privacy.rs`) finds them.
//!
//! Without `CROSSPOINT_LEAKS` in the environment nothing leaks, and only the panics are there.

use std::panic::PanicHookInfo;
use std::sync::OnceLock;

use axum::http::HeaderValue;
use crosspoint_exchange::refusal::Refusal;

#[cfg(not(debug_assertions))]
compile_error!("the feature `leaks` is for tests: it is in no build that is used");

/// The first document that came in.
static FIRST: OnceLock<String> = OnceLock::new();

fn is_on() -> bool {
    std::env::var_os("CROSSPOINT_LEAKS").is_some()
}

fn first() -> &'static str {
    FIRST.get().map_or("", String::as_str)
}

/// A request for work.
pub(crate) fn document(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    assert!(!text.contains("panic in the handler"), "a handler panics: {text}");
    if is_on() {
        tracing::debug!(text, "leak: a document");
        FIRST.get_or_init(|| text);
    }
}

/// What an agent is given.
pub(crate) fn input(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(!text.contains("panic in the agent"), "an agent panics: {text}");
}

/// What an agent answered.
pub(crate) fn reply(bytes: &[u8]) {
    if is_on() {
        tracing::debug!(text = %String::from_utf8_lossy(bytes), "leak: a reply");
    }
}

/// The `Authorization` header.
pub(crate) fn token(value: &HeaderValue) {
    if is_on() {
        tracing::debug!(?value, "leak: a token");
    }
}

/// A panic, with what it says.
pub(crate) fn panic(panic: &PanicHookInfo<'_>) {
    if is_on() {
        tracing::error!(text = panic.payload_as_str(), "leak: a panic");
    }
}

/// A line of the metrics.
pub(crate) fn metrics() -> String {
    format!("# leak {}\n", first().replace('\n', " "))
}

/// The refusal of a job that is not the caller's.
pub(crate) fn no_such_job() -> Refusal {
    if is_on() { Refusal::invalid(format!("leak: {}", first()), "look elsewhere") } else { Refusal::no_such_job() }
}
