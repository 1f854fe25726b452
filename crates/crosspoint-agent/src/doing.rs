//! One job, from its turn to its outcome.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure as Why, Repeat};
use crosspoint_contracts::outcome::{Outcome, Text};
use crosspoint_contracts::reply::{Failed, Given};
use crosspoint_exchange::backend::Followed;
use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use crate::handler::{Boxed, Done};
use crate::record::{Asked, Job, Phase};
use crate::{Context, Failure};

/// How long a handler that is told to stop may go on, unless said otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How long a person is waited for before the time is looked at again.
const ASKING_MAX: Duration = Duration::from_secs(3_600);

/// Runs a handler. The job may have its outcome before: a caller that cancels does not wait for the handler.
pub(crate) async fn run(handler: &Boxed, grace: Duration, job: &Job, asked: &Asked, context: &Context) -> Outcome {
    // A handler may also panic before it returns its future.
    let doing = async { handler(asked.input.bytes().clone(), context.clone()).await };
    let doing = AssertUnwindSafe(doing).catch_unwind();
    tokio::pin!(doing);
    let done = tokio::select! {
        done = &mut doing => done.unwrap_or_else(|_| Err(Failure::new("the handler panicked").code("PANIC").failed())),
        () = stopped(job, grace) => Err(Failure::cancelled().failed()),
        () = out_of_time(job, asked) => {
            job.stop().cancel();
            let _ = tokio::time::timeout(grace, doing).await;
            Err(Failed::of(Why::Timeout, Dispatched::Yes))
        }
    };
    outcome(done, context)
}

/// Waits until the job takes longer than its caller allows.
async fn out_of_time(job: &Job, asked: &Asked) {
    let Some(mut deadline) = asked.deadline.map(Instant::from_std) else { return std::future::pending().await };
    while Instant::now() < deadline {
        let (seen, since) = (job.now(), Instant::now());
        let is_asking = asked.is_asking_free && matches!(seen.phase, Phase::Waiting { .. });
        let until = if is_asking { since + ASKING_MAX } else { deadline };
        job.moved(&seen, until.into_std()).await;
        if is_asking {
            deadline += since.elapsed();
        }
    }
}

/// Waits until the job was told to stop and its handler had time to do so.
async fn stopped(job: &Job, grace: Duration) {
    job.stop().cancelled().await;
    sleep(grace).await;
}

/// Makes the outcome of what a handler gave back. What a failed one printed and gave is beside its failure.
fn outcome(done: Done, context: &Context) -> Outcome {
    let failed = match done {
        Ok(success) => return Outcome::completed(success),
        Err(failed) => failed,
    };
    let given = failed.given.map_or_else(Given::default, |given| *given);
    let text = given.text.or_else(|| context.take_text().map(Text::Beside));
    let artifacts = given.artifacts.or_else(|| context.take_artifacts());
    let repeat = failed.repeat.unwrap_or_else(|| failed.failure.repeat(failed.dispatched));
    Outcome::failed(Failed { given: Given { text, artifacts, ..given }.if_any(), ..failed }, repeat)
}

/// Returns whether an outcome is remembered: the same request gets it again (MSG-8). After a failure that may be tried
/// again, the handler runs again.
pub(crate) fn is_kept(outcome: &Outcome) -> bool {
    !matches!(outcome.why(), Some((_, Repeat::Safe)))
}

/// The outcome of a job that ends because its agent does.
pub(crate) fn interrupted() -> Arc<Outcome> {
    let failed = Failed::said(Why::Unavailable, Dispatched::Yes, "The agent was stopped while it did this work.");
    Arc::new(Outcome::failed(failed, Repeat::Unknown))
}

/// The outcome of a job that its caller cancelled.
pub(crate) fn cancelled() -> Arc<Outcome> {
    let failed = Failed::of(Why::Cancelled, Dispatched::Yes);
    Arc::new(Outcome::failed(failed, Why::Cancelled.repeat(Dispatched::Yes)))
}
