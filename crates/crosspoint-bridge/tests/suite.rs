//! One binary for all integration tests of the files of the bridge: real directories, and processes that are really
//! killed.

#[path = "suite/answers.rs"]
mod answers;
#[path = "suite/any_bytes.rs"]
mod any_bytes;
#[path = "suite/asking.rs"]
mod asking;
#[path = "suite/directory.rs"]
mod directory;
#[path = "suite/example.rs"]
mod example;
#[path = "suite/kills.rs"]
mod kills;
#[path = "suite/planted.rs"]
mod planted;
#[path = "suite/process.rs"]
mod process;
#[path = "suite/refusals.rs"]
mod refusals;
#[path = "suite/scratch.rs"]
mod scratch;
