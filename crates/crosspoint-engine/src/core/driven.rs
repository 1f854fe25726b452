//! Which jobs this orchestrator drives, and how it takes up work that was under way when another one ended.

use std::sync::Arc;

use crosspoint_contracts::time::Time;

use super::{Batch, Core, Mode, Reply};
use crate::breaker;
use crate::id::{JobId, Seq};
use crate::job::Job;
use crate::machine::{End, Event};
use crate::policy::Recovery;

impl Core {
    /// Takes up the work that was under way when the last orchestrator ended. Called once, at the start.
    pub fn resume(&mut self, now: Time, batch: &mut Batch) {
        let names: Vec<Arc<str>> = self.agents.keys().cloned().collect();
        for name in names {
            self.tell_breaker(&name, breaker::Event::Interrupted, now, batch);
        }
        self.doubt_suspects();
        self.leave_stages();
        let is_ours = |seq: &Seq| self.is_driven(*seq) || self.behind.contains(seq);
        let seqs: Vec<Seq> = self.jobs.keys().copied().filter(is_ours).collect();
        for seq in seqs {
            self.resume_job(seq, self.end_of(seq), now, batch);
        }
        self.is_alive(now, batch);
    }

    /// Has the stages of jobs wait until those come to them: a job may have to wait before anything is done for it.
    /// Attempts that died with the last orchestrator are over; another one is not begun, and no time counts meanwhile.
    fn leave_stages(&mut self) {
        let parents = self.children.iter().filter(|(parent, _)| self.job(self.ids.read(**parent).seq()).is_some());
        let stages = parents.flat_map(|(_, stages)| stages.iter().copied());
        let stages: Vec<Seq> = stages.filter(|seq| self.is_driven(*seq) && !self.is_gone_on_with(*seq)).collect();
        for seq in stages {
            self.unwatch(seq);
            self.count(seq, -1);
            self.behind.insert(seq);
        }
    }

    /// Whether the agent of a job goes on with it while no orchestrator runs. It is listened to from the start: what it
    /// has done meanwhile would be lost, and be done again.
    fn is_gone_on_with(&self, seq: Seq) -> bool {
        let Some(job) = self.job(seq).filter(|job| job.running().is_some()) else { return false };
        match self.policy(job).recovery {
            Recovery::Resume | Recovery::ResumeOnce => true,
            Recovery::Rerun | Recovery::Fail => false,
        }
    }

    fn resume_job(&mut self, seq: Seq, end: End, now: Time, batch: &mut Batch) {
        if self.job(seq).is_some_and(|job| self.is_elsewhere(job)) {
            return;
        }
        // Jobs that were not under way are left as they are.
        let _ = self.apply_event(seq, Event::Interrupted(end), now, batch);
        batch.touched.insert(seq);
        // From now on the time in which no orchestrator ran is on disk, together with the time at which it ended.
        if let Some(job) = self.job(seq).filter(|job| super::is_timed(job)).cloned() {
            batch.rewritten(&job);
        }
    }

    /// Takes up one job that was held, as [`Core::resume`] would have at a start that drives everything. A job that is
    /// driven already goes on as it does. While the core rests, nothing is begun, because it would be cut short.
    pub(super) fn take_up(&mut self, id: JobId, now: Time, batch: &mut Batch) -> Reply {
        let seq = id.seq();
        let Some(job) = self.job(seq).filter(|job| job.id() == id).cloned() else { return Reply::NotLive };
        if self.resting || self.is_driven(seq) {
            return Reply::Job(job);
        }
        if !self.behind.remove(&seq) {
            self.taken.insert(seq);
        }
        batch.taken.insert(seq);
        if let Some(live) = self.jobs.get_mut(&seq) {
            Arc::make_mut(&mut live.job).begin_anew(now);
        }
        self.count(seq, 1);
        self.watch(seq);
        // A health check that was under way when a process was killed would keep the job waiting for ever.
        for name in self.works.get(&job.request.work).cloned().unwrap_or_default() {
            self.tell_breaker(&name, breaker::Event::Interrupted, now, batch);
        }
        self.resume_job(seq, self.end_of(seq), now, batch);
        self.job(seq).cloned().map_or(Reply::NotLive, Reply::Job)
    }

    /// Whether the job is a stage under way at an agent that this orchestrator does not have. The agents of a stage may
    /// be known only to the command that drives its run, which takes the stage up with the run: nothing is known of the
    /// work here, and nothing is decided about it.
    pub(super) fn is_elsewhere(&self, job: &Job) -> bool {
        let is_at_work = job.running().is_some() && job.request.child_of().is_some();
        is_at_work && job.agent.as_ref().is_some_and(|agent| !self.agents.contains_key(agent))
    }

    /// Whether this orchestrator drives the job.
    pub(super) fn is_driven(&self, seq: Seq) -> bool {
        let is_aside = self.jobs.get(&seq).is_some_and(|live| live.job.aside.is_some());
        let is_ours = seq >= self.driven_from || self.taken.contains(&seq);
        is_ours && !is_aside && !self.behind.contains(&seq)
    }

    /// Returns which jobs are driven, for a core that replaces this one.
    pub fn mode(&self) -> Mode {
        if self.driven_from == Seq(0) {
            let behind = self.behind.clone();
            return if behind.is_empty() { Mode::Serve } else { Mode::ServeBut { behind } };
        }
        Mode::HeldBefore { first: self.driven_from, taken: self.taken.clone() }
    }
}
