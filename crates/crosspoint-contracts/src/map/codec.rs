//! How a contract's spelling of a value differs from that of its home.
//!
//! A home holds a value as its first contract spelled it. Another contract may demand more of the value: a UUID, a
//! non-empty string, whole milliseconds. A value that cannot be written exactly is written as closely as possible, and
//! the original is carried beside it.

use std::borrow::Cow;

use uuid::Uuid;

use super::write::WriteContext;
use crate::content::Json;
use crate::fields::{has_offset, is_uuid};
use crate::json::Text;

/// Converts between a home and a member.
#[derive(Clone, Copy)]
pub(crate) enum Codec {
    /// The same spelling.
    Same,
    /// A string that is not empty; this string in place of an empty one.
    Named(&'static str),
    /// A UUID; the UUIDv5 of the string in place of any other string (ALL-7).
    Uuid,
    /// The UUID of a trace, which has no hyphens in its home.
    HyphenatedTrace,
    /// A date and time with its offset from UTC.
    WithOffset,
    /// A date and time with its offset from UTC. A request on its way to an agent has the time at which it is sent, and
    /// an answer to a caller has a time in UTC (MSG-2.3).
    Sent,
    /// A number from 0 up.
    Amount,
    /// A whole number from 0 to 100.
    WholePercent,
    /// A whole number of seconds.
    WholeSeconds,
    /// A whole number of milliseconds, which its home holds in seconds.
    Milliseconds,
    /// A conversion that only this contract has.
    Own(for<'j> fn(&'j str, &WriteContext<'_>) -> Cow<'j, str>),
}

impl Codec {
    /// Returns the home's value as this contract spells it.
    pub(crate) fn write<'j>(self, held: &'j str, context: &WriteContext<'_>) -> Cow<'j, str> {
        match self {
            Codec::Same => Cow::Borrowed(held),
            Codec::Named(fallback) if held == "\"\"" => Cow::Borrowed(fallback),
            Codec::Named(_) => Cow::Borrowed(held),
            Codec::Uuid => uuid_of(held),
            Codec::HyphenatedTrace => hyphenated(held),
            Codec::Sent if context.is_dispatch() || (context.completing && !is_utc(held)) => {
                Cow::Owned(Json::string(context.now).get().to_owned())
            }
            Codec::Sent | Codec::WithOffset => with_offset(held),
            Codec::Amount if held.parse().is_ok_and(|amount: f64| amount < 0.0) => Cow::Borrowed("0"),
            Codec::Amount => Cow::Borrowed(held),
            Codec::WholePercent => whole_percent(held),
            Codec::WholeSeconds => whole(held, 0),
            Codec::Milliseconds => whole(held, 3),
            Codec::Own(write) => write(held, context),
        }
    }

    /// Whether the home's value can be restored from what was written.
    pub(crate) fn is_exact(self, held: &str, written: &str) -> bool {
        match self {
            Codec::Same => true,
            Codec::Named(_)
            | Codec::Uuid
            | Codec::Amount
            | Codec::WholePercent
            | Codec::WholeSeconds
            | Codec::WithOffset
            | Codec::Sent
            | Codec::Own(_) => held == written,
            Codec::HyphenatedTrace | Codec::Milliseconds => self.read(written) == held,
        }
    }

    /// Whether a number would come back in another spelling: `1000.0` milliseconds as `1000`.
    pub(crate) fn respells(self, spelled: &str) -> bool {
        matches!(self, Codec::Milliseconds) && whole(&thousandths(spelled), 3) != spelled
    }

    /// Returns the value in the spelling of the home.
    pub(crate) fn read(self, spelled: &str) -> Cow<'_, str> {
        match self {
            Codec::Same
            | Codec::Named(_)
            | Codec::Uuid
            | Codec::Amount
            | Codec::WholePercent
            | Codec::WholeSeconds
            | Codec::Own(_) => Cow::Borrowed(spelled),
            Codec::HyphenatedTrace => Cow::Owned(spelled.replace('-', "")),
            Codec::WithOffset | Codec::Sent => with_offset(spelled),
            Codec::Milliseconds => Cow::Owned(thousandths(spelled)),
        }
    }
}

/// The text of a JSON string.
fn text(held: &str) -> Text<'_> {
    Text::of_string(held.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default())
}

fn uuid_of(held: &str) -> Cow<'_, str> {
    if is_uuid(text(held)) {
        return Cow::Borrowed(held);
    }
    Cow::Owned(quoted_id(derived(&text(held).decode())))
}

