//! Members of a body of reports that readers disagree on (ALL-11).
//!
//! A name that occurs twice within an agent's answer makes that answer unreadable and ends the attempt; sending it
//! again would not mend it. Anywhere else in the body it is a mistake of the worker that reports, and nothing of the
//! body is taken.

use bytes::Bytes;
use crosspoint_contracts::json::{DEPTH_MAX, Flaw, Levels, Tape, Value};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::json_body::{ambiguous, scan_ambiguous, scan_within};

pub(super) struct Doubts<'t> {
    flaws: &'t [Flaw],
    /// The nodes of the flaws on which readers disagree, in order.
    nodes: Vec<u32>,
    /// Number of those nodes that are in answers.
    in_answers: usize,
}

impl<'t> Doubts<'t> {
    pub(super) fn of(tape: &'t Tape<'_>) -> Doubts<'t> {
        let doubtful = tape.flaws().iter().filter(|flaw| flaw.kind.is_ambiguous());
        let mut nodes: Vec<u32> = doubtful.map(|flaw| flaw.node).collect();
        nodes.sort_unstable();
        Doubts { flaws: tape.flaws(), nodes, in_answers: 0 }
    }

    /// Whether an answer contains such a node. Each answer is checked once.
    pub(super) fn are_in(&mut self, answer: Value<'_, '_>) -> bool {
        let before = |index: u32| self.nodes.partition_point(|node| *node < index);
        let count = before(answer.next_index()) - before(answer.index());
        self.in_answers += count;
        count > 0
    }

    /// Refuses a body that has such nodes outside of answers.
    pub(super) fn refuse_others(&self, document: &Bytes) -> Result<(), Refusal> {
        let first = self.flaws.iter().find(|flaw| flaw.kind.is_ambiguous());
        match first.filter(|_| self.in_answers < self.nodes.len()) {
            Some(flaw) => Err(ambiguous(document, flaw)),
            None => Ok(()),
        }
    }
}

/// Scans a body with reports, even if readers may disagree on what they say. What an agent gave may nest as deep as any
/// document; the report around it does not count, so that outputs are taken here as they are from a program of the
/// server.
pub(super) fn scan_reports(document: &Bytes) -> Result<Tape<'_>, Refusal> {
    let tape = scan_within(document, Levels::Wrapped)?;
    if tape.deepest() > DEPTH_MAX {
        let reports = tape.root().and_then(|root| root.get("reports"));
        let bodies = reports.into_iter().flat_map(Value::items).flat_map(Value::members);
        for (_, given) in bodies.flat_map(|(_, body)| body.members()) {
            let (start, end) = given.span();
            scan_ambiguous(&document.slice(start..end))?;
        }
    }
    Ok(tape)
}
