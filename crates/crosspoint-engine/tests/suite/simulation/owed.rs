//! Recipients that are owed outcomes: each is owed until it was told, whatever is lost in between, and never again.

use crosspoint_engine::core::{Command, Reply};
use crosspoint_engine::id::JobId;

use super::disk::Disk;
use super::model::Model;
use super::rule::{Verdict, ensure};
use super::world::World;

impl World {
    /// Says that a recipient was told of a job: mostly of one that has ended, sometimes again or too early.
    pub(crate) fn tell_some(&mut self) {
        if self.model.jobs.is_empty() || !self.dice.percent(20) {
            return;
        }
        let at = self.dice.below(self.model.jobs.len() as u64) as usize;
        let Some(id) = self.model.jobs.values().nth(at).map(|job| job.request.id) else { return };
        // The number of another job of the same store, with an id that was never given.
        let id = if self.dice.percent(5) { JobId::new(id.seq(), self.model.wall(), self.dice.next()) } else { id };
        self.post(0, Command::Told(id));
    }

    /// Checks that telling was refused exactly where there is no outcome to tell.
    pub(crate) fn is_told(&mut self, id: JobId, reply: &Reply) -> Verdict {
        let (too_early, what) = self.model.hears_of_telling(id);
        self.count(what);
        ensure!(matches!(reply, Reply::Job(_)) == too_early, "telling was answered with {reply:?}");
        Ok(())
    }
}

impl Model {
    /// A recipient was told of a job. Returns whether that must be refused, because there is no outcome to tell.
    fn hears_of_telling(&mut self, id: JobId) -> (bool, &'static str) {
        let Some(job) = self.jobs.get_mut(&id.seq()).filter(|job| job.request.id == id) else {
            return (false, "told of nothing");
        };
        if job.outcome.is_none() {
            return (true, "told too early");
        }
        (false, if std::mem::replace(&mut job.told, true) { "told the outcome again" } else { "told the outcome" })
    }

    /// Checks that exactly the outcomes are owed that were not told. A job is owed from its acceptance on.
    pub(crate) fn check_owed(&self, disk: &Disk) -> Verdict {
        for (seq, job) in self.jobs.iter().filter(|(_, job)| !job.purged) {
            let due = job.request.notify.as_ref().filter(|_| !job.told);
            let owed = disk.owed.get(seq);
            ensure!(owed == due, "the outcome of job {} is owed to {owed:?}, not to {due:?}", seq.0);
        }
        let strays = disk.owed.keys().find(|seq| !disk.jobs.contains_key(seq));
        ensure!(strays.is_none(), "the outcome of {strays:?} is owed, and it is gone");
        Ok(())
    }
}
