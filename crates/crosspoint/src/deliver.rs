//! Telling recipients what becomes of jobs: callers that did not wait for the outcome.
//!
//! Who is owed an outcome is in the store, from the commit that accepts the job to the commit that notes that the
//! recipient was told. So nothing here has to survive a crash: a start takes up what is owed, and a message whose
//! acknowledgement was lost is sent again, with the same id. A recipient is told at its address, or it pulls, or both:
//! whichever way it acknowledges the outcome first ends the other.
//!
//! In reading order: [`telling`] says which documents tell a job, and [`message`] which these are; [`mod@line`],
//! [`gate`], [`outbox`] and [`mailbox`] decide what is sent and given when, without a clock; [`correspondence`] is what
//! is under way to one recipient; [`document`] makes documents of jobs, [`sender`] posts them, [`pull`] hands them out;
//! [`count`] and [`standing`] are for people.

mod correspondence;
mod count;
mod document;
mod gate;
mod line;
mod mailbox;
pub(crate) mod message;
mod outbox;
mod pull;
mod sender;
mod standing;
mod telling;
mod trouble;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosspoint_engine::runtime::{Engine, Watch};
use futures_util::future::join_all;
use reqwest::Url;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::correspondence::Correspondence;
use crate::config::{Caller, Token};

pub(crate) use self::count::Numbers;
pub(crate) use self::standing::{Failing, OwedJob, Standing};
pub(crate) use self::telling::Telling;

/// Most content that is on its way to recipients in documents at a time, in KiB. Of text that programs printed the
/// engine has its own limit.
const DOCUMENTS_KIB_MAX: usize = 64 << 10;

/// How long things take.
#[derive(Clone, Copy)]
struct Times {
    /// Longest time in which a recipient answers.
    answer_max: Duration,
    /// Longest time between two counts of what is owed.
    count_max: Duration,
    /// How long an outcome is owed before it is looked for in the store, if nobody has named its job: the request that
    /// brought the job may have been given up by its caller as soon as the job was on disk.
    missed_after: Duration,
}

const TIMES: Times = Times {
    answer_max: Duration::from_secs(10),
    count_max: Duration::from_secs(60),
    missed_after: Duration::from_secs(60),
};

/// A recipient, as it is configured.
pub(crate) struct Recipient {
    pub(crate) name: Arc<str>,
    /// The address at which it is told. Without it the recipient pulls.
    pub(crate) callback: Option<Url>,
    /// The token that is presented there.
    pub(crate) token: Option<Token>,
}

/// All recipients, and what they are being told.
pub(crate) struct Deliveries {
    engine: Engine,
    telling: Telling,
    recipients: BTreeMap<Arc<str>, Arc<Correspondence>>,
    times: Times,
    /// The room for documents that are on their way, in KiB.
    room: Arc<Semaphore>,
    /// Wakes the count of what is owed.
    changed: Arc<Notify>,
    owed: Mutex<BTreeMap<Arc<str>, u64>>,
    /// Cancelled when nothing more is begun.
    closing: CancellationToken,
    /// Cancelled when messages that are on their way are not waited for any longer.
    cut: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Deliveries {
    /// Takes up everything that is owed, on the caller's tokio runtime.
    pub(crate) fn start(engine: Engine, recipients: Vec<Recipient>, telling: Telling) -> Arc<Deliveries> {
        Deliveries::start_with(engine, recipients, telling, TIMES)
    }

    fn start_with(engine: Engine, recipients: Vec<Recipient>, telling: Telling, times: Times) -> Arc<Deliveries> {
        let (closing, changed) = (CancellationToken::new(), Arc::new(Notify::new()));
        let correspondences = recipients.into_iter().map(|recipient| {
            let correspondence = Correspondence::new(recipient, telling.path, changed.clone(), closing.clone());
            (correspondence.name.clone(), Arc::new(correspondence))
        });
        let deliveries = Arc::new(Deliveries {
            engine,
            recipients: correspondences.collect(),
            telling,
            times,
            room: Arc::new(Semaphore::new(DOCUMENTS_KIB_MAX)),
            changed,
            owed: Mutex::default(),
            closing,
            cut: CancellationToken::new(),
            tasks: Mutex::default(),
        });
        let mut tasks = vec![tokio::spawn(deliveries.clone().count())];
        for to in deliveries.recipients.values().filter(|to| to.callback.is_some()) {
            tasks.push(tokio::spawn(deliveries.clone().send_to(to.clone())));
        }
        *lock(&deliveries.tasks) = tasks;
        deliveries
    }

    /// Tells a recipient what becomes of a job that was just accepted. Its notice is in the store, so a job that is
    /// never given here is told after the next start.
    pub(crate) fn follow(&self, recipient: &str, watch: Watch) {
        if let Some(to) = self.recipients.get(recipient) {
            to.follow(watch, 1);
        }
    }

    /// Ends. Messages that are on their way have until this time to be acknowledged; what is owed stays in the store.
    pub(crate) async fn close(&self, until: Instant) {
        self.closing.cancel();
        let mut tasks = join_all(std::mem::take(&mut *lock(&self.tasks)));
        if tokio::time::timeout_at(until.into(), &mut tasks).await.is_err() {
            self.cut.cancel();
            tasks.await;
        }
    }
}

impl From<&Caller> for Recipient {
    fn from(caller: &Caller) -> Recipient {
        let Caller { name, callback, token, .. } = caller.clone();
        Recipient { name: name.into(), callback, token }
    }
}

/// Each change under these locks is made whole by one call, so a panic elsewhere leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
