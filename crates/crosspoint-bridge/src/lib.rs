//! The files of the bridge contract.
//!
//! A program that cannot call agents (the *requester*) leaves a request in a directory and exits with [`NEED_AGENT`]. Somebody
//! (the *driver*) has it answered, leaves the response beside it, removes the request and starts the program again.
//!
//! In reading order: a [`Pair`] is the names of the two files, a [`Directory`] reads and writes them so that nobody ever sees half of one
//! and nothing planted under their names is followed, and [`request`] and [`response`] say what was found in them.
//!
//! Programs that ask need none of these: [`ask()`] gives the answer, or has the program run again when there is one.

pub mod ask;
mod directory;
pub mod document;
pub mod failpoint;
mod fault;
mod pair;
pub mod request;
pub mod response;

pub use ask::{Question, ask};
pub use directory::{Directory, Found, Leftover, Lock, Mark, Removed, WRITE_STEPS, half_removed};
pub use fault::Fault;
pub use pair::Pair;

/// What drivers remember of a directory, in it.
pub const RECORD: &str = ".agent-bridge.json";

/// What a program exits with that needs an agent (BRIDGE-121).
pub const NEED_AGENT: u8 = 42;

/// The word that a program is given when it is started again (BRIDGE-122).
pub const RESUME: &str = "--resume";
