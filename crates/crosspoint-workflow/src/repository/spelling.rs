//! Judges paths by their spelling alone, without looking at a file system.

use std::path::Path;

use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::workflow::clause::{WF_4_6, WF_4_7, WF_4_8, WF_4_10};
use crosspoint_contracts::workflow::misplaced;

use super::change::{Change, Misplaced, Rules};
use super::limit::{DEPTH_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX, REFUSED_MAX, SHOWN_PATH_CHARACTERS_MAX};

/// Complaints about paths, up to the number that is shown.
#[derive(Debug, Default)]
pub(super) struct Complaints(Vec<Misplaced>);

impl Complaints {
    pub(super) fn add(&mut self, path: &str, clause: &'static Clause, complaint: &'static str) {
        if self.0.len() < REFUSED_MAX {
            self.0.push(Misplaced { path: shown(path), clause, complaint });
        }
    }

    /// Returns the complaints, or `Ok` where there are none.
    pub(super) fn none(self) -> Result<(), Vec<Misplaced>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

/// Returns the one spelling of a path: its parts with a `/` between each two.
pub(super) fn normal(path: &str) -> String {
    let mut normal = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if !normal.is_empty() {
            normal.push('/');
        }
        normal.push_str(part);
    }
    normal
}

/// Whether a path names something inside the root, whatever is there.
pub(super) fn stays_inside(path: &str) -> bool {
    !path.contains('\0') && !path.split('/').any(|part| part == "..") && !normal(path).is_empty()
}

/// Whether a directory is the inside of a git repository, by a part of its path.
pub(super) fn is_under_git(directory: &Path) -> bool {
    let inside = directory.to_string_lossy();
    misplaced(inside.trim_start_matches('/')).iter().any(|wrong| *wrong.clause == WF_4_8)
}

/// Splits a path into the directory, which is empty for the root, and the name in it.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Judges all paths. `normals` are their normal spellings, in the same order.
pub(super) fn judge(changes: &[Change], normals: &[String], rules: &Rules) -> Complaints {
    let mut complaints = Complaints::default();
    for (change, normal) in changes.iter().zip(normals) {
        judge_one(&change.path, normal, rules, &mut complaints);
    }
    judge_together(changes, normals, &mut complaints);
    complaints
}

fn judge_one(path: &str, normal: &str, rules: &Rules, complaints: &mut Complaints) {
    // Measured first: the other complaints about such a path are of no use.
    if path.len() > PATH_BYTES_MAX {
        return complaints.add(path, &WF_4_10, "is longer than 4096 bytes");
    }
    for wrong in misplaced(path) {
        if !(rules.allow_git && *wrong.clause == WF_4_8) {
            complaints.add(path, wrong.clause, wrong.complaint);
        }
    }
    if normal.split('/').any(|part| part.len() > NAME_BYTES_MAX) {
        complaints.add(path, &WF_4_10, "has a part that is longer than 255 bytes");
    }
    if normal.split('/').count() > DEPTH_MAX {
        complaints.add(path, &WF_4_10, "has more than 128 parts");
    }
}

fn judge_together(changes: &[Change], normals: &[String], complaints: &mut Complaints) {
    let mut order: Vec<usize> = (0..normals.len()).filter(|at| !normals[*at].is_empty()).collect();
    // In the order of their parts the same file stands twice in a row, and everything inside a directory follows it.
    order.sort_by(|a, b| normals[*a].split('/').cmp(normals[*b].split('/')));
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if normals[first] == normals[second] {
            complaints.add(&changes[second].path, &WF_4_7, "stands twice in this output");
        } else if is_inside(&normals[second], &normals[first]) {
            complaints.add(&changes[first].path, &WF_4_6, "names a directory that another artifact is in");
        }
    }
}

fn is_inside(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns a path for showing: without control characters, which a terminal would obey, and not too long.
fn shown(path: &str) -> String {
    let mut characters = path.chars();
    let escape = |character: char| -> String {
        if character.is_control() { character.escape_default().collect() } else { character.into() }
    };
    let mut shown: String = characters.by_ref().take(SHOWN_PATH_CHARACTERS_MAX).map(escape).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_has_one_normal_spelling() {
        for path in ["a/b", "./a/b", "a//b", "a/./b", "a/b"] {
            assert_eq!(normal(path), "a/b");
        }
        assert_eq!(normal("./."), "");
        assert_eq!((split("a/b/c"), split("c")), (("a/b", "c"), ("", "c")));
    }

    #[test]
    fn shown_paths_are_short_and_harmless() {
        assert_eq!(shown("a\n\u{1b}[2Jb"), "a\\n\\u{1b}[2Jb");
        assert_eq!(shown(&"é".repeat(5_000)).chars().count(), SHOWN_PATH_CHARACTERS_MAX + 1);
    }
}
