//! Kinds of documents: what a contract says of each, and how they are told apart.

mod detect;
mod marks;

pub(crate) use detect::detect;
pub use detect::{Candidate, Undetected};
pub(crate) use marks::Marks;

pub use crate::Contract;
pub use crate::Kind;

use std::fmt;

use serde_json::Value;

use crate::document::{Document, Extent, Options};
use crate::fields::Fields;
use crate::job::Canonical;
use crate::report::Report;

/// What a contract says of one of its kinds.
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The form of its bytes.
    pub(crate) form: Form,
    /// Makes its JSON Schema.
    pub(crate) schema: fn() -> Value,
    /// Recognises the file names that the contract itself gives to documents of this kind, where it gives any.
    pub(crate) file_name: Option<fn(&str) -> bool>,
}

/// The form of a document's bytes.
pub(crate) enum Form {
    /// One JSON object.
    Object {
        /// What tells it from other objects.
        marks: Marks,
        /// Reads its members and notes what is wrong with them.
        read: for<'s> fn(&mut Fields<'_, 's, '_>, &Options<'_>) -> Document<'s>,
    },
    /// JSON in a frame that is not JSON, such as the events of a stream.
    Framed(Framed),
}

/// How a document whose bytes are not JSON is read and written.
pub(crate) struct Framed {
    /// Whether bytes of an unknown kind begin like a document of this kind.
    pub(crate) looks_like: fn(&[u8]) -> bool,
    /// Reads the whole document and finds everything that is wrong with it.
    pub(crate) read: fn(&[u8], Extent) -> (Report, Option<Document<'static>>),
    /// Returns the jobs in a document of this kind, in order.
    pub(crate) jobs: fn(&Document<'_>) -> Vec<Canonical<'static>>,
    /// Returns the job in one piece that came by itself while the work went on.
    pub(crate) piece: fn(&str) -> Option<Canonical<'static>>,
    /// Puts a job that was written as JSON into its frame.
    pub(crate) frame: fn(&Canonical<'_>, &str) -> Option<String>,
}

impl Entry {
    /// Returns how it is read and written, if its bytes are not JSON.
    pub(crate) fn framed(&self) -> Option<&Framed> {
        match &self.form {
            Form::Object { .. } => None,
            Form::Framed(framed) => Some(framed),
        }
    }

    /// Returns what tells it from other objects, if it is an object.
    const fn marks(&self) -> Option<&Marks> {
        match &self.form {
            Form::Object { marks, .. } => Some(marks),
            Form::Framed(_) => None,
        }
    }
}

impl Contract {
    /// Returns the member whose word tells the kinds of this contract apart, and the words, if all its kinds have such
    /// a member.
    pub fn told_by(self) -> Option<(&'static str, Vec<&'static str>)> {
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.contract() == self);
        let words: Vec<_> = kinds.map(|kind| kind.entry().marks().and_then(|marks| marks.word)).collect();
        let (member, _) = (*words.first()?)?;
        let words: Option<Vec<&[&'static str]>> =
            words.iter().map(|word| word.filter(|(other, _)| *other == member).map(|(_, words)| words)).collect();
        Some((member, words?.concat()))
    }

    /// Returns the contract of that name.
    pub fn from_name(name: &str) -> Option<Contract> {
        Contract::ALL.into_iter().find(|contract| contract.name() == name)
    }
}

impl Kind {
    /// Returns the kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether its bytes are not one JSON object but JSON in frames, such as the events of a stream.
    pub fn is_framed(self) -> bool {
        self.entry().framed().is_some()
    }

    /// Reads what an agent said while it worked: a document, or one piece of a framed document.
    pub fn read_piece(self, text: &str) -> Option<Canonical<'static>> {
        match self.entry().framed() {
            Some(framed) => (framed.piece)(text),
            // It was judged when it came (ALL-11).
            None => crate::translate::read_response(self, text.as_bytes()).job.ok().map(Canonical::into_owned),
        }
    }

    /// Returns the kind that a file of this name must be. The contracts themselves give these names.
    pub fn of_file_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.entry().file_name.is_some_and(|is| is(name)))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
