//! What the pull queues tell the engine: agents that join, how many jobs they take, what they report.

use std::future::Future;
use std::sync::Arc;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::outcome::{Outcome, Text};

use super::engine::Engine;
use super::inbox::Answer;
use crate::core::{AgentCommand, Command, Grip, Member, NEVER_HAD, Reply};
use crate::event::Violation;
use crate::id::JobId;
use crate::job::Job;
use crate::machine::Event;
use crate::store::Fault;

/// The clause under which rules that programs broke are recorded.
const CLAUSE: &str = "exec";

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The report counts, and is on disk.
    Taken,
    /// The job goes on without this attempt, or has ended.
    Gone,
}

/// Why an agent cannot join or be forgotten.
#[derive(Debug)]
pub enum Unjoined {
    /// A configured agent has this name.
    Configured,
    /// The limit on the number of agents that joined is reached.
    Crowded,
    /// No agent has this name.
    NotFound,
    /// The agent is present, or has work.
    Present,
    /// An agent of this name that speaks another contract is present, or has work.
    OtherContract,
    /// The orchestrator is about to end, and nothing was done.
    Closed,
    /// The orchestrator ended before the result was known.
    Lost,
    /// The change was tried, and is not known to be written.
    Fault(Arc<Fault>),
    /// Nothing can be written at present, and nothing was tried.
    NotTried(Arc<Fault>),
}

impl Engine {
    /// Makes an agent known, or changes its works and limits. The command is queued by the call itself, and not when
    /// the future is first awaited, so it comes before all later ones.
    pub fn join(&self, member: Member) -> impl Future<Output = Result<(), Unjoined>> + Send + use<> {
        self.change(None, Command::Join(Arc::new(member)))
    }

    /// Sets how many jobs an agent takes at a time, a configured one at most as many as configured; 0 says that it is
    /// away. Of configured agents this is not stored. Queued in order, like [`Engine::join`].
    pub fn set_capacity(&self, name: &str, capacity: u32) -> impl Future<Output = Result<(), Unjoined>> + Send + use<> {
        self.change(None, Command::Agent(name.into(), AgentCommand::Capacity(capacity)))
    }

    /// Queues a command about an agent by the call itself, and waits for it in the future that is returned.
    pub(super) fn change(
        &self,
        by: Option<&Arc<str>>,
        command: Command,
    ) -> impl Future<Output = Result<(), Unjoined>> + Send + use<> {
        let answer = self.inbox().put_by(by, command);
        async move {
            let answer = answer.map_err(|_| Unjoined::Closed)?.await;
            match answer {
                Ok(Answer::Committed { reply, .. }) => match reply {
                    Reply::Configured => Err(Unjoined::Configured),
                    Reply::Crowded => Err(Unjoined::Crowded),
                    Reply::NoSuchAgent => Err(Unjoined::NotFound),
                    Reply::Present => Err(Unjoined::Present),
                    Reply::OtherContract => Err(Unjoined::OtherContract),
                    Reply::Done
                    | Reply::Accepted(_)
                    | Reply::Known(_)
                    | Reply::MayBeOf(_)
                    | Reply::Claimed
                    | Reply::Rejected(_)
                    | Reply::Job(_)
                    | Reply::Refused(_)
                    | Reply::NotTheirs
                    | Reply::NotLive
                    | Reply::Grant(_)
                    | Reply::NameTaken
                    | Reply::NoSuchGrant
                    | Reply::Unusable(_) => Ok(()),
                },
                Ok(Answer::Failed(fault)) => Err(Unjoined::Fault(fault)),
                Ok(Answer::NotTried(fault)) => Err(Unjoined::NotTried(fault)),
                Err(_) => Err(Unjoined::Lost),
            }
        }
    }

