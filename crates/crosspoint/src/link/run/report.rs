//! Reports about an attempt while its stream is read.
//!
//! A report waits for a commit, and the stream must be read meanwhile, because its outcome may be next. So one report
//! is under way at a time, and progress that arrives meanwhile is merged into one waiting report.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::{Duration, Instant};

use crosspoint_contracts::reply::Progress;
use crosspoint_engine::runtime::Attempt;
use futures_util::FutureExt;

/// Shortest time between two signs of life for bytes without progress in them, if that is often enough for the agent's
/// silence.
const LIFE_PERIOD: Duration = Duration::from_secs(1);

/// How often signs of life are reported within the time that the agent may be silent: a report waits for a commit, and
/// one may be late.
const TOLD_PER_SILENCE: u32 = 4;

pub(super) struct Reports<'a> {
    attempt: &'a Attempt,
    under_way: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
    waiting: Option<Progress>,
    told_at: Instant,
    life_period: Duration,
}

impl<'a> Reports<'a> {
    /// `silence` is how long the agent may be silent, if that is limited.
    pub(super) fn new(attempt: &'a Attempt, silence: Option<Duration>) -> Reports<'a> {
        let life_period = life_period(silence);
        Reports { attempt, under_way: None, waiting: None, told_at: Instant::now(), life_period }
    }

    /// Notes that something came, whatever it is.
    pub(super) fn heard(&mut self) {
        if self.under_way.is_none() && self.told_at.elapsed() >= self.life_period {
            let attempt = self.attempt;
            // A job that goes on without this attempt stops it, so there is nothing to do about the result here.
            self.begin(Box::pin(async move { _ = attempt.heard().await }));
        }
    }

    /// Notes how far the agent says it is.
    pub(super) fn progress(&mut self, progress: Progress) {
        let before = self.waiting.take().unwrap_or_default();
        self.waiting = Some(Progress {
            percent: progress.percent.or(before.percent),
            step: progress.step.or(before.step),
            // A report on the beginning says nothing of how far it is.
            document: progress.document.or(before.document),
            began: progress.began.or(before.began),
        });
        self.next();
    }

    /// Returns when a report was made; never if none is under way.
    pub(super) async fn made(&mut self) {
        match &mut self.under_way {
            Some(report) => report.await,
            None => pending().await,
        }
        self.under_way = None;
        self.next();
    }

    /// Hands over what is left. It is not waited for, and yet it is committed before the outcome.
    pub(super) fn last(mut self) {
        // A report has its place in the inbox from the moment its future is first polled.
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
