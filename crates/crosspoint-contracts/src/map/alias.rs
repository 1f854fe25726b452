//! One fact that agents and callers write under several names: `max_seconds`, `timeout_ms`.
//!
//! The first name that is there fills the home. Each name that is there is kept by its place too, so that a document
//! goes back with the names that it had, and with what the home holds now under the first of them.

use std::borrow::Cow;

use super::carry;
use super::codec::Codec;
use super::read::In;
use super::shape::Member;
use super::write::Out;
use crate::content::Json;
use crate::job::Home;
use crate::json::Value;

impl Member {
    /// Returns the names that count more than this one.
    fn names_before(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied().take_while(|name| *name != self.name)
    }

    pub(super) fn other_names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied().filter(|name| *name != self.name)
    }
}

impl<'s> In<'s> {
    /// Reads the fact under one of its names.
    pub(super) fn alias(
        &mut self,
        member: &Member,
        home: Home,
        codec: Codec,
        value: Value<'_, 's>,
        object: Value<'_, '_>,
    ) {
        if !home.holds().accepts(value) {
            return self.misfit(value);
        }
        if !fills(home, member.names_before(), object) {
            self.job.set(home, Json::new(codec.read(value.source()).into_owned()));
        }
        self.keep(value);
    }
}

/// Whether one of these names fills the home.
pub(super) fn fills(home: Home, mut names: impl Iterator<Item = &'static str>, object: Value<'_, '_>) -> bool {
    names.any(|name| object.get(name).is_some_and(|value| home.holds().accepts(value)))
}

impl<'j> Out<'j, '_> {
    /// Writes the fact under one of its names, if the document had that name.
    pub(super) fn alias(&mut self, member: &Member, home: Home, codec: Codec) -> Option<Cow<'j, str>> {
        let own = self.own_here()?;
        if !home.holds().accepts_json(own) || self.had_names(home, member.names_before()) {
            return Some(Cow::Borrowed(own));
        }
        let held = self.job().get(home)?.get();
        self.take(home);
        let written = codec.write(held, self.context());
        Some(if codec.read(own) == codec.read(&written) { Cow::Borrowed(own) } else { written })
    }

    /// Whether the document had the fact under one of these names, which stand beside the one that is being written.
    pub(super) fn had_names(&self, home: Home, mut names: impl Iterator<Item = &'static str>) -> bool {
        let Some((_, above)) = self.path().split_last() else { return false };
        names.any(|name| {
            let own = self.job().own_at(self.contract(), &carry::pointer(above, Some(name)));
            own.is_some_and(|(_, own)| home.holds().accepts_json(own.value.get()))
        })
    }
}
