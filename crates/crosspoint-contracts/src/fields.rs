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

use crate::clause::all::ALL_11;
use crate::clause::{Clause, Level};
use crate::content::{Extra, Nullable, Raw, Text};
use crate::example;
use crate::json::Value;
use crate::report::{Findings, Need, Place};

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
            Some(value) => self.findings.within(Need::Required, |findings| read(value, findings)).unwrap_or_default(),
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

    /// Reads a member that may be missing. One that is null, or has the wrong type, is not used; it stays unread, so
    /// that it is kept (ALL-11).
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        let value = self.present(name)?;
        let read = self.findings.within(Need::Optional, |findings| read(value, findings))?;
        self.take(name);
        Some(read)
    }

    /// Reads a member that may be missing and says what is to be done: input, or a limit. Null reads as absent. A wrong
    /// type is an error, because work that differs from what its caller wants must not begin (ALL-11).
    pub(crate) fn optional_input<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        let value = self.present(name)?;
        self.take(name);
        self.findings.within(Need::Required, |findings| read(value, findings))
    }

    /// Reads a member that may be missing or null; null says no more than that it is there.
    pub(crate) fn optional_or_null<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        if self.peek(name)?.is_null() { None } else { self.optional(name, read) }
    }

    /// Reads a member that may be missing, and may be null as well as what it is.
    pub(crate) fn nullable<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<Nullable<T>> {
        if self.peek(name)?.is_null() {
            self.take(name);
            return Some(Nullable(None));
        }
        self.optional(name, read).map(|read| Nullable(Some(read)))
    }

    /// Returns a member that may be missing and may be anything.
    pub(crate) fn anything(&mut self, name: &'static str) -> Option<Raw<'s>> {
        self.take(name).map(|value| Raw::new(value.source()))
    }

    /// Returns a member that may be missing, unless it is null, which reads as absent.
    fn present(&mut self, name: &'static str) -> Option<Value<'t, 's>> {
        let value = self.peek(name)?;
        if value.is_null() {
            complain(value, &ALL_11, "is null, which reads as absent", self.findings);
            return None;
        }
        Some(value)
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
        let misspelled = self
            .members
            .iter_mut()
            .find(|member| !member.read && member.name != *name && is_spelling_of(name, member.name));
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
