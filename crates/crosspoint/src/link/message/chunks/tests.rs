mod endings;
mod properties;
mod repeats;
mod torn;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use super::*;

/// As much output as the attempts of these tests may have, unless they say otherwise.
const BYTES_MAX: u64 = 1 << 30;

const ATTEMPT: u32 = 3;

fn job() -> JobId {
    Ids::PLAIN.parse("019a8d2e-0000-7000-8000-000000000001").expect("an id")
}

/// The output of an attempt, as the store has it: it outlives the server.
#[derive(Default)]
struct Stored {
    bytes: Vec<u8>,
    /// The longest block that came.
    block_bytes_max: usize,
    /// How many blocks are stored until the server dies, and whether the last is stored before it does.
    dies: Option<(usize, bool)>,
}

impl Sink for Stored {
    async fn output(&mut self, block: Bytes) -> Result<(), Gone> {
        self.block_bytes_max = self.block_bytes_max.max(block.len());
        match &mut self.dies {
            Some((0, is_stored)) => {
                if *is_stored {
                    self.bytes.extend_from_slice(&block);
                }
                self.dies = None;
                return Err(Gone);
            }
            Some((blocks, _)) => *blocks -= 1,
            None => {}
        }
        self.bytes.extend_from_slice(&block);
        Ok(())
    }
}

/// An attempt in a directory of its own.
struct Attempted {
    directory: PathBuf,
    bytes_max: u64,
    stored: Stored,
    chunks: Option<Chunks>,
    /// Statuses that were made, so that each has an id of its own.
    made: u128,
}

impl Attempted {
    async fn new() -> Attempted {
        Attempted::within(BYTES_MAX).await
    }

    async fn within(bytes_max: u64) -> Attempted {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("crosspoint-chunks-{}-{number}", std::process::id()));
        let mut attempted = Attempted { directory, bytes_max, stored: Stored::default(), chunks: None, made: 0 };
        attempted.restart().await;
        attempted
    }

    /// Kills the server and starts it again.
    async fn restart(&mut self) {
        drop(self.chunks.take());
        let output_bytes = self.stored.bytes.len() as u64;
        let opened = Chunks::open(&self.directory, job(), ATTEMPT, self.bytes_max, output_bytes).await;
        self.chunks = Some(opened.expect("it can be opened"));
    }

    fn status(&mut self, number: i64, output: &str) -> Status {
        self.made += 1;
        Status {
            message_id: Some(Uuid::from_u128(self.made)),
            state: Some(WorkState::Running),
            percent: Some(50),
            number,
            name: "step".into(),
            output: Bytes::copy_from_slice(output.as_bytes()),
            chunk: None,
        }
    }

    async fn take(&mut self, status: Status) -> Result<Taken, Fault> {
        let chunks = self.chunks.as_mut().expect("it is open");
        chunks.take(&mut self.stored, status).await
    }

    /// Sends text without a chunk.
    async fn plain(&mut self, number: i64, output: &str) -> Taken {
        let status = self.status(number, output);
        self.take(status).await.expect("it is taken")
    }

    /// Sends a chunk in step 5, and returns what is wrong with it.
    async fn chunk(&mut self, range: (u64, u64), total: Option<u64>, output: &str) -> Vec<Refusal> {
        self.chunk_of(5, range, total, output).await
    }

    async fn chunk_of(
        &mut self,
        number: i64,
        (start, end): (u64, u64),
        total: Option<u64>,
        output: &str,
    ) -> Vec<Refusal> {
        let chunk = Some(Chunk { start, end, total });
        let status = Status { chunk, ..self.status(number, output) };
        self.take(status).await.expect("it is taken").refused
    }

    async fn finish(&mut self, output: Option<&str>) -> Finished {
        let output = output.map(|output| Bytes::copy_from_slice(output.as_bytes()));
        let chunks = self.chunks.as_mut().expect("it is open");
        chunks.finish(&mut self.stored, output).await.expect("it ends")
    }

    fn text(&self) -> String {
        String::from_utf8(self.stored.bytes.clone()).expect("it is text")
    }

    fn path(&self) -> PathBuf {
        path(&self.directory, job(), ATTEMPT)
    }
}

