//! What agents that joined report about attempts, and whether they may: any worker can join under a name and report
//! about any job.

use std::borrow::Cow;
use std::sync::Arc;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::time::Time;

use super::{Batch, Core, Reply};
use crate::event::Violation;
use crate::id::JobId;
use crate::machine::Event;

/// The clause that is broken by reporting about another agent's attempt: every dispatch carries an id that belongs to
/// its agent alone.
const CLAUSE: &str = "ALL-2";

/// What is recorded when an agent reports about an attempt that it never had.
pub(crate) const NEVER_HAD: Violation = Violation {
    clause: CLAUSE,
    level: Level::Error,
    what: Cow::Borrowed("a report came from an agent that never had the attempt"),
};

const NOT_HELD: Violation = Violation {
    clause: CLAUSE,
    level: Level::Error,
    what: Cow::Borrowed("a failure was reported by a session that does not hold the attempt"),
};

/// Whether the session that reports something about an attempt holds the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grip {
    /// The session was given the attempt, and has not let it go.
    Holds,
    /// Another session, or an earlier life of this one, was given the attempt.
    Lost,
}

impl Core {
    pub(super) fn report(
        &mut self,
        agent: &Arc<str>,
        grip: Grip,
        id: JobId,
        event: &Event,
        now: Time,
        batch: &mut Batch,
    ) -> Reply {
        let Some(job) = self.job(id.seq()).filter(|job| job.id() == id).cloned() else { return Reply::NotLive };
        let attempt = event.attempt().unwrap_or(0);
        if job.had_by(attempt) != Some(agent) {
            batch.violations.push((id.seq(), now, NEVER_HAD));
            return Reply::NotTheirs;
        }
        let is_present = job.running().is_some_and(|running| running.attempt == attempt);
        if grip == Grip::Lost {
            match event {
                // This very agent has done the work: doing it again would be doing it twice.
                Event::Finish { result: Ok(_), .. } => {}
                Event::Finish { result: Err(_), .. } if is_present => {
                    batch.violations.push((id.seq(), now, NOT_HELD));
                    return Reply::NotTheirs;
                }
                Event::Finish { result: Err(_), .. } => {
                    // The machine records what is late about it.
                    let _ = self.apply_event(id.seq(), event.clone(), now, batch);
                    return Reply::NotTheirs;
                }
                Event::Heard { .. }
                | Event::Progress { .. }
                | Event::Output { .. }
                | Event::Ask { .. }
                | Event::Unasked { .. }
                | Event::Remember { .. }
                | Event::Step { .. }
                | Event::Withdrawn { .. }
                | Event::Start { .. }
                | Event::Answer { .. }
                | Event::Cancel
                | Event::Clock
                | Event::Interrupted(_)
                | Event::Release => return Reply::NotTheirs,
            }
        }
        match self.apply_event(id.seq(), event.clone(), now, batch) {
            Ok(job) => Reply::Job(job),
            Err(refused) => Reply::Refused(refused),
        }
    }
}
