//! What a program printed that speaks a contract: its answer, which is gathered in memory and read at the end. Pure.

use bytes::{Bytes, BytesMut};
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::clause::all::ALL_145;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::{Text, text_within};
use crosspoint_contracts::reply::{Failed, Given, Success};
use crosspoint_exchange::outgoing::AgentOptions;
use crosspoint_exchange::reply::{self, Meaning, Reply, Unreadable};
use crosspoint_http::long;

use crate::link::record::{Note, found, note};
use crate::link::remote::too_long;
use crate::link::whole::{UNREADABLE, Verdict};

const NOTHING: &str = "The program printed no answer.";

const NOT_ALONE: &str = "other lines were printed before the document";
const FAILED_EXIT: &str = "a document was printed, and the program did not end with exit code 0";

/// How a program is spoken to.
pub(super) struct Speech {
    /// How its requests are written.
    pub(super) options: AgentOptions,
    /// The clause that says how a program speaks the contract.
    pub(super) clause: &'static Clause,
    /// Longest answer, in bytes.
    pub(super) bytes_max: usize,
}

/// What one program has printed so far.
pub(super) struct Printed<'s> {
    speech: &'s Speech,
    bytes: BytesMut,
    is_too_long: bool,
}

impl Printed<'_> {
    pub(super) fn of(speech: &Speech) -> Printed<'_> {
        Printed { speech, bytes: BytesMut::new(), is_too_long: false }
    }

    /// Takes a block; returns whether it is the one with which the answer becomes too long.
    pub(super) fn take(&mut self, block: &[u8]) -> bool {
        if self.is_too_long {
            return false;
        }
        self.is_too_long = self.bytes.len() + block.len() > self.speech.bytes_max;
        if !self.is_too_long {
            self.bytes.extend_from_slice(block);
        }
        self.is_too_long
    }

    /// Judges the answer of a program that ended like this.
    pub(super) fn verdict(self, ended: Result<Success, Failed>) -> Verdict {
        let Printed { speech, bytes, is_too_long } = self;
        if is_too_long {
            let violations = vec![note(&ALL_145, "the answer is longer than it may be")];
            return Verdict { result: Err(too_long(speech.bytes_max)), violations };
        }
        let answer = bytes.freeze();
        match ended {
            Ok(_) => of_answer(speech, &answer),
            // The exit code says no more than that it failed, so the document may say why.
            Err(failed) if failed.failure == Failure::AgentFailed => of_failed(speech, &answer, failed),
            Err(failed) => {
                let given = given(speech, &answer).or(failed.given);
                Verdict { result: Err(Failed { given, ..failed }), violations: Vec::new() }
            }
        }
    }
}

/// Returns what a program gave whose end says why it failed. It is kept (ALL-11).
fn given(speech: &Speech, answer: &Bytes) -> Option<Box<Given>> {
    let Ok((meaning, _)) = read(speech, answer) else { return words(answer) };
    let given = match meaning {
        Meaning::Ended(Ok(Success { outputs, text, whole_bytes, artifacts, .. })) => {
            Given { outputs, text, whole_bytes, artifacts }.if_any()
        }
        Meaning::Ended(Err(said)) => said.given,
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => None,
    };
    given.or_else(|| words(answer))
}

/// Judges the answer of a program that ended well.
fn of_answer(speech: &Speech, answer: &Bytes) -> Verdict {
    match read(speech, answer) {
        Ok((meaning, violations)) => {
            let result = match meaning {
                Meaning::Ended(result) => result.map_err(|failed| *failed),
                Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => {
                    Err(reply::unreadable(UNREADABLE, answer))
                }
            };
            Verdict { result, violations }
        }
        Err(Unreadable { lack, report }) => {
            let message = if answer.trim_ascii().is_empty() { NOTHING } else { lack.sentence() };
            Verdict { result: Err(reply::unreadable(message, answer)), violations: found(report, &[]) }
        }
    }
}

/// Judges the answer of a program whose end says that it failed. What it gave is kept (ALL-11).
fn of_failed(speech: &Speech, answer: &Bytes, failed: Failed) -> Verdict {
    let Ok((meaning, mut violations)) = read(speech, answer) else {
        let given = words(answer).or(failed.given);
        return Verdict { result: Err(Failed { given, ..failed }), violations: Vec::new() };
    };
    violations.push(note(speech.clause, FAILED_EXIT));
    let failed = match meaning {
        Meaning::Ended(Err(said)) => Failed { details: said.details.clone().or(failed.details), ..*said },
        Meaning::Ended(Ok(Success { outputs, text, whole_bytes, artifacts, .. })) => {
            Failed { given: Given { outputs, text, whole_bytes, artifacts }.if_any(), ..failed }
        }
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => failed,
    };
    Verdict { result: Err(failed), violations }
}

/// Returns what was printed in place of a document, as a text.
fn words(answer: &[u8]) -> Option<Box<Given>> {
    let text = String::from_utf8_lossy(answer.trim_ascii_end());
    let outputs = (!text.is_empty()).then(|| Body::of(&text))?;
    let text = text_within(&outputs).map(Text::Within);
    Given { outputs: Some(outputs), text, ..Given::default() }.if_any()
}

/// Reads the answer, and what is wrong with it. Some programs print a few lines before the document, or a library of
/// theirs does: they are passed over if the document alone follows.
fn read(speech: &Speech, answer: &Bytes) -> Result<(Meaning, Vec<Note>), Unreadable> {
    let kind = speech.options.contract.exchange().response;
    let document = |bytes: &Bytes| long::look(bytes.len(), || reply::read(kind, bytes));
    let (Reply { meaning, report, .. }, is_alone) = match document(answer) {
        Ok(reply) => (reply, true),
        Err(unreadable) => match after_other_lines(answer).map(|rest| document(&rest)) {
            Some(Ok(reply)) => (reply, false),
            Some(Err(_)) | None => return Err(unreadable),
        },
    };
    let mut violations = found(report, &[]);
    if !is_alone {
        violations.push(note(speech.clause, NOT_ALONE));
    }
    Ok((meaning, violations))
}

/// Returns what follows the lines that cannot be the beginning of a document. `None` if there are no such lines.
fn after_other_lines(answer: &Bytes) -> Option<Bytes> {
    let lines = answer.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take_while(|line| !line.starts_with(b"{")).map(<[u8]>::len).sum();
    (before > 0 && before < answer.len()).then(|| answer.slice(before..))
}
