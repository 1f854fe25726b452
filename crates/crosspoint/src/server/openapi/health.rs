//! The shapes of answers about the server itself. The comments on these types are the texts of the description.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use schemars::JsonSchema;

/// The process is there.
#[derive(JsonSchema)]
pub(super) struct Alive {
    /// `ok`
    status: String,
    version: String,
}

/// Work is taken.
#[derive(JsonSchema)]
pub(super) struct Ready {
    /// `ready`
    status: String,
}

/// No work is taken, and why; or the refusal of a server that has no room for the question.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum NotReady {
    Not(NotReadyBecause),
    Refused(crosspoint_exchange::refusal::Shown<'static>),
}

/// No work is taken.
#[derive(JsonSchema)]
pub(super) struct NotReadyBecause {
    /// `failing` or `stopping`
    status: String,
    reason: String,
}
