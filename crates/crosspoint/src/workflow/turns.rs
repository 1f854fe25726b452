//! Outputs for one root are written one after the other. The lock of the root sees to that, also between processes; but
//! who waits for a lock keeps a thread busy, and a hundred runs in one root would leave none for anybody else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Whose turn it is, in each root in which something is written now.
#[derive(Default)]
pub(super) struct Turns(Mutex<BTreeMap<PathBuf, Weak<Turn<()>>>>);

impl Turns {
    /// Waits for the turn of a run in a root. Who came first is first.
    pub(super) async fn wait(&self, root: &Path) -> OwnedMutexGuard<()> {
        self.of(root).lock_owned().await
    }

    /// Takes the turn in a root that nothing else has now.
    pub(super) fn at_once(&self, root: &Path) -> Option<OwnedMutexGuard<()>> {
        self.of(root).try_lock_owned().ok()
    }

    fn of(&self, root: &Path) -> Arc<Turn<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(root).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn::new(()));
        turns.insert(root.to_owned(), Arc::downgrade(&turn));
        turn
    }
}
