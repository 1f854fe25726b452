//! One job in the directory: asks it, and waits for its answer.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosspoint_bridge::{Fault, failpoint};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{Attempt, Gone};

use super::Bridge;
use super::inbox::{InTheWay, Inbox, Seen, Thing, Which, Written, request_name, response_name};
use super::memory::Memory;
use super::verdict::{Verdict, verdict_of};
use crate::bridge::file_events::FileEvents;
use crate::link::record::Record;
use crate::link::{gone, remote};

/// How often the link checks whether the directory is free: the removal of a file is not notified.
const FREE_PAUSE: Duration = Duration::from_millis(250);

/// Pause before a file that cannot be understood is read again, and only then reported: a tool may be writing it in
/// place.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// How long a response that answers no request of this server is left for its requester to take; after that it is stale
/// (BRIDGE-4).
const UNTAKEN_AGE_MAX: Duration = Duration::from_secs(60);

/// What a progress step begins with as long as the request is not in its place.
const UNASKED: &str = "Not asked yet: ";

/// The last progress step, when there is an answer.
const ANSWERED: &str = "Answered";

pub(super) struct Conversation<'t> {
    link: &'t Bridge,
    attempt: &'t Attempt,
    id: String,
    shown: Option<String>,
    /// Whether the answer was taken.
    taken: bool,
    record: Record,
}

/// What to do with a file in the way.
enum Way {
    /// It was left by this server, and is done with.
    Remove,
    /// No requester waits for it. It is kept under another name.
    SetAside,
    /// Its owner has to take it away; the text is for people.
    Wait(String),
}

