//! Long output: cut into blocks, and put together from any chunks that come.

use crosspoint_contracts::json::{Tape, Value};
use crosspoint_contracts::message::Chunk;
use crosspoint_contracts::message::chunk::{
    BLOCK_BYTES_MAX, Piece, Plan, RANGES_MAX, Reassembler, Refusal, WHOLE_BYTES_MAX, split, tail,
};

/// A correct caller: a reassembler, and a file whose bytes are `None` until they are written.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) reassembler: Reassembler,
    pub(crate) file: Vec<Option<u8>>,
}

impl Caller {
    pub(crate) fn new(bytes_max: u64) -> Caller {
        Caller { reassembler: Reassembler::new(bytes_max), file: Vec::new() }
    }

    pub(crate) fn take(&mut self, chunk: Chunk, bytes: &[u8]) -> Result<(), Refusal> {
        let plan = self.reassembler.take(chunk, bytes)?;
        assert_covers(chunk, bytes, &plan.compare, &plan.store);
        for piece in &plan.compare {
            let stored = self.file[place(piece)].iter().map(|byte| byte.expect("only stored bytes are compared"));
            piece.check(&stored.collect::<Vec<u8>>())?;
        }
        for piece in &plan.store {
            let place = place(piece);
            self.file.resize(self.file.len().max(place.end), None);
            assert!(self.file[place.clone()].iter().all(Option::is_none), "{piece:?} is stored a second time");
            self.file[place].copy_from_slice(&piece.bytes.iter().copied().map(Some).collect::<Vec<_>>());
        }
        plan.commit();
        Ok(())
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        self.file.iter().map(|byte| byte.expect("every byte was stored")).collect()
    }
}

pub(crate) fn place(piece: &Piece<'_>) -> std::ops::Range<usize> {
    let start = usize::try_from(piece.offset).expect("files of tests are small");
    start..start + piece.bytes.len()
}

/// Every byte of the chunk is in exactly one piece, at its own offset.
fn assert_covers(chunk: Chunk, bytes: &[u8], compare: &[Piece<'_>], store: &[Piece<'_>]) {
    let mut pieces: Vec<&Piece<'_>> = compare.iter().chain(store).collect();
    pieces.sort_by_key(|piece| piece.offset);
    let mut at = chunk.start;
    for piece in &pieces {
        assert!(piece.offset == at && !piece.bytes.is_empty(), "{piece:?} does not follow byte {at}");
        at += piece.bytes.len() as u64;
    }
    assert_eq!(pieces.iter().flat_map(|piece| piece.bytes).copied().collect::<Vec<u8>>(), bytes);
}

pub(crate) fn range(start: u64, end: u64, total: Option<u64>) -> Chunk {
    Chunk { start, end, total }
}

/// A chunk of a text, as its sender would cut it.
pub(crate) fn of(text: &[u8], start: usize, end: usize, total: Option<u64>) -> (Chunk, &[u8]) {
    (range(start as u64, end as u64, total), &text[start..end])
}

const TEXT: &[u8] = b"0123456789";

/// A caller that has taken these chunks of `TEXT`.
fn after(chunks: &[(usize, usize, Option<u64>)]) -> Caller {
    let mut caller = Caller::new(1000);
    for &(start, end, total) in chunks {
        let (chunk, bytes) = of(TEXT, start, end, total);
        caller.take(chunk, bytes).expect("the chunk is as it should be");
    }
    caller
}

#[test]
fn chunks_are_written_as_they_are_read() {
    for (chunk, text) in [
        (range(0, 262_144, Some(524_288)), "bytes 0-262144 of 524288"),
        (range(5, 5, Some(u64::MAX)), "bytes 5-5 of 18446744073709551615"),
        (range(0, 262_144, None), "bytes 0-262144"),
    ] {
        assert_eq!(chunk.to_string(), text);
        let json = format!("\"{text}\"");
        let tape = Tape::scan(json.as_bytes()).expect("it is JSON");
        let read = tape.root().and_then(Value::text).and_then(Chunk::parse);
        assert_eq!(read, Some(chunk), "{text}");
    }
}

