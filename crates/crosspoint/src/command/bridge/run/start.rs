//! How a run begins: what is there, what follows from it, and the one line that says so.
//!
//! `next` decides. A request that no record knows may have been left by any program, so it is not answered in the name
//! of this one: it is set aside, and the user is shown the command that has it answered after all (BRIDGE-4.6).

use std::env;
use std::ffi::{OsStr, OsString};

use anyhow::Result;
use crosspoint_bridge::{Fault, Pair, response};

use super::answering::fault_error;
use super::child::Way;
use super::next::{self, Begin, Found, Fresh, Memory, Recorded, Responses, Unknown};
use super::{Driver, Step};
use crate::Exit;
use crate::bridge::driver::{DrivenDirectory, Waiting};
use crate::terminal::{render, shell};

/// The option that has requests answered that no record knows.
const RESUME_OPTION: &str = "--resume";

const FROM_THE_BEGINNING: &str = "the program is started from the beginning";

/// What waits at a start.
struct Waits {
    noted: Vec<Pair>,
    unknown: Vec<Pair>,
    /// Entries that are no files, or cannot be read.
    unreadable: bool,
}

impl Driver<'_> {
    pub(super) fn begin(&mut self) -> Result<Step> {
        self.begun().map_err(|fault| fault_error(&fault))
    }

    fn begun(&mut self) -> Result<Step, Fault> {
        let mut waits = waits(&self.attended)?;
        let is_empty = |waits: &Waits| waits.noted.is_empty() && waits.unknown.is_empty() && !waits.unreadable;
        if self.arguments.resume && is_empty(&waits) && self.attended.record.requests.is_empty() {
            waits.unknown = take_back(&self.attended)?;
        }
        if waits.unreadable {
            // Nothing is touched until the user has looked at it.
            return Ok(Step::Answer);
        }
        let (noted, unknown) = (!waits.noted.is_empty(), !waits.unknown.is_empty());
        let found = Found { noted, unknown, responses: responses(&self.attended)? };
        let how = if self.arguments.resume { Unknown::Answer } else { Unknown::SetAside };
        let begin = next::begin(found, self.recorded(), how);
        self.follow(begin, &waits)
    }

    fn recorded(&self) -> Recorded {
        let record = &self.attended.record;
        let memory = if record.requests.is_empty() { Memory::Begun } else { Memory::Asked };
        match &record.command {
            None => Recorded::NoRun,
            Some(command) if *command == self.command => Recorded::Us(memory),
            Some(_) => Recorded::Another(memory),
        }
    }

    fn follow(&self, begin: Begin, waits: &Waits) -> Result<Step, Fault> {
        match begin {
            Begin::Fresh(Fresh::UnknownRequests) => self.set_aside(&waits.unknown, FROM_THE_BEGINNING)?,
            Begin::SetAsideAndAnswer => {
                self.set_aside(&waits.unknown, "what a driver was already given is answered first")?;
            }
            Begin::Fresh(_) | Begin::Resumed(_) | Begin::Answer => {
                let names = [&waits.noted[..], &waits.unknown].concat();
                if let Some(line) = line(begin, self.arguments.resume, &names) {
                    render::note(&line);
                }
            }
            Begin::NotOurs => {
                let path = self.attended.directory.path().display();
                let message = format!("another command is not done in {path}, and what it has so far is kept there");
                let hint = "run that command again; or, if it is not to go on, remove .agent-bridge.json, .agent-answers and its .agent-request \
                            files";
                render::refused(&message, hint);
            }
        }
        Ok(match begin {
            Begin::Fresh(_) => Step::Run(Way::Fresh),
            Begin::Resumed(_) => Step::Run(Way::Resumed),
            Begin::Answer | Begin::SetAsideAndAnswer => Step::Answer,
            Begin::NotOurs => Step::End(Exit::CouldNot),
        })
    }

    /// Sets requests aside, and says so together with what follows and what would have them answered.
    fn set_aside(&self, pairs: &[Pair], follows: &str) -> Result<(), Fault> {
        let mut kept = Vec::new();
        for pair in pairs {
            // A requester may take its request back at any moment.
            if let Some(aside) = self.attended.directory.set_aside(&pair.request())? {
                kept.push(format!("{pair} is kept as {aside}"));
            }
        }
        if kept.is_empty() {
            return Ok(());
        }
        let kept = kept.join(", ");
        render::note(&format!("{kept}: no record says that this command asked it (BRIDGE-4.6); {follows}"));
        render::note(&format!("to have it answered instead: {}", resuming(env::args_os())));
        Ok(())
    }
}

