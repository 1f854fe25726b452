//! What the runs of one process know of each other.

use std::path::Path;

use crosspoint_engine::runtime::Attempt;
use tokio::sync::OwnedMutexGuard;

use super::held::Hold;
use super::recovery::Recovery;
use super::runner::Parting;
use super::turns::Turns;

/// What the runs of one process know of each other.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Files that are half written.
    pub(super) recovery: Recovery,
    /// Whose turn it is in the directory of records, where one copy is made at a time.
    copying: Turns,
    turns: Turns,
}

impl Neighbours {
    /// Waits until nothing is written in the copy of a dry run.
    pub(super) async fn in_copy(&self, copy: &Path) -> OwnedMutexGuard<()> {
        self.turns.wait(copy).await
    }

    /// Returns the turn in the copy of a dry run if nothing is written there now.
    pub(super) fn in_idle_copy(&self, copy: &Path) -> Option<OwnedMutexGuard<()>> {
        self.turns.at_once(copy)
    }

    /// Waits until a run may copy a root: no other copy is made, nothing is written there, and nothing of another run
    /// is half written there.
    pub(super) async fn turn_to_copy(
        &self,
        attempt: &Attempt,
        root: &Path,
        (records, own): (&Path, &Path),
    ) -> Result<[OwnedMutexGuard<()>; 2], Parting> {
        let mut hold = Hold::default();
        loop {
            // One after the other: each looks how much room there is. What may take for ever is waited for without the
            // turn, or the copies of all other roots would wait for it too.
            self.recovery.others(attempt, root, own).await?;
            let copying = self.copying.wait(records);
            let copying = hold.during(attempt, "other dry runs copy their repositories", copying).await?;
            let turn = hold.during(attempt, "other runs write their files there", self.turns.wait(root)).await?;
            if self.recovery.in_the_way(root, own).await?.is_none() {
                return Ok([copying, turn]);
            }
        }
    }

    /// Waits until a run may write in a root: it is its turn, and nothing of another run is half written there.
    pub(super) async fn turn(
        &self,
        attempt: &Attempt,
        root: &Path,
        own: &Path,
    ) -> Result<OwnedMutexGuard<()>, Parting> {
        let mut hold = Hold::default();
        loop {
            let turn = hold.during(attempt, "other runs write their files there", self.turns.wait(root)).await?;
            if self.recovery.in_the_way(root, own).await?.is_none() {
                return Ok(turn);
            }
            // The run whose files they are needs the turn to settle them.
            drop(turn);
            self.recovery.others(attempt, root, own).await?;
        }
    }
}