#[test]
fn output_up_to_one_mebibyte_goes_out_whole() {
    let output = "a".repeat(1_048_577);
    assert!(split(&output[1..]).is_none());
    assert!(split("").is_none());
    let blocks: Vec<_> = split(&output).expect("one byte too many").collect();
    let ends: Vec<(u64, u64)> = blocks.iter().map(|(chunk, _)| (chunk.start, chunk.end)).collect();
    let expected = [(0, 262_144), (262_144, 524_288), (524_288, 786_432), (786_432, 1_048_576), (1_048_576, 1_048_577)];
    assert_eq!(ends, expected);
    assert!(blocks.iter().all(|(chunk, _)| chunk.total == Some(1_048_577)));
    assert_eq!((WHOLE_BYTES_MAX, BLOCK_BYTES_MAX), (1_048_576, 262_144));
}

#[test]
fn blocks_end_between_characters() {
    // 262,144 is no multiple of three, so each block ends one byte early.
    let output = "€".repeat(400_000);
    let lengths: Vec<usize> = split(&output).expect("over 1 MiB").map(|(_, block)| block.len()).collect();
    assert_eq!(lengths, [262_143, 262_143, 262_143, 262_143, 151_428]);
}

#[test]
fn blocks_never_print_output() {
    let output = "secret".repeat(200_000);
    let mut blocks = split(&output).expect("over 1 MiB");
    blocks.next();
    assert_eq!(format!("{blocks:?}"), "Blocks[937856 of 1200000 bytes]");
    let mut reassembler = Reassembler::new(100);
    let plan = reassembler.take(range(0, 6, None), b"secret").expect("it is new");
    let shown = format!("{plan:?}");
    assert!(shown.contains("Piece[6 bytes at 0]") && !shown.contains("secret") && !shown.contains("115"), "{shown}");
}

#[test]
fn a_result_keeps_the_last_mebibyte() {
    let output = format!("x{}", "a".repeat(1_048_576));
    assert_eq!(tail(&output), &output[1..]);
    assert_eq!(tail(&output[..1_048_576]), &output[..1_048_576]);
    assert_eq!(tail(""), "");
    // The cut would fall inside the first character, which is left out as a whole.
    let output = "€".repeat(349_526);
    assert_eq!(output.len(), 1_048_578);
    assert_eq!(tail(&output), &output[3..]);
}

#[test]
fn any_order_and_exact_repeats_are_taken() {
    let mut caller = after(&[(6, 10, Some(10)), (0, 3, Some(10)), (0, 3, Some(10))]);
    assert!(!caller.reassembler.is_complete());
    let (chunk, bytes) = of(TEXT, 2, 8, Some(10));
    caller.take(chunk, bytes).expect("it overlaps both and differs from neither");
    assert!(caller.reassembler.is_complete());
    assert_eq!(caller.reassembler.finish(), Ok(10));
    assert_eq!(caller.text(), TEXT);
}

