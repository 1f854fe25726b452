//! What follows a commit: it is published, attempts begin and stop, callers are answered, waiting tasks are woken, and
//! the log gets its lines.
//!
//! One task does this, batch after batch, in the tokio runtime in which all of these live. From the committing thread,
//! each wake-up would wake another thread. From within the runtime, wake-ups are entries in a queue, and the committing
//! thread is at its next batch already.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::engine::Engine;
use super::inbox::{Answer, Pending};
use super::log;
use super::published::Load;
use super::pull::{Handed, Instruction};
use crate::core::{Batch, Effect, Reply};
use crate::id::Seq;
use crate::job::Job;
use crate::machine::Action;

/// What follows one batch.
pub(super) struct Release {
    /// What is on disk.
    pub(super) batch: Batch,
    /// The commands, and the replies to them.
    pub(super) answered: Vec<(Pending, Reply)>,
    /// Jobs that changed without anything to write.
    pub(super) unwritten: Vec<Arc<Job>>,
    /// The load of the agents, in order of their names.
    pub(super) load: Vec<Load>,
}

/// Starts the task. It ends when the committing thread does.
pub(super) fn start(engine: &Engine) -> mpsc::UnboundedSender<Release> {
    // The channel needs no bound: behind each entry is a connection or an attempt that waits for it.
    let (sender, mut receiver) = mpsc::unbounded_channel::<Release>();
    let own = engine.clone();
    engine.set_releaser(engine.handle().spawn(async move {
        while let Some(release) = receiver.recv().await {
            own.release(release);
        }
    }));
    sender
}

impl Engine {
    fn release(&self, release: Release) {
        let Release { mut batch, answered, unwritten, load } = release;
        let published = self.published();
        // Counted first, so that a caller that is answered and looks at the numbers finds its job in them.
        self.metrics().released(&batch);
        self.violated().released(&batch);
        // Agents are published first: a reader that sees that a job has ended also sees what that means for its agent.
        for (name, member) in &batch.members {
            self.links().post(name, member.as_ref());
        }
        published.post_members(&batch.members);
        published.post_load(&load);
        for (name, standing) in &batch.agents {
            if let Some(before) = published.post_standing(name, *standing) {
                log::breaker(name, before.breaker, standing.breaker);
            }
        }
        let answer = |(pending, reply): (Pending, Reply)| {
            let watch = accepted(&batch, &reply).map(|job| published.post_new(job));
            (pending.reply, Answer::Committed { reply, watch })
        };
        let answers: Vec<_> = answered.into_iter().map(answer).collect();
        let known = batch.jobs.values().filter(|written| written.accepted.is_none());
        let watched = published.post(known.map(|written| written.job.clone()).chain(unwritten));
        let mut handed = Vec::new();
        for effect in std::mem::take(&mut batch.effects) {
            self.carry_out(effect, &batch, &mut handed);
        }
        self.enqueue(&mut handed);
        for watch in watched {
            watch.wake();
        }
        for (sender, answer) in answers {
            // The caller may have left; the job has not.
            let _ = sender.send(answer);
        }
        log::transitions(&batch);
        for (seq, _, violation) in &batch.violations {
            let job = batch.jobs.get(seq).map(|written| written.job.clone());
            log::violation(*seq, job.or_else(|| Some(published.watch_at(*seq)?.job())).as_deref(), violation);
        }
    }

    /// Carries out one effect. Attempts for the pull queues are collected in `handed`, so that they are queued
    /// together.
    fn carry_out(&self, effect: Effect, batch: &Batch, handed: &mut Vec<Handed>) {
        match effect {
            Effect::Check { agent } => self.check(agent),
            Effect::Job { job, action } => match action {
                Action::Dispatch { attempt } => {
                    // Only a job that was accepted in the same batch has its document in memory.
                    let document = batch.document(job.seq());
                    handed.extend(self.begin(Handed { job, attempt, document, resumed: None }, false));
                }
                Action::Resume { attempt } => {
                    let resumed = job.agent.as_ref().and_then(|name| self.published().lease(name));
                    handed.extend(self.begin(Handed { job, attempt, document: None, resumed }, true));
                }
                Action::Stop { attempt } => {
                    self.with_attempt(job.seq(), attempt, |handle| handle.stop.cancel());
                    self.enqueue(handed);
                    self.tell_queues(&job, attempt, Instruction::Stop);
                }
                Action::Deliver { attempt, answer } => {
                    self.with_attempt(job.seq(), attempt, |handle| handle.deliver(answer));
                    self.enqueue(handed);
                    self.tell_queues(&job, attempt, Instruction::Answered);
                }
                // The core has told the breaker already.
                Action::Mark { .. } => {}
            },
        }
    }

    fn with_attempt(&self, seq: Seq, attempt: u32, act: impl FnOnce(&super::attempt::Handle)) {
        let handle = self.published().attempts().get(&seq).cloned();
        if let Some(handle) = handle.filter(|handle| handle.attempt == attempt) {
            act(&handle);
        }
    }
}

/// Returns the job that a request has become, as it is at the end of the batch.
fn accepted<'b>(batch: &'b Batch, reply: &Reply) -> Option<&'b Arc<Job>> {
    match reply {
        Reply::Accepted(job) => Some(&batch.jobs.get(&job.seq())?.job),
        Reply::Known(_)
        | Reply::MayBeOf(_)
        | Reply::Claimed
        | Reply::Rejected(_)
        | Reply::Job(_)
        | Reply::Refused(_)
        | Reply::NotTheirs
        | Reply::NotLive
        | Reply::Done
        | Reply::NoSuchAgent
        | Reply::Configured
        | Reply::Present
        | Reply::Crowded
        | Reply::OtherContract
        | Reply::Grant(_)
        | Reply::NameTaken
        | Reply::NoSuchGrant
        | Reply::Unusable(_) => None,
    }
}
