//! One table of the file, read key by key.
//!
//! The tables are walked by hand rather than deserialised, because a deserialiser stops at the first mistake.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::NAME_BYTES_MAX;
use super::mistake::{Mistakes, quoted};

/// A value with its place.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// One table of the file.
pub(super) struct Table<'t> {
    keys: &'t DeTable<'t>,
    /// Where the table begins.
    pub(super) span: Range<usize>,
    /// What it is called in reports.
    pub(super) shown: String,
}

impl<'t> Table<'t> {
    /// Begins to read a table. Keys that are not among `known` are mistakes.
    pub(super) fn new(
        keys: &'t DeTable<'t>,
        span: Range<usize>,
        shown: impl Into<String>,
        known: &[&str],
        mistakes: &mut Mistakes,
    ) -> Table<'t> {
        let table = Table { keys, span, shown: shown.into() };
        for (key, _) in keys.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let what = format!("{} has no key {}", table.shown, quoted(key.get_ref()));
            let hint = mistakes.suggestion(key.get_ref(), known, || format!("the keys are {}", known.join(", ")));
            mistakes.error(key.span(), what, hint);
        }
        table
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Value<'t>> {
        self.keys.get(key)
    }

    /// The place of a key's value, or of the table if the key is missing.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.get(key).map_or(self.span.clone(), Spanned::span)
    }

    /// Reads a text, if the key is there.
    pub(super) fn text(&self, key: &str, mistakes: &mut Mistakes) -> Option<&'t str> {
        let value = self.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, value, "a text", "write it in double quotes", mistakes);
        }
        text
    }

    /// Reads a name that must be there.
    pub(super) fn name(&self, key: &str, mistakes: &mut Mistakes) -> Option<String> {
        if self.get(key).is_none() {
            let what = format!("{} has no {key}", self.shown);
            mistakes.error(self.span.clone(), what, format!("add a line {key} = \"...\""));
            return None;
        }
        let text = self.text(key, mistakes)?;
        match misnamed(text) {
            None => Some(text.to_owned()),
            Some(wrong) => {
                mistakes.error(self.span_of(key), format!("{key} of {} {wrong}", self.shown), NAME_HINT);
                None
            }
        }
    }

    /// Reads true or false, if the key is there.
    pub(super) fn truth(&self, key: &str, mistakes: &mut Mistakes) -> Option<bool> {
        let value = self.get(key)?;
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.wrong_type(key, value, "true or false", "write true or false, without quotes", mistakes);
        }
        truth
    }

    /// Reads a whole number, if the key is there.
    pub(super) fn whole(&self, key: &str, range: RangeInclusive<u32>, mistakes: &mut Mistakes) -> Option<u32> {
        let value = self.get(key)?;
        let hint = format!("write a whole number from {} to {}", range.start(), range.end());
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type(key, value, "a whole number", &hint, mistakes);
            return None;
        };
        let number = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let within = number.and_then(|number| u32::try_from(number).ok()).filter(|number| range.contains(number));
        if within.is_none() {
            mistakes.error(value.span(), format!("{key} of {} is out of range", self.shown), hint);
        }
        within
    }

    /// Reads a table within this one, if the key is there.
    pub(super) fn table(&self, key: &str, known: &[&str], hint: &str, mistakes: &mut Mistakes) -> Option<Table<'t>> {
        let value = self.get(key)?;
        let Some(keys) = value.get_ref().as_table() else {
            self.wrong_type(key, value, "a table", hint, mistakes);
            return None;
        };
        Some(Table::new(keys, value.span(), format!("{key} of {}", self.shown), known, mistakes))
    }

    /// Names a value of the wrong type.
    pub(super) fn wrong_type(&self, key: &str, value: &Value<'_>, wanted: &str, hint: &str, mistakes: &mut Mistakes) {
        let found = described(value.get_ref());
        mistakes.error(value.span(), format!("{key} of {} is {found}, not {wanted}", self.shown), hint);
    }
}

/// Returns the members of a table in the order of the file. The table itself is sorted by name.
pub(super) fn in_order<'t>(keys: &'t DeTable<'t>) -> Vec<(&'t Spanned<Cow<'t, str>>, &'t Value<'t>)> {
    let mut members: Vec<_> = keys.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    members
}

pub(super) const NAME_HINT: &str = "write a short name, as \"spec-writer\"";

/// Returns why a text cannot be a name, as a continuation of the sentence that names it.
pub(super) fn misnamed(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("is empty".to_owned());
    }
    if text.len() > NAME_BYTES_MAX {
        return Some(format!("is longer than {NAME_BYTES_MAX} bytes"));
    }
    text.contains(char::is_control).then(|| "has a control character in it".to_owned())
}

/// Describes the type of a value.
pub(super) fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
