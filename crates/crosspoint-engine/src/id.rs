//! The number and the id of a job, and the id of a store.
//!
//! A job's id is a UUIDv7 from which the store reads the job's number. So a job is found by its id without an index
//! over random keys, which would be the most expensive part of a store that only ever appends. Only the store can read
//! the number: [`Ids`] hides it with a key, because two ids of one caller would otherwise tell how many jobs of others
//! came in between.
//!
//! The last 34 bits prove that the store made the id for a job of one caller: that caller finds nothing by any other
//! id, and cannot tell why.

mod hidden;

use std::fmt;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

pub use hidden::Ids;
use hidden::{assemble, millis_of};

/// The number of a job in its store, counted from 1. It is also the job's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(pub u64);

/// How many bits of an id hold the number: enough for a million jobs a second over twelve days, or 10,000 a second over
/// three years.
const SEQ_BITS: u32 = 40;
const LAST_BITS: u32 = 34;
const MILLIS_MAX: u64 = (1 << 48) - 1;

/// Largest number that fits into an id.
pub const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;

/// A job's id: made by the engine, a UUIDv7, never changed. These values sort in the order in which jobs were accepted.
/// As text, ids sort by the millisecond, and those of one millisecond in no order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId {
    seq: Seq,
    uuid: Uuid,
}

/// The identity of a store. It stays the same over restarts and moves, and every new store gets another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreId(pub u64);

impl JobId {
    /// Makes the id of the job with this number, accepted at this time, with the number in the clear. `chance` is any
    /// random number.
    pub fn new(seq: Seq, at: Time, chance: u64) -> JobId {
        let chance = chance & ((1 << LAST_BITS) - 1);
        JobId::of_row(seq, assemble((millis_of(at), seq.0 & SEQ_MAX, chance)))
    }

    /// Returns the id of the job that has this row.
    pub fn of_row(seq: Seq, uuid: Uuid) -> JobId {
        JobId { seq, uuid }
    }

    /// Returns the number that the id holds. Only the store can say whether there is a job with this id.
    pub fn seq(self) -> Seq {
        self.seq
    }

    /// Returns the id as the UUID that contracts use.
    pub fn uuid(self) -> Uuid {
        self.uuid
    }

    /// Returns the id as the 16 bytes that the store keeps.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.uuid.as_bytes()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.uuid, f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.uuid, f)
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
