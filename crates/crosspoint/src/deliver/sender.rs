//! Posts to recipients at their addresses. One task for each recipient decides, and one for each message sends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::wall_clock;
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::Media;
use futures_util::FutureExt;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Deliveries;
use super::correspondence::{Callback, Correspondence};
use super::count::Result as Counted;
use super::document::Look;
use super::line::PAGE_MAX;
use super::outbox::{End, Notable, Sending, Sent};
use super::telling::Shown;
use super::trouble::{Trouble, What};
use crate::backend::trace_of;

/// How much longer than the answer time a recipient has to answer, for each MiB that it is sent.
const MIB_TIME_MAX: Duration = Duration::from_secs(10);

/// How long after a failed read the store is asked again what is owed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The number of the span below the job that telling its recipient is. Attempts have the numbers from 1.
const SPAN: u32 = 0;

impl Deliveries {
    /// Sends to a recipient until the server stops. Messages that are on their way then are waited for.
    pub(super) async fn send_to(self: Arc<Deliveries>, to: Arc<Correspondence>) {
        let mut sends = JoinSet::new();
        let mut store_at = Instant::now();
        while !self.closing.is_cancelled() {
            let now = Instant::now();
            if now >= store_at && !self.fill(&to).await {
                store_at = now + STORE_PAUSE;
            }
            while let Some(sending) = to.outbox().next(Instant::now()) {
                sends.spawn(self.clone().tell_one(to.clone(), sending));
            }
            let wakes_at = to.outbox().wakes_at(Instant::now());
            let wakes_at =
                if store_at > now { Some(wakes_at.map_or(store_at, |at| at.min(store_at))) } else { wakes_at };
            tokio::select! {
                () = self.closing.cancelled() => {}
                () = to.to_send.notified() => {}
                Some(_) = sends.join_next() => {}
                () = sleep_until(wakes_at) => {}
            }
        }
        let all = async { while sends.join_next().await.is_some() {} };
        if self.cut.run_until_cancelled(all).await.is_none() {
            sends.shutdown().await;
        }
    }

    /// Fills the outbox from the store. Returns whether the store can be read.
    async fn fill(&self, to: &Correspondence) -> bool {
        loop {
            let Some(after) = to.outbox().wants() else { return true };
            match self.engine.owed(&to.name, after, PAGE_MAX).await {
                Ok(page) => {
                    let ids: Vec<JobId> = page.iter().map(|owed| owed.id).collect();
                    to.outbox().filled(&ids, page.len() < PAGE_MAX);
                }
                Err(_) => {
                    to.outbox().unfilled();
                    return false;
                }
            }
        }
    }

    /// Tells one job, and takes note of how that went. A defect in a document's making ends that one message.
    async fn tell_one(self: Arc<Deliveries>, to: Arc<Correspondence>, sending: Sending) {
        let telling = AssertUnwindSafe(self.tell(&to, sending)).catch_unwind();
        let unreadable = End::Failed { trouble: Trouble::of(What::Unreadable), taken: sending.taken };
        let sent = telling.await.unwrap_or(Sent { is_acknowledged: false, end: unreadable });
        let now = (Instant::now(), wall_clock::now());
        let notable = to.outbox().sent(sending, sent, now, chance());
        if matches!(sent.end, End::Told | End::Gone) {
            to.forget(sending.id);
        }
        log(&to, sending.id, sent.end, notable);
    }

    async fn tell(&self, to: &Arc<Correspondence>, sending: Sending) -> Sent {
        let unread = End::Failed { trouble: Trouble::of(What::Unreadable), taken: sending.taken };
        let unsent = |end| Sent { is_acknowledged: false, end };
        let Some(callback) = &to.callback else { return unsent(unread) };
        match self.look(to, sending.id).await {
            Look::Gone => unsent(End::Gone),
            Look::Unread => unsent(unread),
            Look::Live(job) => self.tell_state(to, callback, &job, sending).await,
            Look::Ended(job) => self.tell_outcome(to, callback, job, sending).await,
        }
    }

