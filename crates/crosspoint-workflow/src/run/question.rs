//! What a person is asked.

use crosspoint_contracts::clause;

use super::decided::Way;
use super::next::Why;
use super::notes::cut_to;
use crate::definition::Stage;

/// Longest question, in bytes. It is an agent's summary, is shown to a person, and is given to the agent with every
/// later run of the stage.
const QUESTION_BYTES_MAX: usize = 64 * 1024;

/// A question that waits for its answer.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// The number of the stage that it is about.
    pub(super) stage: usize,
    pub(super) about: About,
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// Why a person is asked, and what the answer does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The agent needs the answer.
    Escalation,
    /// The stage has used up its retries; the agent gets the answer.
    Limit,
    /// The stage failed, and runs again.
    Failure,
    /// The run is long, and goes on.
    Steps {
        /// How it would have gone on.
        way: Way,
    },
}

impl About {
    pub(super) fn why(self) -> Why {
        match self {
            About::Escalation => Why::Escalated,
            About::Limit => Why::LimitReached,
            About::Failure => Why::Broke,
            About::Steps { .. } => Why::StepsUsedUp,
        }
    }
}

/// Returns a summary, cut to the length of a question.
pub(super) fn cut(summary: &str) -> String {
    cut_to(summary, QUESTION_BYTES_MAX)
}

/// Asks a person to mend what failed.
pub(super) fn of_failure(stage: &Stage, failure: &str, clause: Option<&str>, message: &str) -> String {
    let broken = clause.map(|clause| format!(" ({clause})")).unwrap_or_default();
    let said = if message.is_empty() { String::new() } else { format!(": {message}") };
    let Stage { id, agent, action, .. } = stage;
    let happened = format!("The stage {id} (agent {agent}, action {action}) failed: {failure}{broken}{said}");
    let mend = clause.and_then(hint).unwrap_or("Mend the agent or what it works with.");
    format!("{}\n{mend} Then answer anything: the stage runs again.", cut(&happened))
}

/// Returns how to mend what breaks a clause.
fn hint(id: &str) -> Option<&'static str> {
    // The hints of these two are for people who write documents. What agents give beside an envelope is mostly a log.
    if [clause::all::ALL_101.id, clause::all::ALL_102.id].contains(&id) {
        return Some(
            "Have the agent give the envelope and nothing else: on stdout, or as the answer. Logs go to stderr.",
        );
    }
    clause::every().find(|clause| clause.id == id).map(|clause| clause.hint)
}

/// Asks a person whether a long run is to go on.
pub(super) fn of_steps(stage: &Stage, steps: u32) -> String {
    format!(
        "The workflow has run {steps} stages and would go on with the stage {}. \
         Answer anything to let it go on, or cancel it.",
        stage.id
    )
}
