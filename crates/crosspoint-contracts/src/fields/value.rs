//! Readers of single values. Each reader knows a type, and the clause that a value of another type breaks.

use std::ops::RangeInclusive;

use super::Fields;
use crate::clause::Clause;
use crate::content::{Nullable, Raw, RawObject, Text};
use crate::json::{Type, Value};
use crate::report::{Findings, Place};
use crate::timestamp::Timestamp;

/// Returns the member's name in backquotes, or what an item of an array is called in messages.
pub(super) fn label(value: Value<'_, '_>) -> String {
    match value.member_name() {
        Some(name) => format!("`{}`", name.decode()),
        None if value.index() == 0 => "the value".to_owned(),
        None => "the item".to_owned(),
    }
}

/// Notes that a value has the wrong type.
pub(crate) fn wrong_type(value: Value<'_, '_>, wanted: &str, clause: &'static Clause, findings: &mut Findings) {
    let message = format!("{} is {}, not {wanted}", label(value), value.kind().described());
    findings.note_type(clause, Place::Value(value.index()), message);
}

/// Notes something about a value. The message continues after the value's name.
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

/// One string and no other, such as the version that is spoken.
pub(crate) fn exactly<'t, 's>(
    clause: &'static Clause,
    wanted: &'static str,
) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Text<'s>> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        if text != *wanted {
            complain(value, clause, &format!("is not \"{wanted}\""), findings);
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
    bounds: RangeInclusive<i64>,
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
pub(crate) const ANY: RangeInclusive<i64> = i64::MIN..=i64::MAX;

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

/// Accepts only the hyphenated form of RFC 9562: other spellings would be other bytes for the same id.
pub(crate) fn is_uuid(text: Text<'_>) -> bool {
    text.decode().parse::<uuid::fmt::Hyphenated>().is_ok()
}

/// Whether a text is a date and time.
pub(crate) fn is_timestamp(text: Text<'_>) -> bool {
    Timestamp::parse(text).is_some()
}

/// Whether a date and time says how far from UTC it is.
pub(crate) fn has_offset(text: Text<'_>) -> bool {
    Timestamp::parse(text).is_some_and(Timestamp::has_offset)
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

/// An object that is kept as it is.
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

/// Any value.
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
        let mut items = Vec::new();
        for value in value.items() {
            let read = item(value, findings);
            // A document with an error is not handed out, so its items need not be kept.
            if !findings.any_error() {
                items.extend(read);
            }
        }
        Some(items)
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
