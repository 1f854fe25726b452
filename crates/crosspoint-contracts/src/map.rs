//! How contracts map to the job.
//!
//! A contract describes each of its documents as a `Shape`: a tree of members, each with the home that it fills and how
//! its spelling differs from the home's. One pass over a shape reads a document into a job (`read`), another writes a
//! job as a document (`write`), and the table of `docs/translation.md` is the same shapes printed. So a mapping is
//! stated once, and a contract is a list of members, not code.

mod alias;
mod carry;
mod code;
mod codec;
mod literal;
mod outcome;
pub(crate) mod read;
mod shape;
mod table;
pub(crate) mod write;

pub(crate) use carry::KEY;
pub(crate) use code::Codes;
pub(crate) use codec::{Codec, derived};
pub(crate) use literal::literal;
pub(crate) use outcome::{prompt_object, without};
pub(crate) use read::In;
pub(crate) use shape::{
    Made, Member, Shape, alias, artifacts, block, code, fixed, home, input, loose, made, output_object, output_text,
    own, prompt, prompt_context, summary,
};
pub use table::{Part, Row, Says, table, table_of};
pub use write::{Carrying, WriteContext};
pub(crate) use write::{Fill, Out};

use crate::job::{Canonical, Home};
use crate::json::Value;
use crate::kind::{Contract, Kind};

/// What the translation knows of one contract.
pub(crate) struct Map {
    /// The homes that make a repeat the same job (ALL-1).
    pub(crate) key: &'static [Home],
    /// All shapes of its documents.
    pub(crate) shapes: &'static [&'static Shape],
    /// Returns the shape of a document that was read.
    pub(crate) reading: fn(Kind, Value<'_, '_>) -> Option<&'static Shape>,
    /// Returns the shape that a job is written in, or `None` where the contract has no document for it.
    pub(crate) writing: fn(&Canonical<'_>) -> Option<&'static Shape>,
}

/// Returns the map of a contract.
pub(crate) fn of(contract: Contract) -> &'static Map {
    contract.entry().map
}