impl Drop for Attempted {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[tokio::test]
async fn what_is_held_from_the_beginning_on_is_shown_at_once_in_whatever_order_it_comes() {
    let mut attempted = Attempted::new().await;
    attempted.plain(4, "before\n").await;
    assert_eq!(attempted.chunk((0, 3), Some(9), "one").await, []);
    assert_eq!(attempted.text(), "before\none");
    assert_eq!(attempted.chunk((6, 9), Some(9), "sun").await, []);
    assert_eq!(attempted.text(), "before\none", "it is held until what is before it comes");
    assert_eq!(attempted.chunk((2, 7), None, "etwos").await, [], "an overlap that does not differ");
    assert_eq!(attempted.text(), "before\nonetwosun");
    attempted.plain(6, "after\n").await;
    assert_eq!(attempted.finish(Some("done")).await.refused, None);
    assert_eq!(attempted.text(), "before\nonetwosunafter\n");
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((3, 6), None, "two").await;
    attempted.restart().await;
    assert_eq!(attempted.text(), "");
    attempted.chunk((0, 3), Some(6), "one").await;
    attempted.restart().await;
    assert_eq!(attempted.text(), "onetwo");
    assert_eq!(attempted.chunk((0, 6), Some(6), "onetwo").await, [], "it is compared with what was held before");
    assert_eq!(attempted.chunk((0, 6), Some(6), "onetwi").await, [Refusal::Differs { offset: 5 }]);
    assert_eq!(attempted.text(), "onetwo");
}

#[tokio::test]
async fn a_kill_between_file_and_output_loses_nothing_and_stores_nothing_twice() {
    for is_stored in [false, true] {
        let mut attempted = Attempted::new().await;
        attempted.stored.dies = Some((0, is_stored));
        let status = Status { chunk: Some(Chunk { start: 0, end: 3, total: Some(6) }), ..attempted.status(5, "one") };
        assert!(attempted.take(status).await.is_err(), "it is not acknowledged");
        attempted.restart().await;
        assert_eq!(attempted.chunk((0, 3), Some(6), "one").await, [], "so it is sent again");
        assert_eq!(attempted.text(), "one");
        attempted.chunk((3, 6), Some(6), "two").await;
        assert_eq!(attempted.text(), "onetwo");
    }
}

#[tokio::test]
async fn text_without_a_chunk_waits_for_the_end_of_the_set_of_its_step() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 3), Some(9), "one").await;
    attempted.plain(5, "[a line]").await;
    attempted.plain(5, "").await;
    attempted.chunk((6, 9), Some(9), "sun").await;
    attempted.restart().await;
    assert!(attempted.plain(5, "[another]").await.refused.is_empty());
    assert_eq!(attempted.text(), "one");
    attempted.stored.dies = Some((1, false));
    let last = Status { chunk: Some(Chunk { start: 3, end: 6, total: Some(9) }), ..attempted.status(5, "two") };
    assert!(attempted.take(last).await.is_err());
    assert_eq!(attempted.text(), "onetwosun", "the text is whole, and the lines are still to come");
    attempted.restart().await;
    attempted.plain(5, "[the last]").await;
    assert_eq!(attempted.text(), "onetwosun[a line][another][the last]");
}

#[tokio::test]
async fn no_more_text_waits_than_the_output_may_have() {
    let mut attempted = Attempted::within(20).await;
    attempted.chunk((0, 3), Some(9), "one").await;
    attempted.plain(5, "0123456789").await;
    assert_eq!(attempted.text(), "one");
    let refused = attempted.plain(5, "0123456789x").await.refused;
    let gap = Refusal::Gap { start: 3, end: 9 };
    let over = Refusal::OverLimit { bytes: 24, bytes_max: 20 };
    assert_eq!(refused, [gap, over], "the set is ended to make room, and there is none");
    assert_eq!(attempted.text(), "one0123456789");
}

