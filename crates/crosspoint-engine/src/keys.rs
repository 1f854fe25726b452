//! Which request key belongs to which job. This is kept in memory, because an index over random keys on disk costs more
//! than everything else together.
//!
//! A key is known by its 64-bit hash, which is salted by the store, so that no caller can choose keys that collide.
//! Code that can read the job finds out whether a hit is the same key and the same request. Two keys with the same hash
//! are as unlikely as they are harmless: the later one is kept in a separate list.

use std::collections::BTreeMap;

use crosspoint_contracts::request::{Door, Key};
use uuid::Uuid;

use crate::id::{Seq, StoreId};

/// The hash of a request key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(pub u64);

/// The hashes that a job is found by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// The hash of the request key.
    pub key: Option<Hash>,
    /// The hash of the caller's id for the job, where that is not the key and callers of the door ask by it.
    pub alias: Option<Hash>,
}

impl Hashes {
    /// Returns the hashes that there are.
    pub fn iter(self) -> impl Iterator<Item = Hash> {
        self.key.into_iter().chain(self.alias)
    }
}

/// The salt of a store's hashes: rolled once, when the store is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salt(pub Uuid);

/// All keys that are taken.
#[derive(Debug, Default)]
pub struct Keys {
    first: BTreeMap<Hash, Seq>,
    /// Further jobs whose keys have a hash that was taken already.
    rest: Vec<(Hash, Seq)>,
}

impl Salt {
    /// Returns the hash of a key; `None` where each request is a job of its own.
    pub fn hash(self, caller: &str, door: Door, request_id: &str, key: &Key) -> Option<Hash> {
        // Neither a caller nor a door has a NUL in its name, so different keys are never written alike. A key other
        // than the request id holds on every door, or names its door in its text.
        let (door, key) = match key {
            Key::None => return None,
            Key::RequestId => (door.name(), request_id),
            Key::Other(key) => ("", &**key),
        };
        let id = Uuid::new_v5(&self.0, format!("{caller}\0{door}\0{key}").as_bytes());
        Some(Hash((id.as_u128() >> 64) as u64))
    }

    /// Returns the identity of the store that has this salt. It is public, and reveals nothing about the salt or the
    /// hash of any key.
    pub fn store_id(self) -> StoreId {
        // The text that a key is hashed from has two NULs in it, and this text has none, so this is not the hash of any
        // key.
        let id = Uuid::new_v5(&self.0, b"store").as_u128();
        // Combining both halves hides the bits that all such UUIDs have in common.
        StoreId((id >> 64) as u64 ^ id as u64)
    }
}

impl Keys {
    /// Returns the job that has this hash and is not among `others`, which are known to have another key.
    pub fn find(&self, hash: Hash, others: &[Seq]) -> Option<Seq> {
        let first = self.first.get(&hash).copied();
        let rest = self.rest.iter().filter(|(taken, _)| *taken == hash).map(|(_, seq)| *seq);
        first.into_iter().chain(rest).find(|seq| !others.contains(seq))
    }

    /// Takes a key for a job.
    pub fn claim(&mut self, hash: Hash, seq: Seq) {
        if let Some(taken) = self.first.insert(hash, seq) {
            self.first.insert(hash, taken);
            self.rest.push((hash, seq));
        }
    }

    /// Frees a key that this job had.
    pub fn release(&mut self, hash: Hash, seq: Seq) {
        self.rest.retain(|taken| *taken != (hash, seq));
        if self.first.get(&hash) == Some(&seq) {
            self.first.remove(&hash);
            if let Some(at) = self.rest.iter().position(|(taken, _)| *taken == hash) {
                let (_, next) = self.rest.remove(at);
                self.first.insert(hash, next);
            }
        }
    }

    /// Returns how many keys are taken.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Whether no key is taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_of_one_hash_are_two_jobs() {
        let mut keys = Keys::default();
        keys.claim(Hash(7), Seq(1));
        assert_eq!(keys.find(Hash(7), &[]), Some(Seq(1)));
        assert_eq!(keys.find(Hash(7), &[Seq(1)]), None, "whoever knows that job 1 has another key may take it");
        keys.claim(Hash(7), Seq(2));
        assert_eq!(keys.find(Hash(7), &[]), Some(Seq(1)));
        assert_eq!(keys.find(Hash(7), &[Seq(1)]), Some(Seq(2)));
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn a_key_that_was_given_free_leaves_others_of_its_hash_alone() {
        let mut keys = Keys::default();
        for seq in 1..=3 {
            keys.claim(Hash(7), Seq(seq));
        }
        keys.release(Hash(7), Seq(2));
        keys.release(Hash(8), Seq(1));
        assert_eq!((keys.find(Hash(7), &[]), keys.find(Hash(7), &[Seq(1)])), (Some(Seq(1)), Some(Seq(3))));
        keys.release(Hash(7), Seq(1));
        assert_eq!((keys.find(Hash(7), &[]), keys.len()), (Some(Seq(3)), 1));
        keys.release(Hash(7), Seq(3));
        assert!(keys.is_empty());
    }

    #[test]
    fn keys_are_those_of_a_caller_and_a_door_but_a_header_holds_everywhere() {
        let salt = Salt(Uuid::from_u128(1));
        let hash = |caller, door, id, key: &Key| salt.hash(caller, door, id, key);
        let own = hash("a", Door::Native, "r", &Key::RequestId);
        assert_eq!(own, hash("a", Door::Native, "r", &Key::RequestId));
        assert_ne!(own, hash("b", Door::Native, "r", &Key::RequestId));
        let other = Door::all().last().expect("there are several");
        assert_ne!(own, hash("a", other, "r", &Key::RequestId));
        let header = Key::Other("k".into());
        assert_eq!(hash("a", Door::Native, "r", &header), hash("a", other, "s", &header));
        assert_eq!(hash("a", Door::Native, "r", &Key::None), None);
        assert_ne!(own, Salt(Uuid::from_u128(2)).hash("a", Door::Native, "r", &Key::RequestId));
    }

    #[test]
    fn the_identity_of_a_store_is_that_of_its_salt_and_sixteen_digits_long() {
        let ids: Vec<String> = (0..64).map(|salt| Salt(Uuid::from_u128(salt)).store_id().to_string()).collect();
        assert_eq!(ids[1], Salt(Uuid::from_u128(1)).store_id().to_string());
        assert!(ids.iter().all(|id| id.len() == 16 && id.bytes().all(|digit| digit.is_ascii_hexdigit())), "{ids:?}");
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
        for at in 0..16 {
            let same = ids.iter().all(|id| id.as_bytes()[at] == ids[0].as_bytes()[at]);
            assert!(!same, "digit {at} is the same in all of them");
        }
    }
}
