//! Puts chunks together again, without holding their text.
//!
//! Chunks come in any order, some of them twice, and their sender may be broken or hostile. The obvious reassembler
//! collects them in a buffer and looks at it at the end. Many outputs at once, each as long as the limit allows, would
//! then fill the memory, and a restart would lose them. So the text stays where the caller keeps it, in a file or a
//! database, and only offsets are kept here: which ranges came, how far they reach, and what the total is.
//!
//! For every chunk [`Reassembler::take`] answers with a [`Plan`]: pieces to store at their offsets, because they are
//! new, and pieces to compare with what is stored, because they came before. A digest for each block would spare the
//! comparison only where blocks repeat exactly. An overlap may begin and end anywhere, so the bytes themselves are
//! compared. The plan lists them, instead of asking through a callback, so that a caller may await its database between
//! the steps. The caller compares, stores, and then commits the plan. A plan that is dropped has changed nothing: if
//! storing fails, or the process dies before the commit, the chunk counts as not received, and storing it once more
//! puts the same bytes in the same place. The plan borrows the reassembler, so that two plans cannot be under way at
//! once.
//!
//! Corner cases:
//! - A refusal changes nothing either. The caller decides whether the whole output is given up for it.
//! - An empty chunk stores nothing, but its total and its end are as binding as those of any other.
//! - Chunks with and without TOTAL may be mixed; a chunk without TOTAL contradicts none. Where no chunk gives it, the
//!   farthest END is the end, and the set is complete with the next step or result (MSG-9.7), when the caller asks
//!   [`Reassembler::finish`].
//! - Ranges that touch are merged, so chunks in order take no space. If only every second one of many tiny chunks came,
//!   they would take more and more, and are refused at [`RANGES_MAX`].
//! - Errors come before limits: a chunk that is both wrong and too much is refused as invalid.
//! - Offsets count bytes. A block that came as a JSON string is UTF-8 in itself, and so is any whole made of such
//!   blocks. A sender that cut inside a character and sent replacement characters for the halves has sent another
//!   number of bytes than it said, which the check of the length finds. Bytes that came some other way are stored as
//!   they are.

use std::fmt;
use std::ops::Range;

use super::Chunk;
use super::ranges::Ranges;
use super::refusal::Refusal;

/// Most ranges with gaps between them. 4,096 ranges take 64 KiB, and are enough for 2 GiB of whole blocks that come in
/// the worst order, every second one first.
pub const RANGES_MAX: usize = 4096;

/// What is known of one output that comes in chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassembler {
    bytes_max: u64,
    total: Option<u64>,
    /// The farthest END of any chunk, empty ones included.
    end: u64,
    held: Ranges,
}

