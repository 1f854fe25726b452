//! How long a connection may wait: for its first request, for the rest of a head, and for the next request.
//!
//! A head that has begun must come soon. A connection over which a request was answered may be idle for longer, because
//! agents send a sign of life now and then over the same connection. While a request is being carried out, or its
//! answer waits to be taken, other clocks run.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

use crate::site::Limits;

/// What a connection waits for. The socket and the service say what happens.
pub(crate) struct Pace(Mutex<State>);

#[derive(Clone, Copy, Debug)]
struct State {
    /// Whether a request is being carried out.
    busy: bool,
    /// Whether a part of an answer has not been taken by the caller yet.
    behind: bool,
    /// Whether a request was ever carried out.
    used: bool,
    /// When the first byte of the next head came.
    heard: Option<Instant>,
    /// When the connection began, or bytes were last written.
    since: Instant,
}

/// How a connection is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The first request, or the rest of a head, did not come.
    Head,
    /// No further request came.
    Idle,
    /// Its answer was not taken, and there are too many such.
    Reader,
}

impl State {
    /// Returns when the connection will be late, and how.
    fn deadline(&self, limits: &Limits) -> Option<(Instant, Late)> {
        match (self.busy || self.behind, self.heard, self.used) {
            (true, _, _) => None,
            (false, Some(heard), _) => Some((heard + limits.header_time_max, Late::Head)),
            (false, None, false) => Some((self.since + limits.header_time_max, Late::Head)),
            (false, None, true) => Some((self.since + limits.idle_time_max, Late::Idle)),
        }
    }
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace(Mutex::new(State { busy: false, behind: false, used: false, heard: None, since: now }))
    }

    /// Bytes have come.
    pub(crate) fn heard(&self) {
        let mut state = self.state();
        if !state.busy && state.heard.is_none() {
            state.heard = Some(Instant::now());
        }
    }

    /// Bytes were written, or wait to be taken.
    pub(crate) fn written(&self, behind: bool) {
        let mut state = self.state();
        state.behind = behind;
        if !behind {
            state.since = Instant::now();
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        self.state().behind
    }

    /// A request has come, and is being carried out until the returned value is dropped.
    pub(super) fn asked(&self) -> Asked<'_> {
        let mut state = self.state();
        (state.busy, state.used, state.heard) = (true, true, None);
        Asked(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being carried out.
pub(super) struct Asked<'p>(&'p Pace);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.busy, state.since) = (false, Instant::now());
    }
}

/// Rings when the connection is late.
pub(super) struct Alarm<'p> {
    pace: &'p Pace,
    limits: &'p Limits,
    timer: Pin<Box<Sleep>>,
}

impl<'p> Alarm<'p> {
    pub(super) fn new(pace: &'p Pace, limits: &'p Limits) -> Alarm<'p> {
        let until = pace.state().since + limits.header_time_max;
        Alarm { pace, limits, timer: Box::pin(sleep_until(until.into())) }
    }

    /// Completes when the connection is late. Deadlines mostly move on, so the timer is set anew when it has run out
    /// and not with every request.
    pub(super) fn poll_late(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Late> {
        loop {
            let Some((until, late)) = self.pace.state().deadline(self.limits) else { return Poll::Pending };
            if self.timer.deadline().into_std() > until {
                self.timer.as_mut().reset(until.into());
            }
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() >= until {
                return Poll::Ready(late);
            }
            self.timer.as_mut().reset(until.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_head_must_come_soon_and_an_idle_connection_has_longer() {
        let limits = Limits::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let new = State { busy: false, behind: false, used: false, heard: None, since: start };
        assert_eq!(new.deadline(&limits), Some((later(10), Late::Head)));
        assert_eq!(State { heard: Some(later(4)), ..new }.deadline(&limits), Some((later(14), Late::Head)));
        let used = State { used: true, since: later(20), ..new };
        assert_eq!(used.deadline(&limits), Some((later(95), Late::Idle)));
        assert_eq!(State { heard: Some(later(60)), ..used }.deadline(&limits), Some((later(70), Late::Head)));
        assert_eq!(State { busy: true, ..used }.deadline(&limits), None);
        assert_eq!(State { behind: true, ..used }.deadline(&limits), None);
    }
}
