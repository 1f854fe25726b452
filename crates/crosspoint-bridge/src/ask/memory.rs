//! What a program's run remembers: `.agent-answers`.
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

/// The id of a run has 36 characters and the end of its line.
const RUN_BYTES_MAX: u64 = 64;

pub(super) struct Memory<'d> {
    /// Where the files of the bridge are.
    directory: &'d Directory,
    /// Where this is.
    answers: Directory,
    run: Uuid,
}

impl Memory<'_> {
    /// What is remembered of the run in a directory, which begins with this where nothing is.
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

    /// The answer that was taken before.
    pub(super) fn answer(&self, id: Uuid) -> Result<Option<Box<Answer>>, Refused> {
        let name = answer_name(id);
        match response::look_under(&self.answers, &name, &id.to_string())? {
            Look::Nothing => Ok(None),
            Look::Answer(answer) => Ok(Some(answer)),
            // Somebody else has been at it: nobody writes there but us, and then only what was looked at.
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

    /// Takes the response, which was looked at and is the answer.
    pub(super) fn take(&self, pair: Pair, id: Uuid) -> Result<Box<Answer>, Refused> {
        let (name, response) = (answer_name(id), pair.response());
        self.directory.move_into(&response, &self.answers, &name, "answer")?;
        match self.answer(id) {
            Ok(Some(answer)) => Ok(answer),
            // Another one was put in its place in this very moment: it goes back to where it was.
            Ok(None) => Err(Fault::Gone(self.answers.path().join(name)).into()),
            Err(refused) => {
                self.directory.move_out_of(&self.answers, &name, &response)?;
                Err(refused)
            }
        }
    }

    /// Whether the question of this id was asked in this run.
    pub(super) fn has_asked(&self, id: &str) -> Result<bool, Fault> {
        // Only ids of our own making are looked for: what stands in a file may be any name.
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

/// A new run. Where two begin at a time they agree on one.
fn begun(answers: &Directory) -> Result<Uuid, Fault> {
    let run = Uuid::new_v4();
    if answers.write_anew(RUN, "run", format!("{run}\n").as_bytes())? {
        return Ok(run);
    }
    if let Some(first) = run_of(answers)? {
        return Ok(first);
    }
    // What is there is no id. No answer can be found without it, so nothing is lost.
    answers.write(RUN, "run", format!("{run}\n").as_bytes())?;
    Ok(run)
}

/// Forgets a run. First what of it waits in the directory, which could not be known for its own any more afterwards; then its id, without which its
/// answers are nobody's; then those.
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

/// Takes a question back. A response to it stays: whoever wrote it may want it, and it is in nobody's way (BRIDGE-4.2).
fn withdraw(directory: &Directory, id: &str) -> Result<(), Fault> {
    for pair in Pair::all() {
        // What is no file is not ours.
        match request::remove(directory, pair, id) {
            Ok(_) | Err(Fault::NotAFile { .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
