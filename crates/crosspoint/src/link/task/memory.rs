//! What is remembered of a task that its agent has, in case the server ends meanwhile: the id by which the agent knows
//! it, and how many answers it was given.

use crosspoint_engine::runtime::{Attempt, Unremembered};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The id of the task, as the agent knows it.
    pub(super) task: String,
    /// How many answers the agent surely has.
    pub(super) answers: usize,
    /// Whether the task was begun anew, and asks again what people have answered.
    pub(super) replays: bool,
}

impl Memory {
    /// What was remembered of an attempt; `None` if its agent never said that it has the task.
    pub(super) fn of(attempt: &Attempt) -> Option<Memory> {
        serde_json::from_slice(attempt.memory()?).ok()
    }

    /// Stores it; it is on disk when this returns.
    pub(super) async fn keep(&self, attempt: &Attempt) -> Result<(), Unremembered> {
        attempt.remember(serde_json::to_vec(self).unwrap_or_default()).await
    }
}
