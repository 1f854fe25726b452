//! The jobs of which a recipient is to be told, in order.
//!
//! What is owed is in the store. The line has the jobs that come next, and those that wait for their time; it has a
//! limit, so that a recipient that is away for a day costs no memory. Jobs that find no room are left to the store, and
//! the line says from where on it wants to be filled from there, a page at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use crosspoint_engine::id::{JobId, Seq};

/// Most jobs that come next.
const NEXT_MAX: usize = 1_000;

/// Most jobs that wait for their time.
const LATER_MAX: usize = 100_000;

/// Most jobs that are read from the store at a time. The line asks for them when it has room for them all.
pub(super) const PAGE_MAX: usize = 250;

#[derive(Debug)]
pub(super) struct Line {
    next: VecDeque<JobId>,
    later: BTreeSet<(Instant, JobId)>,
    /// Where each job is that the line knows.
    places: BTreeMap<JobId, Place>,
    /// Jobs that had not ended when the line last heard of them.
    live: BTreeSet<JobId>,
    /// Whether the next job is one of `later`, if its time has come: neither list may hold up the other.
    is_laters_turn: bool,
    /// The pass through the store that is under way, if there is one.
    pass: Option<StorePass>,
    /// Whether jobs were left to the store since that pass began.
    left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Next,
    Later(Instant),
    /// It was handed out.
    Out {
        /// Whether something has happened to the job meanwhile.
        moved: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StorePass {
    /// The last job that was read.
    after: Option<Seq>,
    /// Whether a page is being read.
    is_reading: bool,
}

impl Line {
    /// Makes a line that has everything in the store before it.
    pub(super) fn behind() -> Line {
        Line {
            next: VecDeque::new(),
            later: BTreeSet::new(),
            places: BTreeMap::new(),
            live: BTreeSet::new(),
            is_laters_turn: false,
            pass: None,
            left: true,
        }
    }

    /// Something has happened to a job that goes on. A job that waits for its time goes on waiting.
    pub(super) fn moved(&mut self, id: JobId) {
        self.live.insert(id);
        self.stirred(id);
    }

    /// Something has happened to a job that is worth telling now: it may have ended.
    pub(super) fn hurry(&mut self, id: JobId, has_ended: bool) {
        if let Some(Place::Later(_)) = self.places.get(&id) {
            self.forget(id);
        }
        if has_ended {
            self.live.remove(&id);
        } else {
            self.live.insert(id);
        }
        self.stirred(id);
    }

    fn stirred(&mut self, id: JobId) {
        match self.places.get_mut(&id) {
            Some(Place::Out { moved }) => *moved = true,
            Some(Place::Next | Place::Later(_)) => {}
            None => self.enqueue(id),
        }
    }

    /// Hands out the next job. It must come back by `later`, `back` or `done`.
    pub(super) fn next(&mut self, now: Instant) -> Option<JobId> {
        let due = self.later.first().copied().filter(|(due, _)| *due <= now);
        let is_later = due.is_some() && (self.is_laters_turn || self.next.is_empty());
        let id = if is_later { self.later.pop_first().map(|(_, id)| id) } else { self.next.pop_front() }?;
        self.is_laters_turn = !is_later;
        self.places.insert(id, Place::Out { moved: false });
        Some(id)
    }

    /// Hands out the job that came last, or one whose time has come. Where nothing is taken, a job that was not tried
    /// yet tells more than one that was, however many of those there are.
    pub(super) fn newest(&mut self, now: Instant) -> Option<JobId> {
        let Some(id) = self.next.pop_back() else { return self.next(now) };
        self.places.insert(id, Place::Out { moved: false });
        Some(id)
    }

    /// A job that was handed out waits for its time. Returns whether there is room for it; otherwise it is left to the
    /// store.
    pub(super) fn later(&mut self, id: JobId, due: Instant) -> bool {
        let Some(Place::Out { .. }) = self.places.get(&id) else { return true };
        self.places.remove(&id);
        if self.later.len() >= LATER_MAX {
            self.left = true;
            return false;
        }
        self.later.insert((due, id));
        self.places.insert(id, Place::Later(due));
        true
    }

    /// A job that waits for its time has another time, or none: then it comes again only if something happens to it. A
    /// job to which something has happened is left in its place.
    pub(super) fn put_off(&mut self, id: JobId, due: Option<Instant>) {
        let Some(Place::Later(_)) = self.places.get(&id) else { return };
        self.forget(id);
        if let Some(due) = due {
            self.later.insert((due, id));
            self.places.insert(id, Place::Later(due));
        }
    }

    /// A job is not finished with, and is the next again.
    pub(super) fn back(&mut self, id: JobId) {
        if self.places.contains_key(&id) {
            self.forget(id);
            self.next.push_front(id);
            self.places.insert(id, Place::Next);
        }
    }

    /// A job that was handed out has been told as it was then. If something has happened to it meanwhile, it is in the
    /// line again.
    pub(super) fn done(&mut self, id: JobId) {
        let Some(Place::Out { moved }) = self.places.get(&id).copied() else { return };
        self.places.remove(&id);
        if moved {
            self.enqueue(id);
        }
    }

    /// Whether a job was handed out and has not come back, and is still owed.
    pub(super) fn is_out(&self, id: JobId) -> bool {
        matches!(self.places.get(&id), Some(Place::Out { .. }))
    }

    /// This many jobs that have ended are owed. If the line knows of fewer, the others are in the store.
    pub(super) fn expect(&mut self, owed: u64) {
        self.live.retain(|id| self.places.contains_key(id));
        self.left |= ((self.places.len() - self.live.len()) as u64) < owed;
    }

    /// A job is no longer owed.
    pub(super) fn forget(&mut self, id: JobId) {
        match self.places.remove(&id) {
            Some(Place::Later(due)) => drop(self.later.remove(&(due, id))),
            Some(Place::Next) => self.next.retain(|other| *other != id),
            Some(Place::Out { .. }) | None => {}
        }
    }

    /// Returns when the next job's time comes, of those that wait for it.
    pub(super) fn due(&self) -> Option<Instant> {
        self.later.first().map(|(due, _)| *due)
    }

    /// Whether a job could be handed out now.
    pub(super) fn has_next(&self, now: Instant) -> bool {
        !self.next.is_empty() || self.due().is_some_and(|due| due <= now)
    }

    /// Returns from where on the line wants to be filled from the store, if it has room. The answer is `filled` or
    /// `unfilled`; until then nothing more is wanted.
    pub(super) fn wants(&mut self) -> Option<Option<Seq>> {
        if self.next.len() + PAGE_MAX > NEXT_MAX {
            return None;
        }
        if self.pass.is_none() && std::mem::take(&mut self.left) {
            self.pass = Some(StorePass { after: None, is_reading: false });
        }
        let pass = self.pass.as_mut().filter(|pass| !pass.is_reading)?;
        pass.is_reading = true;
        Some(pass.after)
    }

    /// A page was read: all that is owed after the last page if `is_last`, else the next of it.
    pub(super) fn filled(&mut self, page: &[JobId], is_last: bool) {
        for id in page.iter().filter(|id| !self.places.contains_key(id)).copied().collect::<Vec<_>>() {
            self.next.push_back(id);
            self.places.insert(id, Place::Next);
        }
        let after = page.last().map(|id| id.seq());
        self.pass = (!is_last && after.is_some()).then_some(StorePass { after, is_reading: false });
    }

    /// A page could not be read.
    pub(super) fn unfilled(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.is_reading = false;
        }
    }

    fn enqueue(&mut self, id: JobId) {
        if self.next.len() >= NEXT_MAX {
            self.left = true;
            return;
        }
        self.next.push_back(id);
        self.places.insert(id, Place::Next);
    }
}

#[cfg(test)]
mod tests;
