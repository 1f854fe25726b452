//! The message contract: its door.

mod addressing;
mod callers;
mod cancel;
mod checklist;
mod examples;
mod hints;
mod idempotency;
mod outcomes;
mod pages;
mod printed;
mod refusals;
mod stopping;
mod tokens;
mod waiting;
