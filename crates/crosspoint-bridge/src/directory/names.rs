//! What the names of files say.
//!
//! Other tools leave files in the directory too, and some of them use names that begin with `.agent-`. So only names
//! that this crate derives from the names it knows count as its own.

use crate::RECORD;
use crate::pair::Pair;

/// Stands between a file's name and the mark of its writer.
pub(super) const TEMPORARY: &str = ".tmp-";

/// Stands between a file's name and the number under which it was set aside.
pub(super) const STALE: &str = ".stale-";

/// The mark of a file that is being removed.
const REMOVED: &str = "removed";

/// Length of a writer's mark: a UUID without dashes.
const MARK_LENGTH: usize = 32;

/// What a name says of a file that is no longer in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover<'n> {
    /// A process was killed while it wrote or removed the file.
    Half,
    /// The file was set aside. It had this name before.
    Stale(&'n str),
}

impl Leftover<'_> {
    /// Returns what the name says, or `None` if it is not the name of a leftover.
    pub fn of(name: &str) -> Option<Leftover<'_>> {
        if is_half_written(name) || removable().any(|original| half_removed(&original) == name) {
            return Some(Leftover::Half);
        }
        let (original, number) = name.split_once(STALE)?;
        (is_known(original) && number.parse::<u64>().is_ok()).then_some(Leftover::Stale(original))
    }
}

/// Returns the name that a file has while it is being removed.
pub fn half_removed(name: &str) -> String {
    format!("{name}{TEMPORARY}{REMOVED}")
}

/// Whether this is a name that a writer gives to a file until the file is whole.
pub(super) fn is_half_written(name: &str) -> bool {
    let Some((original, mark)) = name.split_once(TEMPORARY) else { return false };
    let is_mark = mark.len() == MARK_LENGTH && mark.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_mark && is_known(original)
}

/// Returns the names of the files that are renamed before they are removed. The record is not one of them.
pub(super) fn removable() -> impl Iterator<Item = String> {
    Pair::all().flat_map(|pair| [pair.request(), pair.response()])
}

fn is_known(name: &str) -> bool {
    name == RECORD || removable().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_make_of_our_own_names_is_left_over() {
        let mark = "0123456789abcdef0123456789abcdef";
        for name in [".agent-request.json", ".agent-response-phase3.json", RECORD] {
            assert_eq!(Leftover::of(&format!("{name}.tmp-{mark}")), Some(Leftover::Half));
            assert_eq!(Leftover::of(&format!("{name}.stale-12")), Some(Leftover::Stale(name)));
            assert_eq!(Leftover::of(name), None);
        }
        assert_eq!(Leftover::of(".agent-request.json.tmp-removed"), Some(Leftover::Half));
        let others = [
            ".agent-config.tmp-backup",
            ".agent-config.tmp-removed",
            ".agent-request.json.tmp-backup",
            ".agent-request.json.tmp-0123",
            ".agent-request.json.tmp-0123456789ABCDEF0123456789ABCDEF",
            ".agent-request.json.stale-x",
            ".agent-thing.stale-1",
            "notes.tmp-removed",
        ];
        for name in others {
            assert_eq!(Leftover::of(name), None, "{name}");
        }
        assert_eq!(Leftover::of(&format!(".agent-config.tmp-{mark}")), None);
    }
}
