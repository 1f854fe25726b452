//! For programs that ask agents.
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
//! The driver runs the program (`crosspoint bridge run -- PROGRAM`). The first time, [`ask()`] has no answer: it leaves
//! the request and ends the program with [`NEED_AGENT`]. The driver has the request answered and starts the program
//! again, with [`RESUME`]. The program begins at its beginning again: questions that were answered before are answered
//! at once, until the program comes to a new question or to its end. So the program must be able to repeat everything
//! that it does between two questions.
//!
//! The answers are remembered in a directory `.agent-answers` beside the files. It holds the id of the run and all
//! answers that were taken in the run. The id of a question is made of its words and the run's id. So the same words
//! are the same question, another run asks anew, and a response to another question is never taken for the answer. A
//! response file is taken by moving it there in one step: a program that is killed has either taken it or not.

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
use crate::{NEED_AGENT, RESUME, directory_of_driver, failpoint};

pub use crate::response::{Answer, Status};
pub use answer::{Failed, Unusable};
use memory::Memory;
pub use question::Question;
pub use refused::{Malformed, Refused};

/// One run of a program, which spans all its starts until the program is done.
#[derive(Debug)]
pub struct Run {
    directory: Directory,
}

/// The result of asking a question.
#[derive(Debug)]
pub enum Asked {
    /// The question is answered. A failure of the agent is an answer too.
    Answered(Box<Answer>),
    /// The request is written. The program is to clean up and end with [`NEED_AGENT`].
    NeedsAgent,
}

/// Returns the answer, or leaves the request in the working directory and ends the program with [`NEED_AGENT`].
///
/// A program that was not started with [`RESUME`] begins a new run. Use [`Run`] to clean up before the program ends, to
/// ask in another directory, or to decide when a new run begins.
pub fn ask(question: &Question) -> Result<Answer, Refused> {
    Run::here()?.ask(question)
}

/// Forgets what was asked and answered in the working directory. Called when the program is done.
pub fn finish() -> Result<(), Fault> {
    forget(&Directory::open(&directory_of_driver())?)
}

/// Forgets the run of a program: its answers, and its requests that are not answered yet. Files of other programs stay.
pub fn forget(directory: &Directory) -> Result<(), Fault> {
    memory::forget(directory)
}

impl Run {
    /// Opens the run of this process in the directory of its driver, which is the working directory unless
    /// [`DIRECTORY`](crate::DIRECTORY) names another: a new run, unless the process was started with [`RESUME`].
    pub fn here() -> Result<Run, Fault> {
        let path = directory_of_driver();
        let resumed = std::env::args_os().skip(1).any(|word| word == RESUME);
        if resumed { Run::resume(&path) } else { Run::begin(&path) }
    }

    /// Begins a new run in this directory and forgets what the last run left.
    pub fn begin(path: &Path) -> Result<Run, Fault> {
        let run = Run::resume(path)?;
        forget(&run.directory)?;
        Ok(run)
    }

    /// Continues the run in this directory, or begins one where there is none.
    pub fn resume(path: &Path) -> Result<Run, Fault> {
        Ok(Run { directory: Directory::open(path)? })
    }

    /// Returns the answer, or leaves the request and ends the program with [`NEED_AGENT`].
    pub fn ask(&self, question: &Question) -> Result<Answer, Refused> {
        match self.try_ask(question)? {
            Asked::Answered(answer) => Ok(*answer),
            Asked::NeedsAgent => std::process::exit(i32::from(NEED_AGENT)),
        }
    }

    /// Returns the answer, or leaves the request and returns [`Asked::NeedsAgent`]. A program can leave questions of
    /// several phases before it ends, but only one question per phase, and one without a phase, can wait at a time.
    pub fn try_ask(&self, question: &Question) -> Result<Asked, Refused> {
        let pair = question.pair()?;
        let memory = Memory::of(&self.directory)?;
        let id = question.id(memory.run());
        // Built before any file is read: a question that cannot be asked is refused at every start, not only at the
        // first.
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

    /// Forgets what was asked and answered. Called when the program is done.
    pub fn finish(self) -> Result<(), Fault> {
        forget(&self.directory)
    }

    /// Takes the response if it is the answer. A response that was there before the question was asked is no error: the
    /// driver sets it aside when it answers.
    fn response(&self, memory: &Memory<'_>, pair: Pair, id: Uuid) -> Result<Option<Box<Answer>>, Refused> {
        let was_asked = memory.has_asked(&id.to_string())?;
        match response::look(&self.directory, pair, &id.to_string())? {
            Response::Nothing => Ok(None),
            Response::Answer(_) => {
                let answer = memory.take(pair, id)?;
                // Usually the driver has removed the request. If it was killed before that, the next driver need not
                // look at it.
                request::remove(&self.directory, pair, &id.to_string())?;
                failpoint::reached("ask", "taken");
                Ok(Some(answer))
            }
            // The program was killed just after it had taken the first answer, and another driver answered the request
            // once more.
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

    /// Leaves the request, unless it is there already. A waiting request of this run is overwritten: the program asks
    /// it again when it comes to that question.
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
