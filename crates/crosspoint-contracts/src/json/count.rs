//! Counts, in debug builds, how often documents are scanned: a document is to be read where it comes in, and not again
//! by each part of the program that it passes through. Tests check the counts; a release build counts nothing.

use std::sync::{Mutex, PoisonError};

/// The length of every document that was scanned, in bytes, in order.
static SCANS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Length below which a text is not counted, in bytes: shorter texts are single values rather than documents.
const BYTES_MIN: usize = 1024;

/// Most scans that are remembered: a server in a debug build may run for long.
const SCANS_MAX: usize = 10_000;

pub(super) fn note(bytes: usize) {
    if bytes < BYTES_MIN {
        return;
    }
    let mut scans = SCANS.lock().unwrap_or_else(PoisonError::into_inner);
    if scans.len() < SCANS_MAX {
        scans.push(bytes);
    }
}

/// Returns the lengths of the documents that were scanned since the last call, in bytes. Documents under 1 KiB do not
/// count.
pub fn take_scans() -> Vec<usize> {
    std::mem::take(&mut *SCANS.lock().unwrap_or_else(PoisonError::into_inner))
}
