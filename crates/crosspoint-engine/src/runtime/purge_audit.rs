//! When entries of the audit that need no longer be kept are removed: in steps, like jobs, and by age alone. A store
//! that is full keeps its audit.

use std::time::{Duration, Instant};

use crosspoint_contracts::time::Time;

use crate::retention::Jumps;
use crate::store::{Fault, Store};

/// How many times as long as a step the pause after it is.
const PAUSES: u32 = 2;

/// Pause after a look that has found nothing to remove.
const LOOK_PAUSE: Duration = Duration::from_secs(3_600);

/// Pause before the next try after a step that failed.
const FAILED_PAUSE: Duration = Duration::from_secs(600);

pub(super) struct AuditPurger {
    /// How long entries are kept; `None` keeps them for ever.
    age: Option<Duration>,
    rests_until: Instant,
}

impl AuditPurger {
    pub(super) fn new(age: Option<Duration>) -> AuditPurger {
        AuditPurger { age, rests_until: Instant::now() }
    }

    /// Returns how long there is nothing to do; `None` if there never is.
    pub(super) fn wait_time(&self) -> Option<Duration> {
        self.age.map(|_| self.rests_until.saturating_duration_since(Instant::now()))
    }

    /// Takes a step, if one is due. Fails only where the store belongs to another process.
    pub(super) fn step(&mut self, store: &mut Store, jumps: &Jumps, now: Time) -> Result<(), Fault> {
        let began = Instant::now();
        let Some(age) = self.age.filter(|_| began >= self.rests_until) else { return Ok(()) };
        let pause = match store.purge_audit(age, jumps, now) {
            Ok(0) => LOOK_PAUSE,
            Ok(_) => began.elapsed() * PAUSES,
            Err(fault @ Fault::Lost { .. }) => return Err(fault),
            Err(fault) => {
                tracing::warn!(error = %fault, "old entries of the audit cannot be removed at present");
                FAILED_PAUSE
            }
        };
        self.rests_until = Instant::now() + pause;
        Ok(())
    }
}
