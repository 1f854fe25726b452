//! Server-sent events: the framing of a run's stream.
//!
//! The reader takes bytes as they arrive and gives events as they complete; how the bytes were cut into reads makes no
//! difference. It differs from a browser's in what it keeps: an event without data, and one without its
//! closing empty line, are handed out and marked, because the run contract has something to say about
//! both. Sizes are bounded, for the other side may never end a line.

mod reader;
mod writer;

pub use reader::{Event, Limits, Reader, TooLarge};
pub use writer::{LineBreak, comment, event};
