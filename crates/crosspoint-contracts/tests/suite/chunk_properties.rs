//! Long output: any cuts, orders, repeats and mistakes, compared with a reassembler that holds everything.

use crosspoint_contracts::message::Chunk;
use crosspoint_contracts::message::chunk::{BLOCK_BYTES_MAX, Reassembler, Refusal, WHOLE_BYTES_MAX, split, tail};
use proptest::prelude::*;

use crate::chunks::{Caller, of, place, range};

/// The plain way: holds all bytes in memory, and checks each byte on its own.
#[derive(Default)]
struct Model {
    bytes: Vec<Option<u8>>,
    totals: Vec<u64>,
    ends: Vec<u64>,
}

/// What went wrong, without the numbers.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Length,
    Total,
    Limit,
    Differs(u64),
    Gap(u64),
    Ranges,
}

fn without_numbers(refusal: Refusal) -> Wrong {
    match refusal {
        Refusal::WrongLength { .. } => Wrong::Length,
        Refusal::TotalChanged { .. } | Refusal::BeyondTotal { .. } => Wrong::Total,
        Refusal::OverLimit { .. } => Wrong::Limit,
        Refusal::Differs { offset } => Wrong::Differs(offset),
        Refusal::Gap { start, .. } => Wrong::Gap(start),
        Refusal::TooManyRanges => Wrong::Ranges,
    }
}

impl Model {
    fn take(&mut self, chunk: Chunk, bytes: &[u8], bytes_max: u64) -> Result<(), Wrong> {
        if i128::from(chunk.end) - i128::from(chunk.start) != bytes.len() as i128 {
            return Err(Wrong::Length);
        }
        let totals: Vec<u64> = self.totals.iter().copied().chain(chunk.total).collect();
        let ends: Vec<u64> = self.ends.iter().copied().chain([chunk.end]).collect();
        if totals.iter().any(|total| *total != totals[0] || ends.iter().any(|end| end > total)) {
            return Err(Wrong::Total);
        }
        if totals.iter().chain(&ends).any(|length| *length > bytes_max) {
            return Err(Wrong::Limit);
        }
        let mut after = self.bytes.clone();
        after.resize(after.len().max(chunk.end as usize), None);
        for (offset, byte) in (chunk.start..).zip(bytes) {
            let known = after[offset as usize].get_or_insert(*byte);
            if known != byte {
                return Err(Wrong::Differs(offset));
            }
        }
        *self = Model { bytes: after, totals, ends };
        Ok(())
    }

    fn finish(&self) -> Result<u64, Wrong> {
        let length = self.totals.iter().chain(&self.ends).max().copied().unwrap_or(0);
        let missing = |offset: &u64| self.bytes.get(*offset as usize).copied().flatten().is_none();
        (0..length).find(missing).map_or(Ok(length), |offset| Err(Wrong::Gap(offset)))
    }
}

/// Output with characters of one to four bytes, so that cuts by bytes fall inside some of them.
const OUTPUT: &str = "aé€\u{1f600}bß漢\u{1f980}cdñ日x\u{10348}";

