//! Reports on their way to the server: all that are waiting go in one call, which is repeated until it is acknowledged.

use bytes::Bytes;
use crosspoint_contracts::json::{Tape, Value};
use reqwest::StatusCode;
use tokio::sync::{mpsc, oneshot};

use super::Worker;
use super::lines::say;
use super::link::{Pause, Trouble};
use crate::client::Failed;

/// Most reports in one call, and most bytes of them before no further report is added.
const REPORTS_MAX: usize = 200;
const BYTES_MAX: usize = 4 << 20;

/// Where jobs put their reports.
pub(super) struct Reports(mpsc::UnboundedSender<PendingReport>);

/// The reports that jobs have put there.
pub(super) type Outgoing = mpsc::UnboundedReceiver<PendingReport>;

/// One report, and the channel on which its job waits for the result.
pub(super) struct PendingReport {
    report: String,
    fate: oneshot::Sender<Fate>,
}

/// What became of a report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is on the server's disk.
    Taken,
    /// The server does not want reports about this attempt any more.
    Gone,
    /// The server will never take it, and still believes that the attempt goes on.
    Refused(Refusal),
}

/// Why the server will never take something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    TooLarge,
    Wrong,
}

impl Refusal {
    pub(super) fn of(failed: &Failed) -> Refusal {
        if failed.status() == Some(StatusCode::PAYLOAD_TOO_LARGE) { Refusal::TooLarge } else { Refusal::Wrong }
    }
}

impl Reports {
    pub(super) fn new() -> (Reports, Outgoing) {
        // Each job waits for one report to be acknowledged before it sends the next, so there are never many.
        let (sender, outgoing) = mpsc::unbounded_channel();
        (Reports(sender), outgoing)
    }

    /// Queues a report, and waits until the server has decided on it.
    pub(super) async fn say(&self, report: String) -> Fate {
        let (fate, decided) = oneshot::channel();
        if self.0.send(PendingReport { report, fate }).is_err() {
            return Fate::Gone;
        }
        decided.await.unwrap_or(Fate::Gone)
    }
}

/// Sends queued reports for ever.
pub(super) async fn send(worker: &Worker, mut outgoing: Outgoing) -> Failed {
    let mut pause = Pause::new(worker.link.lease());
    // The worker holds the sending end for as long as it lives.
    while let Some(first) = outgoing.recv().await {
        let mut pending = vec![first];
        let mut bytes = pending[0].report.len();
        while pending.len() < REPORTS_MAX
            && bytes < BYTES_MAX
            && let Ok(next) = outgoing.try_recv()
        {
            bytes += next.report.len();
            pending.push(next);
        }
        if let Err(failed) = deliver(worker, pending, &mut pause).await {
            return failed;
        }
    }
    std::future::pending().await
}

async fn deliver(worker: &Worker, pending: Vec<PendingReport>, pause: &mut Pause) -> Result<(), Failed> {
    let mut waiting = vec![pending];
    while let Some(pending) = waiting.pop() {
        let reports: Vec<&str> = pending.iter().map(|report| report.report.as_str()).collect();
        let body = format!(r#"{{"session":"{}","reports":[{}]}}"#, worker.link.session(), reports.join(","));
        match worker.link.call("report", body.into()).await {
            Ok(answer) => {
                pause.reset();
                let fates = fates(&answer, pending.len()).ok_or_else(|| worker.link.not_ours())?;
                for (report, fate) in pending.into_iter().zip(fates) {
                    let _ = report.fate.send(fate);
                }
            }
            Err(Trouble::Refused(_)) if pending.len() > 1 => waiting.extend(pending.into_iter().map(|one| vec![one])),
            Err(Trouble::Refused(failed)) => {
                say(&format!("the server does not take a report: {failed}"));
                for report in pending {
                    let _ = report.fate.send(Fate::Refused(Refusal::of(&failed)));
                }
            }
            Err(trouble) => {
                waiting.push(pending);
                match worker.mend(trouble).await {
                    Ok(()) => {}
                    Err(Trouble::Refused(failed)) => return Err(failed),
                    Err(Trouble::JoinFirst | Trouble::Away) => pause.wait().await,
                }
            }
        }
    }
    Ok(())
}

/// Reads what became of each report; `None` if the answer is not one of a Crosspoint server.
fn fates(answer: &Bytes, count: usize) -> Option<Vec<Fate>> {
    let tape = Tape::scan(answer).ok()?;
    let words = tape.root()?.get("reports")?.items();
    let is_taken = |word: Value<'_, '_>| word.text().is_some_and(|word| word == *"taken");
    let fates: Vec<Fate> = words.map(|word| if is_taken(word) { Fate::Taken } else { Fate::Gone }).collect();
    (fates.len() == count).then_some(fates)
}
