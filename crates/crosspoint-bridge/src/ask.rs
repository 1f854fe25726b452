//! For programs that ask.
//!
//! ```no_run
//! use crosspoint_bridge::{Question, ask};
//!
//! let plan = ask(&Question::new("planner", "Plan the release."))?;
//! let review = ask(&Question::new("reviewer", format!("Review this plan:\n{}", plan.text()?)))?;
//! std::fs::write("REVIEW.md", review.text()?)?;
//! crosspoint_bridge::ask::finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whoever runs the program is its driver (`crosspoint bridge run -- PROGRAM`). The first time [`ask()`] has no answer: it leaves the request and the
//! program ends with [`NEED_AGENT`]. The driver has it answered and starts the program again, with [`RESUME`]. The program simply begins at its
//! beginning: what was answered before is answered at once, until it comes to the next question or to its end. So whatever it does between two
//! questions, it must be able to do again.
//!
//! How that is remembered: beside the files there is a directory `.agent-answers` with the id of the run and all answers that were taken in it.
//! The id of a question is made of its words and the run's id. So the same words are the same question, another run asks anew, and the
//! answer to a question that was not asked is never taken for one. A response file is taken by moving it there in one step: a program
//! that is killed has either taken it or not.

mod answer;
mod memory;
mod question;
mod refused;

use std::path::Path;

use uuid::Uuid;

use crate::directory::Directory;
use crate::fault::Fault;
use crate::pair::Pair;
use crate::request::{self, Look as Request};
use crate::response::{self, Look as Response};
use crate::{NEED_AGENT, RESUME, failpoint};

pub use crate::response::{Answer, Status};
pub use answer::{Failed, Unusable};
use memory::Memory;
pub use question::Question;
pub use refused::{Malformed, Refused};

/// One run of a program, over all the times that it is started until it is done.
#[derive(Debug)]
pub struct Run {
    directory: Directory,
}

/// What came of asking.
#[derive(Debug)]
pub enum Asked {
    /// It is answered; that the agent failed is an answer, too.
    Answered(Box<Answer>),
    /// The request is there, and the program is to end with [`NEED_AGENT`] when it has cleaned up.
    NeedsAgent,
}

/// Gives the answer, or leaves the request in the working directory and ends the program with [`NEED_AGENT`].
///
/// A program that was not started with [`RESUME`] begins a new run. To clean up before the program ends, to ask in another directory or to decide
/// yourself what is a new run, see [`Run`].
pub fn ask(question: &Question) -> Result<Answer, Refused> {
    Run::here()?.ask(question)
}

/// Forgets what was asked in the working directory and what was answered: the program is done.
pub fn finish() -> Result<(), Fault> {
    forget(&Directory::open(Path::new("."))?)
}

/// Forgets the run of a program: its answers, and its requests that nobody has answered yet. What others left stays.
pub fn forget(directory: &Directory) -> Result<(), Fault> {
    memory::forget(directory)
}

impl Run {
    /// The run of this process in its working directory: a new one, unless it was started with [`RESUME`].
    pub fn here() -> Result<Run, Fault> {
        let path = Path::new(".");
        let resumed = std::env::args_os().skip(1).any(|word| word == RESUME);
        if resumed { Run::resume(path) } else { Run::begin(path) }
    }

    /// A new run in this directory. What the last one left is forgotten.
    pub fn begin(path: &Path) -> Result<Run, Fault> {
        let run = Run::resume(path)?;
        forget(&run.directory)?;
        Ok(run)
    }

    /// Goes on with the run in this directory; a new one where there is none.
    pub fn resume(path: &Path) -> Result<Run, Fault> {
        Ok(Run { directory: Directory::open(path)? })
    }

    /// Gives the answer, or leaves the request and ends the program with [`NEED_AGENT`].
    pub fn ask(&self, question: &Question) -> Result<Answer, Refused> {
        match self.try_ask(question)? {
            Asked::Answered(answer) => Ok(*answer),
            Asked::NeedsAgent => std::process::exit(i32::from(NEED_AGENT)),
        }
    }

