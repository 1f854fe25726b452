//! Reading members of objects into types, noting what is wrong on the way.
//!
//! Reading and validating are one thing: every member is asked for once, with the clause that is broken if it is
//! missing and a reader that knows the clause for a wrong type. What could not be read becomes a
//! placeholder so that the rest is still looked at; the placeholder never gets out, because a document with
//! an error is not handed out at all.

use std::borrow::Cow;

use crate::clause::Clause;
use crate::content::{Extra, Nullable, Raw, RawObject, Text};
use crate::json::{Type, Value};
use crate::report::{Findings, Place};
use crate::timestamp::Timestamp;

/// The members of one object, ticked off as they are read.
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
        let members = object.members().map(|(name, value)| Member { name, value, read: false }).collect();
        Fields { object, members, findings }
    }

    /// The object itself.
    pub(crate) fn object(&self) -> Value<'t, 's> {
        self.object
    }

    /// Whether there is such a member, without reading it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some()
    }

    /// A member's value, without reading it.
    pub(crate) fn peek(&self, name: &str) -> Option<Value<'t, 's>> {
        self.members.iter().find(|member| member.name == *name).map(|member| member.value)
    }

    /// A member's value, counted as read.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value<'t, 's>> {
        let member = self.members.iter_mut().find(|member| member.name == *name)?;
        member.read = true;
        Some(member.value)
    }

    /// A member that must be there.
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

    /// A member that must be there, with a hint of its own for when it is not.
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
        let place = Place::Missing(self.object.index(), name);
        self.findings.note_with_hint(missing, place, format!("`{name}` is missing"), hint);
        T::default()
    }

    /// A member that may be there.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        read(value, self.findings)
    }

    /// A member of an accepted looseness. One that cannot be read stays among the unread ones, so that it is kept.
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
        self.findings.note(clause, Place::Missing(self.object.index(), name), format!("`{name}` is missing"));
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

    /// The same, with a hint more exact than the clause's own.
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

    /// The members nobody has read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (Text<'s>, Value<'t, 's>)> {
        self.members.iter().filter(|member| !member.read).map(|member| (member.name, member.value))
    }

    /// The members nobody has read, to keep.
    pub(crate) fn rest(&self) -> Vec<Extra<'s>> {
        self.unread().map(|(name, value)| Extra { name, value: Raw::new(value.source()) }).collect()
    }
}

/// `name` in backquotes, or what an item of an array is called in messages.
fn label(value: Value<'_, '_>) -> String {
    match value.member_name() {
        Some(name) => format!("`{}`", name.decode()),
        None if value.index() == 0 => "the value".to_owned(),
        None => "the item".to_owned(),
    }
}

/// Notes that a value is of another type than it should be.
pub(crate) fn wrong_type(value: Value<'_, '_>, wanted: &str, clause: &'static Clause, findings: &mut Findings) {
    let message = format!("{} is {}, not {wanted}", label(value), value.kind().described());
    findings.note(clause, Place::Value(value.index()), message);
}

/// Notes something about a value; the message continues its name.
pub(crate) fn complain(value: Value<'_, '_>, clause: &'static Clause, continued: &str, findings: &mut Findings) {
    findings.note(clause, Place::Value(value.index()), format!("{} {continued}", label(value)));
}

pub(crate) fn string<'t, 's>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Text<'s>> {
    move |value, findings| {
        let text = value.text();
        if text.is_none() {
            wrong_type(value, "a string", clause, findings);
        }
        text
    }
}

/// A string with at least one character.
pub(crate) fn name<'t, 's>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Text<'s>> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        if text.is_empty() {
            complain(value, clause, "is empty", findings);
            return None;
        }
        Some(text)
    }
}

pub(crate) fn boolean<'t, 's>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<bool> {
    move |value, findings| {
        let boolean = value.boolean();
        if boolean.is_none() {
            wrong_type(value, "a boolean", clause, findings);
        }
        boolean
    }
}

/// A finite number of at least 0.
pub(crate) fn amount<'t, 's>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<f64> {
    move |value, findings| {
        let Some(number) = value.float() else {
            wrong_type(value, "a number", clause, findings);
            return None;
        };
        if !(number.is_finite() && number >= 0.0) {
            complain(value, clause, "is negative or beyond any float", findings);
            return None;
        }
        Some(number)
    }
}

/// A whole number within bounds.
pub(crate) fn integer<'t, 's>(
    clause: &'static Clause,
    bounds: std::ops::RangeInclusive<i64>,
) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<i64> {
    move |value, findings| {
        if value.kind() != Type::Number {
            wrong_type(value, "an integer", clause, findings);
            return None;
        }
        let Some(number) = value.integer() else {
            complain(value, clause, "is not a whole number that 64 bits hold", findings);
            return None;
        };
        if !bounds.contains(&number) {
            let continued = match (*bounds.start(), *bounds.end()) {
                (least, i64::MAX) => format!("is less than {least}"),
                (least, most) => format!("is not from {least} to {most}"),
            };
            complain(value, clause, &continued, findings);
            return None;
        }
        Some(number)
    }
}

