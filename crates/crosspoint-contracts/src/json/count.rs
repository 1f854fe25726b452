//! How often documents are scanned, counted in debug builds: a document is to be read where it comes in, and not by every hand it passes
//! through. Tests look here; a release counts nothing.

use std::sync::{Mutex, PoisonError};

/// The length of every document that was scanned, in bytes, in order.
static SCANS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Shorter texts are single values rather than documents, and are not counted, in bytes.
const BYTES_MIN: usize = 1024;

/// At most so many are remembered: a server in a debug build may run for long.
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

/// The lengths of the documents that were scanned since this was last asked, in bytes; those under 1 KiB do not count.
pub fn take_scans() -> Vec<usize> {
    std::mem::take(&mut *SCANS.lock().unwrap_or_else(PoisonError::into_inner))
}
