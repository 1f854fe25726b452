//! The room for bodies that are being read: of all together, and the part of it that each address or caller may take.
//!
//! Without the parts nine slow senders of one caller would take all of it, and the bodies of all others were refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Extensions;

use super::{CallerKey, Each, Peer};
use crate::site::Limits;

/// The bytes of all bodies; cloning shares them.
#[derive(Clone)]
pub(crate) struct Bodies(Arc<Shared>);

struct Shared {
    all_max: usize,
    each_max: usize,
    all: AtomicUsize,
    each: Mutex<BTreeMap<u64, usize>>,
}

/// Whose room is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// That of all bodies.
    All,
    /// That of this sender.
    Sender,
}

/// The room of one body, until this value is dropped.
pub(crate) struct BodyRoom {
    bodies: Bodies,
    /// Who sends it; `None` if the sender is not counted.
    sender: Option<u64>,
    bytes: usize,
}

impl Bodies {
    /// Each sender has a quarter of the room, and always room for one body.
    pub(crate) fn new(limits: &Limits) -> Bodies {
        let (all_max, each_max) = (limits.bodies_bytes_max, (limits.bodies_bytes_max / 4).max(limits.body_bytes_max));
        Bodies(Arc::new(Shared { all_max, each_max, all: AtomicUsize::new(0), each: Mutex::default() }))
    }

    /// Begins with a body, of which nothing has come yet.
    pub(crate) fn begin(&self, sender: Option<u64>) -> BodyRoom {
        BodyRoom { bodies: self.clone(), sender, bytes: 0 }
    }

    fn each(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.each.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyRoom {
    /// Returns how many bytes have come.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes room for bytes that have come. Without room, the body is to be given up, and this value with it.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Full> {
        self.bytes += bytes;
        let Shared { all_max, each_max, all, .. } = &*self.bodies.0;
        let before = all.fetch_add(bytes, Ordering::Relaxed);
        if let Some(sender) = self.sender {
            let mut each = self.bodies.each();
            let own = each.entry(sender).or_default();
            *own += bytes;
            if *own > *each_max {
                return Err(Full::Sender);
            }
        }
        if before + bytes <= *all_max { Ok(()) } else { Err(Full::All) }
    }
}

impl Drop for BodyRoom {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.bodies.0.all.fetch_sub(self.bytes, Ordering::Relaxed);
        let Some(sender) = self.sender else { return };
        let mut each = self.bodies.each();
        match each.get_mut(&sender) {
            Some(own) if *own > self.bytes => *own -= self.bytes,
            Some(_) | None => drop(each.remove(&sender)),
        }
    }
}

/// Returns what the sender of a request is counted by: the caller if it is known, or else the address. Programs of this
/// machine that show no token are not told apart, so they are not counted.
pub(crate) fn sender(extensions: &Extensions) -> Option<u64> {
    let address = |peer: &Peer| Each { set: None, default: 0 }.of(*peer).map(|(key, _)| key);
    let caller = extensions.get::<CallerKey>().map(|CallerKey(key)| *key);
    caller.or_else(|| extensions.get().and_then(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_a_quarter_or_one_body_and_the_others_have_the_rest() {
        for (body, all, each) in [(1, 80, 20), (30, 80, 30), (80, 80, 80)] {
            let bodies = Bodies::new(&Limits { body_bytes_max: body, bodies_bytes_max: all, ..Limits::default() });
            let mut held = [bodies.begin(Some(1)), bodies.begin(Some(1)), bodies.begin(Some(2)), bodies.begin(None)];
            let [first, second, other, uncounted] = &mut held;
            assert_eq!((first.take(each - 1), second.take(1)), (Ok(()), Ok(())));
            assert_eq!(second.take(1), Err(Full::Sender), "{body} {all}");
            drop(bodies.begin(Some(1)));
            assert_eq!(other.take(1), if each < all { Ok(()) } else { Err(Full::All) });
            assert_eq!(uncounted.take(all), Err(Full::All));
            drop(held);
            assert!(bodies.each().is_empty() && bodies.0.all.load(Ordering::Relaxed) == 0);
        }
    }
}
