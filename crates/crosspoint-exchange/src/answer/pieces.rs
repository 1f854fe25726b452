//! A long text for a caller that is sent one document after the other (MSG-9): in blocks, as the output of a step, and
//! its end in the response. A text that is sent while it is printed goes in blocks of the same step.
//!
//! A caller that waits on its connection gets one document, with the whole text in it.

use crosspoint_contracts::Contract;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::Holds;
use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::json::{Levels, Tape, quoted};

use super::{Beside, Writing};
use crate::snapshot::{Snapshot, State};

/// What the step is called whose output the blocks are. It says nothing of how far the work is.
pub const STEP: &str = "output";

/// The documents that tell a job with a long text, in order: one for each block, and then the response.
pub struct Pieces<'p> {
    job: Snapshot<'p>,
    to: Contract,
    beside: &'p Beside,
    /// The text, and the blocks that it goes in: their places, and how long each is.
    text: String,
    blocks: std::vec::IntoIter<(String, usize)>,
    /// Where the next block begins.
    at: usize,
    number: usize,
    response: Option<String>,
}

/// Returns the documents that tell how a job ended, if its text is too long for one. `None` if one document tells it.
/// `sent_before` says how many of the first bytes of the text were sent with [`block`].
pub fn pieces<'p>(
    job: &Snapshot<'p>,
    to: Contract,
    beside: &'p Beside,
    sent_before: impl FnOnce(&str) -> usize,
) -> Option<Pieces<'p>> {
    let exchange = to.exchange();
    let how = exchange.pieces.as_ref()?;
    job.ended()?;
    let response = super::document(job, to, beside);
    let part = exchange.parts.iter().find(|part| part.holds == Holds::Output)?;
    let (text, span) = {
        let tape = Tape::scan_within(response.as_bytes(), Levels::Wrapped).ok()?;
        let value = part.path.iter().try_fold(tape.root()?, |value, name| value.get(name))?;
        (value.text()?.decode().into_owned(), value.span())
    };
    let start = sent_before(&text);
    let blocks = (how.split)(&text, start)?;
    // A block may begin before the bytes that were sent, at a boundary of characters.
    let at = text.len() - blocks.iter().map(|(_, block)| block.len()).sum::<usize>();
    let blocks: Vec<(String, usize)> = blocks.into_iter().map(|(place, block)| (place, block.len())).collect();
    let tail = quoted((how.tail)(&text));
    let response = [&response[..span.0], &tail, &response[span.1..]].concat();
    let blocks = blocks.into_iter();
    Some(Pieces { job: *job, to, beside, text, blocks, at, number: 0, response: Some(response) })
}

impl Iterator for Pieces<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let Some((place, bytes)) = self.blocks.next() else { return self.response.take() };
        let block = &self.text[self.at..self.at + bytes];
        self.at += bytes;
        self.number += 1;
        let part = format!("piece {}", self.number);
        let job = Snapshot { state: State::Running, ..self.job };
        Some(written(&job, self.to, self.beside, Block { part, percent: "100".to_owned(), place, text: block }))
    }
}

/// Returns the document with a part of the text of a job that still runs, or that asks a person: the bytes from `start`
/// on. `None` in a contract that has no such documents.
pub fn block(job: &Snapshot<'_>, to: Contract, beside: &Beside, start: usize, text: &str) -> Option<String> {
    let how = to.exchange().pieces.as_ref()?;
    let place = (how.place)(start..start + text.len());
    let percent = job.progress.and_then(|progress| progress.percent).unwrap_or_default().to_string();
    Some(written(job, to, beside, Block { part: format!("block {start}"), percent, place, text }))
}

/// A part of a text, on its way to a caller.
struct Block<'b> {
    /// Which document of the job this is.
    part: String,
    percent: String,
    place: String,
    text: &'b str,
}

fn written(job: &Snapshot<'_>, to: Contract, beside: &Beside, block: Block<'_>) -> String {
    let writing = Writing { part: block.part.into(), ..Writing::of(job, to, beside) };
    let mut canonical = Canonical::made(to.exchange().response, Some(job.state.contract_state()));
    if let State::Waiting { question, .. } = job.state {
        canonical.place(to, to.exchange().question, Json::new(question.for_callers()));
    }
    canonical.put(Home::Percent, Json::new(block.percent));
    canonical.put(Home::StepNumber, Json::new("1"));
    canonical.put(Home::Step, Json::string(STEP));
    canonical.put(Home::StepOutput, Json::string(block.text));
    canonical.put(Home::OutputChunk, Json::string(&block.place));
    writing.written(&writing.named(canonical)).unwrap_or_default()
}
