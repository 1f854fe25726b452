//! Hands messages out to recipients that pull.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Denied;
use crosspoint_http::long;
use futures_util::future::try_join_all;

use super::Deliveries;
use super::correspondence::Correspondence;
use super::count::Result as Counted;
use super::document::Look;
use super::line::PAGE_MAX;
use super::mailbox::Part;
use super::telling::{Ids, Shown};

/// Most bytes of messages in one answer, unless a single message is longer.
const TAKE_BYTES_MAX: usize = 8 << 20;

/// What one pull has so far.
struct Taken {
    messages: Vec<Bytes>,
    /// The jobs that the messages are about.
    jobs: BTreeSet<JobId>,
    bytes: usize,
    max: usize,
    /// Whether there was no room for a message.
    is_full: bool,
}

impl Deliveries {
    /// Takes note of acknowledgements, and returns what the recipient has to be told: at most `max` messages, which
    /// come again if they are not acknowledged. If there is nothing, something is waited for.
    ///
    /// An acknowledgement is the id of a message, or one of the job (see [`Ids`]). One that is not known,
    /// because the server was started anew, means nothing: the message comes again with the same id.
    ///
    /// What is returned is on record as read, if `by` says by whom.
    pub(crate) async fn take(
        &self,
        (recipient, by): (&str, Option<&Arc<str>>),
        max: usize,
        until: Instant,
        acks: &[String],
    ) -> Result<Vec<Bytes>, Denied> {
        let Some(to) = self.recipients.get(recipient) else { return Ok(Vec::new()) };
        for ack in acks {
            let ended = to.mailbox().acknowledge(ack);
            for id in ended {
                self.told_by_pull(to, id).await;
            }
        }
        loop {
            // In this order, so that nothing between the look and the wait is missed.
            let mut news = std::pin::pin!(to.to_give.notified());
            news.as_mut().enable();
            let taken = self.gather(to, max).await;
            let wakes_at = to.mailbox().due().map_or(until, |due| due.min(until));
            if max == 0 || !taken.messages.is_empty() || Instant::now() >= until || self.closing.is_cancelled() {
                // Messages that are not given because this cannot be written come again, like those that got lost.
                let read = by.into_iter().flat_map(|by| taken.jobs.iter().map(move |id| (by, *id)));
                try_join_all(read.map(|(by, id)| self.engine.read_by(by, id, "messages"))).await?;
                return Ok(taken.messages);
            }
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep_until(wakes_at.into()) => {}
                () = self.closing.cancelled() => {}
            }
        }
    }

    async fn gather(&self, to: &Arc<Correspondence>, max: usize) -> Taken {
        let mut taken = Taken { messages: Vec::new(), jobs: BTreeSet::new(), bytes: 0, max, is_full: max == 0 };
        while !taken.is_full {
            self.fill_mailbox(to).await;
            let Some(id) = to.mailbox().next(Instant::now()) else { break };
            let before = taken.messages.len();
            match self.look(to, id).await {
                Look::Gone => to.forget(id),
                // It comes again later.
                Look::Unread => {}
                Look::Live(job) => self.give_state(to, &job, &mut taken),
                Look::Ended(job) => self.give_outcome(to, job, &mut taken).await,
            }
            if taken.messages.len() > before {
                taken.jobs.insert(id);
            }
        }
        (0..taken.messages.len()).for_each(|_| to.counts.add(Counted::Pulled));
        taken
    }

    fn give_state(&self, to: &Correspondence, job: &Job, taken: &mut Taken) {
        let (shown, now) = (Shown::of(job), Instant::now());
        if !to.mailbox().wants_state(job.id(), shown, now) {
            return;
        }
        if let (Some(shown), Some(document)) = (shown, (self.telling.now)(job)) {
            let ids = (self.telling.ids)(&document);
            if taken.push(document) {
                to.mailbox().give_state(job.id(), shown, ids, now);
            } else {
                to.mailbox().back(job.id());
            }
        }
    }

    async fn give_outcome(&self, to: &Correspondence, job: Arc<Job>, taken: &mut Taken) {
        let id = job.id();
        let Some(documents) = self.documents(job).await else { return };
        let all = &documents.all;
        let read = || all.iter().map(|document| (self.telling.ids)(document)).collect::<Vec<Ids>>();
        let ids = long::look(all.iter().map(Bytes::len).sum(), read);
        let part = to.mailbox().give_outcome(id, &ids, |at| taken.push(all[at].clone()));
        if part == Part::Acknowledged || all.is_empty() {
            self.told_by_pull(to, id).await;
        }
    }

    async fn told_by_pull(&self, to: &Correspondence, id: JobId) {
        // If it cannot be written, the job is looked at again later.
        if self.engine.told(id).await.is_ok() {
            to.forget(id);
            tracing::info!(job = %id, caller = &*to.name, "told");
        }
    }

    /// Fills the mailbox from the store. If the store cannot be read, the next pull tries again.
    async fn fill_mailbox(&self, to: &Correspondence) {
        loop {
            let Some(after) = to.mailbox().wants() else { return };
            let mut reading = Reading { to, page: None };
            let Ok(page) = self.engine.owed(&to.name, after, PAGE_MAX).await else { return };
            reading.page = Some(page.iter().map(|owed| owed.id).collect());
        }
    }
}

impl Taken {
    /// Adds a message, if there is room.
    fn push(&mut self, message: Bytes) -> bool {
        let bytes = self.bytes + message.len();
        if self.messages.len() >= self.max || (bytes > TAKE_BYTES_MAX && !self.messages.is_empty()) {
            self.is_full = true;
            return false;
        }
        self.bytes = bytes;
        self.messages.push(message);
        self.is_full = self.messages.len() >= self.max;
        true
    }
}

/// A page that is being read for the mailbox. The recipient may go away meanwhile.
struct Reading<'m> {
    to: &'m Correspondence,
    page: Option<Vec<JobId>>,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        match self.page.take() {
            Some(page) => self.to.mailbox().filled(&page, page.len() < PAGE_MAX),
            None => self.to.mailbox().unfilled(),
        }
        // Another pull may have found nothing because this one was reading.
        self.to.to_give.notify_waiters();
    }
}
