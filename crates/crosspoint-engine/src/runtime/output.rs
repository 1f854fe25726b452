//! What the agents of a job printed, as one sequence of bytes that is read a few blocks at a time.
//!
//! The output of each attempt follows that of the attempt before. So what was read once never changes, and a reader can
//! come back and go on from the byte where it was.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use super::engine::Engine;
use super::published::Watch;
use crate::id::{JobId, Seq};
use crate::store::{BlockPlace, Fault, Stretch};

/// Most blocks, and most bytes of blocks, that are read at a time. A single block may be longer.
const BLOCKS_MAX: usize = 64;
const BYTES_MAX: u64 = 256 << 10;

/// Why output cannot be read.
#[derive(Debug)]
pub enum Unread {
    /// The job was removed.
    Removed,
    /// So much text is on its way to callers that there is no room for more.
    Busy,
    /// The store cannot be read.
    Fault(Fault),
}

impl From<Fault> for Unread {
    fn from(fault: Fault) -> Unread {
        Unread::Fault(fault)
    }
}

/// Whether more output comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// More has come.
    Came,
    /// Nothing has come yet.
    NotYet,
    /// The job has ended, and all of its output was found.
    Never,
}

/// A reader of a job's output.
pub struct Output {
    engine: Engine,
    watch: Watch,
    seq: Seq,
    /// Only the output of this attempt.
    attempt: Option<u32>,
    /// The number of the last event of which it is known whether it is output.
    after: u32,
    /// How many events the job had when output was last looked for.
    seen: u32,
    is_over: bool,
    /// What was found and not read yet.
    stretches: VecDeque<Found>,
    blocks: VecDeque<BlockPlace>,
    ready: VecDeque<Bytes>,
    /// How many bytes of what is next are to be passed over.
    skip: u64,
    total: u64,
}

/// A stretch of events, as far as it has to be remembered to find its blocks again.
struct Found {
    from: i64,
    after: u32,
    bytes: u64,
}

impl Engine {
    /// Returns the output of a job so far, of all attempts or of one; `None` if there is no such job.
    pub async fn output(&self, id: JobId, attempt: Option<u32>) -> Result<Option<Output>, Fault> {
        let Some(watch) = self.job(id).await? else { return Ok(None) };
        let mut output = Output {
            engine: self.clone(),
            watch,
            seq: id.seq(),
            attempt,
            after: 0,
            seen: 0,
            is_over: false,
            stretches: VecDeque::new(),
            blocks: VecDeque::new(),
            ready: VecDeque::new(),
            skip: 0,
            total: 0,
        };
        match output.look().await {
            Ok(()) => Ok(Some(output)),
            Err(Unread::Removed | Unread::Busy) => Ok(None),
            Err(Unread::Fault(fault)) => Err(fault),
        }
    }
}

impl Output {
    /// Returns how many bytes were found so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether the job has ended, so that there will be no more bytes than were found.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Passes over the first bytes. It may be more than there are: then those that come are passed over too.
    pub fn skip(&mut self, bytes: u64) {
        self.skip = self.skip.saturating_add(bytes);
        while let Some(first) = self.stretches.front().filter(|first| first.bytes <= self.skip) {
            self.skip -= first.bytes;
            self.stretches.pop_front();
        }
    }

    /// Returns the next bytes; `None` after the last that were found.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Unread> {
        loop {
            while let Some(mut block) = self.ready.pop_front() {
                let skipped = self.skip.min(block.len() as u64);
                self.skip -= skipped;
                let rest = block.split_off(usize::try_from(skipped).unwrap_or(block.len()));
                if !rest.is_empty() {
                    return Ok(Some(rest));
                }
            }
            if self.blocks.is_empty() {
                let Some(found) = self.stretches.pop_front() else { return Ok(None) };
                let stretch = self.stretch(found.after, Some(found.from)).await?;
                self.blocks = stretch.blocks.into();
            }
            self.read_blocks().await?;
        }
    }

    /// Waits until there is more output or the job has ended, or until a time.
    pub async fn more(&mut self, until: Instant) -> Result<More, Unread> {
        let before = self.total;
        self.watch.moved(self.seen, until).await;
        self.look().await?;
        Ok(match () {
            () if self.total > before => More::Came,
            () if self.is_over => More::Never,
            () => More::NotYet,
        })
    }

    async fn read_blocks(&mut self) -> Result<(), Unread> {
        let (mut places, mut bytes) = (Vec::new(), 0);
        while let Some(block) = self.blocks.front().copied()
            && places.len() < BLOCKS_MAX
            && (places.is_empty() || bytes + block.bytes <= BYTES_MAX)
        {
            self.blocks.pop_front();
            if places.is_empty() && self.skip >= block.bytes {
                self.skip -= block.bytes;
                continue;
            }
            bytes += block.bytes;
            places.push(block.place);
        }
        let (seq, count) = (self.seq, places.len());
        let blocks = self.engine.read(move |readers| readers.blocks_at(seq, &places)).await?;
        if blocks.len() < count {
            return Err(Unread::Removed);
        }
        self.ready.extend(blocks);
        Ok(())
    }

    /// Finds the output that has come since it was last looked for.
    async fn look(&mut self) -> Result<(), Unread> {
        // First the state, then the output: what was printed before the end is found after it.
        let job = self.watch.job();
        let (after, mut last, mut from, mut found) = (self.after, self.after, None, Vec::new());
        loop {
            let stretch = self.stretch(after, from).await?;
            last = last.max(stretch.last);
            let bytes = stretch.blocks.iter().map(|block| block.bytes).sum();
            if bytes > 0 {
                found.push(Found { from: stretch.from, after, bytes });
                self.total += bytes;
            }
            from = stretch.rest;
            if from.is_none() {
                break;
            }
        }
        self.stretches.extend(found.into_iter().rev());
        (self.after, self.seen, self.is_over) = (last, job.events, job.outcome().is_some());
        Ok(())
    }

    /// Returns the wanted blocks of a stretch.
    async fn stretch(&self, after: u32, from: Option<i64>) -> Result<Stretch, Unread> {
        let seq = self.seq;
        let found = self.engine.read(move |readers| readers.output_places(seq, after, from)).await?;
        let mut stretch = found.ok_or(Unread::Removed)?;
        stretch.blocks.retain(|block| self.attempt.is_none_or(|attempt| attempt == block.attempt));
        Ok(stretch)
    }
}
