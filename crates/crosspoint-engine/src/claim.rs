//! Which opening of a store may write to it: a pure rule.
//!
//! Every opening that writes has an epoch of its own, and the number of the epoch is in the store. Locks keep two
//! processes from using one store. But a lock can be lost on a file system that has none, or be held on a file that no
//! longer is the store. So every transaction compares the number that it finds with its own, and an opening that was
//! overtaken writes nothing.

/// What an opening knows of the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The epoch that was found when the store was opened. Nothing was written since: opening a store changes nothing.
    Seen(i64),
    /// The epoch under which this opening has written.
    Ours(i64),
}

/// Another opening has written since, so what this opening knows of the store is no longer true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaken;

impl Claim {
    /// Returns the epoch to write under. `found` is the epoch that the transaction finds in the store.
    pub fn check(self, found: i64) -> Result<i64, Overtaken> {
        match self {
            Claim::Seen(seen) if seen == found => Ok(found.saturating_add(1)),
            Claim::Ours(own) if own == found => Ok(own),
            Claim::Seen(_) | Claim::Ours(_) => Err(Overtaken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_that_was_overtaken_writes_nothing_before_or_after_its_first_transaction() {
        assert_eq!(Claim::Seen(3).check(3), Ok(4));
        assert_eq!(Claim::Seen(3).check(4), Err(Overtaken));
        assert_eq!(Claim::Ours(4).check(4), Ok(4));
        assert_eq!(Claim::Ours(4).check(5), Err(Overtaken));
        assert_eq!(Claim::Ours(4).check(3), Err(Overtaken), "an older copy was put in its place");
    }
}
