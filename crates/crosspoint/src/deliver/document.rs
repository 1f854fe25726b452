//! From a job to the documents that tell it.

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::TextRoom;
use crosspoint_http::long;
use tokio::sync::OwnedSemaphorePermit;

use super::correspondence::Correspondence;
use super::{DOCUMENTS_KIB_MAX, Deliveries};
use crate::backend::{snapshot, with_text};

/// A job whose recipient is to be told.
pub(super) enum Look {
    /// The job is not owed, or no longer there.
    Gone,
    /// The job has not ended, and is followed.
    Live(Arc<Job>),
    Ended(Arc<Job>),
    /// The store cannot be read at present.
    Unread,
}

/// The documents about an outcome, and the room that they take until they are sent.
pub(super) struct Documents {
    pub(super) all: Vec<Bytes>,
    _room: (Option<OwnedSemaphorePermit>, Option<TextRoom>),
}

impl Deliveries {
    pub(super) async fn look(&self, to: &Arc<Correspondence>, id: JobId) -> Look {
        let watch = match self.engine.job(id).await {
            Ok(Some(watch)) => watch,
            Ok(None) => return Look::Gone,
            Err(_) => return Look::Unread,
        };
        let job = watch.job();
        if job.outcome().is_none() {
            to.follow(watch, job.events);
            return Look::Live(job);
        }
        match self.engine.owed_to(&job).await {
            Ok(Some(owed)) if owed == to.name => Look::Ended(job),
            Ok(_) => Look::Gone,
            Err(_) => Look::Unread,
        }
    }

    /// Writes the documents about the outcome of a job; `None` if it cannot be read at present.
    pub(super) async fn documents(&self, job: Arc<Job>) -> Option<Documents> {
        let kib = (snapshot(&job).outcome_bytes() >> 10).clamp(1, DOCUMENTS_KIB_MAX);
        // The room is never closed.
        let room = self.room.clone().acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX)).await.ok();
        let (job, text) = with_text(&self.engine, job).await.ok()?;
        let bytes = snapshot(&job).outcome_bytes();
        let all = long::look(bytes, || (self.telling.outcome)(&job));
        Some(Documents { all, _room: (room, text) })
    }
}