    /// Passes on what an agent reports about several jobs. When it returns, all reports are on disk. `None` says that
    /// the orchestrator is about to end or cannot write, and that it is unknown which reports were taken.
    pub async fn report(&self, agent: &Arc<str>, mut reports: Vec<(JobId, Grip, Event)>) -> Option<Vec<Heard>> {
        self.judged_reports(agent, &mut reports).await;
        let about: Vec<About> = reports.iter().map(|(id, _, event)| About::of(*id, event)).collect();
        let command = |(id, grip, event)| Command::Report { agent: agent.clone(), grip, id, event };
        let answers = self.inbox().put_reports(reports.into_iter().map(command)).ok()?;
        let mut heard = Vec::with_capacity(answers.len());
        for (answer, about) in answers.into_iter().zip(about) {
            heard.push(match answer.await.ok()? {
                Answer::Committed { reply: Reply::NotLive, .. } => {
                    if let Some(event) = about.end {
                        self.record_unless_repeated(agent, about.id, event).await;
                    }
                    Heard::Gone
                }
                Answer::Committed { reply: Reply::Job(job), .. }
                    if about.ends_it || is_present(&job, about.attempt) =>
                {
                    Heard::Taken
                }
                Answer::Committed { .. } => Heard::Gone,
                Answer::Failed(_) | Answer::NotTried(_) => return None,
            });
        }
        Some(heard)
    }

    /// Handles a result that came after the outcome. An agent rightly sends the same result again if the reply was
    /// lost; anything else is recorded.
    async fn record_unless_repeated(&self, agent: &Arc<str>, id: JobId, event: Event) {
        let Ok(Some(job)) = self.read(move |readers| readers.job(id)).await else { return };
        if job.had_by(event.attempt().unwrap_or(0)) != Some(agent) {
            return self.record(id, NEVER_HAD).await;
        }
        if !is_repeat(&job, &event) {
            self.record_late(id, event).await;
        }
    }

    /// Records beside a job that its worker broke a rule, or saw one broken; `None` says that it is not on disk.
    pub async fn record_broken(&self, id: JobId, rule: Box<str>) -> Option<()> {
        let violation = Violation { clause: CLAUSE, level: Level::Error, what: String::from(rule).into() };
        match self.inbox().put(Command::Violation(id.seq(), violation)).ok()?.await.ok()? {
            Answer::Committed { .. } => Some(()),
            Answer::Failed(_) | Answer::NotTried(_) => None,
        }
    }

    /// Returns the inputs of some jobs, in their order, with `None` for a job that is no longer there.
    pub async fn inputs(&self, jobs: Vec<Arc<Job>>) -> Result<Vec<Option<Body>>, Fault> {
        self.read(move |readers| {
            let input = |job: &Arc<Job>| {
                let document = readers.document(job.seq())?;
                Ok(document.and_then(|document| job.request.input_in(&document)).map(Body::trusted))
            };
            jobs.iter().map(input).collect()
        })
        .await
    }
}

/// What a report is about.
struct About {
    id: JobId,
    attempt: u32,
    /// Whether the report ends the attempt.
    ends_it: bool,
    /// A result, which has to be recorded if it comes after the outcome. Bodies are shared, so that cloning it costs
    /// little.
    end: Option<Event>,
}

impl About {
    fn of(id: JobId, event: &Event) -> About {
        let end = matches!(event, Event::Finish { .. }).then(|| event.clone());
        let ends_it = matches!(event, Event::Finish { .. } | Event::Withdrawn { .. });
        About { id, attempt: event.attempt().unwrap_or(0), ends_it, end }
    }
}

/// Whether this is the result that the job has ended with. The agent's own document is not compared: the same result
/// may come in a new envelope. Nor is a text that was put together from blocks, of which an agent may repeat only the
/// end. Nor is the message of a failure, because the engine may have written it.
fn is_repeat(job: &Job, event: &Event) -> bool {
    let (Some(outcome), Event::Finish { attempt, result }) = (job.outcome(), event) else { return false };
    match result {
        Ok(success) => {
            let mut again = Outcome::completed(success.clone());
            again.document.clone_from(&outcome.document);
            let is_printed = |outcome: &Outcome| matches!(outcome.text, Some(Text::Printed(_)));
            if is_printed(&outcome.outcome) && !is_printed(&again) {
                again.outputs.clone_from(&outcome.outputs);
                again.text.clone_from(&outcome.text);
            }
            outcome.outcome == again
        }
        Err(failed) => *attempt == job.attempts && outcome.failure() == Some(failed.failure),
    }
}

fn is_present(job: &Job, attempt: u32) -> bool {
    job.running().is_some_and(|running| running.attempt == attempt)
}