#[test]
fn a_plan_says_what_is_new_and_what_is_not() {
    let mut reassembler = after(&[(1, 3, None), (5, 6, None)]).reassembler;
    let plan = reassembler.take(range(0, 8, None), &TEXT[..8]).expect("the range is right");
    let places = |pieces: &[Piece<'_>]| pieces.iter().map(place).collect::<Vec<_>>();
    assert_eq!(places(&plan.compare), [1..3, 5..6]);
    assert_eq!(places(&plan.store), [0..1, 3..5, 6..8]);
}

#[test]
fn overlaps_that_differ_are_refused() {
    let mut caller = after(&[(2, 6, Some(10))]);
    assert_eq!(caller.take(range(4, 8, Some(10)), b"4X67"), Err(Refusal::Differs { offset: 5 }));
    assert_eq!(caller.take(range(2, 6, Some(10)), b"2346"), Err(Refusal::Differs { offset: 5 }));
    caller.take(range(6, 8, Some(10)), b"??").expect("nothing is known of these bytes");
    let piece = Piece { offset: 7, bytes: b"abc" };
    assert_eq!(piece.check(b"ab"), Err(Refusal::Differs { offset: 9 }));
    assert_eq!(piece.check(b"abcd"), Err(Refusal::Differs { offset: 10 }));
    assert_eq!(piece.check(b"abc"), Ok(()));
}

#[test]
fn a_length_that_is_not_end_minus_start_is_refused() {
    let mut caller = Caller::new(u64::MAX);
    let max = u64::MAX;
    for (chunk, bytes) in [
        (range(0, 4, Some(10)), b"abc".as_slice()),
        (range(0, 2, None), b"abc"),
        (range(0, 0, None), b"abc"),
        (range(0, 3, None), b""),
        (range(5, 2, None), b"abc"),
        (range(5, 2, None), b""),
        (range(max, max, None), b"abc"),
        (range(max - 1, max, None), b"abc"),
        // Correct only if offsets wrapped around after the last one.
        (range(max - 1, 1, None), b"abc"),
        // Half a character of two bytes, which became a replacement character of three.
        (range(0, 1, None), "\u{fffd}".as_bytes()),
    ] {
        assert_eq!(caller.take(chunk, bytes), Err(Refusal::WrongLength { chunk, bytes: bytes.len() as u64 }));
    }
    assert_eq!(caller.reassembler, Reassembler::new(u64::MAX));
}

#[test]
fn a_total_must_not_change() {
    let refused = |chunks: &[(usize, usize, Option<u64>)], start, end, total| {
        let (chunk, bytes) = of(TEXT, start, end, total);
        after(chunks).take(chunk, bytes)
    };
    assert_eq!(refused(&[(0, 2, Some(8))], 2, 4, Some(9)), Err(Refusal::TotalChanged { known: 8, said: 9 }));
    assert_eq!(refused(&[(0, 2, Some(8))], 0, 2, Some(7)), Err(Refusal::TotalChanged { known: 8, said: 7 }));
    // Beyond the chunk's own total, a total known earlier, and a total known later.
    assert_eq!(refused(&[], 0, 4, Some(3)), Err(Refusal::BeyondTotal { end: 4, total: 3 }));
    assert_eq!(refused(&[(0, 2, Some(8))], 7, 9, None), Err(Refusal::BeyondTotal { end: 9, total: 8 }));
    assert_eq!(refused(&[(7, 9, None)], 0, 2, Some(8)), Err(Refusal::BeyondTotal { end: 9, total: 8 }));
    assert_eq!(refused(&[(7, 9, None)], 0, 2, Some(9)), Ok(()));
    assert_eq!(refused(&[(0, 2, Some(8))], 2, 8, None), Ok(()));
}

#[test]
fn gaps_are_refused_at_the_end() {
    let gap = |chunks: &[(usize, usize, Option<u64>)]| after(chunks).reassembler.finish();
    assert_eq!(gap(&[(2, 10, Some(10))]), Err(Refusal::Gap { start: 0, end: 2 }));
    assert_eq!(gap(&[(0, 3, None), (5, 7, None), (8, 9, None)]), Err(Refusal::Gap { start: 3, end: 5 }));
    assert_eq!(gap(&[(0, 9, Some(10))]), Err(Refusal::Gap { start: 9, end: 10 }));
    assert_eq!(gap(&[(0, 0, Some(10))]), Err(Refusal::Gap { start: 0, end: 10 }));
    assert_eq!(gap(&[(0, 9, Some(10)), (9, 10, None)]), Ok(10));
}

#[test]
fn without_a_total_the_farthest_end_is_the_end() {
    let caller = after(&[(4, 7, None), (0, 4, None)]);
    assert!(!caller.reassembler.is_complete(), "more may come");
    assert_eq!(caller.reassembler.finish(), Ok(7));
    assert_eq!(after(&[]).reassembler.finish(), Ok(0));
}

#[test]
fn empty_chunks_hold_nothing_and_bind() {
    assert_eq!(after(&[(0, 0, Some(0))]).reassembler.finish(), Ok(0));
    assert!(after(&[(0, 0, Some(0))]).reassembler.is_complete());
    assert_eq!(after(&[(0, 4, None), (2, 2, None), (4, 4, None)]).reassembler.finish(), Ok(4));
    assert_eq!(after(&[(0, 4, None), (6, 6, None)]).reassembler.finish(), Err(Refusal::Gap { start: 4, end: 6 }));
    let mut caller = after(&[(6, 6, Some(8))]);
    assert_eq!(caller.take(range(0, 1, Some(9)), b"0"), Err(Refusal::TotalChanged { known: 8, said: 9 }));
    assert_eq!(caller.take(range(9, 9, None), b""), Err(Refusal::BeyondTotal { end: 9, total: 8 }));
}

#[test]
fn output_over_the_limit_is_refused() {
    let over = |bytes| Err(Refusal::OverLimit { bytes, bytes_max: 8 });
    let mut caller = Caller::new(8);
    assert_eq!(caller.take(range(0, 1, Some(9)), b"0"), over(9), "the total alone is too much");
    assert_eq!(caller.take(range(7, 9, None), b"78"), over(9));
    assert_eq!(caller.take(range(9, 9, None), b""), over(9));
    assert_eq!(caller.take(range(u64::MAX, u64::MAX, None), b""), over(u64::MAX));
    assert_eq!(caller.take(range(0, 8, Some(8)), b"01234567"), Ok(()));
    // A chunk that is both wrong and too much is reported as wrong.
    assert_eq!(caller.take(range(0, 8, Some(9)), b"01234567"), Err(Refusal::TotalChanged { known: 8, said: 9 }));
}

#[test]
fn separate_pieces_are_bounded() {
    let mut reassembler = Reassembler::new(u64::MAX);
    let mut take = |start: u64| reassembler.take(range(start, start + 1, None), b"x").map(Plan::commit);
    for index in 0..RANGES_MAX as u64 {
        take(2 * index).expect("within the bound");
    }
    assert_eq!(take(2 * RANGES_MAX as u64), Err(Refusal::TooManyRanges));
    // A chunk that joins two pieces, or repeats one, needs no room.
    assert_eq!(take(0), Ok(()));
    assert_eq!(take(1), Ok(()));
    assert_eq!(take(2 * RANGES_MAX as u64), Ok(()));
    assert_eq!(take(2 * RANGES_MAX as u64 + 2), Err(Refusal::TooManyRanges));
    let empty = reassembler.take(range(99_999, 99_999, None), b"").map(Plan::commit);
    assert_eq!(empty, Ok(()), "an empty chunk is no piece");
}

#[test]
fn refusals_have_the_code_they_are_answered_with_and_the_clause_they_break() {
    let wrong = Refusal::WrongLength { chunk: range(0, 1, None), bytes: 2 };
    assert_eq!((wrong.error_code(), wrong.clause().id), (5003, "MSG-9.3"));
    for invalid in [
        Refusal::TotalChanged { known: 1, said: 2 },
        Refusal::BeyondTotal { end: 2, total: 1 },
        Refusal::Differs { offset: 0 },
        Refusal::Gap { start: 0, end: 1 },
    ] {
        assert_eq!((invalid.error_code(), invalid.clause().id), (5003, "MSG-9.4"), "{invalid}");
    }
    for limit in [Refusal::OverLimit { bytes: 2, bytes_max: 1 }, Refusal::TooManyRanges] {
        assert_eq!((limit.error_code(), limit.clause().id), (5005, "MSG-9.5"), "{limit}");
    }
}

#[test]
fn a_plan_that_is_dropped_changes_nothing() {
    let mut caller = after(&[(0, 2, None)]);
    let before = caller.reassembler.clone();
    drop(caller.reassembler.take(range(1, 5, Some(5)), &TEXT[1..5]).expect("the chunk is as it should be"));
    assert_eq!(caller.reassembler, before);
    caller.take(range(1, 6, Some(6)), &TEXT[1..6]).expect("the dropped total binds nobody");
    assert_eq!(caller.text(), &TEXT[..6]);
}

#[test]
fn recalled_chunks_are_checked_like_new_ones() {
    let mut reassembler = Reassembler::new(8);
    assert_eq!(reassembler.recall(range(5, 2, None)).map_err(Refusal::error_code), Err(5003));
    assert_eq!(reassembler.recall(range(0, 9, None)).map_err(Refusal::error_code), Err(5005));
    assert_eq!(reassembler, Reassembler::new(8));
}

#[test]
fn what_is_held_can_be_written_down_and_recalled() {
    let mut reassembler = Reassembler::new(90);
    let held = |reassembler: &Reassembler| (reassembler.prefix_bytes(), reassembler.ranges().collect::<Vec<_>>());
    assert_eq!(held(&reassembler), (0, vec![]));
    for (start, end) in [(6, 8), (2, 3), (9, 9)] {
        reassembler.recall(range(start, end, Some(20))).expect("it fits");
    }
    assert_eq!(held(&reassembler), (0, vec![2..3, 6..8]), "nothing is held from the beginning on");
    reassembler.recall(range(0, 2, None)).expect("it fits");
    assert_eq!(held(&reassembler), (3, vec![0..3, 6..8]));
    assert_eq!((reassembler.total(), reassembler.end(), reassembler.bytes_max()), (Some(20), 9, 90));
    let mut recalled = Reassembler::new(reassembler.bytes_max());
    for range in reassembler.ranges() {
        recalled.recall(Chunk { start: range.start, end: range.end, total: None }).expect("it fits");
    }
    let end = reassembler.end();
    recalled.recall(range(end, end, reassembler.total())).expect("an empty chunk tells the rest");
    assert_eq!(recalled, reassembler);
}
