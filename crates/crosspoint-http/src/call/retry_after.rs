//! Reads `Retry-After`: a number of seconds, or a date.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Returns how long to wait. A date counts from the date of the answer itself, where it has one: the agent's clock may
/// be wrong, but it is the same in both. A date that is over, and a number of any length, can be read; nonsense cannot.
pub(super) fn read(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number with too many digits is longer than any limit on it.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = moment(value)?;
    let from = date.and_then(moment).unwrap_or(now);
    Some(Duration::try_from(until.duration_since(from)).unwrap_or_default())
}

fn moment(date: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(date.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn seconds(value: &str, date: Option<&str>) -> Option<u64> {
        read(value, date, moment(NOW).expect("a date")).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_read() {
        for (value, wait) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(120)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            // The name of the day is wrong, and says nothing that is needed.
            ("Mon, 06 Nov 1994 08:49:38 GMT", Some(1)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(seconds(value, None), wait, "{value}");
        }
    }

    #[test]
    fn a_date_counts_from_the_date_of_the_answer() {
        let of_answer = Some("Sun, 06 Nov 1994 10:00:00 GMT");
        assert_eq!(seconds("Sun, 06 Nov 1994 10:00:30 GMT", of_answer), Some(30), "its clock is an hour ahead");
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:37 GMT", Some("rubbish")), Some(60));
        assert_eq!(seconds("30", of_answer), Some(30));
    }
}
