//! Files that a loss of power, or a disk, has left in pieces.

use crosspoint_contracts::message::chunk::RANGES_MAX;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::*;
use crate::link::message::chunks::spool::TextIs;

/// What a disk writes at once, in bytes.
const SECTOR: usize = 512;

/// Returns a file of which only some sectors were written: those that `is_written` says, or else the ones before.
fn mixed(before: &[u8], after: &[u8], mut is_written: impl FnMut() -> bool) -> Vec<u8> {
    let mut mixed = before.to_vec();
    mixed.resize(before.len().max(after.len()), 0);
    for (at, sector) in (0..).step_by(SECTOR).zip(after.chunks(SECTOR)) {
        // Sectors that are the same need no toss.
        let place = at..at + sector.len();
        if mixed[place.clone()] != *sector && is_written() {
            mixed[place].copy_from_slice(sector);
        }
    }
    mixed
}

/// Sends all pieces. Each is first lost in the middle of its writing, and then comes again.
async fn story(order: Vec<usize>, mut tosses: impl Iterator<Item = bool>) {
    const PIECE: usize = 1_500;
    let pieces: Vec<String> = (0..8_u8).map(|number| char::from(b'a' + number).to_string().repeat(PIECE)).collect();
    // Lines that wait are after the longest output, and the whole file is read and written here.
    let mut attempted = Attempted::within(20_000).await;
    let place = |piece: usize| ((piece * PIECE) as u64, ((piece + 1) * PIECE) as u64);
    attempted.chunk(place(0), None, &pieces[0]).await;
    for piece in order {
        let line = format!("[{piece}]");
        for is_chunk in [true, false] {
            let (file, bytes) = (fs::read(attempted.path()).expect("it is there"), attempted.stored.bytes.clone());
            let made = attempted.made;
            let sends = async |attempted: &mut Attempted| {
                if is_chunk {
                    assert_eq!(attempted.chunk(place(piece), None, &pieces[piece]).await, []);
                } else {
                    attempted.plain(5, &line).await;
                }
            };
            sends(&mut attempted).await;
            let written = fs::read(attempted.path()).expect("it is there");
            let torn = mixed(&file, &written, || tosses.next().unwrap_or(true));
            fs::write(attempted.path(), torn).expect("it can be written");
            (attempted.stored.bytes, attempted.made) = (bytes, made);
            attempted.restart().await;
            sends(&mut attempted).await;
        }
    }
    for (piece, text) in pieces.iter().enumerate() {
        assert_eq!(attempted.chunk(place(piece), Some((8 * PIECE) as u64), text).await, []);
    }
    assert_eq!(attempted.finish(None).await.text, TextIs::Own);
    assert!(attempted.text().starts_with(&pieces.concat()));
    let lines: Vec<String> = attempted.text()[8 * PIECE..].split_inclusive(']').map(str::to_owned).collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_write_of_which_only_some_sectors_reached_the_disk_loses_only_what_was_not_acknowledged(
        order in Just((1..8_usize).collect::<Vec<_>>()).prop_shuffle(),
        tosses in prop::collection::vec(any::<bool>(), 400),
    ) {
        Runtime::new().expect("a runtime").block_on(story(order, tosses.into_iter()));
    }
}

#[tokio::test]
async fn as_many_pieces_as_are_taken_can_be_written_down() {
    let mut attempted = Attempted::within(8 << 30).await;
    attempted.chunk((4 << 30, (4 << 30) + 1), None, "x").await;
    let spool = attempted.chunks.as_ref().map(|chunks| chunks.spool.clone()).expect("it is open");
    {
        // Each would be a message, so they are put in at once.
        let mut spool = spool.lock().await;
        let set = spool.state.set.as_mut().expect("it has begun");
        for number in 1..RANGES_MAX as u64 - 1 {
            let start = (4 << 30) + 2 * number;
            set.held.recall(Chunk { start, end: start + 1, total: None }).expect("it fits");
        }
    }
    let last = (4 << 30) + 2 * RANGES_MAX as u64;
    assert_eq!(attempted.chunk((last, last + 1), None, "x").await, []);
    let before = spool.lock().await.state.clone();
    attempted.restart().await;
    assert_eq!(attempted.chunks.as_ref().map(|chunks| chunks.spool.clone()).expect("open").lock().await.state, before);
    assert_eq!(attempted.chunk((last + 2, last + 3), None, "x").await, [Refusal::TooManyRanges]);
}

#[tokio::test]
async fn a_file_that_was_never_finished_is_as_good_as_none() {
    let mut attempted = Attempted::new().await;
    attempted.plain(1, "a line\n").await;
    let file = fs::read(attempted.path()).expect("it is there");
    let first = file.iter().position(|byte| *byte == 0).map_or(file.len(), |zero| zero.min(200));
    for length in [0, 1, 19, 20, 21, first] {
        fs::write(attempted.path(), &file[..length]).expect("it can be written");
        attempted.stored.bytes.clear();
        attempted.restart().await;
        assert!(!attempted.plain(1, "a line\n").await.is_repeat);
        assert_eq!(attempted.finish(Some("done")).await.text, TextIs::Own, "nothing was ever promised");
        assert_eq!(attempted.text(), "a line\n");
    }
}

#[tokio::test]
async fn a_damaged_file_is_told_and_the_attempt_goes_on() {
    let mut attempted = Attempted::within(20_000).await;
    attempted.chunk((0, 3), Some(9), "uno").await;
    attempted.chunk((6, 9), Some(9), "tre").await;
    let mut file = fs::read(attempted.path()).expect("it is there");
    for slot in [0, 128 << 10] {
        file[slot + 30] ^= 1;
    }
    fs::write(attempted.path(), file).expect("it can be written");
    attempted.restart().await;
    attempted.plain(4, "a line\n").await;
    assert_eq!(attempted.chunk((3, 6), Some(9), "due").await, []);
    attempted.restart().await;
    let finished = attempted.finish(Some("tre")).await;
    assert_eq!(finished.refused, Some(Refusal::Gap { start: 0, end: 3 }));
    assert_eq!(finished.text, TextIs::Cut { whole_bytes: 9 });
    assert_eq!(attempted.text(), "unoa line\ndue");
}

#[tokio::test]
async fn a_file_that_does_not_go_with_the_output_is_not_used() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 6), Some(9), "unodue").await;
    attempted.stored.bytes = b"un".to_vec();
    attempted.restart().await;
    assert_eq!(attempted.chunk((0, 3), Some(9), "uno").await, []);
    assert_eq!(attempted.text(), "unodue", "a store that was put back gets what it lacks");
    attempted.stored.bytes = b"unodue and more".to_vec();
    attempted.restart().await;
    let finished = attempted.finish(Some("x")).await;
    assert_eq!(
        (finished.refused, finished.text),
        (None, TextIs::Cut { whole_bytes: 15 }),
        "nobody knows what is whole"
    );
}
