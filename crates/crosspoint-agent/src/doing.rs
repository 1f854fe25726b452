//! One job, from its turn to its outcome.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure as Why, Repeat};
use crosspoint_contracts::outcome::{Outcome, Text};
use crosspoint_contracts::printed;
use crosspoint_contracts::reply::{Failed, Given};
use crosspoint_exchange::backend::Followed;
use futures_util::FutureExt;
use tokio::time::{Instant, sleep, sleep_until};

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
        // The handler first: most end at once, and then nothing else has to be watched.
        biased;
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

/// Waits until the caller no longer waits for the work.
pub(crate) async fn expired(asked: &Asked) {
    match asked.deadline {
        Some(deadline) => sleep_until(Instant::from_std(deadline)).await,
        None => std::future::pending().await,
    }
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

/// Makes the outcome of what a handler gave back, with what it said beside that.
fn outcome(done: Done, context: &Context) -> Outcome {
    let outcome = ended(done, context);
    let outcome = if context.is_lossy() { printed::lossy(outcome) } else { outcome };
    Outcome { usage: outcome.usage.or_else(|| context.take_rest()), ..outcome }
}

/// What a failed handler printed and gave is beside its failure.
fn ended(done: Done, context: &Context) -> Outcome {
    let failed = match done {
        Ok(success) => return Outcome::completed(success),
        Err(failed) => failed,
    };
    let given = failed.given.map_or_else(Given::default, |given| *given);
    let text = given.text.or_else(|| context.take_text().map(|text| Text::Beside(Body::of(&text))));
    let artifacts = given.artifacts.or_else(|| context.take_artifacts());
    let repeat = failed.repeat.unwrap_or_else(|| failed.failure.repeat(failed.dispatched));
    Outcome::failed(Failed { given: Given { text, artifacts, ..given }.if_any(), ..failed }, repeat)
}

/// Returns whether an outcome is remembered: the same request gets it again (MSG-8). After a failure that may be tried
/// again, or of an input that the work cannot be done with, the handler runs again. Work that is done at most once is
/// tried again only if nothing was done.
pub(crate) fn is_kept(outcome: &Outcome, at_most_once: bool) -> bool {
    match outcome.why() {
        Some((_, Repeat::Safe) | (Why::Invalid, _)) => false,
        Some((failure, Repeat::Unknown)) => at_most_once || !failure.is_retried(),
        Some((_, Repeat::Never)) | None => true,
    }
}

/// The outcome of a job that ends because its agent does.
pub(crate) fn interrupted() -> Outcome {
    let failed = Failed::said(Why::Unavailable, Dispatched::Yes, "The agent was stopped while it did this work.");
    Outcome::failed(failed, Repeat::Unknown)
}

/// The outcome of a job whose handler was not called.
pub(crate) fn not_begun(failure: Why, message: &str) -> Outcome {
    Outcome::failed(Failed::said(failure, Dispatched::No, message), Repeat::Safe)
}

/// The outcome of a job that its caller cancelled.
pub(crate) fn cancelled() -> Outcome {
    let failed = Failed::of(Why::Cancelled, Dispatched::Yes);
    Outcome::failed(failed, Why::Cancelled.repeat(Dispatched::Yes))
}