/// Mostly chunks that a sender would send, but cut anywhere, and now and then wrong in one way.
fn any_chunk() -> impl Strategy<Value = (Chunk, Vec<u8>)> {
    let length = OUTPUT.len() as u64;
    let total = prop_oneof![8 => Just(None), 8 => Just(Some(length)), 1 => (0..50u64).prop_map(Some)];
    let flip = prop_oneof![12 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    let stretch = prop_oneof![24 => Just(0i64), 1 => -2..=2i64];
    (0..=length, 0..=length, total, flip, stretch).prop_map(|(one, other, total, flip, stretch)| {
        let (start, end) = (one.min(other), one.max(other));
        let mut bytes = OUTPUT.as_bytes()[start as usize..end as usize].to_vec();
        if let Some(index) = flip.filter(|_| !bytes.is_empty()) {
            let at = index.index(bytes.len());
            bytes[at] ^= 1;
        }
        (range(start, end.saturating_add_signed(stretch), total), bytes)
    })
}

proptest! {
    #[test]
    fn reassembling_agrees_with_the_plain_way(
        chunks in proptest::collection::vec(any_chunk(), 0..24),
        bytes_max in prop_oneof![4 => Just(1000u64), 1 => 0..50u64],
    ) {
        let mut caller = Caller::new(bytes_max);
        let mut model = Model::default();
        for (chunk, bytes) in &chunks {
            let taken = caller.take(*chunk, bytes).map_err(without_numbers);
            prop_assert_eq!(taken, model.take(*chunk, bytes, bytes_max), "{}", chunk);
        }
        prop_assert_eq!(caller.reassembler.finish().map_err(without_numbers), model.finish());
        let complete = !model.totals.is_empty() && model.finish().is_ok();
        prop_assert_eq!(caller.reassembler.is_complete(), complete);
        let stored = |bytes: &[Option<u8>]| -> Vec<(usize, u8)> {
            bytes.iter().enumerate().filter_map(|(offset, byte)| Some((offset, (*byte)?))).collect()
        };
        prop_assert_eq!(stored(&caller.file), stored(&model.bytes));
    }

    /// Cuts by bytes, in any order, some of them twice.
    #[test]
    fn any_order_of_any_cuts_gives_the_same_bytes(
        cuts in proptest::collection::vec(0..=OUTPUT.len(), 0..12),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        with_total in any::<bool>(),
    ) {
        let total = with_total.then_some(OUTPUT.len() as u64);
        let mut places = cuts;
        places.extend([0, OUTPUT.len()]);
        places.sort_unstable();
        let mut chunks: Vec<_> = places.windows(2).map(|pair| of(OUTPUT.as_bytes(), pair[0], pair[1], total)).collect();
        for index in &order {
            let other = index.index(chunks.len());
            chunks.swap(0, other);
            if other % 3 == 0 {
                chunks.push(chunks[other]);
            }
        }
        let mut caller = Caller::new(OUTPUT.len() as u64);
        for (chunk, bytes) in chunks {
            prop_assert_eq!(caller.take(chunk, bytes), Ok(()));
        }
        prop_assert_eq!(caller.reassembler.finish(), Ok(OUTPUT.len() as u64));
        prop_assert_eq!(caller.text(), OUTPUT.as_bytes());
    }

    /// A restart between any two chunks makes no difference.
    #[test]
    fn recalled_chunks_restore_what_was_known(chunks in proptest::collection::vec(any_chunk(), 0..16)) {
        let mut caller = Caller::new(1000);
        let mut committed = Vec::new();
        for (chunk, bytes) in &chunks {
            if caller.take(*chunk, bytes).is_ok() {
                committed.push(*chunk);
            }
            let mut restored = Reassembler::new(1000);
            committed.sort_by_key(|chunk: &Chunk| chunk.start);
            for chunk in &committed {
                prop_assert_eq!(restored.recall(*chunk), Ok(()));
            }
            prop_assert_eq!(&restored, &caller.reassembler);
        }
    }
}

/// A little over 1 MiB, of characters of every length.
fn long_output() -> impl Strategy<Value = String> {
    let pattern = proptest::collection::vec(any::<char>(), 1..9).prop_map(String::from_iter);
    (pattern, 0..600_000usize).prop_map(|(pattern, beyond): (String, usize)| {
        let bytes = WHOLE_BYTES_MAX + 1 + beyond;
        pattern.repeat(bytes.div_ceil(pattern.len()))
    })
}

proptest! {
    // Each case is over a million bytes long, and the cuts are few.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn splitting_and_reassembling_gives_back_the_text(
        output in long_output(),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut blocks: Vec<_> = split(&output).expect("over 1 MiB").collect();
        for (index, other) in order.iter().enumerate() {
            let (one, other) = (index % blocks.len(), other.index(blocks.len()));
            blocks.swap(one, other);
        }
        let mut reassembler = Reassembler::new(output.len() as u64);
        let mut file = vec![0; output.len()];
        for (chunk, block) in blocks {
            prop_assert!(block.len() <= BLOCK_BYTES_MAX);
            prop_assert!(block.len() > BLOCK_BYTES_MAX - 4 || chunk.end == output.len() as u64);
            prop_assert!(output.is_char_boundary(chunk.start as usize) && output.is_char_boundary(chunk.end as usize));
            let plan = reassembler.take(chunk, block.as_bytes()).expect("a block of our own");
            prop_assert!(plan.compare.is_empty());
            for piece in &plan.store {
                file[place(piece)].copy_from_slice(piece.bytes);
            }
            plan.commit();
        }
        prop_assert_eq!(reassembler.finish(), Ok(output.len() as u64));
        prop_assert!(file == output.as_bytes());
    }

    #[test]
    fn the_tail_is_as_long_as_characters_allow(output in long_output()) {
        let kept = tail(&output);
        prop_assert!(output.ends_with(kept));
        prop_assert!(kept.len() <= WHOLE_BYTES_MAX && kept.len() > WHOLE_BYTES_MAX - 4);
    }
}
