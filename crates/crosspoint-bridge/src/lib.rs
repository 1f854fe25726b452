//! The files of the bridge contract.
//!
//! A program that cannot call agents (the *requester*) leaves a request in a directory and exits with [`NEED_AGENT`]. A
//! second program (the *driver*) has it answered, leaves the response beside it, removes the request and starts the
//! requester again.
//!
//! In reading order: a [`Pair`] is the names of the two files. A [`Directory`] reads and writes them so that no reader
//! sees half of a file, and follows no link that was planted under their names. [`request`] and [`response`] say what
//! was found in them.
//!
//! Programs that ask need none of these: [`ask()`] returns the answer, or ends the program so that it is run again when
//! there is one.

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

/// The file in which drivers remember what they did in a directory.
pub const RECORD: &str = ".agent-bridge.json";

/// The exit code of a program that needs an agent (BRIDGE-121).
pub const NEED_AGENT: u8 = 42;

/// The argument that a program gets when it is started again (BRIDGE-122).
pub const RESUME: &str = "--resume";

/// The variable in which a driver tells a program where the files of the bridge are, if that is not the directory that
/// the program runs in. Programs that ask by this crate or by `crosspoint bridge ask` follow it.
pub const DIRECTORY: &str = "CROSSPOINT_BRIDGE_DIR";

/// Returns the directory that the driver of this process looks into: the one of [`DIRECTORY`], else the current one.
pub fn directory_of_driver() -> std::path::PathBuf {
    let told = std::env::var_os(DIRECTORY).filter(|path| !path.is_empty());
    told.map_or_else(|| std::path::PathBuf::from("."), std::path::PathBuf::from)
}
