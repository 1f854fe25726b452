//! Why a recipient could not be told, and how long it is left alone then.

use std::borrow::Cow;
use std::time::Duration;

use crosspoint_contracts::retry::JITTER_SHARE_MAX;
use crosspoint_http::call::Unanswered;

/// The first pause, and the longest. Each pause is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Why a message was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(super) what: What,
    /// How long the recipient wants to be left alone, if it says so.
    pub(super) retry_after: Option<Duration>,
}

/// What happened instead of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The recipient answered with this status.
    Status(u16),
    /// There is no connection to it.
    Unconnected,
    /// The connection was lost before it answered.
    Lost,
    /// What it answered is no HTTP that can be read.
    Garbled,
    /// It did not answer in time.
    Silent,
    /// The job cannot be read, or no document can be made of it, at present.
    Unreadable,
}

impl Trouble {
    pub(super) fn of(what: What) -> Trouble {
        Trouble { what, retry_after: None }
    }

    /// For people. It has no content.
    pub(crate) fn text(self) -> Cow<'static, str> {
        match self.what {
            What::Status(status) => format!("it answered with status {status}").into(),
            What::Unconnected => "no connection can be made".into(),
            What::Lost => "the connection was lost before it answered".into(),
            What::Garbled => "it answered no HTTP that can be read".into(),
            What::Silent => "it did not answer in time".into(),
            What::Unreadable => "the job cannot be read at present".into(),
        }
    }

    /// Whether the recipient has had the message and refused it.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self.what, What::Status(_))
    }

    /// Returns how long to wait after the try with this number, counted from 1. `chance` is between 0 and 1: recipients
    /// that failed together are not to be asked together.
    pub(super) fn pause(self, tries: u32, chance: f64) -> Duration {
        let doubled = PAUSE_FIRST.saturating_mul(1 << tries.saturating_sub(1).min(16));
        let wanted = self.retry_after.unwrap_or_default().min(PAUSE_MAX);
        let least = doubled.min(PAUSE_MAX).max(wanted);
        least.mul_f64(1.0 + JITTER_SHARE_MAX * chance.clamp(0.0, 1.0))
    }
}

impl From<Unanswered> for Trouble {
    fn from(why: Unanswered) -> Trouble {
        Trouble::of(match why {
            Unanswered::Unconnected => What::Unconnected,
            Unanswered::Lost => What::Lost,
            Unanswered::Garbled => What::Garbled,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes_and_chance_only_lengthens_them() {
        let trouble = Trouble::of(What::Silent);
        let seconds: Vec<u64> = (1..=12).map(|tries| trouble.pause(tries, 0.0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(trouble.pause(u32::MAX, 0.0), PAUSE_MAX);
        assert_eq!(trouble.pause(1, 1.0), Duration::from_millis(1_500));
        assert_eq!((trouble.pause(3, -1.0), trouble.pause(0, 0.0)), (Duration::from_secs(4), PAUSE_FIRST));
    }

    #[test]
    fn a_recipient_that_says_when_to_come_again_is_believed_within_the_longest_pause() {
        let trouble = |seconds| Trouble { what: What::Status(503), retry_after: Some(Duration::from_secs(seconds)) };
        assert_eq!(trouble(20).pause(1, 0.0).as_secs(), 20);
        assert_eq!(trouble(1).pause(4, 0.0).as_secs(), 8);
        assert_eq!(trouble(1 << 40).pause(1, 0.0), PAUSE_MAX);
    }
}
