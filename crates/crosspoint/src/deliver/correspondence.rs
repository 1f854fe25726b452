//! What is under way to one recipient.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::Watch;
use crosspoint_http::call::{Endpoint, Http};
use reqwest::Url;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::count::Counts;
use super::mailbox::Mailbox;
use super::outbox::Outbox;
use super::{Recipient, lock};
use crate::config::Token;

/// How long a job is waited for at a time. Only the timer needs an end: the wait goes on after it.
const FOLLOW_PERIOD: Duration = Duration::from_secs(3_600);

pub(super) struct Correspondence {
    pub(super) name: Arc<str>,
    pub(super) callback: Option<Callback>,
    outbox: Mutex<Outbox>,
    /// Wakes the sender.
    pub(super) to_send: Notify,
    mailbox: Mutex<Mailbox>,
    /// Wakes the pulls that wait.
    pub(super) to_give: Notify,
    /// The jobs that are followed, so that none is followed twice.
    followed: Mutex<BTreeSet<JobId>>,
    pub(super) counts: Counts,
    /// Wakes the count of what is owed.
    changed: Arc<Notify>,
    closing: CancellationToken,
}

/// The address of a recipient.
pub(super) struct Callback {
    pub(super) url: Url,
    pub(super) http: Http,
    pub(super) endpoint: Endpoint,
}

impl Correspondence {
    pub(super) fn new(to: Recipient, path: &str, changed: Arc<Notify>, closing: CancellationToken) -> Correspondence {
        let callback = to.callback.map(|url| {
            // A redirect may lead to a page that answers anything with 200.
            let http = Http::to_caller(&url, to.token.as_ref().map(Token::reveal));
            Callback { endpoint: http.endpoint(path), url, http }
        });
        Correspondence {
            name: to.name,
            callback,
            outbox: Mutex::new(Outbox::new()),
            to_send: Notify::new(),
            mailbox: Mutex::new(Mailbox::new()),
            to_give: Notify::new(),
            followed: Mutex::default(),
            counts: Counts::default(),
            changed,
            closing,
        }
    }

    pub(super) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    pub(super) fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        lock(&self.mailbox)
    }

    /// Follows a job, of which `seen` events are known, to its end. A task for each job, because each wakes for itself;
    /// it holds the job's watch and nothing else.
    pub(super) fn follow(self: &Arc<Correspondence>, watch: Watch, seen: u32) {
        let id = watch.job().id();
        if !lock(&self.followed).insert(id) {
            return;
        }
        let to = self.clone();
        tokio::spawn(async move {
            to.followed(&watch, id, seen).await;
            lock(&to.followed).remove(&id);
        });
    }

    async fn followed(&self, watch: &Watch, id: JobId, mut seen: u32) {
        loop {
            let until = Instant::now() + FOLLOW_PERIOD;
            let job = tokio::select! {
                job = watch.moved(seen, until) => job,
                () = self.closing.cancelled() => return,
            };
            let has_ended = job.outcome().is_some();
            if has_ended || job.events > seen {
                seen = job.events;
                self.moved(id, has_ended);
            } else if Instant::now() < until {
                // The engine ends all waits when it is about to stop.
                return;
            }
            if has_ended {
                return;
            }
        }
    }

    fn moved(&self, id: JobId, has_ended: bool) {
        if self.callback.is_some() {
            self.outbox().moved(id, has_ended);
            self.to_send.notify_one();
        }
        self.mailbox().moved(id, has_ended);
        self.to_give.notify_waiters();
        if has_ended {
            self.changed.notify_one();
        }
    }

    /// So many outcomes are owed. If fewer are under way, the others are in the store.
    pub(super) fn expect(&self, owed: u64) {
        if self.callback.is_some() {
            self.outbox().expect(owed);
            self.to_send.notify_one();
        }
        self.mailbox().expect(owed);
        self.to_give.notify_waiters();
    }

    /// A job is no longer owed, whichever way its recipient was told.
    pub(super) fn forget(&self, id: JobId) {
        self.outbox().forget(id);
        self.mailbox().forget(id);
        self.changed.notify_one();
    }
}
