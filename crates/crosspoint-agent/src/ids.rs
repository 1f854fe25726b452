//! Random ids, without a call of the system for each of them.

use std::cell::RefCell;

use uuid::{Builder, Uuid};

/// How many ids are made of one call.
const STOCK: usize = 64;

const BYTES: usize = size_of::<uuid::Bytes>();

thread_local! {
    /// Random bytes of the system that no id has been made of.
    static RANDOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns an id that cannot be guessed.
pub(crate) fn new() -> Uuid {
    RANDOM.with_borrow_mut(|random| {
        if random.is_empty() {
            random.resize(STOCK * BYTES, 0);
            if getrandom::fill(random).is_err() {
                random.clear();
            }
        }
        match random.split_last_chunk::<BYTES>() {
            Some((rest, bytes)) => {
                let (id, left) = (Builder::from_random_bytes(*bytes).into_uuid(), rest.len());
                random.truncate(left);
                id
            }
            // The system has no random bytes to give: the library says so, as it does everywhere.
            None => Uuid::new_v4(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_random_and_different_in_every_thread() {
        let made = || (0..3 * STOCK + 1).map(|_| new()).collect::<Vec<Uuid>>();
        let other = std::thread::spawn(made).join().expect("it ends");
        let all: Vec<Uuid> = made().into_iter().chain(other).collect();
        assert!(all.iter().all(|id| id.get_version_num() == 4));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
