//! How many requests each key may send: an average in a second, and a burst of two seconds' worth at once.
//!
//! A key is an address or a token. It is remembered by one moment: until when the requests so far would have taken if
//! they had come evenly. A request is fine unless that moment is too far ahead.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::recent::Recent;

/// Most keys that are remembered, at some 50 bytes each. A key that was not used for longest is forgotten first, and
/// has its burst again.
const KEYS_MAX: usize = 100_000;

/// How many seconds' worth of requests may come at once.
const BURST_SECONDS: u32 = 2;

/// The requests of each key.
pub struct Rates {
    /// Time from one request to the next, if they come evenly.
    interval: Duration,
    /// How far ahead of the time a key may be after a request.
    ahead_max: Duration,
    keys: Mutex<Recent<Instant>>,
}

impl Rates {
    /// Makes room for this many requests of each key in a second.
    pub fn new(per_second: usize) -> Rates {
        let per_second = u32::try_from(per_second).unwrap_or(u32::MAX).max(1);
        let interval = Duration::from_secs(1) / per_second;
        let burst = per_second.saturating_mul(BURST_SECONDS);
        Rates { interval, ahead_max: interval * burst, keys: Mutex::new(Recent::new(KEYS_MAX)) }
    }

    /// Takes one request of a key. If it is one too many, nothing is taken, and the error says when the next is fine.
    pub fn take(&self, key: u64, now: Instant) -> Result<(), Duration> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let until = keys.used(key, || now);
        let next = (*until).max(now) + self.interval;
        match next.saturating_duration_since(now).checked_sub(self.ahead_max) {
            Some(early) if !early.is_zero() => Err(early),
            Some(_) | None => {
                *until = next;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_burst_is_fine_and_then_so_many_in_a_second() {
        let (rates, start) = (Rates::new(10), Instant::now());
        let taken = (0..100).filter(|_| rates.take(1, start).is_ok()).count();
        assert_eq!(taken, 20, "two seconds' worth");
        assert_eq!(rates.take(1, start), Err(100 * MS));
        assert_eq!(rates.take(1, start + 60 * MS), Err(40 * MS), "a refusal costs nothing");
        assert_eq!(rates.take(1, start + 100 * MS), Ok(()));
        let later = (100..10_100).filter(|ms| rates.take(1, start + *ms * MS).is_ok()).count();
        assert_eq!(later, 99, "ten a second, for ten seconds");
    }

    #[test]
    fn each_key_has_its_own_and_rest_gives_back_no_more_than_a_burst() {
        let (rates, start) = (Rates::new(1), Instant::now());
        let taken = |key, at| (0..10).filter(|_| rates.take(key, at).is_ok()).count();
        assert_eq!((taken(1, start), taken(2, start)), (2, 2));
        assert_eq!(taken(1, start + Duration::from_secs(3_600)), 2);
        assert_eq!(taken(2, start + Duration::from_secs(1)), 1);
    }

    #[test]
    fn a_million_keys_are_not_all_remembered() {
        let (rates, start) = (Rates::new(1), Instant::now());
        (0..1_000_000).for_each(|key| assert_eq!(rates.take(key, start), Ok(())));
        assert!(rates.keys.lock().expect("it is whole").len() <= KEYS_MAX);
    }
}
