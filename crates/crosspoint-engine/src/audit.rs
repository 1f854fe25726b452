//! The audit: who did what, and when.
//!
//! An entry is written in the commit of the act itself, so that there is neither an act without its entry nor an entry
//! without its act. It holds ids and names, never content. An act that is refused or changes nothing leaves no entry,
//! and neither does one of which it is not said who did it, as where nobody has a token. Entries are appended, never
//! changed, and removed only when they are old enough.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use crate::breaker;
use crate::core::{AgentCommand, Command, GrantCommand, Reply};
use crate::id::JobId;
use crate::job::Origin;
use crate::machine::Event;

/// How long entries are kept where nothing else is configured.
pub const AGE_DEFAULT: Duration = Duration::from_secs(365 * 86_400);

/// How long a reader may go on reading the same job, or a caller repeating the same request, before that is written
/// again.
pub const READ_AGAIN: Duration = Duration::from_secs(600);

/// Most readings and repeats that are remembered. One that is forgotten is written again: nothing is missing then, and
/// a reader that has those of others forgotten has as many entries written in its own name.
const READINGS_MAX: usize = 10_000;

/// Something that is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// A request became a job.
    Submit,
    /// A request was sent again, and its job was found.
    Repeat,
    /// Content of a job was read.
    Read,
    /// The question of a job was answered.
    Answer,
    /// A job was cancelled.
    Cancel,
    /// A job that has ended was submitted again, or a job that waited for an operator was begun again.
    Retry,
    /// An agent gets no new work.
    Drain,
    /// An agent gets work again.
    Undrain,
    /// The breaker of an agent was opened.
    BreakerOpen,
    /// The breaker of an agent was closed.
    BreakerClose,
    /// An agent that had joined was forgotten.
    Forget,
    /// A token was created.
    TokenCreate,
    /// A token was revoked.
    TokenRevoke,
    /// A token was replaced by another.
    TokenRotate,
    /// The configuration was read again.
    Reload,
}

/// An act, and what it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// What was done.
    pub act: Act,
    /// The job that it was done to.
    pub job: Option<Uuid>,
    /// The name of what it was done to, or the id of another job that it was about.
    pub object: Option<Box<str>>,
}

/// An act, and who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When it was done.
    pub at: Time,
    /// The name of the grant by which it was done.
    pub who: Arc<str>,
    /// What was done.
    pub act: Act,
    /// The job that it was done to.
    pub job: Option<Uuid>,
    /// The name of what it was done to, or the id of another job that it was about.
    pub object: Option<Box<str>>,
}

impl Act {
    /// All acts.
    pub const ALL: [Act; 15] = [
        Act::Submit,
        Act::Repeat,
        Act::Read,
        Act::Answer,
        Act::Cancel,
        Act::Retry,
        Act::Drain,
        Act::Undrain,
        Act::BreakerOpen,
        Act::BreakerClose,
        Act::Forget,
        Act::TokenCreate,
        Act::TokenRevoke,
        Act::TokenRotate,
        Act::Reload,
    ];

    /// Returns the word for the act. The words are in stores that exist: their meaning never changes.
    pub fn word(self) -> &'static str {
        match self {
            Act::Submit => "submit",
            Act::Repeat => "repeat",
            Act::Read => "read",
            Act::Answer => "answer",
            Act::Cancel => "cancel",
            Act::Retry => "retry",
            Act::Drain => "drain",
            Act::Undrain => "undrain",
            Act::BreakerOpen => "breaker_open",
            Act::BreakerClose => "breaker_close",
            Act::Forget => "forget",
            Act::TokenCreate => "token_create",
            Act::TokenRevoke => "token_revoke",
            Act::TokenRotate => "token_rotate",
            Act::Reload => "reload",
        }
    }

    /// Returns the act with this word.
    pub fn from_word(word: &str) -> Option<Act> {
        Act::ALL.into_iter().find(|act| act.word() == word)
    }

    /// Returns the act, done to this job.
    pub fn to_job(self, job: JobId) -> Deed {
        Deed { act: self, job: Some(job.uuid()), object: None }
    }

    /// Returns the act, done to what has this name.
    pub fn to(self, name: &str) -> Deed {
        Deed { act: self, job: None, object: Some(name.into()) }
    }
}

