//! Why chunks cannot be put together.

use super::Chunk;
use super::reassemble::RANGES_MAX;
use crate::message::code;

/// What is wrong with a chunk, or with the set of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is not as long as the range says.
    #[error("the chunk says {chunk} and holds {bytes} bytes; count UTF-8 bytes, the end is exclusive")]
    WrongLength {
        /// What it says.
        chunk: Chunk,
        /// What it holds.
        bytes: u64,
    },
    /// Two chunks disagree about the length of the whole.
    #[error("a chunk says that the total is {said} bytes, an earlier one said {known}; the total must not change")]
    TotalChanged {
        /// What was said first.
        known: u64,
        /// What is said now.
        said: u64,
    },
    /// A chunk, this one or an earlier one, ends after the end of the whole.
    #[error("a chunk ends at byte {end}, beyond the total of {total}")]
    BeyondTotal {
        /// The farthest end.
        end: u64,
        /// The whole.
        total: u64,
    },
    /// The same byte came twice and is not the same.
    #[error("byte {offset} of the output came again and differs; repeats must be exact")]
    Differs {
        /// The first such byte.
        offset: u64,
    },
    /// Something is missing at the end.
    #[error("bytes {start}-{end} of the output never came; every byte must be sent")]
    Gap {
        /// The first missing byte.
        start: u64,
        /// The byte after the missing ones.
        end: u64,
    },
    /// More output than is taken.
    #[error(
        "the output is at least {bytes} bytes long, and at most {bytes_max} are taken; write it to a file and name it"
    )]
    OverLimit {
        /// What is known of its length.
        bytes: u64,
        /// What is allowed.
        bytes_max: u64,
    },
    /// More separate pieces than are kept track of.
    #[error("the output came in more than {RANGES_MAX} pieces with gaps between them; send chunks in order")]
    TooManyRanges,
}

impl Refusal {
    /// The code it is answered with (MSG-9.4, MSG-9.5).
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
}
