//! One job, from its turn to its outcome.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure as Why, Repeat};
use crosspoint_contracts::outcome::{Outcome, Text, text_within};
use crosspoint_contracts::reply::{Failed, Given, Success};
use futures_util::FutureExt;
use tokio::time::{Instant, sleep, sleep_until};

use crate::handler::{Boxed, Done};
use crate::record::{Asked, Job};
use crate::{Context, Failure};

/// How long a handler that is told to stop may go on.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a handler. The job may have its outcome before: a caller that cancels does not wait for the handler.
pub(crate) async fn run(handler: &Boxed, job: &Job, asked: &Asked, context: Context) -> Outcome {
    let deadline = async {
        match asked.deadline {
            Some(deadline) => sleep_until(Instant::from_std(deadline)).await,
            None => std::future::pending().await,
        }
    };
    // A handler may also panic before it returns its future.
    let doing = async { handler(asked.input.bytes().clone(), context.clone()).await };
    let doing = AssertUnwindSafe(doing).catch_unwind();
    tokio::pin!(doing);
    let done = tokio::select! {
        done = &mut doing => done.unwrap_or_else(|_| Err(Failure::new("the handler panicked").code("PANIC"))),
        () = stopped(job) => Err(Failure::cancelled()),
        () = deadline => {
            job.stop().cancel();
            let _ = tokio::time::timeout(GRACE, doing).await;
            return outcome_of(Err(Failed::of(Why::Timeout, Dispatched::Yes)), &context);
        }
    };
    outcome(done, &context)
}

/// Waits until the job was told to stop and its handler had time to do so.
async fn stopped(job: &Job) {
    job.stop().cancelled().await;
    sleep(GRACE).await;
}

/// Makes the outcome of what a handler gave back.
fn outcome(done: Done, context: &Context) -> Outcome {
    match done {
        Ok(outputs) => outcome_of(Ok(outputs), context),
        Err(failure) => outcome_of(Err(failure.failed()), context),
    }
}

fn outcome_of(done: Result<String, Failed>, context: &Context) -> Outcome {
    let (printed, artifacts) = context.given();
    let text = (!printed.is_empty()).then(|| Body::of(&String::from_utf8_lossy(&printed)));
    match done {
        Ok(outputs) => {
            // A handler that gives nothing and prints has printed its output (ALL-8).
            let (outputs, text) = match text {
                Some(text) if outputs == "null" => {
                    let outputs = Body::trusted(format!("{{\"output\":{}}}", text.get()));
                    let within = text_within(&outputs).map(Text::Within);
                    (outputs, within)
                }
                text => {
                    let outputs = Body::trusted(if outputs == "null" { "{}".to_owned() } else { outputs });
                    let within = text_within(&outputs).map(Text::Within);
                    (outputs, text.map(Text::Beside).or(within))
                }
            };
            Outcome::completed(Success { outputs: Some(outputs), text, artifacts, ..Success::default() })
        }
        Err(failed) => {
            let given = Given { text: text.map(Text::Beside), artifacts, ..Given::default() };
            let repeat = failed.repeat.unwrap_or_else(|| failed.failure.repeat(failed.dispatched));
            Outcome::failed(Failed { given: given.if_any(), ..failed }, repeat)
        }
    }
}

/// Returns whether an outcome is remembered: the same request gets it again (MSG-8). After a failure that may be tried
/// again, the handler runs again.
pub(crate) fn is_kept(outcome: &Outcome) -> bool {
    !matches!(outcome.why(), Some((_, Repeat::Safe)))
}

/// The outcome of a job that its caller cancelled.
pub(crate) fn cancelled() -> Arc<Outcome> {
    let failed = Failed::of(Why::Cancelled, Dispatched::Yes);
    Arc::new(Outcome::failed(failed, Why::Cancelled.repeat(Dispatched::Yes)))
}
