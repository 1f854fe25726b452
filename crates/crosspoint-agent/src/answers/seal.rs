//! Lines as they stand in the file: each begins with a digest of itself, so that a torn or damaged one is told from a
//! whole one.

use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use crate::same::hex;

/// How many hexadecimal digits of its digest stand before a line.
const SEAL_BYTES: usize = 16;

/// What every line has after its digest: its names are its first member.
const BEFORE_NAMES: &[u8] = b" {\"names\":[";

/// What stands around the digest at the end of a line that was found torn.
const TORN_BEFORE: &[u8] = b" [torn ";
const TORN_AFTER: &[u8] = b"]\n";

/// A line as it stands in the file.
pub(super) struct Sealed(Vec<u8>);

impl Sealed {
    pub(super) fn of(line: &[u8]) -> Sealed {
        Sealed([seal(line).as_bytes(), b" ", line, b"\n"].concat())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the line without what stands around it in the file.
    pub(super) fn line(&self) -> &[u8] {
        &self.0[SEAL_BYTES + " ".len()..self.0.len() - "\n".len()]
    }
}

/// Returns what a line of the file holds, if it is whole.
pub(super) fn is_whole(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // An editor may have rewritten the file with the line ends of another system.
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (found, rest) = line.split_at_checked(SEAL_BYTES)?;
    let rest = rest.strip_prefix(b" ")?;
    (found == seal(rest).as_bytes()).then_some(rest)
}

/// Whether this begins as a line of ours does, as far as it goes. Where a file was made longer and a crash came before
/// its bytes were written, they are zero.
pub(super) fn begins(line: &[u8]) -> bool {
    let line = unfilled(line);
    let (seal, rest) = line.split_at(line.len().min(SEAL_BYTES));
    seal.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        && (rest.starts_with(BEFORE_NAMES) || BEFORE_NAMES.starts_with(rest))
}

/// Returns the lines in what ends with one line end: several where a line end became another byte. JSON has no such
/// beginning inside it: outside its texts an object follows no digits, and inside them quotation marks are escaped.
pub(super) fn parts(line: &[u8]) -> Vec<&[u8]> {
    if is_whole(line).is_some() {
        return vec![line];
    }
    let head_bytes = SEAL_BYTES + BEFORE_NAMES.len();
    let is_head = |head: &[u8]| head[SEAL_BYTES..] == *BEFORE_NAMES && begins(head);
    let heads = line.windows(head_bytes).enumerate().skip(1).filter(|(_, head)| is_head(head));
    let (mut parts, mut start) = (Vec::new(), 0);
    for (next, _) in heads {
        parts.push(&line[start..next]);
        start = next;
    }
    parts.push(&line[start..]);
    parts
}

/// Returns the names in a line that is not whole, as far as they can be read: they are at its beginning.
pub(super) fn names(line: &[u8]) -> Vec<Box<str>> {
    let (mut names, mut rest) = (Vec::new(), line.get(SEAL_BYTES..).and_then(|line| line.strip_prefix(BEFORE_NAMES)));
    while let Some(unread) = rest {
        let mut texts = serde_json::Deserializer::from_slice(unread).into_iter::<Box<str>>();
        let Some(Ok(name)) = texts.next() else { break };
        names.push(name);
        rest = unread[texts.byte_offset()..].strip_prefix(b",");
    }
    names
}

/// Whether the end of a line is missing and what is there of it can be what was written.
pub(super) fn is_torn(line: &[u8]) -> bool {
    let line = unfilled(line);
    let held = line.get(SEAL_BYTES..).unwrap_or_default();
    begins(line) && serde_json::from_slice::<IgnoredAny>(held).is_err_and(|error| error.is_eof())
}

/// Returns what ends a line that was found torn, so that it is told from a damaged one later.
pub(super) fn torn_mark(line: &[u8]) -> Vec<u8> {
    [TORN_BEFORE, seal(line).as_bytes(), TORN_AFTER].concat()
}

/// Returns the torn line before such a mark.
pub(super) fn marked_torn(line: &[u8]) -> Option<&[u8]> {
    let marked = line.strip_suffix(TORN_AFTER)?;
    let (rest, found) = marked.split_at_checked(marked.len().checked_sub(SEAL_BYTES)?)?;
    let torn = rest.strip_suffix(TORN_BEFORE)?;
    (found == seal(torn).as_bytes()).then_some(torn)
}

/// Returns a line without the zeros at its end.
fn unfilled(line: &[u8]) -> &[u8] {
    let filled = line.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &line[..filled]
}

fn seal(line: &[u8]) -> String {
    hex(&Sha256::digest(line)[..SEAL_BYTES / 2])
}
