//! What tells one kind of object from another.

/// What tells a kind apart.
pub(crate) struct Marks {
    /// All top-level members of its type.
    pub(super) members: &'static [&'static str],
    /// Top-level members that are no sign of the kind.
    unweighed: &'static [&'static str],
    /// Names that are common mistakes rather than members of the kind. They count for the kind, so that a mistake does
    /// not lead away from it.
    mistakes: &'static [&'static str],
    /// For a kind with an envelope: the member that holds the content, and the members of the content.
    pub(super) inside: Option<(&'static str, &'static [&'static str])>,
    /// A member whose value is one of a closed set, and the set.
    pub(super) word: Option<(&'static str, &'static [&'static str])>,
}

impl Marks {
    pub(crate) const fn of(members: &'static [&'static str]) -> Marks {
        Marks { members, unweighed: &[], mistakes: &[], inside: None, word: None }
    }

    pub(crate) const fn unweighed(mut self, members: &'static [&'static str]) -> Marks {
        self.unweighed = members;
        self
    }

    pub(crate) const fn mistakes(mut self, members: &'static [&'static str]) -> Marks {
        self.mistakes = members;
        self
    }

    pub(crate) const fn inside(mut self, member: &'static str, members: &'static [&'static str]) -> Marks {
        self.inside = Some((member, members));
        self
    }

    pub(crate) const fn word(mut self, member: &'static str, words: &'static [&'static str]) -> Marks {
        self.word = Some((member, words));
        self
    }

    /// Returns the top-level members that are a sign of the kind.
    pub(super) fn signs(&self) -> impl Iterator<Item = &'static str> {
        let members = self.members.iter().filter(|member| !self.unweighed.contains(member));
        members.chain(self.mistakes).copied()
    }

    /// Returns an upper bound for the number of signs.
    pub(super) const fn signs_max(&self) -> usize {
        self.members.len() + self.mistakes.len()
    }
}
