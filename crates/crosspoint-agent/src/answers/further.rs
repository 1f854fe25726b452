//! Further names of requests that have a line in the store, or will have one (ALL-1).
//!
//! The line of a request is written again with the names added, in the place of the one before. Work under way may have
//! no line yet: then its names are remembered, and added to what is written of it later. Only the thread that writes
//! does so, so that no line is overtaken by an older one.

use std::collections::BTreeMap;

use serde_json::json;

use super::index::Noted;
use super::seal::Sealed;
use super::writer::Write;

/// What every line begins with.
const BEFORE_NAMES: &[u8] = b"{\"names\":[";

/// Names that are added to the lines of a request.
pub(super) struct Also {
    /// A name that its lines have.
    pub(super) held: Box<str>,
    pub(super) names: Vec<Box<str>>,
}

/// The further names of work under way.
#[derive(Default)]
pub(super) struct Further(BTreeMap<Box<str>, Vec<Box<str>>>);

impl Further {
    /// Remembers names for later lines.
    pub(super) fn add(&mut self, also: &Also) {
        self.0.entry(also.held.clone()).or_default().extend(also.names.iter().cloned());
    }

    /// Adds the further names to a line that is about to be written. The last line of a request has all of them.
    pub(super) fn complete(&mut self, write: &mut Write) {
        if self.0.is_empty() {
            return;
        }
        let held: Vec<Box<str>> = write.names.iter().filter(|name| self.0.contains_key(*name)).cloned().collect();
        for name in held {
            let more = self.0.get(&name).cloned().unwrap_or_default();
            if let Some(line) = with_names(write.line.line(), &more) {
                write.line = line;
                write.names.extend(more);
            }
            if write.noted != Noted::Open {
                self.0.remove(&name);
            }
        }
    }
}

/// Returns a line under further names; `None` if it is no line.
pub(super) fn with_names(line: &[u8], more: &[Box<str>]) -> Option<Sealed> {
    let rest = line.strip_prefix(BEFORE_NAMES)?;
    let more: String = more.iter().map(|name| format!("{},", json!(name))).collect();
    Some(Sealed::of(&[BEFORE_NAMES, more.as_bytes(), rest].concat()))
}
