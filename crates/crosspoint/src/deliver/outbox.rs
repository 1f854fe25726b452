//! What one recipient is to be sent at its address: which message next, when, and what follows from how that went.
//!
//! Pure: the sender gives the time and performs the sendings.

use std::collections::BTreeMap;
use std::time::Instant;

use crosspoint_contracts::time::Time;
use crosspoint_engine::id::{JobId, Seq};

use super::gate::{Failing, Gate, Pass};
use super::line::Line;
use super::telling::Shown;
use super::trouble::{Trouble, What};

#[derive(Debug)]
pub(super) struct Outbox {
    line: Line,
    gate: Gate,
    known: BTreeMap<JobId, Known>,
}

/// What is known about telling one job.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// What was last acknowledged of the job before its end.
    shown: Option<Shown>,
    /// How many messages about the outcome were acknowledged.
    taken: usize,
    stumbled: Option<Stumbled>,
}

/// How telling one job has failed, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stumbled {
    /// When it failed first, by the wall clock.
    pub(crate) since: Time,
    pub(crate) tries: u32,
    pub(crate) last: Trouble,
    /// When it is tried next, if the recipient is there.
    pub(crate) next_at: Instant,
}

/// A job that is to be told now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) id: JobId,
    pass: Pass,
    /// What the recipient knows of the job before its end.
    pub(super) shown: Option<Shown>,
    /// How many messages about the outcome the recipient has.
    pub(super) taken: usize,
}

/// How telling a job went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Whether the recipient acknowledged anything.
    pub(super) is_acknowledged: bool,
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The recipient knows the job as it was then.
    Known(Option<Shown>),
    /// The recipient has acknowledged the outcome, and that is on disk.
    Told,
    /// The job was not owed any more.
    Gone,
    /// A message was not acknowledged, or could not be made.
    Failed {
        trouble: Trouble,
        /// How many messages about the outcome the recipient has.
        taken: usize,
    },
}

/// What is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notable {
    /// The recipient takes nothing.
    Away,
    /// The recipient takes messages again.
    Back,
    /// The messages of this job alone are not taken.
    Stumbled,
}

impl Outbox {
    pub(super) fn new() -> Outbox {
        Outbox { line: Line::behind(), gate: Gate::default(), known: BTreeMap::new() }
    }

    /// Something has happened to a job.
    pub(super) fn moved(&mut self, id: JobId, has_ended: bool) {
        if !has_ended {
            return self.line.moved(id);
        }
        // An outcome does not wait because the state before it could not be told.
        if let Some(known) = self.known.get_mut(&id) {
            known.stumbled = None;
        }
        self.line.hurry(id, true);
    }

    /// Returns the job that is to be told next, if any may be told now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Sending> {
        if !self.line.has_next(now) {
            return None;
        }
        let pass = self.gate.pass(now)?;
        let is_probe = self.gate.opens_at().is_some();
        let Some(id) = (if is_probe { self.line.newest(now) } else { self.line.next(now) }) else {
            self.gate.unused();
            return None;
        };
        let Known { shown, taken, .. } = self.known.get(&id).copied().unwrap_or_default();
        Some(Sending { id, pass, shown, taken })
    }

    /// Takes note of how telling a job went.
    pub(super) fn sent(&mut self, sending: Sending, sent: Sent, now: (Instant, Time), chance: f64) -> Option<Notable> {
        let was_closed = self.gate.opens_at().is_some();
        match sent.end {
            End::Failed { trouble, .. } if trouble.what != What::Unreadable => {
                if sent.is_acknowledged {
                    self.gate.progressed();
                }
                self.gate.failed(sending.id, sending.pass, trouble, now, chance);
            }
            End::Failed { .. } | End::Known(_) | End::Told | End::Gone => {
                if sent.is_acknowledged {
                    self.gate.acknowledged();
                } else {
                    self.gate.unused();
                }
            }
        }
        let is_closed = self.gate.opens_at().is_some();
        let stumbled = match sent.end {
            // It was told another way meanwhile.
            _ if !self.line.is_out(sending.id) => false,
            End::Known(shown) => {
                self.known.remove(&sending.id);
                self.known.extend(shown.map(|_| (sending.id, Known { shown, ..Known::default() })));
                self.line.done(sending.id);
                false
            }
            End::Told | End::Gone => {
                self.forget(sending.id);
                false
            }
            End::Failed { trouble, taken } => self.put_off(sending.id, trouble, taken, now, chance),
        };
        match (was_closed, is_closed) {
            (false, true) => Some(Notable::Away),
            (true, false) => Some(Notable::Back),
            (false, false) if stumbled => Some(Notable::Stumbled),
            (false, false) | (true, true) => None,
        }
    }

    /// Puts a job off. While the recipient is away, all jobs wait for it to be back. Otherwise it is this job whose
    /// messages it does not take, and the job has a pause of its own. Returns whether it is the first.
    fn put_off(&mut self, id: JobId, trouble: Trouble, taken: usize, now: (Instant, Time), chance: f64) -> bool {
        let (now, at) = now;
        let known = self.known.entry(id).or_default();
        // What was refused before was taken meanwhile, and the next message is refused for the first time.
        let before = known.stumbled.filter(|_| taken <= known.taken);
        let (since, tries) = before.map_or((at, 0), |before| (before.since, before.tries));
        let tries = tries.saturating_add(1);
        // What could not be read here says nothing about the recipient, whose gate may be due.
        let next_at = self.gate.opens_at().filter(|opens_at| *opens_at > now);
        let next_at = next_at.unwrap_or_else(|| now + trouble.pause(tries, chance));
        known.taken = taken;
        known.stumbled = Some(Stumbled { since, tries, last: trouble, next_at });
        if !self.line.later(id, next_at) {
            self.known.remove(&id);
        }
        tries == 1
    }

    /// A job is no longer owed.
    pub(super) fn forget(&mut self, id: JobId) {
        self.known.remove(&id);
        self.line.forget(id);
    }

    pub(super) fn expect(&mut self, owed: u64) {
        self.line.expect(owed);
    }

    /// Returns when to look again, if nothing happens before.
    pub(super) fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let due = if self.line.has_next(now) { now } else { self.line.due()? };
        match self.gate.opens_at() {
            // A closed gate waits for the message that is on its way.
            Some(opens_at) => (!self.gate.is_sending()).then(|| opens_at.max(due)),
            // An open gate that lets nothing pass has sixteen messages on their way.
            None => (due > now).then_some(due),
        }
    }

    pub(super) fn wants(&mut self) -> Option<Option<Seq>> {
        self.line.wants()
    }

    pub(super) fn filled(&mut self, page: &[JobId], is_last: bool) {
        self.line.filled(page, is_last);
    }

    pub(super) fn unfilled(&mut self) {
        self.line.unfilled();
    }

    pub(super) fn failing(&self) -> Option<Failing> {
        self.gate.failing()
    }

    pub(super) fn stumbled(&self, id: JobId) -> Option<Stumbled> {
        self.known.get(&id)?.stumbled
    }
}

#[cfg(test)]
mod tests;
