//! How often each address has failed to show who it is.
//!
//! After too many failures within a minute its next attempts are refused for a minute, without a look at the token:
//! guessing gets slow, and costs the server next to nothing. A success in between does not count for anything, because
//! a caller that has one token would otherwise guess others without end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::recent::Recent;

/// The time within which failures are counted, and for which attempts are refused after too many.
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
    /// Until when its attempts are refused.
    until: Option<Instant>,
}

impl Failures {
    /// Allows this many failures of each address within a minute.
    pub fn new(most: usize) -> Failures {
        Failures { most, keys: Mutex::new(Recent::new(KEYS_MAX)) }
    }

    /// Says whether an address may try to show who it is, or else when it may again.
    pub fn may_try(&self, key: u64, now: Instant) -> Result<(), Duration> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let until = keys.get(key).and_then(|failed| failed.until).filter(|until| *until > now);
        until.map_or(Ok(()), |until| Err(until - now))
    }

    /// Takes note that an address has failed.
    pub fn failed(&self, key: u64, now: Instant) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = keys.used(key, Failed::default);
        failed.at.retain(|at| now.saturating_duration_since(*at) < PERIOD);
        failed.at.push(now);
        if failed.at.len() >= self.most {
            *failed = Failed { at: Vec::new(), until: Some(now + PERIOD) };
        }
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
        assert_eq!(failures.may_try(1, start + 9 * S), Ok(()));
        failures.failed(1, start + 10 * S);
        assert_eq!(failures.may_try(1, start + 10 * S), Err(60 * S));
        assert_eq!(failures.may_try(1, start + 69 * S), Err(S));
        assert_eq!((failures.may_try(1, start + 70 * S), failures.may_try(2, start + 10 * S)), (Ok(()), Ok(())));
        failures.failed(1, start + 70 * S);
        assert_eq!(failures.may_try(1, start + 70 * S), Ok(()), "it begins again");
    }

    #[test]
    fn failures_that_are_far_between_are_fine() {
        let (failures, start) = (Failures::new(10), Instant::now());
        for time in 0..1_000 {
            failures.failed(1, start + time * 7 * S);
            assert_eq!(failures.may_try(1, start + time * 7 * S), Ok(()), "{time}");
        }
    }

    #[test]
    fn a_million_addresses_are_not_all_remembered() {
        let (failures, start) = (Failures::new(10), Instant::now());
        (0..1_000_000).for_each(|key| failures.failed(key, start));
        let keys = failures.keys.lock().expect("it is whole");
        assert!(keys.len() <= KEYS_MAX);
        assert!(keys.get(999_999).is_some_and(|failed| failed.at.capacity() <= 10));
    }
}
