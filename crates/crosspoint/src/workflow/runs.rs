//! The runs that are under way in this process, and where each works. Programs of stages are started there (WF-8), and
//! the files of stages are looked at there before their outcomes are stored.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crosspoint_workflow::repository::{Repository, Rules};
use tokio::sync::watch;
use uuid::Uuid;

/// The runs that are under way.
pub(crate) struct Runs(watch::Sender<BTreeMap<Uuid, Arc<Workplace>>>);

/// Where a run works.
pub(crate) struct Workplace {
    /// The repository, or its copy.
    pub(crate) root: PathBuf,
    /// The same, opened once: a directory or a link that is put at its path later is another, and is not written to.
    pub(super) repository: Repository,
    /// What no artifact may touch.
    pub(crate) protected: Vec<PathBuf>,
    /// The stages whose artifacts may be written under `.git`.
    pub(crate) git_stages: Vec<String>,
}

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

    /// Returns where a run works. After a restart its stages may be begun before the run itself is, so this waits.
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

impl Workplace {
    /// Returns the rules for the artifacts of a stage.
    pub(super) fn rules(&self, stage: &str) -> Rules {
        let allow_git = self.git_stages.iter().any(|allowed| allowed == stage);
        Rules { allow_git, protected: self.protected.clone() }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.runs.0.send_modify(|runs| drop(runs.remove(&self.id)));
    }
}
