//! Which version two sides speak with each other: the lowest that both know (MSG-10).
//!
//! A version is numbers between dots. Compared as text "1.10" would come before "1.9", and parsed into machine integers a
//! long number would overflow, so numbers are compared as digits: without leading zeros the longer one is larger,
//! and of two equally long ones the one that sorts later. "1" has fewer parts than "1.0" and is another version.
//!
//! The other side's list is whatever a stranger sent. What is no version is never picked, but it is named when nothing
//! could be picked, because it is mostly the mistake that is looked for. Names are cut and counted, so that an
//! error stays a few lines long whatever came.

use std::cmp::Ordering;
use std::fmt;

use super::code;

/// The versions spoken here. An array, so that whoever reads just one of them stops compiling once there are two.
pub const SPOKEN: &[&str; 1] = &["1.0"];

/// The version two sides agreed on, in our spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked<'a>(&'a str);

impl<'a> Picked<'a> {
    /// The version, for `protocol_version`.
    pub fn get(self) -> &'a str {
        self.0
    }
}

/// Picks the lowest version of both lists, each in any order.
///
/// # Errors
/// There is none; the error names both lists, as the answer must (MSG-10.3).
pub fn pick<'a>(ours: &[&'a str], theirs: &[&str]) -> Result<Picked<'a>, NoCommonVersion> {
    let is_common = |version: &&str| {
        is_version(version) && theirs.iter().any(|other| is_version(other) && compare(version, other).is_eq())
    };
    let lowest = ours.iter().copied().filter(is_common).min_by(|one, other| compare(one, other));
    lowest.map(Picked).ok_or_else(|| NoCommonVersion { ours: Names::of(ours), theirs: Names::of(theirs) })
}

fn is_version(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Orders two texts that are versions.
fn compare(one: &str, other: &str) -> Ordering {
    numbers(one).cmp(numbers(other))
}

/// The parts of a version, each in a form that orders like the number it spells.
fn numbers(version: &str) -> impl Iterator<Item = (usize, &str)> {
    version.split('.').map(|part| part.trim_start_matches('0')).map(|digits| (digits.len(), digits))
}

/// Two sides have no version in common.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no common protocol version: we speak {ours}; the other side speaks {theirs}")]
pub struct NoCommonVersion {
    /// What we speak.
    pub ours: Names,
    /// What the other side says it speaks.
    pub theirs: Names,
}

impl NoCommonVersion {
    /// The code it is answered with.
    pub fn error_code(&self) -> i64 {
        code::UNSUPPORTED
    }
}

/// Most names that are kept of a list. No side speaks nearly as many.
pub const NAMES_MAX: usize = 16;

/// Most bytes that are kept of a name. Versions are a few characters long.
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

    /// The first names as they came, at most [`NAMES_MAX`]; one that was too long ends in an ellipsis.
    pub fn shown(&self) -> &[String] {
        &self.shown
    }

    /// How many names there were beside those.
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
            // Quoted and escaped: a line break in a name must not begin a line in a log.
            write!(f, "{comma}{name:?}")?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}
