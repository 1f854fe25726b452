//! How often each address has failed to show who it is.
//!
//! After too many failures within a minute its further failures are answered with a refusal that says how long to wait.
//! A token that is good passes all the same: other programs behind the same address must not be locked out, and a token
//! is too long to be guessed. A success in between does not count for anything, because a caller that has one token
//! would otherwise guess others without end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::recent::Recent;

/// The time within which failures are counted, for which failures are refused after too many, and in which there is at
/// most one warning about an address.
const PERIOD: Duration = Duration::from_secs(60);

/// Most addresses that are remembered. Each takes 16 bytes for every failure that counts.
const KEYS_MAX: usize = 10_000;

/// The failures of each address.
pub struct Failures {
    /// Most failures within the period.
    most: usize,
    keys: Mutex<Recent<Failed>>,
}

/// The failures of one address.
#[derive(Default)]
struct Failed {
    /// When it failed, within the last period.
    at: Vec<Instant>,
    /// Until when its failures are refused in another way.
    until: Option<Instant>,
    /// When there was a warning about it.
    said_at: Option<Instant>,
    /// Failures since that warning.
    unsaid: u64,
}

impl Failures {
    /// Allows this many failures of each address within a minute.
    pub fn new(most: usize) -> Failures {
        Failures { most, keys: Mutex::new(Recent::new(KEYS_MAX)) }
    }

    /// Says whether an address may fail, or else when it may again.
    pub fn may_fail(&self, key: u64, now: Instant) -> Result<(), Duration> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let until = keys.get(key).and_then(|failed| failed.until).filter(|until| *until > now);
        until.map_or(Ok(()), |until| Err(until - now))
    }

    /// Takes note that an address has failed. If a warning is due, returns how often it failed since the last one.
    pub fn failed(&self, key: u64, now: Instant) -> Option<u64> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = keys.used(key, Failed::default);
        // It is refused already; what it fails meanwhile makes that no longer.
        if failed.until.is_none_or(|until| until <= now) {
            failed.at.retain(|at| now.saturating_duration_since(*at) < PERIOD);
            failed.at.push(now);
            if failed.at.len() >= self.most {
                (failed.at, failed.until) = (Vec::new(), Some(now + PERIOD));
            }
        }
        failed.unsaid += 1;
        let is_due = failed.said_at.is_none_or(|at| now.saturating_duration_since(at) >= PERIOD);
        is_due.then(|| {
            failed.said_at = Some(now);
            std::mem::take(&mut failed.unsaid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn too_many_failures_within_a_minute_are_followed_by_a_minute_of_refusals() {
        let (failures, start) = (Failures::new(10), Instant::now());
        for second in 0..9 {
            failures.failed(1, start + second * S);
        }
        assert_eq!(failures.may_fail(1, start + 9 * S), Ok(()));
        failures.failed(1, start + 10 * S);
        assert_eq!(failures.may_fail(1, start + 10 * S), Err(60 * S));
        assert_eq!(failures.may_fail(1, start + 69 * S), Err(S));
        assert_eq!((failures.may_fail(1, start + 70 * S), failures.may_fail(2, start + 10 * S)), (Ok(()), Ok(())));
        failures.failed(1, start + 70 * S);
        assert_eq!(failures.may_fail(1, start + 70 * S), Ok(()), "it begins again");
    }

    #[test]
    fn failures_that_are_far_between_are_fine() {
        let (failures, start) = (Failures::new(10), Instant::now());
        for time in 0..1_000 {
            failures.failed(1, start + time * 7 * S);
            assert_eq!(failures.may_fail(1, start + time * 7 * S), Ok(()), "{time}");
        }
    }

    #[test]
    fn a_warning_a_minute_says_how_often_an_address_failed() {
        let (failures, start) = (Failures::new(10), Instant::now());
        let warnings: Vec<_> = (0..150).filter_map(|second| failures.failed(1, start + second * S)).collect();
        assert_eq!(warnings, [1, 60, 60]);
        assert_eq!(failures.failed(2, start), Some(1));
    }

    #[test]
    fn a_million_addresses_are_not_all_remembered() {
        let (failures, start) = (Failures::new(10), Instant::now());
        (0..1_000_000).for_each(|key| _ = failures.failed(key, start));
        let keys = failures.keys.lock().expect("it is whole");
        assert!(keys.len() <= KEYS_MAX);
        assert!(keys.get(999_999).is_some_and(|failed| failed.at.capacity() <= 10));
    }
}
