//! Retries of messages: how many, how far apart, and of which failures.

use core::time::Duration;

use crosspoint_contracts::message::code;
use crosspoint_contracts::request::Schedule;
use crosspoint_contracts::retry::{ATTEMPTS_MAX, JITTER_SHARE_MAX, RETRIES_MAX};
use proptest::prelude::*;

fn seconds(attempt: u32, jitter: f64) -> Option<f64> {
    Schedule::DEFAULT.delay_before(attempt, jitter).map(|delay| delay.as_secs_f64())
}

#[test]
fn four_attempts_in_all() {
    let delays: Vec<_> = (1..=4).map(|attempt| Schedule::DEFAULT.delay_before(attempt, 0.0)).collect();
    assert_eq!(delays, [0, 1, 2, 4].map(|delay| Some(Duration::from_secs(delay))));
    for attempt in [0, 5, 6, 33, 34, 66, u32::MAX] {
        assert_eq!(Schedule::DEFAULT.delay_before(attempt, 0.0), None, "attempt {attempt}");
    }
    assert_eq!((RETRIES_MAX, ATTEMPTS_MAX), (3, 4));
}

#[test]
fn jitter_adds_up_to_half_of_a_delay() {
    let fractions = [f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 0.5, 1.0, 7.0, f64::INFINITY];
    let delays = fractions.map(|fraction| seconds(4, fraction).expect("there is a fourth attempt"));
    assert_eq!(delays, [4.0, 4.0, 4.0, 4.0, 4.0, 5.0, 6.0, 6.0, 6.0]);
    assert_eq!(seconds(1, 1.0), Some(0.0), "the first attempt waits for nothing");
}

#[test]
fn only_timeout_unavailable_and_resource_limit_are_retried() {
    let retried: Vec<i64> =
        (4990..6010).chain([0, -5001, i64::MIN, i64::MAX]).filter(|&c| code::is_retried(c)).collect();
    assert_eq!(retried, [5001, 5002, 5005]);
    assert_eq!(retried, [code::TIMEOUT, code::UNAVAILABLE, code::RESOURCE_LIMIT]);
}

proptest! {
    #[test]
    fn jitter_never_shortens(attempt in 1..=ATTEMPTS_MAX, fraction in any::<f64>()) {
        let least = Schedule::DEFAULT.delay_before(attempt, 0.0).expect("there is such an attempt");
        let delay = Schedule::DEFAULT.delay_before(attempt, fraction).expect("there is such an attempt");
        prop_assert!(delay >= least);
        prop_assert!(delay <= least + least.mul_f64(JITTER_SHARE_MAX));
    }

    #[test]
    fn more_jitter_is_no_shorter(attempt in 2..=ATTEMPTS_MAX, one in 0.0..=1.0, other in 0.0..=1.0) {
        let (less, more) = if one <= other { (one, other) } else { (other, one) };
        prop_assert!(seconds(attempt, less) <= seconds(attempt, more));
        prop_assert!(more - less < 1e-6 || seconds(attempt, less) < seconds(attempt, more));
    }
}
