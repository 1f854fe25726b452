//! Telling callers later what became of their work.

mod gate;
mod line;
mod outbox;
mod telling;
mod trouble;
