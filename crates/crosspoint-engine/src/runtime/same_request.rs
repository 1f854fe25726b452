//! Whether a request is the same as the one that a job came as (ALL-1).

use std::sync::Arc;

use crosspoint_contracts::json::{Tape, equal};

use super::engine::Engine;
use super::published::Watch;
use crate::core::{Repeats, Submission};
use crate::id::Seq;
use crate::job::{Job, Request};
use crate::keys::{Name, Other};
use crate::store::{Fault, Readers};

impl Engine {
    /// Compares a request with a job whose key has the same hash (ALL-1). Documents may be long, so they are compared
    /// where they are read, and not where callers are served.
    pub(super) async fn compare(&self, submission: &Arc<Submission>, seq: Seq) -> Result<Likeness, Fault> {
        let submission = submission.clone();
        let compare = move |readers: &Readers| {
            let (Some(job), Some(document)) = (readers.job_at(seq)?, readers.document(seq)?) else {
                return Ok(Err(Other { seq, had: 0 }));
            };
            let (of_job, names) = (readers.further_names(seq)?, submission.names());
            let other = Other { seq, had: of_job.len() };
            if job.request.caller != submission.request.caller {
                return Ok(Err(other));
            }
            let is_of_job = |name: &Name| job.request.has_name(name) || of_job.contains(name);
            let (held, lacking): (Vec<_>, Vec<_>) = names.into_iter().partition(|further| is_of_job(&further.name));
            if held.is_empty() {
                return Ok(Err(other));
            }
            let input = job.request.input_in(&document).unwrap_or_default();
            let same = same_origin(&job.request, &submission.request) && same_value(&input, &submission.input());
            let repeats = Repeats { seq, names: lacking, had: of_job.len() };
            Ok(Ok((job, same.then_some(repeats))))
        };
        match self.read(compare).await? {
            Err(other) => Ok(Likeness::OtherKey(other)),
            // The job may have been removed in this moment: then the key is free, and the request becomes a new job.
            Ok((job, Some(repeats))) => Ok(match self.watch(job).await? {
                Some(watch) => Likeness::Same(watch, repeats),
                None => Likeness::OtherKey(Other { seq, had: 0 }),
            }),
            Ok((job, None)) => Ok(Likeness::OtherRequest(Arc::new(job))),
        }
    }
}

/// How a request relates to the job whose key has the same hash.
pub(super) enum Likeness {
    /// It is the request of this job, which may lack some of its names.
    Same(Watch, Repeats),
    OtherRequest(Arc<Job>),
    OtherKey(Other),
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
