//! Outcomes that recipients are owed, and that they were told. Who tells them is up to the program around the engine.

use std::sync::Arc;

use super::engine::Engine;
use super::inbox::Answer;
use super::requests::Denied;
use crate::core::{Command, Reply};
use crate::id::{JobId, Seq};
use crate::job::Job;
use crate::store::{Fault, Owed, OwedCount};

impl Engine {
    /// Notes that the recipient was told the outcome of a job. When it returns, that is on disk. It may be called
    /// again, and for a job that is no longer there. Fails for a job that has not ended: there is no outcome to tell.
    pub async fn told(&self, id: JobId) -> Result<(), Denied> {
        let answer = self.inbox().put(Command::Told(id)).map_err(|_| Denied::Closed)?;
        match answer.await {
            Ok(Answer::Committed { reply: Reply::Job(job), .. }) => Err(Denied::NotEnded(job)),
            Ok(Answer::Committed { .. }) => Ok(()),
            Ok(Answer::Failed(fault)) => Err(Denied::Fault(fault)),
            Ok(Answer::NotTried(fault)) => Err(Denied::NotTried(fault)),
            Err(_) => Err(Denied::Lost),
        }
    }

    /// Returns jobs whose outcome this recipient is owed, after the job `after`, in the order in which they were
    /// accepted. Jobs that have not ended are among them.
    pub async fn owed(&self, recipient: &str, after: Option<Seq>, limit: usize) -> Result<Vec<Owed>, Fault> {
        let recipient: Arc<str> = recipient.into();
        self.read(move |readers| readers.owed(&recipient, after, limit)).await
    }

    /// Returns the recipients that are owed outcomes of jobs that have ended, ordered by name.
    pub async fn owed_counts(&self) -> Result<Vec<OwedCount>, Fault> {
        self.read(crate::store::Readers::owed_counts).await
    }

    /// Returns the recipient that is owed the outcome of this job; `None` if none is, or if it was told.
    pub async fn owed_to(&self, job: &Job) -> Result<Option<Arc<str>>, Fault> {
        if job.request.notify.is_none() {
            return Ok(None);
        }
        let seq = job.seq();
        self.read(move |readers| readers.owed_to(seq)).await
    }
}