/// An id as a JSON string.
pub(super) fn quoted_id(id: Uuid) -> String {
    let mut text = Uuid::encode_buffer();
    ["\"", id.hyphenated().encode_lower(&mut text), "\""].concat()
}

/// Returns the UUID of an id that is none. The namespace is fixed, so that every program derives the same UUID.
pub(crate) fn derived(id: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes())
}

fn hyphenated(held: &str) -> Cow<'_, str> {
    let decoded = text(held).decode();
    let is_hex = decoded.len() == 32 && decoded.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        return uuid_of(held);
    }
    let parts = [&decoded[..8], &decoded[8..12], &decoded[12..16], &decoded[16..20], &decoded[20..]];
    Cow::Owned(Json::string(&parts.join("-")).get().to_owned())
}

/// Whether a date and time says that it is in UTC, or says nothing, which is read as UTC.
fn is_utc(held: &str) -> bool {
    held.ends_with("Z\"") || !has_offset(text(held))
}

fn with_offset(held: &str) -> Cow<'_, str> {
    // The value was a date and time when it was read, and most end like this.
    if held.ends_with("Z\"") || has_offset(text(held)) {
        return Cow::Borrowed(held);
    }
    Cow::Owned(format!("{}Z\"", held.trim_end_matches('"')))
}

fn whole_percent(held: &str) -> Cow<'_, str> {
    let percent = held.parse::<f64>().unwrap_or(0.0).clamp(0.0, 100.0);
    if is_whole(held) && held.parse() == Ok(percent) {
        return Cow::Borrowed(held);
    }
    Cow::Owned(format!("{}", percent as u8))
}

/// Whether readers take a number for a whole number, however it is spelled: `3`, `3.0`.
fn is_whole(held: &str) -> bool {
    let exact = |float: f64| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    held.parse::<i64>().is_ok() || held.parse().is_ok_and(exact)
}

/// Returns a decimal number with its point moved to the right, rounded to a whole number.
fn whole(held: &str, places: usize) -> Cow<'_, str> {
    if places == 0 && is_whole(held) {
        return Cow::Borrowed(held);
    }
    if let Some(exact) = moved_point(held, places) {
        return Cow::Owned(exact);
    }
    let scaled = held.parse::<f64>().unwrap_or(0.0) * 10f64.powi(i32::try_from(places).unwrap_or(0));
    // A float beyond 64 bits becomes the bound of the integer type.
    Cow::Owned(format!("{}", scaled.round() as i64))
}

/// Returns the exact result if the number has no exponent and no more decimals than places, and the result fits 64
/// bits.
fn moved_point(held: &str, places: usize) -> Option<String> {
    let (whole, decimals) = held.split_once('.').unwrap_or((held, ""));
    let plain =
        decimals.len() <= places && decimals.bytes().chain(whole.bytes().skip(1)).all(|byte| byte.is_ascii_digit());
    let digits = format!("{whole}{decimals:0<places$}");
    plain.then(|| digits.parse::<i64>().ok())?.map(|number| number.to_string())
}

/// Returns whole milliseconds as seconds: `2500` is `2.5`.
fn thousandths(spelled: &str) -> String {
    let Ok(whole) = spelled.parse::<i64>() else { return (spelled.parse::<f64>().unwrap_or(0.0) / 1e3).to_string() };
    let (sign, size) = (if whole < 0 { "-" } else { "" }, whole.unsigned_abs());
    let decimals = format!("{:03}", size % 1000);
    match decimals.trim_end_matches('0') {
        "" => format!("{sign}{}", size / 1000),
        decimals => format!("{sign}{}.{decimals}", size / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_milliseconds() {
        for (seconds, milliseconds) in
            [("0.5", "500"), ("120.5", "120500"), ("2", "2000"), ("-0.003", "-3"), ("0", "0")]
        {
            assert_eq!(whole(seconds, 3), milliseconds);
            assert_eq!(thousandths(milliseconds), seconds);
        }
        for (seconds, milliseconds) in
            [("1.0", "1000"), ("1e2", "100000"), ("0.0001", "0"), ("1e300", "9223372036854775807")]
        {
            assert_eq!(whole(seconds, 3), milliseconds, "{seconds}");
        }
        assert_eq!(whole("87", 0), "87");
        assert_eq!(whole("87.5", 0), "88");
    }
}
