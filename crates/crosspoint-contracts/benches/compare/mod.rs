//! Two sides of a comparison, timed in turns.

use std::time::{Duration, Instant};

/// Rounds of each comparison. The number is odd, so that there is a median.
const ROUNDS: usize = 41;

/// Median time of one call of each side.
pub(crate) fn compare(calls: u32, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (Duration, Duration) {
    let time = |side: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..calls {
            side();
        }
        start.elapsed() / calls
    };
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_times.push(time(&mut ours));
        their_times.push(time(&mut theirs));
    }
    our_times.sort_unstable();
    their_times.sort_unstable();
    (our_times[ROUNDS / 2], their_times[ROUNDS / 2])
}

pub(crate) fn row(what: &str, ours: Duration, theirs: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    print(&format!("| {what} | {ours:.1?} | {theirs:.1?} | {ratio:.2} | {target} |"));
}

#[allow(clippy::print_stdout, reason = "a benchmark's figures are its data")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}
