//! Any order of chunks, with repeats, lines and kills in between, gives the plain text.

use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::*;

/// What happens to an attempt.
#[derive(Clone, Debug)]
enum Happens {
    /// A piece of the text comes as a chunk, with the total or without.
    Piece(usize, bool),
    /// Bytes of the text come that need not be a piece: from here on, so many.
    Overlap(usize, usize),
    /// The same step prints a line, and may repeat that as a sign of life.
    Line(bool),
    /// The server is killed, and starts again.
    Kill,
    /// The server is killed after so many blocks, and the last of them may be stored or not.
    KillWithin(usize, bool),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (any::<usize>(), any::<bool>()).prop_map(|(piece, with_total)| Happens::Piece(piece, with_total)),
        3 => (0..300_usize, 0..80_usize).prop_map(|(start, bytes)| Happens::Overlap(start, bytes)),
        2 => any::<bool>().prop_map(Happens::Line),
        2 => Just(Happens::Kill),
        3 => (0..3_usize, any::<bool>()).prop_map(|(blocks, is_stored)| Happens::KillWithin(blocks, is_stored)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let characters = prop::sample::select(vec!["a", "b", "\n", "\u{fc}", "\u{20ac}", "\u{1f600}"]);
    prop::collection::vec(characters, 1..120).prop_map(|characters| characters.concat())
}

/// An attempt, and what its output should be.
struct World {
    attempted: Attempted,
    text: String,
    /// Where the text is cut into pieces.
    cuts: Vec<usize>,
    /// Lines that were printed before the first chunk, and after it.
    lines: [String; 2],
    is_begun: bool,
}

impl World {
    /// Sends a status until it is acknowledged, as an agent does.
    async fn send(&mut self, output: &str, chunk: Option<Chunk>) {
        let status = self.attempted.status(5, output);
        let mut taken = self.attempted.take(Status { chunk, ..status }).await;
        while taken.is_err() {
            self.attempted.restart().await;
            // It is the same message.
            self.attempted.made -= 1;
            let status = self.attempted.status(5, output);
            taken = self.attempted.take(Status { chunk, ..status }).await;
        }
        self.attempted.stored.dies = None;
        assert_eq!(taken.expect("it is taken").refused, []);
    }

    async fn send_bytes(&mut self, start: usize, end: usize, total: Option<u64>) {
        let [start, end] = [start, end].map(|at| self.text.floor_char_boundary(at));
        let output = self.text[start..end].to_owned();
        self.is_begun = true;
        self.send(&output, Some(Chunk { start: start as u64, end: end as u64, total })).await;
    }

    async fn send_piece(&mut self, piece: usize, with_total: bool) {
        let piece = piece % (self.cuts.len() - 1);
        let total = with_total.then_some(self.text.len() as u64);
        self.send_bytes(self.cuts[piece], self.cuts[piece + 1], total).await;
    }

    async fn send_line(&mut self, is_repeated: bool) {
        // No line is the same as another: it would be a repeat.
        let line = format!("[{}]", self.attempted.made);
        self.lines[usize::from(self.is_begun)].push_str(&line);
        self.send(&line, None).await;
        if is_repeated {
            self.send(&line, None).await;
            self.attempted.restart().await;
            self.send(&line, None).await;
        }
    }

    async fn happens(&mut self, what: Happens) {
        match what {
            Happens::Piece(piece, with_total) => self.send_piece(piece, with_total).await,
            Happens::Overlap(start, bytes) => self.send_bytes(start, start + bytes, None).await,
            Happens::Line(is_repeated) => self.send_line(is_repeated).await,
            Happens::Kill => self.attempted.restart().await,
            Happens::KillWithin(blocks, is_stored) => self.attempted.stored.dies = Some((blocks, is_stored)),
        }
    }

    /// Sends what has not come, and ends the attempt. The server may be killed meanwhile.
    async fn end(&mut self, dies: Option<(usize, bool)>) -> Finished {
        self.send_piece(0, true).await;
        for piece in 0..self.cuts.len() - 1 {
            self.send_piece(piece, false).await;
        }
        self.attempted.stored.dies = dies;
        loop {
            let chunks = self.attempted.chunks.as_mut().expect("it is open");
            if let Ok(finished) = chunks.finish(&mut self.attempted.stored, None).await {
                return finished;
            }
            self.attempted.restart().await;
        }
    }
}

async fn story(text: String, cuts: Vec<usize>, events: Vec<Happens>, dies: Option<(usize, bool)>) {
    let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let attempted = Attempted::new().await;
    let mut world = World { attempted, text, cuts, lines: Default::default(), is_begun: false };
    for event in events {
        world.happens(event).await;
    }
    let finished = world.end(dies).await;
    assert_eq!((finished.refused, finished.text), (None, crate::link::message::chunks::spool::TextIs::Own));
    let [before, after] = &world.lines;
    assert_eq!(world.attempted.text(), format!("{before}{}{after}", world.text));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_with_repeats_and_kills_gives_the_plain_text(
        text in text(),
        cuts in prop::collection::vec(0..400_usize, 0..8),
        events in prop::collection::vec(happens(), 0..20),
        dies in prop::option::of((0..2_usize, any::<bool>())),
    ) {
        Runtime::new().expect("a runtime").block_on(story(text, cuts, events, dies));
    }
}
