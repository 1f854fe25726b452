//! Outcomes that recipients are owed.
//!
//! A request may name a recipient that is to be told the outcome. From its acceptance on, the outcome is owed: that is
//! written in the same commit as the job, and removed only when the recipient is known to have been told. So a crash
//! loses no notice. A recipient may be told twice, if the orchestrator ends between the two.

use super::{Batch, Core, Reply};
use crate::id::JobId;

impl Core {
    /// Notes that the recipient was told the outcome. A job that has not ended has none, so it stays owed. Telling it
    /// again changes nothing.
    pub(super) fn told(&self, id: JobId, batch: &mut Batch) -> Reply {
        if let Some(job) = self.job(id.seq()).filter(|job| job.id() == id) {
            return Reply::Job(job.clone());
        }
        batch.told.push(id);
        Reply::Done
    }
}
