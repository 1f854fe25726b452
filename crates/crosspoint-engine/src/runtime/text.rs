//! Puts the text of an outcome together from what was printed, for a document that is about to be written (ALL-12).

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::printed::{Assembled, Assembly, Printed, TooLong, with_remark};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::engine::Engine;
use super::output::Unread;
use crate::job::{Ending, Job, State};

/// How much text may be put together and on its way to callers at a time, in KiB of what was printed: a dozen of the
/// longest. Further texts wait until the answers with these are sent. As JSON a text may be longer: six times, if it is
/// nothing but control characters.
const TEXTS_KIB_MAX: u32 = 128 << 10;

/// How long a text waits for room. Slow callers may take longer, but then this caller is told to come again.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The room for texts that are being put together, or are on their way to callers.
pub(super) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(TEXTS_KIB_MAX as usize))
}

/// The room that a long text takes. It is to be kept until the answer with the text is sent.
#[derive(Debug)]
pub struct TextRoom {
    _permit: OwnedSemaphorePermit,
}

impl Engine {
    /// Returns the job with the text of its outcome. `href` says where all can be had that was printed by one attempt,
    /// or by all of them. Most jobs are returned as they are: only a long text has to be put together, and takes room.
    pub async fn with_text(
        &self,
        job: Arc<Job>,
        href: impl FnOnce(&Job, Option<u32>) -> String,
    ) -> Result<(Arc<Job>, Option<TextRoom>), Unread> {
        let Some(ending) = job.outcome() else { return Ok((job, None)) };
        let Some(printed) = ending.printed() else {
            // What came of a text of which a part is missing may be in the output of any attempt.
            let Some(outcome) = with_remark(&ending.outcome, || href(&job, None)) else { return Ok((job, None)) };
            return Ok((shown(&job, ending, outcome), None));
        };
        let needed = printed.needed();
        let kib = u32::try_from(needed.end.saturating_sub(needed.start).div_ceil(1 << 10)).unwrap_or(TEXTS_KIB_MAX);
        let room = tokio::time::timeout(WAIT_MAX, self.texts().acquire_many_owned(kib.clamp(1, TEXTS_KIB_MAX))).await;
        // The room is never closed.
        let Ok(Ok(permit)) = room else { return Err(Unread::Busy) };
        let href = href(&job, Some(printed.attempt));
        let assembled = match self.assembled(&job, &ending.outcome, printed, needed).await? {
            Err(TooLong) => self.assembled(&job, &ending.outcome, printed, printed.last()).await?,
            assembled => assembled,
        };
        // The end is never too long: it is a tenth of the limit, and as text at most three times as long.
        let Ok(assembled) = assembled else { return Err(Unread::Busy) };
        let outcome = assembled.into_outcome(&ending.outcome, &href);
        Ok((shown(&job, ending, outcome), Some(TextRoom { _permit: permit })))
    }

    async fn assembled(
        &self,
        job: &Job,
        outcome: &Outcome,
        printed: Printed,
        needed: std::ops::Range<u64>,
    ) -> Result<Result<Assembled, TooLong>, Unread> {
        let mut output = self.output(job.id(), Some(printed.attempt)).await?.ok_or(Unread::Removed)?;
        output.skip(needed.start);
        let mut assembly = Assembly::new(outcome, printed, &needed);
        let mut left = needed.end.saturating_sub(needed.start);
        while left > 0
            && let Some(block) = output.next().await?
        {
            // What came after the result is no part of it.
            let block = block.slice(..block.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            left -= block.len() as u64;
            if let Err(TooLong) = assembly.push(&block) {
                return Ok(Err(TooLong));
            }
        }
        Ok(assembly.finish())
    }
}

/// Returns the job with the outcome that callers are shown.
fn shown(job: &Job, ending: &Ending, outcome: Outcome) -> Arc<Job> {
    let ending = Ending { outcome, ..ending.clone() };
    Arc::new(Job { state: State::Ended(Arc::new(ending)), ..job.clone() })
}
