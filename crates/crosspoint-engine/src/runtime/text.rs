//! Puts the text of an outcome together from what was printed, for a document that is about to be written (ALL-12).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::printed::{Assembled, Assembly, Printed, TooLong, with_remark};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::engine::Engine;
use super::output::Unread;
use super::published::lock;
use crate::job::{Ending, Job, State};

/// How much text may be put together and on its way to callers at a time, in KiB of what was printed: a dozen of the
/// longest. Further texts wait until the answers with these are sent. As JSON a text may be longer: six times, if it is
/// nothing but control characters.
const TEXTS_KIB_MAX: u32 = 128 << 10;

/// How long a text waits for room. Slow callers may take longer, but then this caller is told to come again.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How much of it texts of one caller may take, so that slow readers of one leave room for the texts of others.
const CALLER_KIB_MAX: u32 = TEXTS_KIB_MAX / 2;

/// The room for texts that are being put together, or are on their way to callers.
pub(super) struct Texts {
    all: Arc<Semaphore>,
    /// The part of each caller that has a text or waits for one. Callers without a token are not told apart.
    callers: Mutex<BTreeMap<Arc<str>, Weak<Semaphore>>>,
}

/// The room that a long text takes. It is to be kept until the answer with the text is sent.
#[derive(Debug)]
pub struct TextRoom {
    _all: OwnedSemaphorePermit,
    _of_caller: Option<OwnedSemaphorePermit>,
}

impl Texts {
    pub(super) fn new() -> Texts {
        Texts { all: Arc::new(Semaphore::new(TEXTS_KIB_MAX as usize)), callers: Mutex::default() }
    }

    /// Waits for room for a text of this caller; `None` if there is none in time.
    async fn take(&self, caller: &Arc<str>, bytes: u64) -> Option<TextRoom> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX).clamp(1, CALLER_KIB_MAX);
        let both = async {
            let of_caller = match self.of_caller(caller) {
                Some(part) => Some(part.acquire_many_owned(kib).await.ok()?),
                None => None,
            };
            // The room is never closed.
            Some(TextRoom { _all: self.all.clone().acquire_many_owned(kib).await.ok()?, _of_caller: of_caller })
        };
        tokio::time::timeout(WAIT_MAX, both).await.ok()?
    }

    fn of_caller(&self, caller: &Arc<str>) -> Option<Arc<Semaphore>> {
        if caller.is_empty() {
            return None;
        }
        let mut callers = lock(&self.callers);
        if let Some(part) = callers.get(caller).and_then(Weak::upgrade) {
            return Some(part);
        }
        // A part is forgotten with the last text that takes of it.
        callers.retain(|_, part| part.strong_count() > 0);
        let part = Arc::new(Semaphore::new(CALLER_KIB_MAX as usize));
        callers.insert(caller.clone(), Arc::downgrade(&part));
        Some(part)
    }
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
        let bytes = needed.end.saturating_sub(needed.start);
        let Some(room) = self.texts().take(&job.request.caller, bytes).await else { return Err(Unread::Busy) };
        let href = href(&job, Some(printed.attempt));
        let assembled = match self.assembled(&job, &ending.outcome, printed, needed).await? {
            Err(TooLong) => self.assembled(&job, &ending.outcome, printed, printed.last()).await?,
            assembled => assembled,
        };
        // The end is never too long: it is a tenth of the limit, and as text at most three times as long.
        let Ok(assembled) = assembled else { return Err(Unread::Busy) };
        let outcome = assembled.into_outcome(&ending.outcome, &href);
        Ok((shown(&job, ending, outcome), Some(room)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn slow_readers_of_one_caller_leave_room_for_the_texts_of_others() {
        const LONG: u64 = 10 << 20;
        let (texts, busy, calm, open) = (Texts::new(), "busy".into(), "calm".into(), "".into());
        // Only what is there at once.
        let take = async |caller| tokio::time::timeout(Duration::ZERO, texts.take(caller, LONG)).await.ok().flatten();
        let mut held = Vec::new();
        while let Some(room) = take(&busy).await {
            held.push(room);
        }
        assert_eq!(held.len(), 6, "half of the room");
        let others = [take(&calm).await, take(&open).await];
        assert!(others.iter().all(Option::is_some));
        held.pop();
        assert!(take(&busy).await.is_some(), "there is room again");
        drop((held, others));
        assert!(texts.take(&"third".into(), u64::MAX).await.is_some());
        assert_eq!(lock(&texts.callers).len(), 1, "the others are forgotten");
    }
}
