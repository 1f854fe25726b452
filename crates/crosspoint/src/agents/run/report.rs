//! What is told of an attempt while its stream is read.
//!
//! To report is to wait for a commit, and a stream must be read meanwhile: its outcome may be next. So one report is under way at
//! a time, and of the progress that comes meanwhile only the sum waits.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::{Duration, Instant};

use crosspoint_contracts::reply::Progress;
use crosspoint_engine::runtime::Attempt;
use futures_util::FutureExt;

/// Bytes without progress in them are told as life no more often than this, where that is often enough.
const LIFE_PERIOD: Duration = Duration::from_secs(1);

/// So many times life is told while silence would run out: a report waits for a commit, and one may be late.
const TOLD_PER_SILENCE: u32 = 4;

pub(super) struct Reports<'a> {
    attempt: &'a Attempt,
    under_way: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
    waiting: Option<Progress>,
    told_at: Instant,
    life_period: Duration,
}

impl<'a> Reports<'a> {
    /// The agent may be silent for so long, where that is limited.
    pub(super) fn new(attempt: &'a Attempt, silence: Option<Duration>) -> Reports<'a> {
        let life_period = life_period(silence);
        Reports { attempt, under_way: None, waiting: None, told_at: Instant::now(), life_period }
    }

    /// Something came, whatever it is.
    pub(super) fn heard(&mut self) {
        if self.under_way.is_none() && self.told_at.elapsed() >= self.life_period {
            let attempt = self.attempt;
            // A job that goes on without this attempt stops it: nothing is to be done about it here.
            self.begin(Box::pin(async move { _ = attempt.heard().await }));
        }
    }

    /// It says how far it is.
    pub(super) fn progress(&mut self, progress: Progress) {
        let before = self.waiting.take();
        let (percent, step) = before.map_or((None, None), |before| (before.percent, before.step));
        self.waiting = Some(Progress {
            percent: progress.percent.or(percent),
            step: progress.step.or(step),
            document: progress.document,
        });
        self.next();
    }

    /// Comes back when a report was made; never where none is under way.
    pub(super) async fn made(&mut self) {
        match &mut self.under_way {
            Some(report) => report.await,
            None => pending().await,
        }
        self.under_way = None;
        self.next();
    }

    /// Hands over what waits. Nobody waits for it any more, and yet it is seen before the outcome.
    pub(super) fn last(mut self) {
        // A report is in its place in the queue from the moment that it is asked about.
        if let Some(report) = self.under_way.take() {
            report.now_or_never();
        }
        self.next();
        if let Some(report) = self.under_way.take() {
            report.now_or_never();
        }
    }

    fn next(&mut self) {
        if self.under_way.is_some() {
            return;
        }
        if let Some(progress) = self.waiting.take() {
            let attempt = self.attempt;
            self.begin(Box::pin(async move { _ = attempt.advanced(progress).await }));
        }
    }

    fn begin(&mut self, report: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) {
        self.told_at = Instant::now();
        self.under_way = Some(report);
    }
}

fn life_period(silence: Option<Duration>) -> Duration {
    silence.map_or(LIFE_PERIOD, |silence| LIFE_PERIOD.min(silence / TOLD_PER_SILENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_may_be_silent_for_a_moment_only_is_heard_of_within_it() {
        let seconds = Duration::from_secs;
        assert_eq!(life_period(Some(seconds(1))), Duration::from_millis(250));
        assert_eq!(life_period(Some(seconds(60))), seconds(1));
        assert_eq!(life_period(None), seconds(1));
    }
}