impl Reassembler {
    /// Returns a reassembler to which no chunk has come yet. It refuses an output of more than `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Reassembler {
        Reassembler { bytes_max, total: None, end: 0, held: Ranges::default() }
    }

    /// Decides what is to be done with one chunk and its bytes.
    ///
    /// # Errors
    /// Refuses a chunk that contradicts itself or an earlier one, or that is too much. The caller finds overlaps that
    /// differ, with [`Piece::check`].
    pub fn take<'b>(&mut self, chunk: Chunk, bytes: &'b [u8]) -> Result<Plan<'_, 'b>, Refusal> {
        self.admit(chunk, bytes.len() as u64)?;
        let piece = |range: Range<u64>| {
            let within = (range.start - chunk.start) as usize..(range.end - chunk.start) as usize;
            Piece { offset: range.start, bytes: &bytes[within] }
        };
        let (held, new) = self.held.cut(&(chunk.start..chunk.end));
        let compare = held.into_iter().map(piece).collect();
        let store = new.into_iter().map(piece).collect();
        Ok(Plan { compare, store, chunk, reassembler: self })
    }

    /// Counts a chunk as held whose bytes were stored before a restart. Recalling the committed chunks, in the order of
    /// their commits or of their starts, restores what was known. Another order may need more ranges in between.
    ///
    /// # Errors
    /// Refuses a chunk that contradicts those recalled before it, or that is over a limit that has become smaller.
    pub fn recall(&mut self, chunk: Chunk) -> Result<(), Refusal> {
        self.admit(chunk, chunk.bytes())?;
        self.hold(chunk);
        Ok(())
    }

    /// Returns whether every byte of a known total is held. Without a total this cannot be known yet.
    pub fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.held.first_gap(total).is_none())
    }

    /// Returns the length of the output in bytes. To be called when no more chunks are to come.
    ///
    /// # Errors
    /// Fails if a byte before the total never came, or before the farthest end where no total was given.
    pub fn finish(&self) -> Result<u64, Refusal> {
        let bytes = self.total.unwrap_or(self.end);
        match self.held.first_gap(bytes) {
            Some(Range { start, end }) => Err(Refusal::Gap { start, end }),
            None => Ok(bytes),
        }
    }

    /// Returns how many bytes are held from the beginning on, without a gap.
    pub fn prefix_bytes(&self) -> u64 {
        self.ranges().next().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// Returns the ranges of bytes that are held, in order and with gaps between them.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.held.iter()
    }

    /// Returns the length of the whole output in bytes, if a chunk gave it.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Returns the farthest end of any chunk.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the longest output that is taken, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn admit(&self, chunk: Chunk, bytes: u64) -> Result<(), Refusal> {
        // The fields of a chunk are public, so its start may also lie after its end.
        if chunk.start.checked_add(bytes) != Some(chunk.end) {
            return Err(Refusal::WrongLength { chunk, bytes });
        }
        let end = self.end.max(chunk.end);
        let bytes = self.agreed_total(chunk, end)?.unwrap_or(end);
        if bytes > self.bytes_max {
            return Err(Refusal::OverLimit { bytes, bytes_max: self.bytes_max });
        }
        if self.held.count_with(&(chunk.start..chunk.end)) > RANGES_MAX {
            return Err(Refusal::TooManyRanges);
        }
        Ok(())
    }

    /// Returns the total after this chunk, given the farthest end.
    fn agreed_total(&self, chunk: Chunk, end: u64) -> Result<Option<u64>, Refusal> {
        match (self.total, chunk.total) {
            (Some(known), Some(said)) if known != said => Err(Refusal::TotalChanged { known, said }),
            (Some(total), _) | (None, Some(total)) if end > total => Err(Refusal::BeyondTotal { end, total }),
            (known, said) => Ok(known.or(said)),
        }
    }

    fn hold(&mut self, chunk: Chunk) {
        self.total = self.total.or(chunk.total);
        self.end = self.end.max(chunk.end);
        self.held.insert(chunk.start..chunk.end);
    }
}

/// What is to be done with the bytes of one chunk: first compare, then store, then commit.
#[derive(Debug)]
#[must_use = "the chunk counts as received only once the plan is committed"]
pub struct Plan<'r, 'b> {
    /// Pieces that came before. They must equal what is stored.
    pub compare: Vec<Piece<'b>>,
    /// Pieces that are new. They are to be stored at their offsets.
    pub store: Vec<Piece<'b>>,
    chunk: Chunk,
    reassembler: &'r mut Reassembler,
}

impl Plan<'_, '_> {
    /// Counts the chunk as received. To be called when all its pieces are compared and stored.
    pub fn commit(self) {
        self.reassembler.hold(self.chunk);
    }
}

/// Some bytes of a chunk, and where they belong in the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Piece<'b> {
    /// Offset of the first byte in the output.
    pub offset: u64,
    /// The bytes, at least one.
    pub bytes: &'b [u8],
}

impl Piece<'_> {
    /// Compares the piece with the stored bytes, as many as the piece has, at its offset. Bytes that are not stored
    /// differ.
    ///
    /// # Errors
    /// Returns [`Refusal::Differs`], with the first byte that differs.
    pub fn check(&self, stored: &[u8]) -> Result<(), Refusal> {
        if self.bytes == stored {
            return Ok(());
        }
        let same = self.bytes.iter().zip(stored).take_while(|(one, other)| one == other).count();
        Err(Refusal::Differs { offset: self.offset + same as u64 })
    }
}

impl fmt::Debug for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece[{} bytes at {}]", self.bytes.len(), self.offset)
    }
}
