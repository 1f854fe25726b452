//! Members whose name stands earlier in the same object.

use std::borrow::Cow;

use super::Scanner;
use crate::json::{FlawKind, Text};

/// Most members for which comparing all pairs is cheaper than sorting.
const PAIRWISE_MEMBERS_MAX: usize = 16;

impl<'s> Scanner<'s> {
    /// Notes every member whose name stands earlier in the same object.
    pub(super) fn note_repeated_members(&mut self, container: u32, end: u32) {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        let mut at = container + 1;
        while at + 1 < end {
            keys.push(at);
            at = self.nodes[at as usize + 1].next;
        }
        if keys.len() <= PAIRWISE_MEMBERS_MAX {
            for (index, &key) in keys.iter().enumerate() {
                if keys[..index].iter().any(|&earlier| self.same_name(earlier, key)) {
                    self.note_repeated(key);
                }
            }
        } else {
            self.note_repeated_of_many(&keys);
        }
        self.keys = keys;
    }

    fn note_repeated_of_many(&mut self, keys: &[u32]) {
        let mut named: Vec<((bool, Cow<'s, str>), u32)> = keys.iter().map(|&key| (self.identity(key), key)).collect();
        named.sort_unstable();
        for pair in named.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            self.note_repeated(pair[1].1);
        }
    }

    fn note_repeated(&mut self, key: u32) {
        self.flaw(key, self.nodes[key as usize].start as usize, FlawKind::RepeatedMember);
    }

    fn name(&self, key: u32) -> Text<'s> {
        let node = self.nodes[key as usize];
        let raw = self.source.get(node.start as usize + 1..node.end as usize - 1).unwrap_or_default();
        Text::from_raw(raw, node.escaped)
    }

    /// Returns what makes two names the same: the characters, or the spelling where a lone surrogate stands for no
    /// character.
    fn identity(&self, key: u32) -> (bool, Cow<'s, str>) {
        let name = self.name(key);
        if name.has_lone_surrogate() { (true, Cow::Borrowed(name.raw())) } else { (false, name.decode()) }
    }

    fn same_name(&self, a: u32, b: u32) -> bool {
        let (first, second) = (self.nodes[a as usize], self.nodes[b as usize]);
        if first.escaped || second.escaped {
            return self.identity(a) == self.identity(b);
        }
        // The lengths differ most of the time.
        first.end - first.start == second.end - second.start
            && self.bytes[first.start as usize..first.end as usize]
                == self.bytes[second.start as usize..second.end as usize]
    }
}
