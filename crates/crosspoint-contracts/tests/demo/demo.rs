//! The demo contract: a question and its answer.

pub mod clause;
pub(crate) mod entry;
mod exchange;
pub(crate) mod map;
pub(crate) mod read;
mod wire;

pub use wire::{Answer, Ask, Id};
