//! Range requests: which bytes of an answer a caller wants (RFC 9110, section 14).

use std::ops::Range;

use axum::http::HeaderMap;
use axum::http::header::RANGE;

/// The bytes that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// From this one on.
    From(u64),
    /// From the first of these to the second, which is included.
    Between(u64, u64),
    /// This many at the end.
    Last(u64),
}

/// Reads the `Range` header. One that cannot be read, has another unit, or names several ranges is passed over, as the
/// RFC allows: the answer is whole then.
pub fn wanted(headers: &HeaderMap) -> Wanted {
    let mut values = headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Wanted::All };
    value.to_str().ok().and_then(read).unwrap_or(Wanted::All)
}

fn read(value: &str) -> Option<Wanted> {
    let (unit, range) = value.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match (number(first.trim())?, number(last.trim())?) {
        (None, None) => None,
        (None, Some(count)) => Some(Wanted::Last(count)),
        (Some(first), None) => Some(Wanted::From(first)),
        (Some(first), Some(last)) => (first <= last).then_some(Wanted::Between(first, last)),
    }
}

/// Reads a number that may be missing. A number that is too large to be held is as good as the largest one.
fn number(digits: &str) -> Option<Option<u64>> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX)))
}

impl Wanted {
    /// Returns which of `total` bytes are wanted; `None` if there are none of them.
    pub fn of(self, total: u64) -> Option<Range<u64>> {
        let range = match self {
            Wanted::All => return Some(0..total),
            Wanted::From(first) => first..total,
            Wanted::Between(first, last) => first..last.saturating_add(1).min(total),
            Wanted::Last(count) => total.saturating_sub(count)..total,
        };
        (range.start < range.end).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn header(value: &str) -> Wanted {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, HeaderValue::try_from(value).expect("a header"));
        wanted(&headers)
    }

    #[test]
    fn ranges_are_read_and_others_are_passed_over() {
        assert_eq!(header("bytes=0-0"), Wanted::Between(0, 0));
        assert_eq!(header("Bytes = 5 - 9"), Wanted::Between(5, 9));
        assert_eq!(header("bytes=5-"), Wanted::From(5));
        assert_eq!(header("bytes=-5"), Wanted::Last(5));
        assert_eq!(header("bytes=1-99999999999999999999999"), Wanted::Between(1, u64::MAX));
        for other in ["bytes=-", "bytes=9-5", "bytes=1-2,4-5", "lines=1-2", "bytes", "bytes=a-b", "bytes=+1-2", ""] {
            assert_eq!(header(other), Wanted::All, "{other}");
        }
        assert_eq!(wanted(&HeaderMap::new()), Wanted::All);
    }

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        assert_eq!(Wanted::All.of(0), Some(0..0));
        assert_eq!(Wanted::From(3).of(10), Some(3..10));
        assert_eq!(Wanted::Between(3, u64::MAX).of(10), Some(3..10));
        assert_eq!(Wanted::Between(3, 3).of(10), Some(3..4));
        assert_eq!(Wanted::Last(3).of(10), Some(7..10));
        assert_eq!(Wanted::Last(30).of(10), Some(0..10));
        for none in [Wanted::From(10), Wanted::Between(10, 12), Wanted::Last(0)] {
            assert_eq!(none.of(10), None, "{none:?}");
        }
        assert_eq!(Wanted::Last(5).of(0), None);
    }
}
