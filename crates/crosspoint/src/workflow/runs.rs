//! The runs that are under way in this process, and where each works. Programs of stages are started there (WF-8), and
//! the files of stages are looked at there before their outcomes are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::workplace::Workplace;

/// The runs that are under way.
pub(crate) struct Runs(watch::Sender<BTreeMap<Uuid, Arc<Workplace>>>);

/// A run that is under way until this is dropped.
pub(super) struct UnderWay<'r> {
    runs: &'r Runs,
    id: Uuid,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs(watch::channel(BTreeMap::new()).0)
    }
}

impl Runs {
    pub(super) fn enter(&self, id: Uuid, place: Arc<Workplace>) -> UnderWay<'_> {
        self.0.send_modify(|runs| drop(runs.insert(id, place)));
        UnderWay { runs: self, id }
    }

    /// Returns where a run works. Its programs are begun only when it has come to them, so nearly always it is there;
    /// what an agent sends of a stage after a restart may come before, and waits.
    pub(crate) async fn place_of(&self, run: Uuid) -> Arc<Workplace> {
        let mut runs = self.0.subscribe();
        loop {
            if let Some(place) = runs.borrow_and_update().get(&run) {
                return place.clone();
            }
            if runs.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.runs.0.send_modify(|runs| drop(runs.remove(&self.id)));
    }
}
