//! How the number of a job is hidden in its id.
//!
//! An id has 48 bits of time, 40 bits of number and 34 bits of proof. The proof is made of the store's key, the time,
//! the number and the name of the caller by a hash. The number is then hidden by XOR with a hash over the key, the time
//! and the proof. So an id says nothing without the key, and it is known before the store is asked whether it is that
//! of a caller's own job. All others are alike, made up, changed in a bit or of another caller, also in the time that
//! it takes to refuse them. Without the proof a caller could also change bits of its own ids, and learn its numbers
//! from where a list then goes on.
//!
//! Stores of earlier versions have ids with the number in the clear and random bits in place of the proof. Those are
//! known by their time. An id with a hidden number never has so early a time, also when the clock stands back.

use std::fmt;

use crosspoint_contracts::time::Time;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{JobId, LAST_BITS, MILLIS_MAX, SEQ_BITS, SEQ_MAX, Seq};

/// Makes and reads the ids of one store.
#[derive(Clone)]
pub struct Ids {
    key: [u8; 32],
    /// The first millisecond of ids whose number is hidden; `None` where no number is.
    since: Option<u64>,
}

/// What is hashed, so that no proof is ever what a number is hidden with.
#[derive(Clone, Copy)]
enum Hashed {
    Proof = 0,
    Mask = 1,
}

/// Nothing of the key is ever printed.
impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids")
    }
}

impl Ids {
    /// Reads ids with the number in the clear: those of stores of earlier versions.
    pub const PLAIN: Ids = Ids { key: [0; 32], since: None };

    /// Returns what makes the ids of the store that has this key. Ids whose time is before the millisecond `since` have
    /// their number in the clear.
    pub fn hidden(key: [u8; 32], since: u64) -> Ids {
        Ids { key, since: Some(since) }
    }

    /// Makes the id of the job with this number, accepted at this time from this caller.
    pub fn make(&self, seq: Seq, at: Time, caller: &str) -> JobId {
        let millis = millis_of(at).max(self.since.unwrap_or(0)).min(MILLIS_MAX);
        let seq = Seq(seq.0 & SEQ_MAX);
        let proof = self.proof(millis, seq, caller);
        let number = if self.hides(millis) { seq.0 ^ self.mask(millis, proof) } else { seq.0 };
        JobId::of_row(seq, assemble((millis, number, proof)))
    }

    /// Reads an id. Whether there is a job with this id only the store can say: there is if its stored id is this one.
    pub fn read(&self, uuid: Uuid) -> JobId {
        let (millis, number, last) = take_apart(uuid);
        let seq = if self.hides(millis) { number ^ self.mask(millis, last) } else { number };
        JobId::of_row(Seq(seq), uuid)
    }

    /// Reads an id as callers and agents write it; `None` if it is no UUID.
    pub fn parse(&self, text: &str) -> Option<JobId> {
        text.parse().ok().map(|uuid| self.read(uuid))
    }

    /// Whether this id proves that it was made for a job of this caller; `None` if it proves nothing, because its
    /// number is in the clear.
    pub fn is_of(&self, id: JobId, caller: &str) -> Option<bool> {
        let (millis, _, last) = take_apart(id.uuid());
        // The bits that make it a UUIDv7 are always the same.
        let is_uuid = assemble(take_apart(id.uuid())) == id.uuid();
        self.hides(millis).then(|| is_uuid && self.proof(millis, id.seq(), caller) == last)
    }

    fn hides(&self, millis: u64) -> bool {
        self.since.is_some_and(|since| millis >= since)
    }

    fn proof(&self, millis: u64, seq: Seq, caller: &str) -> u64 {
        self.hash(Hashed::Proof, millis, seq.0, caller) >> (64 - LAST_BITS)
    }

    fn mask(&self, millis: u64, proof: u64) -> u64 {
        self.hash(Hashed::Mask, millis, proof, "") >> (64 - SEQ_BITS)
    }

    /// Returns the first bits of a hash that only the holder of the key can make. Everything but the caller has a fixed
    /// length, so that nothing else is written alike.
    fn hash(&self, what: Hashed, millis: u64, with: u64, caller: &str) -> u64 {
        let hash = Sha256::new().chain_update(self.key).chain_update([what as u8]);
        let hash = hash.chain_update(millis.to_be_bytes()).chain_update(with.to_be_bytes());
        let hash = hash.chain_update(caller).finalize();
        hash.iter().take(8).fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
    }
}

/// Returns the milliseconds that an id holds of a time.
pub(super) fn millis_of(at: Time) -> u64 {
    (at.0.max(0) / 1000).unsigned_abs().min(MILLIS_MAX)
}