    /// Gives the answer, or leaves the request and says that an agent is needed. Questions of several phases can be left before the program
    /// ends; of one phase, or of none, one at a time can wait.
    pub fn try_ask(&self, question: &Question) -> Result<Asked, Refused> {
        let pair = question.pair()?;
        let memory = Memory::of(&self.directory)?;
        let id = question.id(memory.run());
        // Before anything is looked at: a question that cannot be asked is refused in every run, not only in the first.
        let document = question.document(id, &format!("{:.3}", jiff::Timestamp::now()))?;
        if let Some(answer) = memory.answer(id)? {
            return Ok(Asked::Answered(answer));
        }
        if let Some(answer) = self.response(&memory, pair, id)? {
            return Ok(Asked::Answered(answer));
        }
        self.leave(&memory, pair, id, &document)?;
        Ok(Asked::NeedsAgent)
    }

    /// The program is done: what was asked and answered is forgotten.
    pub fn finish(self) -> Result<(), Fault> {
        forget(&self.directory)
    }

    /// Takes the response if it is the answer. One that is there before the question was asked is nobody's mistake: whoever answers sets it aside.
    fn response(&self, memory: &Memory<'_>, pair: Pair, id: Uuid) -> Result<Option<Box<Answer>>, Refused> {
        let was_asked = memory.has_asked(&id.to_string())?;
        match response::look(&self.directory, pair, &id.to_string())? {
            Response::Nothing => Ok(None),
            Response::Answer(_) => {
                let answer = memory.take(pair, id)?;
                // Usually it is gone. If its driver was killed, the next one need not look at it again.
                request::remove(&self.directory, pair, &id.to_string())?;
                failpoint::reached("ask", "taken");
                Ok(Some(answer))
            }
            // Its requester was killed when it had just taken the first: another driver has answered the request once more.
            Response::Foreign(found) if memory.has_answer(&found)? => Ok(None),
            Response::Foreign(found) => {
                let is_ours = memory.has_asked(&found)?;
                let waits = self.is_waiting(pair, &id.to_string())?;
                if (was_asked && !waits) || (is_ours && !was_asked) {
                    let path = self.directory.path().join(pair.response());
                    return Err(Refused::Foreign { path, expected: id.to_string(), found, is_ours });
                }
                Ok(None)
            }
            Response::Malformed { report, document, .. } if was_asked => {
                let path = self.directory.path().join(pair.response());
                Err(Refused::Malformed(Box::new(Malformed { path, report, document })))
            }
            Response::NotAFile(what) if was_asked => {
                Err(Fault::NotAFile { path: self.directory.path().join(pair.response()), what }.into())
            }
            Response::Malformed { .. } | Response::NotAFile(_) => Ok(None),
        }
    }

    fn is_waiting(&self, pair: Pair, id: &str) -> Result<bool, Fault> {
        Ok(match request::look(&self.directory, pair)? {
            Request::Request(request) => request.request_id == id,
            Request::Nothing | Request::TooLarge { .. } | Request::Malformed(_) => false,
        })
    }

    /// Leaves the request, unless it is there. One of this run that waits in its place is asked again when the program comes to it.
    fn leave(&self, memory: &Memory<'_>, pair: Pair, id: Uuid, document: &[u8]) -> Result<(), Refused> {
        let waiting = match request::look(&self.directory, pair)? {
            Request::Nothing => None,
            Request::Request(request) => Some(Some(request.request_id)),
            Request::TooLarge { request_id, .. } => Some(Some(request_id)),
            Request::Malformed(malformed) => Some(malformed.request_id),
        };
        let is_ours = match &waiting {
            None => true,
            Some(Some(waiting)) if *waiting == id.to_string() => return Ok(()),
            Some(Some(waiting)) => memory.has_asked(waiting)?,
            Some(None) => false,
        };
        if !is_ours {
            return Err(Refused::Taken(self.directory.path().join(pair.request())));
        }
        memory.note_asked(id)?;
        failpoint::reached("ask", "noted");
        self.directory.write(&pair.request(), "request", document)?;
        Ok(())
    }
}