    async fn tell_state(&self, to: &Correspondence, callback: &Callback, job: &Job, sending: Sending) -> Sent {
        let shown = Shown::of(job);
        let is_new = shown.is_some() && shown != sending.shown;
        let document = if is_new { (self.telling.now)(job) } else { None };
        let Some(document) = document else {
            return Sent { is_acknowledged: false, end: End::Known(shown.or(sending.shown)) };
        };
        match self.post(to, callback, document, job).await {
            Ok(()) => Sent { is_acknowledged: true, end: End::Known(shown) },
            Err(trouble) => Sent { is_acknowledged: false, end: End::Failed { trouble, taken: 0 } },
        }
    }

    async fn tell_outcome(&self, to: &Correspondence, callback: &Callback, job: Arc<Job>, sending: Sending) -> Sent {
        let mut taken = sending.taken;
        let sent = |taken: usize, trouble| Sent {
            is_acknowledged: taken > sending.taken,
            end: End::Failed { trouble, taken },
        };
        let Some(documents) = self.documents(job.clone()).await else {
            return sent(taken, Trouble::of(What::Unreadable));
        };
        for document in documents.all.iter().skip(sending.taken) {
            if let Err(trouble) = self.post(to, callback, document.clone(), &job).await {
                return sent(taken, trouble);
            }
            taken += 1;
        }
        // Until this is on disk, the recipient is told again.
        match self.engine.told(sending.id).await {
            Ok(()) => Sent { is_acknowledged: taken > sending.taken, end: End::Told },
            Err(_) => sent(taken, Trouble::of(What::Unreadable)),
        }
    }

    /// Posts one document. Whatever the recipient says beside its status is not looked at.
    async fn post(&self, to: &Correspondence, callback: &Callback, body: Bytes, job: &Job) -> Result<(), Trouble> {
        let mib = u32::try_from(body.len() >> 20).unwrap_or(u32::MAX);
        let time_max = self.times.answer_max + MIB_TIME_MAX.saturating_mul(mib);
        let trace: Trace = trace_of(job, SPAN);
        let posting = callback.http.post(&callback.endpoint, body, &trace, Media::Json);
        let answered = match tokio::time::timeout(time_max, posting).await {
            Ok(Ok(answer)) => {
                let (status, retry_after) = (answer.status, answer.retry_after);
                answer.dismiss().await;
                let what = What::Status(status.as_u16());
                if status.is_success() { Ok(()) } else { Err(Trouble { what, retry_after }) }
            }
            Ok(Err(unanswered)) => Err(unanswered.into()),
            Err(_) => Err(Trouble::of(What::Silent)),
        };
        to.counts.add(match &answered {
            Ok(()) => Counted::Acknowledged,
            Err(trouble) if trouble.is_refusal() => Counted::Refused,
            Err(_) => Counted::Unanswered,
        });
        answered
    }
}

/// Logs ids and statuses. A caller that is away has one line, and not one for each try.
fn log(to: &Correspondence, job: JobId, end: End, notable: Option<Notable>) {
    let caller = &*to.name;
    match (end, notable) {
        (End::Failed { trouble, .. }, Some(Notable::Away)) => {
            tracing::warn!(caller, why = %trouble.text(), "the caller takes no messages; what it is owed is kept");
        }
        (End::Failed { trouble, .. }, Some(Notable::Stumbled)) => {
            tracing::warn!(%job, caller, why = %trouble.text(), "the caller was not told; it is tried again");
        }
        (End::Failed { trouble, .. }, Some(Notable::Back) | None) => {
            tracing::debug!(%job, caller, why = %trouble.text(), "the caller was not told");
        }
        (End::Known(_) | End::Gone, Some(Notable::Back)) => back(caller),
        (End::Told, notable) => {
            notable.into_iter().for_each(|_| back(caller));
            tracing::info!(%job, caller, "told");
        }
        (End::Known(_) | End::Gone, _) => {}
    }
}

fn back(caller: &str) {
    tracing::info!(caller, "the caller takes messages again");
}

async fn sleep_until(wakes_at: Option<Instant>) {
    match wakes_at {
        Some(wakes_at) => tokio::time::sleep_until(wakes_at.into()).await,
        None => std::future::pending().await,
    }
}

/// Returns a number between 0 and 1.
fn chance() -> f64 {
    f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}