#[tokio::test]
async fn a_call_that_is_dropped_does_no_harm() {
    let mut attempted = Attempted::new().await;
    for polls in 0..12 {
        let (start, end) = (polls * 3, polls * 3 + 3);
        let chunk = Some(Chunk { start, end, total: None });
        let status = Status { chunk, ..attempted.status(5, "abc") };
        {
            let mut taking = std::pin::pin!(attempted.take(status));
            let mut polled = 0;
            std::future::poll_fn(|context| {
                polled += 1;
                if polled > polls { Poll::Ready(()) } else { taking.as_mut().poll(context).map(drop) }
            })
            .await;
        }
        attempted.chunk((start, end), None, "abc").await;
        assert_eq!(attempted.text(), "abc".repeat(polls as usize + 1));
    }
}

#[tokio::test]
async fn files_are_for_their_owner_alone_and_are_removed_with_their_attempts() {
    let mut attempted = Attempted::new().await;
    assert!(!attempted.directory.exists(), "nothing is made before it is needed");
    attempted.plain(1, "").await;
    assert!(!attempted.directory.exists());
    attempted.chunk((0, 3), Some(6), "one").await;
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&attempted.directory), mode(&attempted.path())), (0o700, 0o600));
    let directory = attempted.directory.clone();
    let other = path(&directory, job(), ATTEMPT + 1);
    fs::write(&other, "").expect("it can be written");
    fs::write(directory.join("notes.txt"), "").expect("it can be written");
    let mut found = left(&directory, &Ids::PLAIN).await.expect("it can be read");
    found.sort_unstable_by_key(|(_, attempt)| *attempt);
    assert_eq!(found, [(job(), ATTEMPT), (job(), ATTEMPT + 1)]);
    remove(&directory, job(), ATTEMPT).await.expect("it can be removed");
    remove(&directory, job(), ATTEMPT).await.expect("it is gone already");
    assert!(!attempted.path().exists());
    assert!(left(&directory.join("none"), &Ids::PLAIN).await.expect("there is none").is_empty());
}

#[tokio::test]
async fn a_file_that_cannot_be_written_refuses_the_status_and_changes_nothing() {
    let mut attempted = Attempted::new().await;
    fs::File::create(&attempted.directory).and_then(|mut file| file.write_all(b"no directory")).expect("a file");
    let status = Status { chunk: Some(Chunk { start: 0, end: 3, total: Some(6) }), ..attempted.status(5, "one") };
    assert!(matches!(attempted.take(status).await, Err(Fault::File(_))));
    let status = attempted.status(4, "a line");
    assert!(matches!(attempted.take(status).await, Err(Fault::File(_))));
    assert_eq!(attempted.text(), "");
    fs::remove_file(&attempted.directory).expect("it can be removed");
    attempted.plain(4, "a line").await;
    attempted.chunk((0, 3), Some(6), "one").await;
    assert_eq!(attempted.text(), "a lineone");
}

/// Peak memory of this process, in KiB.
fn peak_kib() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().map_err(io::Error::other)
}

#[tokio::test]
async fn a_long_output_is_never_in_memory_whole() {
    const BLOCK: u64 = 256 << 10;
    const BLOCKS: u64 = 160;
    /// After so many blocks, as much memory as it takes is in use.
    const FIRST: u64 = 32;
    let total = Some(BLOCKS * BLOCK);
    let mut attempted = Attempted::new().await;
    let text = "0123456789abcde\n".repeat(BLOCK as usize / 16);
    let mut before = 0;
    // The worst order: nothing can be shown until the last chunk comes.
    for number in (1..BLOCKS).rev() {
        if number == BLOCKS - FIRST {
            before = peak_kib().expect("the system says it");
        }
        assert_eq!(attempted.chunk((number * BLOCK, (number + 1) * BLOCK), total, &text).await, []);
    }
    let grown = peak_kib().expect("the system says it") - before;
    assert!(grown < 8 << 10, "{grown} KiB more for 32 MiB");
    assert_eq!(attempted.chunk((0, BLOCK), total, &text).await, []);
    assert_eq!(attempted.stored.bytes.len() as u64, BLOCKS * BLOCK);
    assert_eq!(attempted.stored.block_bytes_max as u64, BLOCK, "it is handed on in blocks");
}
