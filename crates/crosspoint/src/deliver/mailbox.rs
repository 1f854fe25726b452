//! What a recipient that pulls was given and has not acknowledged.
//!
//! A message that is not acknowledged comes again. The state of a job is given only as it is now, so an earlier state
//! that was not acknowledged does not come again once there is a later one. Documents are not kept here: a message that
//! comes again is written again, and has the same id.
//!
//! Pure: the pull gives the time, and writes the documents.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crosspoint_engine::id::{JobId, Seq};

use super::line::Line;
use super::telling::{Ids, Shown};

/// How long after it was given a message is given again, if it was not acknowledged (MSG-14).
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Mailbox {
    line: Line,
    given: BTreeMap<JobId, Given>,
    /// Every name by which something that was given may be acknowledged.
    names: BTreeSet<(Box<str>, JobId)>,
}

/// What was given about one job.
#[derive(Debug, Default)]
struct Given {
    /// The state that was given last, until the outcome is given.
    state: Option<State>,
    outcome: Outcome,
    /// Its names in `names`.
    names: Vec<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    shown: Shown,
    is_acknowledged: bool,
    again_at: Instant,
}

/// The messages about an outcome.
#[derive(Debug, Default)]
struct Outcome {
    /// The ids of the messages that were given, from the first one on.
    ids: Vec<Box<str>>,
    /// Which of all messages were acknowledged.
    acknowledged: Vec<bool>,
    /// The message that comes next, if not all of them fit into one answer.
    next: usize,
}

/// What is given about an outcome.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// These messages, and nothing is left.
    Rest(Vec<usize>),
    /// These messages, and there is no room for the others.
    Beginning(Vec<usize>),
    /// Nothing: the recipient has acknowledged the last message, and only the store does not know it yet.
    Acknowledged,
}

impl Mailbox {
    pub(super) fn new() -> Mailbox {
        Mailbox { line: Line::behind(), given: BTreeMap::new(), names: BTreeSet::new() }
    }

    /// Something has happened to a job.
    pub(super) fn moved(&mut self, id: JobId, has_ended: bool) {
        self.line.hurry(id, has_ended);
    }

    /// Returns a job about which there may be something to give. It comes again later whatever becomes of this pull:
    /// the connection to the recipient may be lost at any time.
    pub(super) fn next(&mut self, now: Instant) -> Option<JobId> {
        let id = self.line.next(now)?;
        self.line.later(id, now + AGAIN_AFTER).then_some(id)
    }

    /// Whether the state of a job is to be given now. `None` is a state that its recipient knows.
    pub(super) fn wants_state(&mut self, id: JobId, now: Option<Shown>, at: Instant) -> bool {
        let Some(now) = now else {
            self.line.put_off(id, None);
            return false;
        };
        match self.given.get(&id).and_then(|given| given.state).filter(|before| before.shown == now) {
            Some(before) if before.is_acknowledged => self.line.put_off(id, None),
            Some(before) if at < before.again_at => self.line.put_off(id, Some(before.again_at)),
            Some(_) | None => return true,
        }
        false
    }

    /// There was no room for the message of a job: it is the next.
    pub(super) fn back(&mut self, id: JobId) {
        self.line.back(id);
    }

    /// The state of a job is given, as a message with these ids.
    pub(super) fn give_state(&mut self, id: JobId, shown: Shown, ids: Ids, now: Instant) {
        let given = self.given.entry(id).or_default();
        given.state = Some(State { shown, is_acknowledged: false, again_at: now + AGAIN_AFTER });
        self.put_names(id, ids.job.into_iter().chain([ids.message]).collect());
    }

    /// Returns which of the messages about an outcome, with these ids, are given: those that were not acknowledged, as
    /// long as there is room. The others are the next.
    pub(super) fn give_outcome(&mut self, id: JobId, all: &[Ids], has_room: impl FnMut(usize) -> bool) -> Part {
        let given = self.given.entry(id).or_default();
        given.state = None;
        let part = given.outcome.give(all, has_room);
        if matches!(part, Part::Beginning(_)) {
            self.line.back(id);
        }
        let names: BTreeSet<Box<str>> = all.iter().flat_map(|ids| ids.job.iter().cloned()).collect();
        let ids = given.outcome.ids.clone();
        self.put_names(id, names.into_iter().chain(ids).collect());
        part
    }

    fn put_names(&mut self, id: JobId, names: Vec<Box<str>>) {
        let Some(given) = self.given.get_mut(&id) else { return };
        for name in std::mem::take(&mut given.names) {
            self.names.remove(&(name, id));
        }
        self.names.extend(names.iter().map(|name| (name.clone(), id)));
        given.names = names;
    }

    /// Takes note of an acknowledgement: by the id of one message, or by a name of the job, which stands for all that
    /// was given about it. Returns the jobs whose outcome the recipient has.
    pub(super) fn acknowledge(&mut self, name: &str) -> Vec<JobId> {
        let from = (Box::from(name), JobId::of_row(Seq(0), uuid::Uuid::nil()));
        let named = self.names.range(from..).take_while(|(of, _)| **of == *name);
        let jobs: Vec<JobId> = named.map(|(_, id)| *id).collect();
        jobs.into_iter().filter(|id| self.acknowledge_of(*id, name)).collect()
    }

    fn acknowledge_of(&mut self, id: JobId, name: &str) -> bool {
        let Some(given) = self.given.get_mut(&id) else { return false };
        if let Some(state) = &mut given.state {
            state.is_acknowledged = true;
            self.line.put_off(id, None);
            return false;
        }
        given.outcome.acknowledge(name);
        given.outcome.is_acknowledged()
    }

    /// A job is no longer owed.
    pub(super) fn forget(&mut self, id: JobId) {
        self.line.forget(id);
        for name in self.given.remove(&id).into_iter().flat_map(|given| given.names) {
            self.names.remove(&(name, id));
        }
    }

    pub(super) fn expect(&mut self, owed: u64) {
        self.line.expect(owed);
    }

    /// Returns when something comes again, if nothing happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        self.line.due()
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
}

impl Outcome {
    fn give(&mut self, all: &[Ids], mut has_room: impl FnMut(usize) -> bool) -> Part {
        self.acknowledged.resize(all.len(), false);
        if self.is_acknowledged() {
            return Part::Acknowledged;
        }
        let mut part = Vec::new();
        let mut at = self.next;
        while at < all.len() && (self.acknowledged[at] || has_room(at)) {
            part.extend((!self.acknowledged[at]).then_some(at));
            at += 1;
        }
        self.ids.extend(all[..at].iter().skip(self.ids.len()).map(|ids| ids.message.clone()));
        if at < all.len() {
            self.next = at;
            return Part::Beginning(part);
        }
        self.next = 0;
        Part::Rest(part)
    }

    fn acknowledge(&mut self, name: &str) {
        match self.ids.iter().position(|id| **id == *name) {
            Some(at) => self.acknowledged[at] = true,
            None => self.acknowledged[..self.ids.len()].fill(true),
        }
    }

    /// Whether the recipient has acknowledged the last message, which ends the job.
    fn is_acknowledged(&self) -> bool {
        self.ids.len() == self.acknowledged.len() && self.acknowledged.last() == Some(&true)
    }
}

#[cfg(test)]
mod tests;
