//! Putting chunks together again, without holding their text.
//!
//! Chunks come in any order, some of them twice, and their sender may be broken or hostile. The obvious reassembler
//! collects them in a buffer and looks at it at the end. Many outputs at once, each as long as the limit allows, would then
//! fill the memory, and a restart would lose them. So the text lies where the caller keeps it, a file or a database, and
//! only offsets are kept here: which ranges came, how far they reach, and what the total is.
//!
//! For every chunk [`Reassembler::take`] answers with a [`Plan`]: pieces to store at their offsets, because they are new, and
//! pieces to compare with what is stored, because they came before. A digest for each block would spare the comparison only
//! where blocks repeat exactly; an overlap may begin and end anywhere, so the bytes themselves are asked for. They are
//! asked for as a list, not through a callback, so that a caller may await its database between the steps. The caller
//! compares, stores, and then commits the plan. A plan that is dropped has changed nothing: if storing fails, or the
//! process dies before the commit, the chunk counts as not received, and storing it once more puts the same bytes in the
//! same place. The plan borrows the reassembler, so that two of them cannot be under way at once.
//!
//! At the edges:
//! - A refusal changes nothing either. Whether the whole output is given up for it is the caller's decision.
//! - An empty chunk stores nothing, but its total and its end are as binding as those of any other.
//! - Chunks with and without TOTAL may be mixed; one that does not say it does not contradict it. Where no chunk says it,
//!   the farthest END is the end, and the set is over with the next step or result (MSG-9.7), when the
//!   caller asks [`Reassembler::finish`].
//! - Ranges that touch become one, so chunks in order take no space. Every second one of many tiny chunks would take more
//!   and more, and is refused at [`RANGES_MAX`].
//! - What is wrong comes before what is too much: a chunk that is both is refused as invalid.
//! - Offsets count bytes. A block that came as a JSON string is UTF-8 in itself, and so is any whole made of such blocks. A
//!   sender that cut inside a character and sent replacement characters for the halves has sent another number of
//!   bytes than it said, which the check of the length finds. Bytes that came some other way are stored as they are.

use std::fmt;
use std::ops::Range;

use super::Chunk;
use super::ranges::Ranges;
use super::refusal::Refusal;

/// Most ranges with gaps between them. 4,096 take 64 KiB, and are enough for 2 GiB of whole blocks that come in the
/// worst order, every second one first.
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
    /// Nothing has come yet, and an output of more than `bytes_max` bytes is refused.
    pub fn new(bytes_max: u64) -> Reassembler {
        Reassembler { bytes_max, total: None, end: 0, held: Ranges::default() }
    }

    /// Decides what one chunk and its bytes mean.
    ///
    /// # Errors
    /// The chunk is at odds with itself or with an earlier one, or is too much. Overlaps that differ are found by
    /// the caller, with [`Piece::check`].
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

    /// Counts a chunk as held whose bytes were stored before a restart. Committed chunks restore what was known,
    /// recalled in the order of their commits or of their starts; another order may need more ranges in between.
    ///
    /// # Errors
    /// The chunk is at odds with those recalled before it, or the limit has become smaller.
    pub fn recall(&mut self, chunk: Chunk) -> Result<(), Refusal> {
        self.admit(chunk, chunk.bytes())?;
        self.hold(chunk);
        Ok(())
    }

    /// Whether every byte of a known total is there. Without a total nobody can know yet.
    pub fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.held.first_gap(total).is_none())
    }

    /// How many bytes the output has, once no more chunks are to come.
    ///
    /// # Errors
    /// A byte before the total, or before the farthest end where no total was given, never came.
    pub fn finish(&self) -> Result<u64, Refusal> {
        let bytes = self.total.unwrap_or(self.end);
        match self.held.first_gap(bytes) {
            Some(Range { start, end }) => Err(Refusal::Gap { start, end }),
            None => Ok(bytes),
        }
    }

    fn admit(&self, chunk: Chunk, bytes: u64) -> Result<(), Refusal> {
        // The fields of a chunk are open, so its start may also lie after its end.
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

    /// The total with what the chunk says, given the farthest end.
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
    /// Came before; must be what is stored.
    pub compare: Vec<Piece<'b>>,
    /// Is new; to be stored at its offset.
    pub store: Vec<Piece<'b>>,
    chunk: Chunk,
    reassembler: &'r mut Reassembler,
}

impl Plan<'_, '_> {
    /// Counts the chunk as received. To be called when all of it is compared and stored.
    pub fn commit(self) {
        self.reassembler.hold(self.chunk);
    }
}

/// Some bytes of a chunk, and where they belong in the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Piece<'b> {
    /// Place of the first byte in the output.
    pub offset: u64,
    /// The bytes, at least one.
    pub bytes: &'b [u8],
}

impl Piece<'_> {
    /// Compares with what is stored at the piece's offset, as many bytes as the piece has. Bytes that are not there
    /// differ.
    ///
    /// # Errors
    /// [`Refusal::Differs`], with the first byte that does.
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
