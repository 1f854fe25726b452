//! A map that remembers only what was used of late, in bounded memory.
//!
//! There are two generations. What is used is in the young one, or comes there. When the young one is full it becomes
//! the old one, and what is left of the old one is forgotten. So nothing is ever swept, and what is forgotten has not
//! been used while as many others were as a generation holds.

use std::collections::BTreeMap;

/// Values by keys, of which those are forgotten that were not used for longest.
pub(crate) struct Recent<V> {
    young: BTreeMap<u64, V>,
    old: BTreeMap<u64, V>,
    /// Most keys of one generation.
    generation_max: usize,
}

impl<V> Recent<V> {
    /// Makes a map of at most this many keys.
    pub(crate) fn new(keys_max: usize) -> Recent<V> {
        Recent { young: BTreeMap::new(), old: BTreeMap::new(), generation_max: (keys_max / 2).max(1) }
    }

    /// Returns the value of a key, without using it.
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    /// Returns the value of a key, which is used by that; a new one if it is not known.
    pub(crate) fn used(&mut self, key: u64, new: impl FnOnce() -> V) -> &mut V {
        let before = self.old.remove(&key);
        if self.young.len() >= self.generation_max && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.entry(key).or_insert_with(|| before.unwrap_or_else(new))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_a_million_others_take_no_more_room() {
        let mut recent = Recent::new(1_000);
        *recent.used(u64::MAX, || 7) += 1;
        for key in 0..1_000_000 {
            recent.used(key, || 0);
            assert!(recent.len() <= 1_000, "{}", recent.len());
            if key % 400 == 0 {
                assert_eq!(recent.used(u64::MAX, || 0), &8);
            }
        }
        assert_eq!((recent.get(u64::MAX), recent.get(0)), (Some(&8), None));
    }
}
