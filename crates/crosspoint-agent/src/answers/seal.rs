//! Lines as they stand in the file: each begins with a digest of itself, so that a torn or damaged one is told from a
//! whole one.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::same::hex;

/// How many hexadecimal digits of its digest stand before a line.
const SEAL_BYTES: usize = 16;

/// A line as it stands in the file.
pub(super) struct Sealed(Vec<u8>);

impl Sealed {
    pub(super) fn of(line: &[u8]) -> Sealed {
        Sealed([seal(line).as_bytes(), b" ", line, b"\n"].concat())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
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

/// Returns the names in a line that is no longer whole, if they can still be read: they are at its beginning.
pub(super) fn names_of_damaged(line: &[u8]) -> Vec<Box<str>> {
    const BEFORE: &[u8] = b"{\"names\":";
    let names = line.get(SEAL_BYTES + 1..).and_then(|line| line.strip_prefix(BEFORE));
    let names = names.map(|names| Vec::deserialize(&mut serde_json::Deserializer::from_slice(names)));
    names.and_then(Result::ok).unwrap_or_default()
}

fn seal(line: &[u8]) -> String {
    hex(&Sha256::digest(line)[..SEAL_BYTES / 2])
}
