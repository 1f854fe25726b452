//! The store: crashes, full disks, older versions, and how long jobs are kept.

pub(crate) mod crash;
mod crash_of_tokens;
mod disk;
mod keeping;
mod older;
mod one_server;
mod outage;
mod poison;
pub(crate) mod sync;
mod write_errors;
