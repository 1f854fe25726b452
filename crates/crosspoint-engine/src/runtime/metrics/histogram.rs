//! Histograms: how many values were at most as large as each bound.

use std::sync::atomic::{AtomicU64, Ordering};

/// The sum is kept in whole millionths, because there are no atomic floating-point numbers.
const PARTS: f64 = 1e6;

/// Counts that only grow. Adding a value never waits.
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One count more than there are bounds: the last is for values beyond all of them.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The upper bounds of the buckets, in ascending order; the last bucket has none.
    pub bounds: &'static [f64],
    /// How many values were at most each bound, and last the number of all values.
    pub at_most: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub(super) fn observe(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add((value * PARTS).round() as u64, Ordering::Relaxed);
    }

    /// Reads the histogram. The total is computed from the counts as they were read, so that it always agrees with
    /// them.
    pub(super) fn look(&self) -> Distribution {
        let mut total = 0;
        let at_most = self.counts.iter().map(|count| {
            total += count.load(Ordering::Relaxed);
            total
        });
        let at_most = at_most.collect();
        Distribution { bounds: self.bounds, at_most, sum: self.sum.load(Ordering::Relaxed) as f64 / PARTS }
    }
}

impl Distribution {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.at_most.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_and_with_their_bound() {
        let histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.0, 1.0, 1.5, 2.0, 2.1, 1e9] {
            histogram.observe(value);
        }
        let look = histogram.look();
        assert_eq!((look.at_most.as_slice(), look.count()), ([2, 4, 6].as_slice(), 6));
        assert!((look.sum - 1_000_000_006.6).abs() < 1e-3, "{}", look.sum);
    }
}