/// Any whole number.
pub(crate) const ANY: std::ops::RangeInclusive<i64> = i64::MIN..=i64::MAX;

pub(crate) fn timestamp<'t, 's>(
    clause: &'static Clause,
) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Timestamp<'s>> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        let timestamp = Timestamp::parse(text);
        if timestamp.is_none() {
            complain(value, clause, "is not an ISO 8601 date and time", findings);
        }
        timestamp
    }
}

/// A timestamp that says how far from UTC it is.
pub(crate) fn timestamp_with_offset<'t, 's>(
    clause: &'static Clause,
    offset: &'static Clause,
) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Timestamp<'s>> {
    move |value, findings| {
        let timestamp = timestamp(clause)(value, findings)?;
        if !timestamp.has_offset() {
            complain(value, offset, "has no offset from UTC", findings);
        }
        Some(timestamp)
    }
}

/// The hyphenated form of RFC 9562 alone: other spellings would be other bytes for the same id.
pub(crate) fn is_uuid(text: Text<'_>) -> bool {
    text.decode().parse::<uuid::fmt::Hyphenated>().is_ok()
}

pub(crate) fn uuid<'t, 's>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Text<'s>> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        if !is_uuid(text) {
            complain(value, clause, "is not a UUID", findings);
            return None;
        }
        Some(text)
    }
}

/// An object that stays as it is.
pub(crate) fn opaque<'t, 's>(
    clause: &'static Clause,
) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<RawObject<'s>> {
    move |value, findings| {
        if value.kind() != Type::Object {
            wrong_type(value, "an object", clause, findings);
            return None;
        }
        Some(RawObject::new(value.source()))
    }
}

/// Whatever stands there.
pub(crate) fn any<'t, 's>(value: Value<'t, 's>, _: &mut Findings) -> Option<Raw<'s>> {
    Some(Raw::new(value.source()))
}

/// An object whose members are read.
pub(crate) fn object<'t, 's: 't, T>(
    clause: &'static Clause,
    read: impl FnOnce(&mut Fields<'t, 's, '_>) -> T,
) -> impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T> {
    move |value, findings| {
        if value.kind() != Type::Object {
            wrong_type(value, "an object", clause, findings);
            return None;
        }
        Some(read(&mut Fields::new(value, findings)))
    }
}

/// An array whose items are read.
pub(crate) fn array<'t, 's: 't, T>(
    clause: &'static Clause,
    mut item: impl FnMut(Value<'t, 's>, &mut Findings) -> Option<T>,
) -> impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<Vec<T>> {
    move |value, findings| {
        if value.kind() != Type::Array {
            wrong_type(value, "an array", clause, findings);
            return None;
        }
        Some(value.items().filter_map(|value| item(value, findings)).collect())
    }
}

pub(crate) fn nullable<'t, 's: 't, T>(
    read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
) -> impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<Nullable<T>> {
    move |value, findings| {
        if value.is_null() {
            return Some(Nullable(None));
        }
        read(value, findings).map(|read| Nullable(Some(read)))
    }
}

/// A closed set of words, such as the values of a status.
pub(crate) trait Word: Copy + Sized + 'static {
    /// Every word with what it means.
    const WORDS: &'static [(&'static str, Self)];

    /// The meaning of a word.
    fn of(text: Text<'_>) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| text == **word).map(|&(_, meaning)| meaning)
    }
}

pub(crate) fn word<'t, 's, W: Word>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<W> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        let known = W::of(text);
        if known.is_none() {
            let words: Vec<&str> = W::WORDS.iter().map(|&(word, _)| word).collect();
            not_a_word(value, text, &words, clause, findings);
        }
        known
    }
}

/// Notes a word outside its set. Where only the case is wrong, or white space stands around it, that is said.
pub(crate) fn not_a_word(
    value: Value<'_, '_>,
    text: Text<'_>,
    words: &[&str],
    clause: &'static Clause,
    findings: &mut Findings,
) {
    let message = format!("{} is none of {}", label(value), words.join(", "));
    let decoded = text.decode();
    let spelled = decoded.trim().replace(['-', ' '], "_");
    match words.iter().find(|word| word.eq_ignore_ascii_case(&spelled)) {
        Some(meant) => {
            let hint = format!("Spell it exactly like this: \"{meant}\".");
            findings.note_with_hint(clause, Place::Value(value.index()), message, hint);
        }
        None => findings.note(clause, Place::Value(value.index()), message),
    }
}

/// Declares a closed set of words as an enum that reads itself and describes itself.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            /// As the contract spells it.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }
        }

        /// Stands in for a word that could not be read; such a document is not handed out.
        impl Default for $name {
            fn default() -> Self {
                <Self as $crate::fields::Word>::WORDS[0].1
            }
        }

        impl $crate::fields::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $name::$variant)),+];
        }

        $crate::content::inline_schema!($name, { "type": "string", "enum": [$($word),+] });
    };
}
pub(crate) use words;
