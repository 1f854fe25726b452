//! The `Prefer` header (RFC 7240), as far as it concerns waiting.

/// Returns the seconds of the first `wait` in these lines. A value that cannot be read is ignored.
pub(crate) fn wait<'h>(lines: impl Iterator<Item = &'h str>) -> Option<u64> {
    let preferences = lines.flat_map(|line| parts(line, b','));
    let mut waits = preferences.filter_map(|preference| {
        // A semicolon begins parameters, and `wait` has none.
        let (name, value) = parts(preference, b';').next()?.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| unquoted(value.trim()))
    });
    // If a preference occurs several times, only the first counts.
    let value = waits.next()?;
    value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok())?
}

/// Splits a text at a sign, but not within quotes.
fn parts(text: &str, sign: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            let plain = !quoted && byte == sign;
            (quoted, escaped) = match byte {
                b'"' if !escaped => (!quoted, false),
                b'\\' if quoted && !escaped => (true, true),
                _ => (quoted, false),
            };
            plain
        });
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wait_counts_wherever_it_stands() {
        for (lines, seconds) in [
            (&["wait=5"][..], Some(5)),
            (&["respond-async, wait=5"], Some(5)),
            (&["respond-async; a=\"x, wait=9\", WAIT = \"5\"; more, wait=7"], Some(5)),
            (&["return=minimal", "wait=5", "wait=6"], Some(5)),
            (&["foo=\"\\\", wait=9\", wait=5"], Some(5)),
            (&["wait=0"], Some(0)),
            (&["wait"], None),
            (&["wait="], None),
            (&["wait=-1"], None),
            (&["wait=+1"], None),
            (&["wait=1.5"], None),
            (&["wait=99999999999999999999999"], None),
            (&["await=5"], None),
            (&["\"wait=5"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(wait(lines.iter().copied()), seconds, "{lines:?}");
        }
    }
}
