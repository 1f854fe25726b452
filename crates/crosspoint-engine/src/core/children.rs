//! Jobs that are stages of other jobs. A stage has no use without the job that has it done, so it ends with that job,
//! in the same commit: no crash can leave a stage at work for a job that was cancelled.

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use super::{Batch, Core, Rejected, Submission};
use crate::job::Request;
use crate::machine::Event;

impl Core {
    pub(super) fn add_child(&mut self, request: &Request) {
        if let Some(parent) = request.child_of() {
            self.children.entry(parent).or_default().insert(request.id.seq());
        }
    }

    pub(super) fn remove_child(&mut self, request: &Request) {
        let Some(parent) = request.child_of() else { return };
        let Some(children) = self.children.get_mut(&parent) else { return };
        children.remove(&request.id.seq());
        if children.is_empty() {
            self.children.remove(&parent);
        }
    }

    /// Checks that the job whose stage is asked for goes on: it may have ended while its attempt was asking.
    pub(super) fn check_parent(&self, request: &Request) -> Result<(), Rejected> {
        let Some(parent) = request.child_of() else { return Ok(()) };
        let id = self.ids.read(parent);
        let is_live = self.job(id.seq()).is_some_and(|job| job.id() == id);
        if is_live { Ok(()) } else { Err(Rejected::ParentEnded) }
    }

    /// Stores the step that the parent has come to with a new stage.
    pub(super) fn step_of_parent(&mut self, submission: &Submission, now: Time, batch: &mut Batch) {
        if let (Some(parent), Some((attempt, step))) = (submission.request.child_of(), &submission.step) {
            let event = Event::Step { attempt: *attempt, step: step.clone() };
            // An attempt that is over stores nothing, and its stage ends with the job.
            let _ = self.apply_event(self.ids.read(parent).seq(), event, now, batch);
        }
    }

    /// Cancels the stages of a job that has ended.
    pub(super) fn end_children(&mut self, parent: Uuid, now: Time, batch: &mut Batch) {
        for seq in self.children.remove(&parent).unwrap_or_default() {
            // A stage that cannot be cancelled has ended.
            let _ = self.apply_event(seq, Event::Cancel, now, batch);
        }
    }
}
