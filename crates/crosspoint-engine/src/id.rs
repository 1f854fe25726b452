//! The number and the id of a job, and the id of a store.
//!
//! A job's id is a UUIDv7 whose first random bits are the job's number. So a job is found by its id without an index
//! over random keys, which would be the most expensive part of a store that only ever appends. Ids sort in the order in
//! which jobs were accepted, also within one millisecond. The remaining 34 bits are random: an id from another store
//! does not match the job that has the same number here.

use std::fmt;
use std::str::FromStr;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

/// The number of a job in its store, counted from 1. It is also the job's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(pub u64);

/// How many bits of an id hold the number: enough for a million jobs a second over twelve days, or 10,000 a second over
/// three years.
const SEQ_BITS: u32 = 40;
const RANDOM_BITS: u32 = 34;

/// Largest number that fits into an id.
pub const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;

/// A job's id: made by the engine, a UUIDv7, never changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(Uuid);

/// The identity of a store. It stays the same over restarts and moves, and every new store gets another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreId(pub u64);

impl JobId {
    /// Makes the id of the job with this number, accepted at this time. `chance` is any random number.
    pub fn new(seq: Seq, at: Time, chance: u64) -> JobId {
        let millis = u128::from((at.0.max(0) / 1000).unsigned_abs() & ((1 << 48) - 1));
        let seq = u128::from(seq.0 & SEQ_MAX);
        let chance = u128::from(chance & ((1 << RANDOM_BITS) - 1));
        // 48 bits of time, the version, 12 bits, the variant, 62 bits.
        let high = seq >> 28;
        let low = ((seq & ((1 << 28) - 1)) << RANDOM_BITS) | chance;
        JobId(Uuid::from_u128((millis << 80) | (7 << 76) | (high << 64) | (0b10 << 62) | low))
    }

    /// Returns the number that the id holds. Only the store can say whether there is a job with this id.
    pub fn seq(self) -> Seq {
        let bits = self.0.as_u128();
        let high = ((bits >> 64) & 0xfff) as u64;
        let low = ((bits >> RANDOM_BITS) & ((1 << 28) - 1)) as u64;
        Seq((high << 28) | low)
    }

    /// Returns the id as the UUID that contracts use.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// Returns the id as the 16 bytes that the store keeps.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Makes an id from the 16 bytes that the store keeps.
    pub fn from_bytes(bytes: [u8; 16]) -> JobId {
        JobId(Uuid::from_bytes(bytes))
    }
}

impl FromStr for JobId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<JobId, uuid::Error> {
        text.parse().map(JobId)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl serde::Serialize for JobId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes sixteen hexadecimal digits.
impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_holds_its_number_and_sorts_by_it() {
        let mut last = None;
        for seq in [1, 2, 255, 1 << 28, (1 << 28) + 1, SEQ_MAX] {
            let id = JobId::new(Seq(seq), Time(1_700_000_000_000_000), u64::MAX);
            assert_eq!(id.seq(), Seq(seq));
            assert_eq!(id.0.get_version_num(), 7);
            assert_eq!(id.0.get_variant(), uuid::Variant::RFC4122);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert!(last < Some(id));
            last = Some(id);
        }
    }
}