impl<'t> Conversation<'t> {
    pub(super) fn new(link: &'t Bridge, attempt: &'t Arc<Attempt>) -> Conversation<'t> {
        let id = attempt.job().id().to_string();
        Conversation { link, attempt, id, shown: None, taken: false, record: Record::new(attempt.clone()) }
    }

    /// Has the job answered.
    pub(super) async fn work(&mut self, document: &str) -> Result<Success, Failed> {
        if !self.is_asked().await? {
            self.ask(document).await?;
        }
        self.answered().await
    }

    /// Whether an attempt that is taken up need not be asked any more (ALL-3). Drivers write the response before they
    /// remove the request. So if neither is there, and it is not on record that the request was put there, the job was
    /// not asked.
    async fn is_asked(&mut self) -> Result<bool, Failed> {
        if !self.attempt.is_resumed() {
            return Ok(false);
        }
        let id = self.id.clone();
        let found = self.link.files(move |inbox| Ok((inbox.has(&id)?, inbox.look(&id)?))).await;
        let (asked, seen) = match found {
            Ok(found) => found,
            // It is asked again, or the reason why it cannot be is reported then.
            Err(Fault::Gone(_)) => (false, Seen::Nothing { asked: false }),
            Err(fault) => return Err(self.unusable(&fault, Dispatched::Yes)),
        };
        let answered = match seen {
            Seen::Written(written) => crosspoint_bridge::document::id_of(&written.bytes).as_deref() == Some(&self.id),
            Seen::Nothing { .. } | Seen::NotAFile(_) => false,
        };
        if asked || answered {
            return Ok(true);
        }
        match (Memory::tells_of(self.attempt, self.link.inbox.path()), self.link.repeatable) {
            (_, Some(true)) | (false, None) => Ok(false),
            // The request was taken away, and an agent may be at work.
            (true, Some(false) | None) => Ok(true),
            (false, Some(false)) => {
                let message = "It is not known whether the request was in its place when the server ended.";
                Err(Failed::said(Failure::Unavailable, Dispatched::Yes, message))
            }
        }
    }

    /// Puts the request into its place, as soon as that is free.
    async fn ask(&mut self, document: &str) -> Result<(), Failed> {
        loop {
            let way = self.link.files(Inbox::in_the_way).await;
            match way.map_err(|fault| self.unusable(&fault, Dispatched::No))? {
                Some(way) => self.clear(way).await?,
                None => {
                    let document = document.to_owned();
                    let put = self.link.files(move |inbox| inbox.put(&document)).await;
                    if put.map_err(|fault| self.unusable(&fault, Dispatched::No))? {
                        failpoint::reached("target", "asked");
                        Memory::keep(self.attempt, self.link.inbox.path()).await.map_err(|_| gone(Gone))?;
                        return self.show(waits_in(self.link.inbox.path())).await;
                    }
                }
            }
        }
    }

    /// Clears the way, or waits a little for the owner of the file to do so.
    async fn clear(&mut self, in_the_way: InTheWay) -> Result<(), Failed> {
        let file = in_the_way.file;
        let decided = self.decide(&in_the_way).await?;
        let done = match (decided, in_the_way.thing) {
            (Way::Wait(why), _) => {
                self.show(format!("{UNASKED}{why}")).await?;
                tokio::time::sleep(FREE_PAUSE).await;
                return Ok(());
            }
            (Way::Remove, Thing::Of(id, _)) => self.link.files(move |inbox| inbox.remove(file, &id)).await,
            (Way::Remove | Way::SetAside, _) => {
                let aside = self.link.files(move |inbox| inbox.set_aside(file)).await;
                aside.map(|aside| tracing::warn!(job = %self.id, aside, "a stale file was in the place, and is kept"))
            }
        };
        done.map_err(|fault| self.unusable(&fault, Dispatched::No))
    }

    async fn decide(&self, in_the_way: &InTheWay) -> Result<Way, Failed> {
        let is_request = matches!(in_the_way.file, Which::Request | Which::HalfRemovedRequest);
        let (id, modified) = match &in_the_way.thing {
            Thing::Of(id, modified) => (id, modified),
            Thing::Nameless | Thing::NotAFile(_) if !is_request => return Ok(Way::SetAside),
            Thing::Nameless => {
                return Ok(Way::Wait(format!("{} is another program's, and has no request_id", request_name())));
            }
            Thing::NotAFile(what) => return Ok(Way::Wait(format!("{} is {what}, not a file", request_name()))),
        };
        let ours = self.attempt.other(id).await?;
        Ok(match ours {
            // The result of an earlier attempt is on record.
            Some(job) if job.id() == self.attempt.job().id() => Way::Remove,
            Some(job) if job.outcome().is_some() => {
                if is_request || is_taken(&job, &self.link.options.agent) {
                    Way::Remove
                } else {
                    Way::SetAside
                }
            }
            Some(_) => Way::Wait(format!("another job asks there; crosspoint jobs cancel {id} would take that back")),
            None if is_request => Way::Wait(format!("{} is another program's", request_name())),
            None if is_fresh(*modified) => {
                Way::Wait(format!("{} answers another request and was not taken yet", response_name()))
            }
            None => Way::SetAside,
        })
    }

    /// Waits for the answer.
    async fn answered(&mut self) -> Result<Success, Failed> {
        let mut notices = FileEvents::new(false);
        notices.add(self.link.inbox.path());
        let (mut doubtful, mut noted) = (None, None);
        loop {
            let id = self.id.clone();
            let mut pause = None;
            match self.link.files(move |inbox| inbox.look(&id)).await {
                Ok(Seen::Written(Written { bytes, mark })) => {
                    match verdict_of(bytes, &self.id, self.link.inbox.bytes_max) {
                        Verdict::Answer(result, notes) => {
                            self.record.all(notes);
                            self.link.taken().insert((self.attempt.job().id(), self.attempt.number()));
                            self.taken = true;
                            failpoint::reached("target", "answered");
                            return result.map_err(|failed| failed.by_agent());
                        }
                        Verdict::TooLong if doubtful == Some(mark) => {
                            return Err(remote::too_long(self.link.inbox.bytes_max));
                        }
                        Verdict::Wrong { step, notes } if doubtful == Some(mark) => {
                            if noted != Some(mark) {
                                noted = Some(mark);
                                self.record.all(notes);
                                self.show_asked(&step).await?;
                            }
                        }
                        Verdict::TooLong | Verdict::Wrong { .. } => (doubtful, pause) = (Some(mark), Some(SECOND_LOOK)),
                    }
                }
                Ok(Seen::NotAFile(what)) => {
                    self.show_asked(&format!("{} is {what}, not a file", response_name())).await?;
                }
                Ok(Seen::Nothing { asked: true }) => {}
                Ok(Seen::Nothing { asked: false }) => {
                    let step = format!("{} was taken away, and there is no response yet", request_name());
                    self.show_asked(&step).await?;
                }
                Err(fault @ Fault::Gone(_)) => return Err(self.unusable(&fault, Dispatched::Yes)),
                Err(fault) => {
                    pause = Some(SECOND_LOOK);
                    self.show_asked(&format!("the files cannot be looked at: {}", in_words(&fault))).await?;
                }
            }
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => drop(notices.next().await),
            }
        }
    }

    /// Shows a last step before the outcome, because what was shown before no longer holds.
    pub(super) async fn close(&mut self) {
        // A job that is over needs none.
        if self.taken && !self.attempt.is_over() {
            let _ = self.attempt.progress(None, Some(ANSWERED)).await;
        }
    }

    /// Shows the state of a request that was asked.
    async fn show_asked(&mut self, what: &str) -> Result<(), Failed> {
        self.show(format!("{}{what}", asked_in(self.link.inbox.path()))).await
    }

    /// Shows a step, if it is new.
    async fn show(&mut self, step: String) -> Result<(), Failed> {
        if self.shown.as_ref() != Some(&step) {
            self.attempt.progress(None, Some(&step)).await.map_err(gone)?;
            self.shown = Some(step);
        }
        Ok(())
    }

    /// Reports an unusable directory. Its path is logged for operators; callers are told only what is wrong with it.
    fn unusable(&self, fault: &Fault, dispatched: Dispatched) -> Failed {
        tracing::warn!(job = %self.id, %fault, "the directory of an agent cannot be used");
        let message = format!("The agent's directory cannot be used: {}.", in_words(fault));
        Failed::said(Failure::Unavailable, dispatched, &message)
    }
}

/// The first progress step, once the request is in its place.
fn waits_in(directory: &Path) -> String {
    format!("Waits for an answer: crosspoint bridge answer {}", directory.display())
}

/// What the further steps begin with, up to the answer.
fn asked_in(directory: &Path) -> String {
    format!("Asked in {}: ", directory.display())
}

/// Whether the outcome of a job is what this agent answered, so that the file is no longer needed.
fn is_taken(job: &Job, agent: &str) -> bool {
    let Some(outcome) = job.outcome().filter(|_| job.agent.as_deref() == Some(agent)) else { return false };
    outcome.status == Status::Completed || outcome.document.is_some()
}

fn is_fresh(modified: SystemTime) -> bool {
    modified.elapsed().is_ok_and(|age| age < UNTAKEN_AGE_MAX)
}

/// What is wrong, without the path.
fn in_words(fault: &Fault) -> String {
    match fault {
        Fault::Gone(_) => "it is not there".to_owned(),
        Fault::NotADirectory(_) => "it is not a directory".to_owned(),
        Fault::Denied { why, .. } => (*why).to_owned(),
        Fault::Full(_) => "there is no room".to_owned(),
        Fault::NotAFile { what, .. } => format!("one of the files is {what}"),
        Fault::InUse(_) => "another process works in it".to_owned(),
        Fault::Other { source, .. } => source.kind().to_string(),
    }
}
