//! Names in a sentence: some of them, and the number of the others.
//!
//! Agents that join choose their names and works, and there may be a million of them. A hint that listed all of them
//! would turn a request of a few bytes into an answer of megabytes.

/// Most names in a list. Longer lists are not read.
const NAMES_MAX: usize = 20;

/// Longest list, in bytes, without the text that gives the number of names left out.
const BYTES_MAX: usize = 1 << 10;

const BETWEEN: &str = ", ";

/// Lists names within the limits. `where_all` tells readers where to find all of them.
pub fn listed(names: &[&str], where_all: &str) -> String {
    let Some(first) = names.first() else { return "none".to_owned() };
    let mut text = cut(first).to_owned();
    let mut shown = 1;
    for name in names.iter().skip(1).take(NAMES_MAX - 1) {
        if text.len() + BETWEEN.len() + name.len() > BYTES_MAX {
            break;
        }
        text += BETWEEN;
        text += name;
        shown += 1;
    }
    match names.len() - shown {
        0 => text,
        more => format!("{text} and {} more; {where_all}", grouped(more)),
    }
}

/// Cuts a name to the length that a list may have.
fn cut(name: &str) -> &str {
    let end = (0..=BYTES_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// Formats a number with a comma between groups of three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_limits_and_says_how_much_is_left_out() {
        let many: Vec<String> = (0..10_000).map(|number| format!("w{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (long, longer) = ("l".repeat(500), "\u{e4}".repeat(1_000));
        let cases: [(&[&str], &str); 5] = [
            (&[], "none"),
            (&["a"], "a"),
            (&["a", "b", "c"], "a, b, c"),
            (&[&long, &long, "c"], &format!("{long}, {long}, c")),
            (&[&longer, "b"], &format!("{} and 1 more; X", "\u{e4}".repeat(512))),
        ];
        for (names, expected) in cases {
            assert_eq!(listed(names, "X"), expected);
        }
        let text = listed(&many, "GET /api/v1/agents lists all");
        assert!(text.starts_with("w0, w1, ") && text.ends_with("w19 and 9,980 more; GET /api/v1/agents lists all"));
        let long = vec![long.as_str(); 1_000];
        assert!(listed(&long, "X").len() < BYTES_MAX + 100);
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
