//! Server-sent events: the framing of a run's stream.
//!
//! The reader takes bytes as they arrive and returns events as they complete. How the bytes were cut into reads makes
//! no difference. Unlike a browser, it keeps events without data and events without their closing empty line: they are
//! handed out and marked, because the run contract has rules about both. Sizes are bounded, because the other side may
//! never end a line.

mod reader;
mod writer;

pub use reader::{Event, Limits, Reader, TooLarge};
pub use writer::{LineBreak, comment, event};
