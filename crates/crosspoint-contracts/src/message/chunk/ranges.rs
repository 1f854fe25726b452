//! Byte ranges that are held already.

use std::ops::Range;

/// Ranges in order. None is empty, and no two overlap or touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Returns the ranges, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    /// Returns how many ranges there would be with this one added.
    pub(super) fn count_with(&self, range: &Range<u64>) -> usize {
        let added = usize::from(!range.is_empty());
        let merged = if range.is_empty() { 0 } else { self.near(range).len() };
        self.0.len() + added - merged
    }

    /// Adds a range. It is merged with the ranges that it overlaps or touches.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let near = self.near(&range);
        let merged = self.0[near.clone()]
            .iter()
            .fold(range, |merged, held| merged.start.min(held.start)..merged.end.max(held.end));
        self.0.splice(near, [merged]);
    }

    /// Returns the parts of a range that are held, and those that are not, both in order.
    pub(super) fn cut(&self, range: &Range<u64>) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        let (mut held, mut new) = (Vec::new(), Vec::new());
        let mut from = range.start;
        for near in &self.0[self.near(range)] {
            let overlap = near.start.max(range.start)..near.end.min(range.end);
            new.push(from..overlap.start);
            from = overlap.end;
            held.push(overlap);
        }
        new.push(from..range.end);
        // Neighbours that merely touch leave empty pieces.
        held.retain(|piece| !piece.is_empty());
        new.retain(|piece| !piece.is_empty());
        (held, new)
    }

    /// Returns the first part of `0..end` that is not held, where no range goes beyond `end`. Ranges that touch are
    /// merged, so only the first range can reach from 0.
    pub(super) fn first_gap(&self, end: u64) -> Option<Range<u64>> {
        let reached = self.0.first().filter(|first| first.start == 0).map_or(0, |first| first.end);
        let next = self.0.iter().map(|held| held.start).find(|start| *start > reached).unwrap_or(end);
        (reached < end).then_some(reached..next)
    }

    /// Returns the indices of the ranges that overlap or touch the given one.
    fn near(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.0.partition_point(|held| held.end < range.start);
        let after = self.0.partition_point(|held| held.start <= range.end);
        first..after
    }
}
