//! Where the line of each request is in the file of answers.

use std::collections::{BTreeMap, BTreeSet};

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(super) start: u64,
    pub(super) bytes: usize,
}

/// Where the line of each request is, by all its names.
#[derive(Clone, Default)]
pub(super) struct Index {
    places: BTreeMap<Box<str>, Place>,
    /// The lines of work that is under way.
    open: BTreeSet<Place>,
    /// The lines that a crash tore while they were written.
    torn: BTreeSet<Place>,
    /// Further names of requests that are about to be written, and a name that the line of the request has.
    also: BTreeMap<Box<str>, Box<str>>,
}

/// What a line says of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// The work is under way.
    Open,
    /// This is what came of it.
    Ended,
    /// There is nothing to be known of it.
    Undone,
    /// The line was torn while it was written. What was known before counts.
    Torn,
}

impl Index {
    /// Returns where the line of this name is.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.places.get(self.held(name)).copied()
    }

    /// Returns the name that the line of this name has.
    pub(super) fn held<'n>(&'n self, name: &'n str) -> &'n str {
        self.also.get(name).map_or(name, |held| held)
    }

    /// Takes further names of a request before they are written.
    pub(super) fn reserve(&mut self, name: Box<str>, held: &str) {
        self.also.insert(name, held.into());
    }

    /// Gives names free that could not be written.
    pub(super) fn unreserve(&mut self, name: &str) {
        self.also.remove(name);
    }

    /// Whether further names of a request wait for its line.
    pub(super) fn is_awaited(&self, held: &str) -> bool {
        self.also.values().any(|of| **of == *held)
    }

    /// Takes the places of another file, to which the same is about to be written.
    pub(super) fn replace(&mut self, places: Index) {
        let also = std::mem::take(&mut self.also);
        *self = Index { also, ..places };
    }

    /// Whether the line at this place was torn while it was written.
    pub(super) fn is_torn(&self, place: Place) -> bool {
        self.torn.contains(&place)
    }

    /// Whether the work of the line at this place is under way.
    pub(super) fn is_open(&self, place: Place) -> bool {
        self.open.contains(&place)
    }

    /// Notes what a line says, in the place of what was said before.
    pub(super) fn note(&mut self, names: Vec<Box<str>>, place: Place, noted: Noted) {
        for name in names {
            self.also.remove(&name);
            let before = match noted {
                Noted::Undone => self.places.remove(&name),
                Noted::Open | Noted::Ended => self.places.insert(name, place),
                Noted::Torn => {
                    self.places.entry(name).or_insert(place);
                    None
                }
            };
            if let Some(before) = before {
                self.open.remove(&before);
            }
        }
        match noted {
            Noted::Open => self.open.insert(place),
            Noted::Torn => self.torn.insert(place),
            Noted::Ended | Noted::Undone => false,
        };
    }

    /// Notes that the work of this line is under way again.
    pub(super) fn reopen(&mut self, name: &str) {
        self.open.extend(self.places.get(name));
    }

    /// Returns the lines that still say something, each with its names.
    pub(super) fn lines(&self) -> BTreeMap<Place, Vec<Box<str>>> {
        let mut lines: BTreeMap<Place, Vec<Box<str>>> = BTreeMap::new();
        for (name, place) in &self.places {
            lines.entry(*place).or_default().push(name.clone());
        }
        lines
    }

    /// Returns what is noted of the line at this place.
    pub(super) fn noted(&self, place: Place) -> Noted {
        match (self.is_open(place), self.is_torn(place)) {
            (true, _) => Noted::Open,
            (false, true) => Noted::Torn,
            (false, false) => Noted::Ended,
        }
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&str> {
        self.places.keys().map(|name| &**name).collect()
    }
}
