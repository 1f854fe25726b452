//! Agents of the bridge contract: a person or a tool that answers in a directory.
//!
//! Here Crosspoint is the requester. A job becomes a request file, and any driver or person may answer it by writing
//! the response beside it; `bridge watch` and `bridge answer` do so. There is one pair of files, so one job at a time
//! is asked; the other jobs wait in the queue. A response that cannot be used stays where it is, and the job goes on
//! waiting, because a person can mend it.
//!
//! The order of the steps makes a crash harmless between any two of them: the answer is taken, the outcome is on disk,
//! and only then the files are removed ([`Link::tidy`]). Files that are left over because the server ended before that
//! are recognised by their id, which is that of a job of this server that has ended, and are cleared away when the next
//! job is asked. [`inbox`] has the steps on disk, [`verdict`] says what an answer is worth, and [`conversation`] is one
//! job's way through them.

mod conversation;
mod inbox;
mod memory;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_bridge::{Fault, failpoint};
use crosspoint_contracts::Contract;
use crosspoint_contracts::clause::all::ALL_129;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::breaker::Health;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use crosspoint_exchange::outgoing::{self, AgentOptions};

use self::conversation::Conversation;
use self::inbox::{Inbox, Which};
use crate::backend::assignment;
use crate::config;

pub(super) struct Bridge {
    inbox: Arc<Inbox>,
    options: AgentOptions,
    /// Whether work that may have begun may begin again, if the operator says so (ALL-3).
    repeatable: Option<bool>,
    /// How long a job may take if its caller does not say.
    total: Duration,
    /// The attempts whose answers were taken, and whose files are still to be removed.
    taken: Mutex<BTreeSet<(JobId, u32)>>,
    /// The last attempt of each job that has begun and is not tidied yet. Its files carry the job's id, as do those of
    /// the attempt before it.
    last: Arc<Mutex<BTreeMap<JobId, u32>>>,
    /// Allows one step in the directory at a time: the files of a job that has ended may be removed while the next one
    /// is already being asked.
    step: Arc<tokio::sync::Mutex<()>>,
}

impl Bridge {
    pub(super) fn new(settled: &config::Agent, files: &config::Bridge, server: &str) -> Bridge {
        let options = AgentOptions {
            contract: Contract::Bridge,
            agent: settled.name.clone(),
            server: server.to_owned(),
            mode: None,
            carry: files.carry,
            agent_type: None,
            agent_types: Arc::default(),
        };
        let bytes_max = usize::try_from(settled.output_bytes_max).unwrap_or(usize::MAX);
        Bridge {
            inbox: Arc::new(Inbox::new(&files.dir, bytes_max)),
            options,
            repeatable: settled.repeatable,
            total: settled.total,
            taken: Mutex::default(),
            last: Arc::default(),
            step: Arc::default(),
        }
    }

    /// Takes one step in the directory, on a thread where waiting for a disk blocks no task.
    async fn files<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Inbox) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        // The lock belongs to the step, and not to the task that waits for it: an attempt may be given up in the middle
        // of one.
        let one = self.step.clone().lock_owned().await;
        let inbox = self.inbox.clone();
        let stepping = tokio::task::spawn_blocking(move || {
            let _one = one;
            step(&inbox)
        });
        match stepping.await {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and everything with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    fn taken(&self) -> MutexGuard<'_, BTreeSet<(JobId, u32)>> {
        lock(&self.taken)
    }

    /// Notes that an attempt begins: from now on, files in the directory under the job's id belong to this attempt.
    fn begins(&self, job: JobId, number: u32) {
        lock(&self.last).insert(job, number);
    }
}

impl Link for Bridge {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move { run(&self, &Arc::new(attempt)).await })
    }

    fn tidy(self: Arc<Self>, job: Arc<Job>, number: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { tidy(&self, job.id(), number).await })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(async move { self.files(|inbox| Ok(inbox.health())).await.unwrap_or(Health::Sick) })
    }
}

async fn run(link: &Bridge, attempt: &Arc<Attempt>) -> Result<Success, Failed> {
    link.begins(attempt.job().id(), attempt.number());
    let document = attempt.document().await?;
    // A request without a timeout is taken to mean two minutes (BRIDGE-110).
    let left = attempt.time_left().unwrap_or(link.total);
    let assignment = assignment(attempt.job(), attempt.number(), &document, Some(left));
    let outgoing = outgoing::request(&assignment, &link.options)?;
    if let Some(lost) = &outgoing.lost {
        attempt.noted(ALL_129.id, ALL_129.level, lost.clone());
    }
    let text = String::from_utf8_lossy(&outgoing.text);
    let mut conversation = Conversation::new(link, attempt);
    let result = tokio::select! {
        // An answer that has come counts, even if the attempt is stopped in this very moment.
        biased;
        result = conversation.work(&text) => result,
        () = attempt.stopped() => Err(super::gone(Gone)),
    };
    // A stop cannot interrupt this.
    conversation.close().await;
    result
}

/// Removes the files of an attempt that is over. An answer that came too late for its job is kept under another name.
async fn tidy(link: &Bridge, job: JobId, number: u32) {
    failpoint::reached("target", "committed");
    let (id, taken) = (job.to_string(), link.taken().remove(&(job, number)));
    let last = link.last.clone();
    let tidied = link.files(move |inbox| {
        // The next attempt clears away the files of this one, and once it has asked their files cannot be told apart.
        if lock(&last).get(&job).is_some_and(|last| *last > number) {
            return Ok(());
        }
        lock(&last).remove(&job);
        inbox.remove(Which::Request, &id)?;
        failpoint::reached("target", "half-tidied");
        if taken { inbox.remove(Which::Response, &id) } else { inbox.set_answer_aside(&id) }
    });
    match tidied.await {
        Ok(()) | Err(Fault::Gone(_)) => {}
        Err(fault) => tracing::warn!(%job, %fault, "the files of a job that is over could not be removed"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn an_attempt_that_is_tidied_late_leaves_the_request_of_the_next_one() {
        let path = std::env::temp_dir().join(format!("crosspoint-target-{}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        let options = AgentOptions {
            contract: Contract::Bridge,
            agent: "human".to_owned(),
            server: "here".to_owned(),
            mode: None,
            carry: true,
            agent_type: None,
            agent_types: Arc::default(),
        };
        let link = Bridge {
            inbox: Arc::new(Inbox::new(&path, 1_000)),
            options,
            repeatable: Some(true),
            total: Duration::from_secs(1),
            taken: Mutex::default(),
            last: Arc::default(),
            step: Arc::default(),
        };
        let job = JobId::new(crosspoint_engine::id::Seq(1), crosspoint_contracts::time::Time(1), 1);
        let document = format!("{{\"request_id\":\"{job}\"}}");
        link.begins(job, 1);
        assert!(link.inbox.put(&document).is_ok_and(|put| put));
        link.taken().insert((job, 1));
        link.begins(job, 2);
        tidy(&link, job, 1).await;
        assert!(link.inbox.has(&job.to_string()).is_ok_and(|there| there), "it is the second attempt's");
        tidy(&link, job, 2).await;
        assert!(link.inbox.has(&job.to_string()).is_ok_and(|there| !there));
        assert!(link.taken().is_empty() && lock(&link.last).is_empty());
        let _ = fs::remove_dir_all(path);
    }
}
