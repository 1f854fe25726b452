//! Reads members of objects into types, and notes what is wrong with them.
//!
//! Reading and validating are one step. Every member is asked for once, with the clause that is broken if it is missing
//! and a reader that knows the clause for a wrong type. A member that could not be read becomes a placeholder, so that
//! the rest is still checked. The placeholder never gets out, because a document with an error is not handed out at
//! all.

mod value;
mod word;

pub(crate) use value::{
    ANY, amount, any, array, boolean, complain, exactly, has_offset, integer, is_timestamp, is_uuid, name, nullable,
    object, opaque, string, timestamp, timestamp_with_offset, uuid, wrong_type,
};
pub(crate) use word::{Word, not_a_word, word, words};

use std::borrow::Cow;

use crate::clause::{Clause, Level};
use crate::content::{Extra, Raw, Text};
use crate::example;
use crate::json::Value;
use crate::report::{Findings, Place};

/// The members of one object, marked as they are read.
pub(crate) struct Fields<'t, 's, 'f> {
    object: Value<'t, 's>,
    members: Vec<Member<'t, 's>>,
    pub(crate) findings: &'f mut Findings,
}

struct Member<'t, 's> {
    name: Text<'s>,
    value: Value<'t, 's>,
    read: bool,
}

impl<'t, 's, 'f> Fields<'t, 's, 'f> {
    pub(crate) fn new(object: Value<'t, 's>, findings: &'f mut Findings) -> Self {
        // Hardly any object of the contracts has more members.
        let mut members = Vec::with_capacity(12);
        members.extend(object.members().map(|(name, value)| Member { name, value, read: false }));
        Fields { object, members, findings }
    }

    pub(crate) fn object(&self) -> Value<'t, 's> {
        self.object
    }

    /// Returns whether there is such a member, without marking it as read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some()
    }

    /// Returns a member's value, without marking it as read.
    pub(crate) fn peek(&self, name: &str) -> Option<Value<'t, 's>> {
        self.members.iter().find(|member| member.name == *name).map(|member| member.value)
    }

    /// Returns a member's value, and marks it as read.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value<'t, 's>> {
        let mut first = None;
        // A repeated member is reported as repeated; it is not also reported as unknown.
        for member in self.members.iter_mut().filter(|member| member.name == *name) {
            member.read = true;
            first = first.or(Some(member.value));
        }
        first
    }

    /// Returns the first member whose name differs only in case, hyphens and underscores, and marks it as read.
    pub(crate) fn take_spelled(&mut self, name: &str) -> Option<Value<'t, 's>> {
        let member = self.members.iter_mut().find(|member| is_spelling_of(name, member.name))?;
        member.read = true;
        Some(member.value)
    }

    /// Reads a member that must be there.
    pub(crate) fn required<T: Default>(
        &mut self,
        name: &'static str,
        missing: &'static Clause,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> T {
        match self.take(name) {
            Some(value) => read(value, self.findings).unwrap_or_default(),
            None => {
                self.missing(name, missing);
                T::default()
            }
        }
    }

    /// Reads a member that must be there, with its own hint for when it is missing.
    pub(crate) fn required_or<T: Default>(
        &mut self,
        name: &'static str,
        missing: &'static Clause,
        hint: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> T {
        if self.has(name) {
            return self.required(name, missing, read);
        }
        self.missing_with_hint(name, missing, Cow::Borrowed(hint));
        T::default()
    }

    /// Reads a member that may be missing.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        read(value, self.findings)
    }

    /// Reads a member of an accepted looseness. A member that cannot be read stays unread, so that it is kept.
    pub(crate) fn tolerated<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        let value = self.peek(name)?;
        let tolerated = read(value, self.findings)?;
        self.take(name);
        Some(tolerated)
    }

    /// Notes that a member is missing.
    pub(crate) fn missing(&mut self, name: &'static str, clause: &'static Clause) {
        self.missing_with_hint(name, clause, example::hint(name).unwrap_or(Cow::Borrowed(clause.hint)));
    }

    /// Notes that a member is missing, or that it is only spelled differently.
    fn missing_with_hint(&mut self, name: &'static str, clause: &'static Clause, hint: Cow<'static, str>) {
        let misspelled = self.members.iter_mut().find(|member| !member.read && is_spelling_of(name, member.name));
        let Some(misspelled) = misspelled else {
            let place = Place::Missing(self.object.index(), name);
            return self.findings.note_with_hint(clause, place, format!("`{name}` is missing"), hint);
        };
        // The member is explained now, so an error need not report it as unknown too. Beside a mere warning it must
        // still be kept.
        misspelled.read = clause.level == Level::Error;
        let place = Place::Member(misspelled.value.index());
        let message = format!("`{name}` is missing; this looks like it, spelled differently");
        self.findings.note_misspelled(clause, place, message, format!("Spell it exactly like this: \"{name}\"."));
    }

    /// Notes something about the object as a whole.
    pub(crate) fn note(&mut self, clause: &'static Clause, message: &'static str) {
        self.findings.note(clause, Place::Value(self.object.index()), message);
    }

    /// Notes something about a member, at its name.
    pub(crate) fn note_member(&mut self, name: &str, clause: &'static Clause, message: impl Into<Cow<'static, str>>) {
        let place = self.member_place(name);
        self.findings.note(clause, place, message);
    }

    /// Notes something about a member, with a more exact hint than the clause's own.
    pub(crate) fn note_member_with_hint(
        &mut self,
        name: &str,
        clause: &'static Clause,
        message: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) {
        let place = self.member_place(name);
        self.findings.note_with_hint(clause, place, message, hint);
    }

    fn member_place(&self, name: &str) -> Place {
        self.peek(name).map_or(Place::Value(self.object.index()), |value| Place::Member(value.index()))
    }

    /// Returns the members that are not marked as read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (Text<'s>, Value<'t, 's>)> {
        self.members.iter().filter(|member| !member.read).map(|member| (member.name, member.value))
    }

    /// Returns the members that are not marked as read, to keep them.
    pub(crate) fn rest(&self) -> Vec<Extra<'s>> {
        self.unread().map(|(name, value)| Extra { name, value: Raw::new(value.source()) }).collect()
    }
}

/// Whether two names differ only in case, hyphens and underscores: `createdAt` and `created_at`.
fn is_spelling_of(name: &str, found: Text<'_>) -> bool {
    // A name more than twice as long is not taken for a misspelling, and need not be decoded.
    if found.raw().len() > 2 * name.len() {
        return false;
    }
    fn letters(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase())
    }
    letters(name).eq(letters(&found.decode()))
}
