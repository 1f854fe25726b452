//! Whether a request is the same as the one that a job came as (ALL-1).

use std::sync::Arc;

use crosspoint_contracts::json::{Tape, equal};
use crosspoint_contracts::request::Key;

use super::engine::Engine;
use super::published::Watch;
use crate::core::Submission;
use crate::id::Seq;
use crate::job::{Job, Request};
use crate::store::{Fault, Readers};

impl Engine {
    /// Compares a request with a job whose key has the same hash (ALL-1). Documents may be long, so they are compared
    /// where they are read, and not where callers are served.
    pub(super) async fn compare(&self, submission: &Arc<Submission>, seq: Seq) -> Result<Likeness, Fault> {
        let submission = submission.clone();
        let compare = move |readers: &Readers| {
            let (Some(job), Some(document)) = (readers.job_at(seq)?, readers.document(seq)?) else { return Ok(None) };
            if !same_key(&job.request, &submission.request) {
                return Ok(None);
            }
            let input = job.request.input_in(&document).unwrap_or_default();
            let same = same_origin(&job.request, &submission.request) && same_value(&input, &submission.input());
            Ok(Some((job, same)))
        };
        match self.read(compare).await? {
            None => Ok(Likeness::OtherKey),
            // The job may have been removed in this moment: then the key is free, and the request becomes a new job.
            Some((job, true)) => Ok(self.watch(job).await?.map_or(Likeness::OtherKey, Likeness::Same)),
            Some((job, false)) => Ok(Likeness::OtherRequest(Arc::new(job))),
        }
    }
}

/// How a request relates to the job whose key has the same hash.
pub(super) enum Likeness {
    Same(Watch),
    OtherRequest(Arc<Job>),
    OtherKey,
}

fn same_key(a: &Request, b: &Request) -> bool {
    // TASK-5: ids are unique, whatever headers came with the requests.
    let same_task = a.door.has_unique_ids() && a.door == b.door && a.request_id == b.request_id;
    let same_key = match (&a.key, &b.key) {
        (Key::RequestId, Key::RequestId) => a.door == b.door && a.request_id == b.request_id,
        (Key::Other(a), Key::Other(b)) => a == b,
        (Key::None | Key::RequestId | Key::Other(_), Key::None | Key::RequestId | Key::Other(_)) => false,
    };
    a.caller == b.caller && (same_key || same_task)
}

/// Whether two requests are for the same work. A retry or a stage of another job is another request, even if its input
/// is the same.
fn same_origin(a: &Request, b: &Request) -> bool {
    a.work == b.work && a.origin == b.origin
}

fn same_value(a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let (Ok(a), Ok(b)) = (Tape::scan(a), Tape::scan(b)) else { return false };
    a.root().zip(b.root()).is_some_and(|(a, b)| equal(a, b))
}
