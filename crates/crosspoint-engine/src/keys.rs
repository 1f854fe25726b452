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

/// A name that a caller knows a job by. The caller itself is in the job's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The door at which it is the caller's own id for the job; `None` for a key that holds on every door.
    pub door: Option<Door>,
    /// The id or the key.
    pub text: Box<str>,
}

/// A name that a job was not accepted with, and that a repeat of its request came with (ALL-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherName {
    /// The hash that the job is found by.
    pub hash: Hash,
    /// The name.
    pub name: Name,
}

/// A job whose names were looked at, and are all other names of the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The number of the job.
    pub seq: Seq,
    /// How many further names it had by then. One that it has got since may be the name that is looked for.
    pub had: usize,
}

/// Most further names of one job, of at most 512 bytes each. A caller that gives each repeat a new name would fill the
/// store without any work being done. Proxies that renew ids at each try stay far below it.
pub const FURTHER_NAMES_MAX: usize = 64;

/// There are [`FURTHER_NAMES_MAX`] further names already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyNames;

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
    /// How many of them are those of further names, by the job.
    further: BTreeMap<Seq, usize>,
}

impl Salt {
    /// Returns the hash of a key; `None` where each request is a job of its own.
    pub fn hash(self, caller: &str, door: Door, request_id: &str, key: &Key) -> Option<Hash> {
        match key {
            Key::None => None,
            Key::RequestId => Some(self.hash_of(caller, Some(door), request_id)),
            Key::Other(key) => Some(self.hash_of(caller, None, key)),
        }
    }

    /// Returns the hash of a name that a caller knows a job by.
    pub fn hash_of(self, caller: &str, door: Option<Door>, name: &str) -> Hash {
        // Neither a caller nor a door has a NUL in its name, so different keys are never written alike. A key other
        // than the request id holds on every door, or names its door in its text.
        let door = door.map_or("", Door::name);
        let id = Uuid::new_v5(&self.0, format!("{caller}\0{door}\0{name}").as_bytes());
        Hash((id.as_u128() >> 64) as u64)
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
    pub fn find(&self, hash: Hash, others: &[Other]) -> Option<Seq> {
        let first = self.first.get(&hash).copied();
        let rest = self.rest.iter().filter(|(taken, _)| *taken == hash).map(|(_, seq)| *seq);
        first.into_iter().chain(rest).find(|seq| !others.contains(&Other { seq: *seq, had: self.further(*seq) }))
    }

    /// Takes a key for a job.
    pub fn claim(&mut self, hash: Hash, seq: Seq) {
        if let Some(taken) = self.first.insert(hash, seq) {
            self.first.insert(hash, taken);
            self.rest.push((hash, seq));
        }
    }

    /// Takes the keys of further names for a job, all or none.
    pub fn claim_further(&mut self, hashes: &[Hash], seq: Seq) -> Result<(), TooManyNames> {
        if self.further(seq) + hashes.len() > FURTHER_NAMES_MAX {
            return Err(TooManyNames);
        }
        hashes.iter().for_each(|hash| self.add_further(*hash, seq));
        Ok(())
    }

    /// Takes the key of a further name that is on disk.
    pub fn add_further(&mut self, hash: Hash, seq: Seq) {
        self.claim(hash, seq);
        *self.further.entry(seq).or_default() += 1;
    }

    /// Returns how many further names a job has.
    pub fn further(&self, seq: Seq) -> usize {
        self.further.get(&seq).copied().unwrap_or(0)
    }

    /// Whether this job is found by one of these hashes.
    pub fn has(&self, hashes: Hashes, seq: Seq) -> bool {
        let is_first = |hash: &Hash| self.first.get(hash) == Some(&seq);
        hashes.iter().any(|hash| is_first(&hash) || self.rest.contains(&(hash, seq)))
    }

    /// Frees a key that this job had, which was removed with all its keys.
    pub fn release(&mut self, hash: Hash, seq: Seq) {
        self.further.remove(&seq);
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

    fn other(seq: u64) -> Other {
        Other { seq: Seq(seq), had: 0 }
    }

    #[test]
    fn two_keys_of_one_hash_are_two_jobs() {
        let mut keys = Keys::default();
        keys.claim(Hash(7), Seq(1));
        assert_eq!(keys.find(Hash(7), &[]), Some(Seq(1)));
        assert_eq!(keys.find(Hash(7), &[other(1)]), None, "whoever knows that job 1 has another key may take it");
        keys.claim(Hash(7), Seq(2));
        assert_eq!(keys.find(Hash(7), &[]), Some(Seq(1)));
        assert_eq!(keys.find(Hash(7), &[other(1)]), Some(Seq(2)));
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
        assert_eq!((keys.find(Hash(7), &[]), keys.find(Hash(7), &[other(1)])), (Some(Seq(1)), Some(Seq(3))));
        keys.release(Hash(7), Seq(1));
        assert_eq!((keys.find(Hash(7), &[]), keys.len()), (Some(Seq(3)), 1));
        keys.release(Hash(7), Seq(3));
        assert!(keys.is_empty());
    }

    #[test]
    fn further_names_are_counted_by_job_and_given_free() {
        let mut keys = Keys::default();
        keys.claim(Hash(1), Seq(1));
        assert_eq!((keys.claim_further(&[Hash(2)], Seq(1)), keys.further(Seq(1))), (Ok(()), 1));
        assert_eq!((keys.find(Hash(2), &[]), keys.len()), (Some(Seq(1)), 2));
        let key = |hash| Hashes { key: Some(Hash(hash)), alias: None };
        assert!(keys.has(key(2), Seq(1)) && !keys.has(key(2), Seq(2)) && !keys.has(key(3), Seq(1)));
        assert_eq!(keys.find(Hash(2), &[other(1)]), Some(Seq(1)), "it had no further name by then");
        keys.release(Hash(2), Seq(1));
        keys.release(Hash(1), Seq(1));
        assert_eq!((keys.is_empty(), keys.further(Seq(1))), (true, 0));
        for hash in 0..FURTHER_NAMES_MAX as u64 {
            assert_eq!(keys.claim_further(&[Hash(10 + hash)], Seq(2)), Ok(()), "{hash}");
        }
        assert_eq!(keys.claim_further(&[Hash(9)], Seq(2)), Err(TooManyNames));
        assert_eq!((keys.find(Hash(9), &[]), keys.claim_further(&[Hash(9)], Seq(3))), (None, Ok(())));
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
