//! Which question a job waits with, so that an answer can say what it answers.

use super::{Job, State};

/// Tells a question of a job from its others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionId {
    /// The attempt that asks.
    pub attempt: u32,
    /// How many of its questions were answered before.
    pub number: u32,
}

impl Job {
    /// Returns which question the job waits with, while it waits for a person's answer.
    pub fn open_question(&self) -> Option<QuestionId> {
        let State::Waiting { running, .. } = &self.state else { return None };
        Some(QuestionId { attempt: running.attempt, number: running.asked })
    }
}