/// Puts a UUIDv7 together: 48 bits of time, the version, 12 bits, the variant, 62 bits.
pub(super) fn assemble((millis, number, last): (u64, u64, u64)) -> Uuid {
    let high = u128::from(number >> 28);
    let low = u128::from(((number & ((1 << 28) - 1)) << LAST_BITS) | last);
    Uuid::from_u128((u128::from(millis) << 80) | (7 << 76) | (high << 64) | (0b10 << 62) | low)
}

/// Returns the time, the number as it is written, and the last bits.
fn take_apart(uuid: Uuid) -> (u64, u64, u64) {
    let bits = uuid.as_u128();
    let part = |shift: u32, wide: u32| ((bits >> shift) & ((1 << wide) - 1)) as u64;
    (part(80, 48), (part(64, 12) << 28) | part(LAST_BITS, 28), part(0, LAST_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const AT: Time = Time(1_800_000_000_000_000);
    const MILLIS: u64 = 1_800_000_000_000;

    fn ids(since: u64) -> Ids {
        Ids::hidden([7; 32], since)
    }

    proptest! {
        #[test]
        fn what_was_made_is_read_back(
            key: [u8; 32], seq in 1..=SEQ_MAX, at: i64, since in 0..=MILLIS_MAX,
        ) {
            for ids in [Ids::hidden(key, since), Ids::hidden(key, 0), Ids::PLAIN] {
                let id = ids.make(Seq(seq), Time(at), "ann");
                prop_assert_eq!((ids.read(id.uuid()), id.seq()), (id, Seq(seq)));
                prop_assert_eq!((id.uuid().get_version_num(), id.uuid().get_variant()), (7, uuid::Variant::RFC4122));
            }
        }

        /// Also if the clock stands back after the store was brought forward.
        #[test]
        fn an_id_of_before_the_key_is_read_in_the_clear(
            seq in 1..=SEQ_MAX, millis in 0..MILLIS, chance: u64, clock in 0..=2 * MILLIS,
        ) {
            let ids = ids(millis + 1);
            let older = JobId::new(Seq(seq), Time(millis.cast_signed() * 1000), chance);
            prop_assert_eq!((ids.read(older.uuid()), ids.is_of(older, "ann")), (older, None));
            let newer = ids.make(Seq(seq), Time(clock.cast_signed() * 1000), "ann");
            prop_assert_eq!((ids.read(newer.uuid()), ids.is_of(newer, "ann")), (newer, Some(true)));
            prop_assert_eq!(ids.is_of(newer, "ben"), Some(false));
        }

        #[test]
        fn an_id_with_a_changed_bit_is_none_of_the_callers(seq in 1..=SEQ_MAX, bit in 0_u32..128) {
            let id = ids(0).make(Seq(seq), AT, "ann");
            let changed = ids(0).read(Uuid::from_u128(id.uuid().as_u128() ^ (1 << bit)));
            prop_assert_eq!(ids(0).is_of(changed, "ann"), Some(false));
        }
    }

    #[test]
    fn an_id_of_another_store_is_none_of_the_callers() {
        let id = ids(0).make(Seq(1), AT, "ann");
        let other = Ids::hidden([8; 32], 0);
        assert_eq!(other.is_of(other.read(id.uuid()), "ann"), Some(false));
    }

    #[test]
    fn as_text_ids_sort_by_the_millisecond_and_within_it_in_no_order() {
        let texts = |apart: i64| -> Vec<String> {
            let at = |seq: u64| AT.shifted(seq.cast_signed() * apart);
            (1..=1_000).map(|seq| ids(0).make(Seq(seq), at(seq), "ann").uuid().to_string()).collect()
        };
        assert!(texts(1_000).is_sorted(), "each has a millisecond of its own");
        assert!(!texts(0).is_sorted(), "all have the same one, and would tell their numbers");
    }

    /// Consecutive jobs of one millisecond: what is written in place of their numbers neither grows nor is near each
    /// other, and so says nothing about how many jobs came in between.
    #[test]
    fn ids_do_not_show_their_numbers() {
        let written = |key: u8| -> Vec<u64> {
            let ids = Ids::hidden([key; 32], 0);
            (1..=1_000).map(|seq| take_apart(ids.make(Seq(seq), AT, "ann").uuid()).1).collect()
        };
        let one = written(7);
        let growing = one.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&growing), "{growing} of 999 pairs grow, which is not as if in no order");
        assert!(one.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1_000), "two are near each other");
        assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 1_000);
        assert!(one.iter().zip(written(8)).all(|(one, other)| *one != other), "the key makes no difference");
    }

    #[test]
    fn nothing_of_the_key_is_printed() {
        assert_eq!(format!("{:?}", ids(3)), "Ids");
    }
}