impl Deed {
    /// Returns the entry that says who did it.
    pub fn by(self, who: &Arc<str>, at: Time) -> AuditEntry {
        AuditEntry { at, who: who.clone(), act: self.act, job: self.job, object: self.object }
    }

    /// Returns what a command has done, judged by the reply to it; `None` if it was refused, or is not audited.
    pub fn of(command: &Command, reply: &Reply) -> Option<Deed> {
        match (command, reply) {
            (Command::Submit(submission), Reply::Accepted(job)) => Some(match &submission.request.origin {
                Some(Origin::RetryOf(other)) => {
                    Deed { object: Some(other.to_string().into()), ..Act::Retry.to_job(job.id()) }
                }
                Some(Origin::ChildOf { .. }) | None => Act::Submit.to_job(job.id()),
            }),
            (Command::Job(id, event), Reply::Job(_)) => Some(of_event(event)?.to_job(*id)),
            (Command::Agent(name, command), Reply::Done) => Some(of_agent(*command)?.to(name)),
            (Command::Grant(command), Reply::Grant(grant)) => Some(of_grant(command).to(&grant.name)),
            (Command::Audit(deed), Reply::Done) => Some(deed.clone()),
            (
                Command::Submit(_)
                | Command::Find(..)
                | Command::Job(..)
                | Command::Report { .. }
                | Command::Agent(..)
                | Command::TakeUp(_)
                | Command::Join(_)
                | Command::Told(_)
                | Command::Grant(_)
                | Command::Audit(_)
                | Command::Violation(..)
                | Command::ClockJumped { .. }
                | Command::Rest,
                _,
            ) => None,
        }
    }
}

fn of_event(event: &Event) -> Option<Act> {
    match event {
        Event::Cancel => Some(Act::Cancel),
        Event::Answer { .. } => Some(Act::Answer),
        Event::Release => Some(Act::Retry),
        Event::Start { .. }
        | Event::Heard { .. }
        | Event::Progress { .. }
        | Event::Output { .. }
        | Event::Ask { .. }
        | Event::Unasked { .. }
        | Event::Remember { .. }
        | Event::Step { .. }
        | Event::Finish { .. }
        | Event::Withdrawn { .. }
        | Event::Clock
        | Event::Interrupted(_) => None,
    }
}

fn of_agent(command: AgentCommand) -> Option<Act> {
    match command {
        AgentCommand::Drain(true) => Some(Act::Drain),
        AgentCommand::Drain(false) => Some(Act::Undrain),
        AgentCommand::Breaker(breaker::Event::Open) => Some(Act::BreakerOpen),
        AgentCommand::Breaker(breaker::Event::Close) => Some(Act::BreakerClose),
        AgentCommand::Forget => Some(Act::Forget),
        AgentCommand::Breaker(
            breaker::Event::Marked(_)
            | breaker::Event::Clock
            | breaker::Event::Checked(_)
            | breaker::Event::Interrupted,
        )
        | AgentCommand::Capacity(_) => None,
    }
}

fn of_grant(command: &GrantCommand) -> Act {
    match command {
        GrantCommand::Create(_) => Act::TokenCreate,
        GrantCommand::Revoke(_) => Act::TokenRevoke,
        GrantCommand::Rotate { .. } => Act::TokenRotate,
    }
}

/// Something that is done again and again, as reading: who does it, what, and to which job.
pub type Habit = (Arc<str>, Act, JobId);

/// Who has read which job lately, or repeated its request, so that one that asks every second does not fill the audit.
#[derive(Debug, Default)]
pub struct Readings {
    known: BTreeSet<Habit>,
    /// The same, in the order in which they were written.
    order: VecDeque<(Time, Habit)>,
}

impl Readings {
    /// Whether it is written already that this was done lately.
    pub fn is_known(&mut self, habit: &Habit, now: Time) -> bool {
        // A reading in the future is one from before the clock was set back, and it is not known how long ago it was.
        while let Some((at, _)) = self.order.front()
            && (self.order.len() > READINGS_MAX || *at > now || now.since(*at) >= READ_AGAIN)
        {
            self.forget_first();
        }
        self.known.contains(habit)
    }

    /// Notes that it is written.
    pub fn note(&mut self, habit: Habit, now: Time) {
        if self.known.insert(habit.clone()) {
            self.order.push_back((now, habit));
        }
        if self.order.len() > READINGS_MAX {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, habit)) = self.order.pop_front() {
            self.known.remove(&habit);
        }
    }
}
