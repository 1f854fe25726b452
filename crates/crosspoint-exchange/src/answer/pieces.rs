//! A long text for a caller that is sent one document after the other (MSG-9): in blocks, as the output of a step, and
//! its end in the response.
//!
//! A caller that waits on its connection gets one document, with the whole text in it.

use crosspoint_contracts::Contract;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::Holds;
use crosspoint_contracts::job::{Canonical, Home, State as JobState};
use crosspoint_contracts::json::{Levels, Tape, quoted};

use super::{Beside, Writing};
use crate::snapshot::{Snapshot, State};

/// What the step is called whose output the blocks are.
const STEP: &str = "output";

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
pub fn pieces<'p>(job: &Snapshot<'p>, to: Contract, beside: &'p Beside) -> Option<Pieces<'p>> {
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
    let blocks: Vec<(String, usize)> =
        (how.split)(&text).into_iter().map(|(place, block)| (place, block.len())).collect();
    if blocks.is_empty() {
        return None;
    }
    let tail = quoted((how.tail)(&text));
    let response = [&response[..span.0], &tail, &response[span.1..]].concat();
    let blocks = blocks.into_iter();
    Some(Pieces { job: *job, to, beside, text, blocks, at: 0, number: 0, response: Some(response) })
}

impl Iterator for Pieces<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let Some((place, bytes)) = self.blocks.next() else { return self.response.take() };
        let block = &self.text[self.at..self.at + bytes];
        self.at += bytes;
        self.number += 1;
        let job = Snapshot { state: State::Running, ..self.job };
        let part = format!("piece {}", self.number).into();
        let writing = Writing { part, ..Writing::of(&job, self.to, self.beside) };
        let mut canonical = Canonical::made(self.to.exchange().response, Some(JobState::Running));
        canonical.put(Home::Percent, Json::new("100"));
        canonical.put(Home::StepNumber, Json::new("1"));
        canonical.put(Home::Step, Json::string(STEP));
        canonical.put(Home::StepOutput, Json::string(block));
        canonical.put(Home::OutputChunk, Json::string(&place));
        let canonical = writing.named(canonical);
        Some(writing.written(&canonical).unwrap_or_default())
    }
}
