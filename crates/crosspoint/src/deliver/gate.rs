//! Whether a recipient may be sent something now, by how the last sendings went.
//!
//! A recipient that is away must not be asked a thousand times a second, and a recipient that stumbles over the message
//! of one job must not be kept from the messages of others. So the gate looks at whose messages fail. While all
//! failures since the last acknowledgement are those of one job, the gate stays open for the others: that job has a
//! pause of its own. When a second job fails, the recipient is away, and the gate closes. Then one message at a time is
//! tried, after pauses that double, and the first acknowledgement opens the gate.

use std::time::Instant;

use crosspoint_contracts::time::Time;
use crosspoint_engine::id::JobId;

use super::trouble::Trouble;

/// Most messages that are on their way to one recipient at a time.
pub(super) const SENDS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Gate {
    sending: usize,
    /// How sending has failed since the last acknowledgement.
    failing: Option<Failing>,
    /// Counts the failures that the gate took note of. Messages that went out together fail together, and are one
    /// failure.
    round: u32,
}

/// The leave to send one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    round: u32,
}

/// How sending has failed, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// When it failed first, by the wall clock.
    pub(crate) since: Time,
    pub(crate) tries: u32,
    pub(crate) last: Trouble,
    /// When it is tried next.
    pub(crate) next_at: Instant,
    /// The job that failed first.
    job: JobId,
    is_closed: bool,
}

impl Gate {
    /// Lets one message pass, if one may pass now.
    pub(super) fn pass(&mut self, now: Instant) -> Option<Pass> {
        let sends_max = match &self.failing {
            Some(failing) if failing.is_closed && now < failing.next_at => 0,
            Some(failing) if failing.is_closed => 1,
            Some(_) | None => SENDS_MAX,
        };
        (self.sending < sends_max).then(|| {
            self.sending += 1;
            Pass { round: self.round }
        })
    }

    /// A message that had passed was not sent at all.
    pub(super) fn unused(&mut self) {
        self.sending = self.sending.saturating_sub(1);
    }

    /// A message was acknowledged. Returns how sending had failed before, if it had.
    pub(super) fn acknowledged(&mut self) -> Option<Failing> {
        self.sending = self.sending.saturating_sub(1);
        self.failing.take()
    }

    /// A message was acknowledged, and the next one of its job is on its way: the recipient is there.
    pub(super) fn progressed(&mut self) {
        self.failing = None;
    }

    /// The message of a job was not acknowledged.
    pub(super) fn failed(&mut self, job: JobId, pass: Pass, trouble: Trouble, now: (Instant, Time), chance: f64) {
        self.sending = self.sending.saturating_sub(1);
        let (now, at) = now;
        let failing = self.failing.get_or_insert(Failing {
            since: at,
            tries: 0,
            last: trouble,
            next_at: now,
            job,
            is_closed: false,
        });
        failing.last = trouble;
        if failing.is_closed && pass.round != self.round {
            return;
        }
        let is_away = failing.job != job || trouble.retry_after.is_some();
        if is_away && !failing.is_closed {
            (failing.is_closed, failing.tries) = (true, 0);
        }
        failing.tries = failing.tries.saturating_add(1);
        failing.next_at = now + trouble.pause(failing.tries, chance);
        self.round = self.round.wrapping_add(1);
    }

    /// Returns when a closed gate lets the next message pass; `None` if the gate is open.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        self.failing.as_ref().filter(|failing| failing.is_closed).map(|failing| failing.next_at)
    }

    /// Whether messages are on their way.
    pub(super) fn is_sending(&self) -> bool {
        self.sending > 0
    }

    pub(super) fn failing(&self) -> Option<Failing> {
        self.failing
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crosspoint_engine::id::Seq;

    use super::*;
    use crate::deliver::trouble::What;

    const TROUBLE: Trouble = Trouble { what: What::Status(500), retry_after: None };

    fn job(seq: u64) -> JobId {
        JobId::new(Seq(seq), Time::default(), 1)
    }

    fn fail(gate: &mut Gate, seq: u64, now: Instant) {
        let pass = gate.pass(now).expect("it may pass");
        gate.failed(job(seq), pass, TROUBLE, (now, Time::default()), 0.0);
    }

    fn passes(gate: &mut Gate, now: Instant) -> usize {
        let passed = (0..).take_while(|_| gate.pass(now).is_some()).count();
        (0..passed).for_each(|_| gate.unused());
        passed
    }

    #[test]
    fn an_open_gate_lets_sixteen_pass_at_a_time() {
        let (mut gate, now) = (Gate::default(), Instant::now());
        assert_eq!(passes(&mut gate, now), SENDS_MAX);
        let _ = gate.pass(now);
        assert_eq!(passes(&mut gate, now), SENDS_MAX - 1);
        assert_eq!(gate.acknowledged(), None);
        assert_eq!(passes(&mut gate, now), SENDS_MAX);
    }

    #[test]
    fn one_job_that_fails_keeps_the_gate_open_for_the_others() {
        let (mut gate, now) = (Gate::default(), Instant::now());
        (0..20).for_each(|_| fail(&mut gate, 1, now));
        assert_eq!((passes(&mut gate, now), gate.opens_at()), (SENDS_MAX, None));
        assert_eq!(gate.failing().expect("it is shown").tries, 20);
    }

    #[test]
    fn a_second_job_that_fails_closes_it_and_then_one_is_tried_after_pauses_that_double() {
        let (mut gate, mut now) = (Gate::default(), Instant::now());
        fail(&mut gate, 1, now);
        fail(&mut gate, 2, now);
        for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            let opens_at = gate.opens_at().expect("it is closed");
            assert_eq!(opens_at, now + Duration::from_secs(pause));
            assert_eq!(passes(&mut gate, opens_at - Duration::from_millis(1)), 0);
            now = opens_at;
            assert_eq!(passes(&mut gate, now), 1, "one at a time");
            fail(&mut gate, 1, now);
        }
        now = gate.opens_at().expect("it is closed");
        assert!(gate.pass(now).is_some());
        assert_eq!(gate.acknowledged().expect("it had failed").tries, 12);
        assert_eq!((passes(&mut gate, now), gate.failing()), (SENDS_MAX, None));
    }

    #[test]
    fn messages_that_fail_together_are_one_failure() {
        let (mut gate, now) = (Gate::default(), Instant::now());
        let out: Vec<Pass> = (0..SENDS_MAX).map_while(|_| gate.pass(now)).collect();
        for (seq, pass) in (1..).zip(out) {
            gate.failed(job(seq), pass, TROUBLE, (now, Time::default()), 0.0);
        }
        assert_eq!(gate.opens_at(), Some(now + Duration::from_secs(1)));
    }

    #[test]
    fn a_late_acknowledgement_opens_it_and_a_recipient_that_asks_for_a_pause_closes_it() {
        let (mut gate, now) = (Gate::default(), Instant::now());
        let pass = gate.pass(now).expect("it is open");
        let busy = Trouble { what: What::Status(429), retry_after: Some(Duration::from_secs(9)) };
        gate.failed(job(1), pass, busy, (now, Time::default()), 0.0);
        assert_eq!(gate.opens_at(), Some(now + Duration::from_secs(9)));
        assert!(gate.acknowledged().is_some());
        assert_eq!(gate.opens_at(), None);
    }
}
