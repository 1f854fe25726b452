//! Which version two sides speak with each other: the lowest that both know (MSG-10).
//!
//! A version is numbers between dots. Compared as text, "1.10" would come before "1.9"; parsed into machine integers, a
//! long number would overflow. So numbers are compared as digits: without leading zeros the longer one is larger, and
//! of two equally long ones the one that sorts later. "1" has fewer parts than "1.0" and is another version.
//!
//! The other side's list comes from outside and may hold anything. An entry that is no version is never picked, but the
//! error names it when no version could be picked, because it is usually the mistake. Names are cut and counted, so
//! that an error stays a few lines long whatever the list holds.

use std::cmp::Ordering;
use std::fmt;

use super::code;

/// The versions spoken here. An array, so that code that reads just one of them stops compiling once there are two.
pub const SPOKEN: &[&str; 1] = &["1.0"];

/// The version that two sides agreed on, in our spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked<'a>(&'a str);

impl<'a> Picked<'a> {
    /// Returns the version, for `protocol_version`.
    pub fn get(self) -> &'a str {
        self.0
    }
}

/// Picks the lowest version that is in both lists, each in any order.
///
/// # Errors
/// Fails if there is no such version. The error names both lists, as the answer must (MSG-10.3).
pub fn pick<'a>(ours: &[&'a str], theirs: &[&str]) -> Result<Picked<'a>, NoCommonVersion> {
    let is_common = |version: &&str| {
        is_version(version) && theirs.iter().any(|other| is_version(other) && compare(version, other).is_eq())
    };
    let lowest = ours.iter().copied().filter(is_common).min_by(|one, other| compare(one, other));
    lowest.map(Picked).ok_or_else(|| NoCommonVersion::of(ours, theirs))
}

fn is_version(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Compares two texts that are versions.
fn compare(one: &str, other: &str) -> Ordering {
    numbers(one).cmp(numbers(other))
}

/// Returns the parts of a version, each in a form that sorts like the number it spells.
fn numbers(version: &str) -> impl Iterator<Item = (usize, &str)> {
    version.split('.').map(|part| part.trim_start_matches('0')).map(|digits| (digits.len(), digits))
}

/// Two sides have no version in common.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no common protocol version: we speak {ours}; the other side speaks {theirs}")]
pub struct NoCommonVersion {
    /// The versions that we speak.
    pub ours: Names,
    /// The versions that the other side says it speaks.
    pub theirs: Names,
}

impl NoCommonVersion {
    /// Says that these two lists have no version in common.
    pub(crate) fn of(ours: &[&str], theirs: &[&str]) -> NoCommonVersion {
        NoCommonVersion { ours: Names::of(ours), theirs: Names::of(theirs) }
    }

    /// Returns the code of the error that answers it.
    pub fn error_code(&self) -> i64 {
        code::UNSUPPORTED
    }
}

/// Most names of a list that are kept. No side speaks nearly as many versions.
pub const NAMES_MAX: usize = 16;

/// Most bytes of a name that are kept. Versions are a few characters long.
pub const NAME_BYTES_MAX: usize = 24;

/// The beginning of a list of versions, short enough to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    shown: Vec<String>,
    more: usize,
}

impl Names {
    fn of(versions: &[&str]) -> Names {
        let shown: Vec<String> = versions.iter().take(NAMES_MAX).map(|version| cut(version)).collect();
        Names { more: versions.len() - shown.len(), shown }
    }

    /// Returns the first names as they came, at most [`NAMES_MAX`]. A name that was too long ends in an ellipsis.
    pub fn shown(&self) -> &[String] {
        &self.shown
    }

    /// Returns how many more names there were.
    pub fn more(&self) -> usize {
        self.more
    }
}

fn cut(version: &str) -> String {
    if version.len() <= NAME_BYTES_MAX {
        return version.to_owned();
    }
    format!("{}…", &version[..version.floor_char_boundary(NAME_BYTES_MAX)])
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shown.is_empty() {
            return f.write_str("none");
        }
        for (index, name) in self.shown.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            // Quoted and escaped: a line break in a name must not begin a new line in a log.
            write!(f, "{comma}{name:?}")?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}
