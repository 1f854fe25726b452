//! Reads what agents printed: where the blocks are, and the blocks.
//!
//! The events of a job are a chain that is read backwards, so the blocks of a long output are found a stretch at a
//! time, without their bytes. The caller keeps where the stretches begin, and not a place for each of a million blocks.

use bytes::Bytes;
use rusqlite::OptionalExtension;

use super::read::{PLACES_MAX, there};
use super::{Fault, Readers};
use crate::id::Seq;

/// The number of the kind of event that holds a block of output.
const OUTPUT: i64 = 3;

/// A block of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Where the block is, for [`Readers::blocks_at`].
    pub place: i64,
    /// The attempt that printed it.
    pub attempt: u32,
    /// How long it is, in bytes.
    pub bytes: u64,
}

/// Some events that follow each other, with the blocks of output among them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Where the last of the events is.
    pub from: i64,
    /// The number of the last of the events; 0 if there are none.
    pub last: u32,
    /// The blocks, in order.
    pub blocks: Vec<BlockPlace>,
    /// Where the event before them is, if there is one that was asked for.
    pub rest: Option<i64>,
}

impl Readers {
    /// Returns the blocks of output among a job's events after number `after`: those of the last events, or of the last
    /// events up to the one at `from`. Returns `None` if there is no such job.
    pub fn output_places(&self, seq: Seq, after: u32, from: Option<i64>) -> Result<Option<Stretch>, Fault> {
        self.read(|connection| {
            let mut head = connection.prepare_cached("SELECT head FROM job WHERE seq = ?1")?;
            let head = head.query_row([seq.0.cast_signed()], |row| row.get::<_, i64>(0)).optional()?;
            let Some(head) = head else { return Ok(None) };
            // Without reading the bytes of the block.
            let sql = "SELECT prev, n, kind, number, length(body) FROM event WHERE seq = ?1 AND job = ?2";
            let mut one = connection.prepare_cached(sql)?;
            let mut at = from.unwrap_or(head);
            let mut stretch = Stretch { from: at, ..Stretch::default() };
            for looked_at in 0.. {
                if at == 0 {
                    break;
                }
                let found = one.query_row([at, seq.0.cast_signed()], |row| {
                    let bytes = row.get::<_, Option<i64>>(4)?.unwrap_or(0).unsigned_abs();
                    Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?, row.get::<_, i64>(2)?, row.get(3)?, bytes))
                });
                let Some((prev, n, kind, attempt, bytes)) = there(connection, seq, found)? else { return Ok(None) };
                if n <= after {
                    break;
                }
                if looked_at == PLACES_MAX {
                    stretch.rest = Some(at);
                    break;
                }
                stretch.last = stretch.last.max(n);
                if kind == OUTPUT {
                    stretch.blocks.push(BlockPlace { place: at, attempt, bytes });
                }
                // In a damaged store the chain might never end.
                at = if prev < at { prev } else { return Err(rusqlite::Error::IntegralValueOutOfRange(0, prev)) };
            }
            stretch.blocks.reverse();
            Ok(Some(stretch))
        })
    }

    /// Returns the blocks at some places. If the job is removed meanwhile, returns those that were still there.
    pub fn blocks_at(&self, seq: Seq, places: &[i64]) -> Result<Vec<Bytes>, Fault> {
        self.read(|connection| {
            let mut one = connection.prepare_cached("SELECT body FROM event WHERE seq = ?1 AND job = ?2")?;
            let all = places.iter().map(|place| {
                let read = |row: &rusqlite::Row<'_>| Ok(Bytes::from(row.get::<_, Vec<u8>>(0)?));
                there(connection, seq, one.query_row([*place, seq.0.cast_signed()], read))
            });
            all.map_while(Result::transpose).collect()
        })
    }
}
