//! Which opening of a store may write to it: a pure rule.
//!
//! Every opening that writes is an epoch of its own, and its number is in the store. Locks keep two processes from one store; but a lock can
//! be lost to a file system that has none, or be taken on a file that is not the store any more. So every transaction compares the
//! number that it finds with its own, and an opening that was overtaken writes nothing.

/// What an opening knows of the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// This one was found, and nothing was written since: to open a store is to change nothing.
    Seen(i64),
    /// This one is ours.
    Ours(i64),
}

/// Another opening has written since: what we know of the store is not so any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaken;

impl Claim {
    /// The epoch to write under, going by the one that the transaction finds.
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
