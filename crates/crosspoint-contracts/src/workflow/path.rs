//! Where an artifact may be written.
//!
//! A path comes from an agent and ends as a file on a user's disk, so it is taken literally and must be harmless on
//! every system: what would be a drive or a separator on another system is refused here too. Only the spelling is
//! judged; the program that writes the file has to deal with links on the way.

use std::borrow::Cow;

use super::clause::{WF_4, WF_4_2, WF_4_3, WF_4_4, WF_4_5, WF_4_6, WF_4_8};
use crate::clause::Clause;

/// What is wrong with a path, and the clause that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The rule that is broken.
    pub clause: &'static Clause,
    /// What is wrong, as a continuation of the path's name: "is absolute".
    pub complaint: &'static str,
}

/// Returns everything that is wrong with a path's spelling.
pub fn misplaced(path: &str) -> Vec<Misplaced> {
    let mut wrong = Vec::new();
    let mut check = |broken: bool, clause: &'static Clause, complaint: &'static str| {
        if broken {
            wrong.push(Misplaced { clause, complaint });
        }
    };
    let parts = || path.split(['/', '\\']);
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    check(path.starts_with('/'), &WF_4, "is absolute");
    check(parts().any(is_parent), &WF_4_2, "has a part `..`");
    check(drive, &WF_4_3, "names a drive");
    check(path.contains('\0'), &WF_4_4, "holds a NUL character");
    check(path.contains('\\'), &WF_4_5, "uses a backslash as separator");
    check(names_directory(path), &WF_4_6, "names a directory, not a file");
    check(parts().any(is_git), &WF_4_8, "is under .git");
    wrong
}

fn names_directory(path: &str) -> bool {
    path.is_empty() || path.ends_with('/') || path == "." || path.ends_with("/.")
}

/// Whether some system takes this part for `..`: some drop spaces at the end of a name.
fn is_parent(part: &str) -> bool {
    part.trim_end_matches(' ') == ".."
}

/// Whether some system takes this part for `.git`: in any case, with dots and spaces at its end, with characters that
/// have no width, with a stream, or by its short name.
fn is_git(part: &str) -> bool {
    let without_width = |character: char| matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    // The text after a colon names a stream of the same file.
    let file = part.split(':').next().unwrap_or_default();
    // Characters without width are not ASCII, and most names are ASCII.
    let name = if file.is_ascii() { Cow::Borrowed(file) } else { file.replace(without_width, "").into() };
    let name = name.trim_end_matches(['.', ' ']);
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

/// Returns the parts of a path. The same file has the same parts, however its path is spelled.
pub(super) fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// Whether a path is below another.
pub(super) fn is_inside(path: &str, directory: &str) -> bool {
    let mut rest = parts(path);
    parts(directory).all(|part| rest.next() == Some(part)) && rest.next().is_some()
}

/// What JSON Schema can express of the rules above. Each pattern must match.
pub(super) const PATTERNS: [&str; 7] = [
    r"^(?!/)",
    r"^(?![\s\S]*(^|[/\\])\.\. *([/\\]|$))",
    r"^(?![A-Za-z]:)",
    r"^[^\x00]*$",
    r"^[^\\]*$",
    r"^(?![\s\S]*(^|/)\.?$)",
    r"^(?![\s\S]*(^|[/\\])(\.[Gg][Ii][Tt]|[Gg][Ii][Tt]~1)[. ]*([:/\\]|$))",
];