/// The line that says how a run begins. A run that finds nothing needs none.
fn line(begin: Begin, resume: bool, waiting: &[Pair]) -> Option<String> {
    let names: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    Some(match begin {
        Begin::Fresh(Fresh::First) if resume => {
            format!("no request is there that could be answered: {FROM_THE_BEGINNING}")
        }
        Begin::Fresh(Fresh::AskedNothing) => {
            format!("the last run ended before the program had asked anything: {FROM_THE_BEGINNING}")
        }
        Begin::Fresh(Fresh::ForeignResponse) => {
            format!(
                "the response that is there is not the recorded answer of the last run (BRIDGE-4.4): {FROM_THE_BEGINNING}"
            )
        }
        Begin::Resumed(Responses::Own) => {
            "the last run left an answer that the program has not taken: the program is resumed with it".to_owned()
        }
        Begin::Resumed(Responses::None | Responses::Foreign) => {
            "the last run was cut short after the program had taken its answer: the program is resumed".to_owned()
        }
        Begin::Answer => format!("{names} was left unanswered: it is answered now, and then the program is resumed"),
        Begin::Fresh(Fresh::First | Fresh::UnknownRequests) | Begin::SetAsideAndAnswer | Begin::NotOurs => return None,
    })
}

fn waits(attended: &DrivenDirectory) -> Result<Waits, Fault> {
    let mut waits = Waits { noted: Vec::new(), unknown: Vec::new(), unreadable: false };
    for waiting in attended.waiting()? {
        let (pair, id) = match &waiting {
            Waiting::Request(request) => (request.pair, Some(&request.request_id)),
            Waiting::TooLarge(pair, id, _) => (*pair, Some(id)),
            Waiting::Malformed(pair, malformed) => (*pair, malformed.request_id.as_ref()),
            Waiting::Unreadable(..) => {
                waits.unreadable = true;
                continue;
            }
        };
        let is_noted = id.is_some_and(|id| attended.record.has(pair, id));
        if is_noted { waits.noted.push(pair) } else { waits.unknown.push(pair) }
    }
    Ok(waits)
}

/// Gives requests that were set aside their names back, one for each pair, and returns the pairs.
fn take_back(attended: &DrivenDirectory) -> Result<Vec<Pair>, Fault> {
    let mut pairs = Vec::new();
    for pair in Pair::all() {
        if let Some(aside) = attended.directory.take_back(&pair.request())? {
            render::note(&format!("{aside} is {pair} again"));
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

fn responses(attended: &DrivenDirectory) -> Result<Responses, Fault> {
    let mut found = Responses::None;
    for noted in &attended.record.requests {
        let Some(pair) = Pair::all().find(|pair| pair.request() == noted.file) else { continue };
        match response::look(&attended.directory, pair, &noted.request_id)? {
            response::Look::Nothing => {}
            response::Look::Answer(_) => return Ok(Responses::Own),
            response::Look::Foreign(_) | response::Look::Malformed { .. } | response::Look::NotAFile(_) => {
                found = Responses::Foreign;
            }
        }
    }
    Ok(found)
}

/// Returns the user's own command with the option that has requests answered that no record knows, to be pasted.
fn resuming(words: impl Iterator<Item = OsString>) -> String {
    let mut words: Vec<OsString> = words.collect();
    // The program's words stand after the first `--`, and have no say in this.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, RESUME_OPTION.into());
    shell::line(words.iter().map(OsString::as_os_str).collect::<Vec<&OsStr>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_is_shown_is_the_users_own() {
        let shown = |words: &[&str]| resuming(words.iter().map(OsString::from));
        assert_eq!(
            shown(&["crosspoint", "bridge", "run", "--dir", "my dir", "--", "./a", "--", "it's"]),
            r"crosspoint bridge run --dir 'my dir' --resume -- ./a -- 'it'\''s'"
        );
    }

    #[test]
    fn every_way_to_go_on_is_said() {
        let begins = [
            Begin::Fresh(Fresh::AskedNothing),
            Begin::Fresh(Fresh::ForeignResponse),
            Begin::Resumed(Responses::Own),
            Begin::Resumed(Responses::None),
            Begin::Answer,
        ];
        let lines: Vec<String> = begins.iter().filter_map(|begin| line(*begin, false, &[Pair::PLAIN])).collect();
        assert_eq!(lines.len(), begins.len());
        assert!(lines.iter().all(|line| !line.contains('\n')));
        assert_eq!(line(Begin::Fresh(Fresh::First), false, &[]), None, "a first run has nothing to say");
    }
}
