//! Supervisors whose programs have ended, and which wait for another order.
//!
//! A supervisor is this whole binary, and the system takes longer to load it than to start a small program. So a
//! supervisor whose program ended by itself and left nothing behind is used again. A spare whose parent ends reads the
//! end of its connection in place of an order, and ends too.

use std::sync::{Mutex, PoisonError};

use super::launch::Waiting;

/// Most supervisors that are kept: each is a process, and a burst of programs should not leave as many behind.
const SPARES_MAX: usize = 4;

static SPARES: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Takes a supervisor. It may be killed before it reads anything.
pub(super) fn take() -> Option<Waiting> {
    let mut spares = SPARES.lock().unwrap_or_else(PoisonError::into_inner);
    spares.retain_mut(Waiting::is_there);
    spares.pop()
}

/// Keeps a supervisor that says that it is free. If there are enough, it ends.
pub(super) fn keep(spare: Waiting) {
    let mut spares = SPARES.lock().unwrap_or_else(PoisonError::into_inner);
    spares.retain_mut(Waiting::is_there);
    if spares.len() < SPARES_MAX {
        spares.push(spare);
    }
}
