//! How many things each key has at a time. What is remembered is no more than there are things.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The things that each key has; cloning shares them.
#[derive(Clone, Default)]
pub struct Shares(Arc<Mutex<BTreeMap<u64, usize>>>);

/// One thing of a key, until this value is dropped.
pub struct Share {
    shares: Shares,
    key: u64,
}

impl Shares {
    /// Takes one more for a key, unless it has as many as it may.
    pub fn take(&self, key: u64, most: usize) -> Option<Share> {
        let mut counts = self.counts();
        let count = counts.get(&key).copied().unwrap_or(0);
        (count < most).then(|| {
            counts.insert(key, count + 1);
            Share { shares: self.clone(), key }
        })
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
        match counts.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(counts.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_as_many_as_it_may_and_what_is_given_back_is_forgotten() {
        let shares = Shares::default();
        let held: Vec<Share> = (0..5).filter_map(|_| shares.take(1, 3)).collect();
        assert_eq!((held.len(), shares.take(1, 3).is_none(), shares.take(2, 3).is_some()), (3, true, true));
        drop(held);
        assert!(shares.counts().is_empty());
        assert!(shares.take(1, 3).is_some());
    }
}
