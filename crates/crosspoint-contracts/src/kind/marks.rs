//! What tells one kind of object from the others.

/// What tells a kind from the others.
pub(crate) struct Marks {
    /// Its top-level members, all that its type has.
    pub(super) members: &'static [&'static str],
    /// Those of them that are no sign of it.
    unweighed: &'static [&'static str],
    /// No members of it but common mistakes, which must not lead away from it.
    mistakes: &'static [&'static str],
    /// Where it has an envelope: the member in it, and what that holds.
    pub(super) inside: Option<(&'static str, &'static [&'static str])>,
    /// A member whose value is one of a closed set.
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

    /// The top-level members that are a sign of it.
    pub(super) fn signs(&self) -> impl Iterator<Item = &'static str> {
        let members = self.members.iter().filter(|member| !self.unweighed.contains(member));
        members.chain(self.mistakes).copied()
    }

    /// More than it has signs, or as many.
    pub(super) const fn signs_max(&self) -> usize {
        self.members.len() + self.mistakes.len()
    }
}
