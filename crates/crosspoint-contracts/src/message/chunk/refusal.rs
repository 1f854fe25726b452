//! Why chunks cannot be put together.

use super::Chunk;
use super::reassemble::RANGES_MAX;
use crate::clause::Clause;
use crate::message::clause::{MSG_9_3, MSG_9_4, MSG_9_5};
use crate::message::code;

/// What is wrong with a chunk, or with the whole set of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is not as long as the range says.
    #[error("the chunk says {chunk} and holds {bytes} bytes; count UTF-8 bytes, the end is exclusive")]
    WrongLength {
        /// The range that the chunk gives.
        chunk: Chunk,
        /// The number of bytes that the chunk holds.
        bytes: u64,
    },
    /// Two chunks disagree about the length of the whole output.
    #[error("a chunk says that the total is {said} bytes, an earlier one said {known}; the total must not change")]
    TotalChanged {
        /// The total that an earlier chunk gave.
        known: u64,
        /// The total that this chunk gives.
        said: u64,
    },
    /// This chunk or an earlier one ends after the end of the whole output.
    #[error("a chunk ends at byte {end}, beyond the total of {total}")]
    BeyondTotal {
        /// The farthest end.
        end: u64,
        /// The length of the whole output.
        total: u64,
    },
    /// The same byte came twice, with different values.
    #[error("byte {offset} of the output came again and differs; repeats must be exact")]
    Differs {
        /// The first byte that differs.
        offset: u64,
    },
    /// Bytes are missing at the end.
    #[error("bytes {start}-{end} of the output never came; every byte must be sent")]
    Gap {
        /// The first missing byte.
        start: u64,
        /// The byte after the missing ones.
        end: u64,
    },
    /// The output is longer than is taken.
    #[error(
        "the output is at least {bytes} bytes long, and at most {bytes_max} are taken; write it to a file and name it"
    )]
    OverLimit {
        /// The length that is known so far, in bytes.
        bytes: u64,
        /// Most bytes that are taken.
        bytes_max: u64,
    },
    /// There are more separate pieces than are kept track of.
    #[error("the output came in more than {RANGES_MAX} pieces with gaps between them; send chunks in order")]
    TooManyRanges,
}

impl Refusal {
    /// Returns the code of the error that answers it (MSG-9.4, MSG-9.5).
    pub fn error_code(self) -> i64 {
        match self {
            Refusal::WrongLength { .. }
            | Refusal::TotalChanged { .. }
            | Refusal::BeyondTotal { .. }
            | Refusal::Differs { .. }
            | Refusal::Gap { .. } => code::INVALID_MESSAGE,
            Refusal::OverLimit { .. } | Refusal::TooManyRanges => code::RESOURCE_LIMIT,
        }
    }

    /// Returns the clause that is broken.
    pub fn clause(self) -> &'static Clause {
        match self {
            Refusal::WrongLength { .. } => &MSG_9_3,
            Refusal::TotalChanged { .. }
            | Refusal::BeyondTotal { .. }
            | Refusal::Differs { .. }
            | Refusal::Gap { .. } => &MSG_9_4,
            Refusal::OverLimit { .. } | Refusal::TooManyRanges => &MSG_9_5,
        }
    }
}
