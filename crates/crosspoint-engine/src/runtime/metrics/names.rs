//! Names of works and agents as small numbers, up to a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A name that is counted separately, or one of the two that stand for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(u16);

/// The names that are counted separately: the first ones that come, and for good, so that a series never changes its
/// name.
pub(super) struct Names {
    known: BTreeMap<Arc<str>, Name>,
    spelled: Vec<Arc<str>>,
    max: usize,
}

impl Name {
    /// All names that came after the limit was reached.
    pub(super) const OTHER: Name = Name(0);
    /// No name: for a job that no agent ever had.
    pub(super) const NONE: Name = Name(1);
}

impl Names {
    pub(super) fn new(max: usize) -> Names {
        // A work or agent that really has this name is counted with what the word stands for, because two series of one
        // name would be invalid.
        let spelled: Vec<Arc<str>> = vec!["other".into(), "none".into()];
        let known = spelled.iter().cloned().zip([Name::OTHER, Name::NONE]).collect();
        // These two do not count against the limit.
        Names { known, spelled, max: max + 2 }
    }

    pub(super) fn of(&mut self, spelled: &str) -> Name {
        if let Some(name) = self.known.get(spelled) {
            return *name;
        }
        let next = u16::try_from(self.spelled.len()).ok().filter(|_| self.known.len() < self.max);
        let Some(next) = next else { return Name::OTHER };
        let spelled: Arc<str> = spelled.into();
        self.spelled.push(spelled.clone());
        self.known.insert(spelled, Name(next));
        Name(next)
    }

    pub(super) fn spelled(&self, name: Name) -> Arc<str> {
        self.spelled[usize::from(name.0)].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_all_names_are_one() {
        let mut names = Names::new(2);
        let (first, second) = (names.of("first"), names.of("second"));
        assert_eq!((names.of("third"), names.of("fourth")), (Name::OTHER, Name::OTHER));
        assert_eq!((names.of("first"), names.of("second")), (first, second), "who was there stays");
        assert_eq!(
            (names.of("other"), names.of("none")),
            (Name::OTHER, Name::NONE),
            "no series has the name of another"
        );
        assert_eq!(
            [first, second, Name::OTHER, Name::NONE].map(|name| names.spelled(name).to_string()),
            ["first", "second", "other", "none"]
        );
    }
}
