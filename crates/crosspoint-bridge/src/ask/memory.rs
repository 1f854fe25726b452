//! What is remembered of a program's run: `.agent-answers`.
//!
//! | file | |
//! |---|---|
//! | `run` | the run's id, a UUID |
//! | `ID.asked` | empty: the question of this id was asked in this run |
//! | `ID.json` | the response to it, as it came |

use std::str;

use uuid::Uuid;

use super::refused::{Malformed, Refused};
use crate::directory::Directory;
use crate::fault::Fault;
use crate::pair::Pair;
use crate::response::{self, Answer, Look};
use crate::{failpoint, request};

const NAME: &str = ".agent-answers";
const RUN: &str = "run";

/// Most bytes that are read of the file `run`. A run's id has 36 characters and a line end.
const RUN_BYTES_MAX: u64 = 64;

pub(super) struct Memory<'d> {
    /// The directory with the request and response files.
    directory: &'d Directory,
    /// The directory `.agent-answers` within it.
    answers: Directory,
    run: Uuid,
}

impl Memory<'_> {
    /// Opens what is remembered of the run in a directory, or begins a run where nothing is remembered.
    pub(super) fn of(directory: &Directory) -> Result<Memory<'_>, Fault> {
        let answers = directory.within_made(NAME)?;
        let run = match run_of(&answers)? {
            Some(run) => run,
            None => begun(&answers)?,
        };
        Ok(Memory { directory, answers, run })
    }

    pub(super) fn run(&self) -> Uuid {
        self.run
    }

    /// Returns the answer that was taken before.
    pub(super) fn answer(&self, id: Uuid) -> Result<Option<Box<Answer>>, Refused> {
        let name = answer_name(id);
        match response::look_under(&self.answers, &name, &id.to_string())? {
            Look::Nothing => Ok(None),
            Look::Answer(answer) => Ok(Some(answer)),
            // Another program changed the file: only this module writes here, and it writes only responses that it has
            // checked.
            Look::Foreign(found) => {
                let path = self.answers.path().join(name);
                Err(Refused::Foreign { path, expected: id.to_string(), found, is_ours: false })
            }
            Look::Malformed { report, document, .. } => {
                let path = self.answers.path().join(name);
                Err(Refused::Malformed(Box::new(Malformed { path, report, document })))
            }
            Look::NotAFile(what) => Err(Fault::NotAFile { path: self.answers.path().join(name), what }.into()),
        }
    }

    /// Takes the response, which was looked at before and is the answer.
    pub(super) fn take(&self, pair: Pair, id: Uuid) -> Result<Box<Answer>, Refused> {
        let (name, response) = (answer_name(id), pair.response());
        self.directory.move_into(&response, &self.answers, &name, "answer")?;
        match self.answer(id) {
            Ok(Some(answer)) => Ok(answer),
            // The response was replaced between the look and the move: the replacement is moved back.
            Ok(None) => Err(Fault::Gone(self.answers.path().join(name)).into()),
            Err(refused) => {
                self.directory.move_out_of(&self.answers, &name, &response)?;
                Err(refused)
            }
        }
    }

    /// Whether the question of this id was asked in this run.
    pub(super) fn has_asked(&self, id: &str) -> Result<bool, Fault> {
        // Only ids that have the form of ours are looked up: a file may give any text as its id, and the id becomes a
        // name.
        match Uuid::try_parse(id) {
            Ok(id) => self.answers.has(&asked_name(id)),
            Err(_) => Ok(false),
        }
    }

    /// Whether the question of this id was answered in this run.
    pub(super) fn has_answer(&self, id: &str) -> Result<bool, Fault> {
        match Uuid::try_parse(id) {
            Ok(id) => self.answers.has(&answer_name(id)),
            Err(_) => Ok(false),
        }
    }

    pub(super) fn note_asked(&self, id: Uuid) -> Result<(), Fault> {
        self.answers.leave_mark(&asked_name(id))
    }
}

fn answer_name(id: Uuid) -> String {
    format!("{id}.json")
}

fn asked_name(id: Uuid) -> String {
    format!("{id}.asked")
}

fn run_of(answers: &Directory) -> Result<Option<Uuid>, Fault> {
    let found = answers.read(RUN, RUN_BYTES_MAX)?;
    let text = found.as_ref().and_then(|found| str::from_utf8(&found.bytes).ok());
    Ok(text.and_then(|text| Uuid::try_parse(text.trim()).ok()))
}

/// Begins a new run. Where two processes begin one at the same time, both use the id that was written first.
fn begun(answers: &Directory) -> Result<Uuid, Fault> {
    let run = Uuid::new_v4();
    if answers.write_anew(RUN, "run", format!("{run}\n").as_bytes())? {
        return Ok(run);
    }
    if let Some(first) = run_of(answers)? {
        return Ok(first);
    }
    // The file does not hold an id. No answer can be found without the id, so nothing is lost.
    answers.write(RUN, "run", format!("{run}\n").as_bytes())?;
    Ok(run)
}

/// Forgets a run. First come its requests that still wait in the directory, because afterwards they could not be told
/// from those of other runs. Then its id, without which its answers belong to no run. Then the answers.
pub(super) fn forget(directory: &Directory) -> Result<(), Fault> {
    let Some(answers) = directory.within(NAME)? else { return Ok(()) };
    let names = answers.all_names()?;
    for id in names.iter().filter_map(|name| name.strip_suffix(".asked")) {
        withdraw(directory, id)?;
    }
    failpoint::reached("run", "withdrawn");
    answers.unlink(RUN)?;
    failpoint::reached("run", "ended");
    for name in names {
        answers.unlink(&name)?;
    }
    directory.remove_empty(NAME)
}

/// Withdraws a question. A response to it stays: its author may want it, and it is in the way of no other file
/// (BRIDGE-4.2).
fn withdraw(directory: &Directory, id: &str) -> Result<(), Fault> {
    for pair in Pair::all() {
        // An entry that is no file was not written by this run.
        match request::remove(directory, pair, id) {
            Ok(_) | Err(Fault::NotAFile { .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
