//! Timestamps as the contracts spell them: ISO 8601, kept byte for byte.
//!
//! The reader here accepts what the published pattern accepts, except for days that a month does not have: date and
//! time, in the extended form (`2025-11-24T14:22:45.5+01:00`) or the basic form (`20251124T142245Z`), a `T` or a space
//! between them, seconds and minutes optional, any number of decimals. The spelling is kept because it must come back
//! unchanged.

use jiff::civil::Date;

use crate::content::{Text, inline_schema};

/// A point in time as it was spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp<'s> {
    text: Text<'s>,
    has_offset: bool,
}

impl<'s> Timestamp<'s> {
    /// Reads date and time, with or without offset. Returns `None` for any other text, such as 30 February.
    pub fn parse(text: Text<'s>) -> Option<Timestamp<'s>> {
        let decoded = text.decode();
        let mut rest = Rest(&decoded);
        let form = rest.date()?;
        rest.one_of(&['T', 't', ' '])?;
        rest.time(form)?;
        let has_offset = !rest.0.is_empty();
        if has_offset {
            rest.offset()?;
        }
        rest.0.is_empty().then_some(Timestamp { text, has_offset })
    }

    /// Returns whether the timestamp gives its offset from UTC.
    pub fn has_offset(self) -> bool {
        self.has_offset
    }

    /// Returns the timestamp as it was spelled.
    pub fn text(self) -> Text<'s> {
        self.text
    }
}

/// With hyphens and colons, or without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Extended,
    Basic,
}

/// The text that is still to be read.
struct Rest<'r>(&'r str);

impl Rest<'_> {
    fn date(&mut self) -> Option<Form> {
        let year = self.digits(4)?;
        let form = if self.0.starts_with('-') { Form::Extended } else { Form::Basic };
        self.separator('-', form)?;
        let month = self.digits(2)?;
        self.separator('-', form)?;
        let day = self.digits(2)?;
        let exists = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).is_ok();
        exists.then_some(form)
    }

    fn separator(&mut self, separator: char, form: Form) -> Option<()> {
        if form == Form::Extended { self.one_of(&[separator]) } else { Some(()) }
    }

    fn time(&mut self, form: Form) -> Option<()> {
        self.at_most(23)?;
        if self.ends_time() {
            return Some(());
        }
        self.separator(':', form)?;
        self.at_most(59)?;
        if self.ends_time() {
            return Some(());
        }
        self.separator(':', form)?;
        // A leap second is a second.
        self.at_most(60)?;
        if self.one_of(&['.', ',']).is_some() {
            let decimals = self.0.bytes().take_while(u8::is_ascii_digit).count();
            self.0 = &self.0[decimals..];
            return (decimals > 0).then_some(());
        }
        Some(())
    }

    fn ends_time(&self) -> bool {
        self.0.is_empty() || self.0.starts_with(['Z', 'z', '+', '-'])
    }

    fn offset(&mut self) -> Option<()> {
        if self.one_of(&['Z', 'z']).is_some() {
            return Some(());
        }
        self.one_of(&['+', '-'])?;
        self.at_most(23)?;
        if self.0.is_empty() {
            return Some(());
        }
        self.one_of(&[':']);
        self.at_most(59)
    }

    fn at_most(&mut self, most: u16) -> Option<()> {
        (self.digits(2)? <= most).then_some(())
    }

    fn digits(&mut self, count: usize) -> Option<u16> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        digits.parse().ok()
    }

    fn one_of(&mut self, characters: &[char]) -> Option<()> {
        self.0 = self.0.strip_prefix(characters)?;
        Some(())
    }
}

macro_rules! pattern {
    ($offset:literal) => {
        concat!(
            r"^(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]",
            r"([01]\d|2[0-3])(:[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?)?",
            r"|\d{4}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])[Tt ]",
            r"([01]\d|2[0-3])([0-5]\d(([0-5]\d|60)([.,]\d+)?)?)?)",
            $offset,
            "$"
        )
    };
}

/// The pattern of a timestamp, for JSON Schema.
pub(crate) const PATTERN: &str = pattern!(r"([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?");

/// The pattern of a timestamp that must give its offset from UTC, for JSON Schema.
pub(crate) const WITH_OFFSET_PATTERN: &str = pattern!(r"([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)");

inline_schema!(Timestamp<'_>, { "type": "string", "pattern": PATTERN });
