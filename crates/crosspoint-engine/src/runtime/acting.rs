//! What callers and operators do: submit, cancel, answer, retry, drain. Each is audited where it is known who does it.

use std::sync::Arc;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::request::{Key, NewJob};
use crosspoint_contracts::time::Time;
use tokio::sync::oneshot;

use super::agent_view::AgentView;
use super::engine::Engine;
use super::inbox::{Answer, Turned};
use super::members::Unjoined;
use super::published::{Watch, lock};
use super::requests::{Denied, Submitted, Unaccepted};
use super::same_request::Likeness;
use crate::audit::{Act, Deed};
use crate::breaker;
use crate::core::{AgentCommand, Command, Reply, Submission};
use crate::id::JobId;
use crate::job::{Job, Origin, QuestionId, State};
use crate::machine::{self, Event};
use crate::policy::Policy;
use crate::wall_clock;

/// The engine, in the hands of the holder of a token, who is named in the audit.
#[derive(Clone, Copy)]
pub struct Acting<'e> {
    pub(super) engine: &'e Engine,
    pub(super) by: Option<&'e Arc<str>>,
}

impl Engine {
    /// Returns what `who` does with the engine. What is done is in the audit, by the same commit.
    pub fn by<'e>(&'e self, who: &'e Arc<str>) -> Acting<'e> {
        Acting { engine: self, by: Some(who) }
    }

    /// Returns what a client does with the engine; `by` is the name of its token, if it showed one.
    pub fn acting<'e>(&'e self, by: Option<&'e Arc<str>>) -> Acting<'e> {
        Acting { engine: self, by }
    }

    /// Returns what is done without a name, and without an entry in the audit.
    pub(super) fn unnamed(&self) -> Acting<'_> {
        Acting { engine: self, by: None }
    }

    /// Accepts a request. When it returns, the job is on disk.
    pub async fn submit(&self, new: NewJob) -> Result<Submitted, Unaccepted> {
        self.unnamed().submit(new).await
    }

    /// Stops a job. A job that was cancelled already stays so.
    pub async fn cancel(&self, id: JobId) -> Result<Arc<Job>, Denied> {
        self.unnamed().cancel(id).await
    }

    /// Answers the question that a job waits with.
    pub async fn answer(&self, id: JobId, answer: Body) -> Result<Arc<Job>, Denied> {
        self.unnamed().answer(id, answer, None).await
    }

    /// Submits a job that has ended once more, as a new job. `key` keeps this from happening twice. A job that waits
    /// for an operator is itself begun again.
    pub async fn retry(&self, id: JobId, key: Option<Box<str>>) -> Result<Result<Submitted, Unaccepted>, Denied> {
        self.unnamed().retry(id, key).await
    }

    /// Drives a job from now on that was held when this orchestrator started. A job that is driven already goes on as
    /// it does, and so does one that has ended.
    pub async fn take_up(&self, id: JobId) -> Result<(), Unaccepted> {
        match self.job(id).await.map_err(|fault| Unaccepted::NotTried(Arc::new(fault)))? {
            Some(watch) => self.unnamed().take_up(&watch.job()).await,
            None => Ok(()),
        }
    }

    /// Stops or resumes giving an agent new work.
    pub async fn drain(&self, name: &str, drained: bool) -> Result<AgentView, Denied> {
        self.unnamed().drain(name, drained).await
    }

    /// Opens an agent's breaker until an operator closes it, or closes it.
    pub async fn set_breaker(&self, name: &str, open: bool) -> Result<AgentView, Denied> {
        self.unnamed().set_breaker(name, open).await
    }

    /// Forgets an agent that joined and will not come back. Returns the agent as it was.
    pub async fn forget(&self, name: &str) -> Result<AgentView, Unjoined> {
        self.unnamed().forget(name).await
    }
}

impl Acting<'_> {
    pub(super) fn put(self, command: Command) -> Result<oneshot::Receiver<Answer>, Turned> {
        self.engine.inbox().put_by(self.by, command)
    }

    /// Accepts a request. When it returns, the job is on disk.
    pub async fn submit(self, new: NewJob) -> Result<Submitted, Unaccepted> {
        self.submit_from(new, None).await
    }

    /// Accepts a request that comes from another job.
    pub(super) async fn submit_from(self, new: NewJob, origin: Option<Origin>) -> Result<Submitted, Unaccepted> {
        let submission = self.engine.submission(new, origin);
        self.submit_as(submission).await
    }

    pub(super) async fn submit_as(self, submission: Submission) -> Result<Submitted, Unaccepted> {
        let mut submission = Arc::new(submission);
        // The job that it repeats, if it has names that this job lacks.
        let mut repeated: Option<Watch> = None;
        loop {
            let waiting = self.put(Command::Submit(submission.clone()));
            let answer = waiting.map_err(|turned| match turned {
                Turned::Overloaded => Unaccepted::Overloaded,
                Turned::Closed => Unaccepted::Closed,
            })?;
            // A job that may have one of the names, and the job that has another one for sure.
            let (seq, first) = match answer.await {
                Ok(Answer::Committed { reply: Reply::Accepted(job), watch }) => {
                    return Ok(Submitted::New(watch.unwrap_or_else(|| Watch::at_rest(job))));
                }
                Ok(Answer::Committed { reply: Reply::Rejected(rejected), .. }) => {
                    return Err(Unaccepted::Rejected(rejected));
                }
                Ok(Answer::Committed { reply: Reply::Known(seq), .. }) => (seq, None),
                Ok(Answer::Committed { reply: Reply::MayBeOf(seq), .. }) => (seq, repeated.clone()),
                Ok(Answer::Committed { reply: Reply::Claimed, .. }) => {
                    return self.repeat(repeated.ok_or(Unaccepted::Lost)?).await;
                }
                Ok(Answer::Failed(fault)) => return Err(Unaccepted::Fault(fault)),
                Ok(Answer::NotTried(fault)) => return Err(Unaccepted::NotTried(fault)),
                Ok(Answer::Committed { .. }) | Err(_) => return Err(Unaccepted::Lost),
            };
            let compared = self.engine.compare(&submission, seq).await;
            match compared.map_err(|fault| Unaccepted::NotTried(Arc::new(fault)))? {
                // Two different keys have the same hash: this job is known to have the other one.
                Likeness::OtherKey(other) => Arc::make_mut(&mut submission).others.push(other),
                Likeness::Same(..) | Likeness::OtherRequest(_) if first.is_some() => return Err(Unaccepted::TwoJobs),
                Likeness::Same(watch, repeats) if repeats.names.is_empty() => return self.repeat(watch).await,
                Likeness::Same(watch, repeats) => {
                    Arc::make_mut(&mut submission).repeats = Some(repeats);
                    repeated = Some(watch);
                }
                Likeness::OtherRequest(job) => return Err(Unaccepted::Conflict(job)),
            }
        }
    }

    /// Answers a request that is that of a job.
    async fn repeat(self, watch: Watch) -> Result<Submitted, Unaccepted> {
        self.take_up(&watch.job()).await?;
        self.note_repeat(watch.job().id()).await?;
        Ok(Submitted::Repeat(watch))
    }

    /// Drives a held job from now on, because the caller that submitted it again waits for it.
    async fn take_up(self, job: &Job) -> Result<(), Unaccepted> {
        if job.outcome().is_some() || !self.engine.is_held(job.seq()) {
            return Ok(());
        }
        let taking = self.engine.inbox().put(Command::TakeUp(job.id())).map_err(|_| Unaccepted::Closed)?;
        match taking.await {
            Ok(Answer::Committed { .. }) => Ok(()),
            Ok(Answer::Failed(fault)) => Err(Unaccepted::Fault(fault)),
            Ok(Answer::NotTried(fault)) => Err(Unaccepted::NotTried(fault)),
            Err(_) => Err(Unaccepted::Lost),
        }
    }

    /// Writes that a request was repeated, if it is known who did. Callers that wait may repeat theirs every second.
    async fn note_repeat(self, id: JobId) -> Result<(), Unaccepted> {
        match self.note_once(Act::Repeat.to_job(id), id).await {
            Ok(()) => Ok(()),
            Err(Denied::Fault(fault)) => Err(Unaccepted::Fault(fault)),
            Err(Denied::NotTried(fault)) => Err(Unaccepted::NotTried(fault)),
            Err(Denied::Closed) => Err(Unaccepted::Closed),
            Err(Denied::Lost | Denied::NotFound | Denied::Refused(_) | Denied::NotEnded(_)) => Err(Unaccepted::Lost),
        }
    }

    /// Writes that something was done which is no command itself, as reading or reloading. When it returns, that is on
    /// disk. Without a name nothing is written.
    pub async fn note(self, deed: Deed) -> Result<(), Denied> {
        if self.by.is_none() {
            return Ok(());
        }
        let answer = self.put(Command::Audit(deed)).map_err(|_| Denied::Closed)?;
        match answer.await {
            Ok(Answer::Committed { .. }) => Ok(()),
            Ok(Answer::Failed(fault)) => Err(Denied::Fault(fault)),
            Ok(Answer::NotTried(fault)) => Err(Denied::NotTried(fault)),
            Err(_) => Err(Denied::Lost),
        }
    }

    /// The same for what is done to a job again and again: it is written at most once in
    /// [`audit::READ_AGAIN`](crate::audit::READ_AGAIN).
    pub(super) async fn note_once(self, deed: Deed, job: JobId) -> Result<(), Denied> {
        let Some(by) = self.by else { return Ok(()) };
        let habit = (by.clone(), deed.act, job);
        if lock(self.engine.readings()).is_known(&habit, wall_clock::now()) {
            return Ok(());
        }
        self.note(deed).await?;
        // Noted only now: what could not be written is written the next time.
        lock(self.engine.readings()).note(habit, wall_clock::now());
        Ok(())
    }

    /// Stops a job. A job that was cancelled already stays so.
    pub async fn cancel(self, id: JobId) -> Result<Arc<Job>, Denied> {
        self.apply(id, Event::Cancel).await
    }

    /// Answers the question that a job waits with.
    pub async fn answer(self, id: JobId, answer: Body, to: Option<QuestionId>) -> Result<Arc<Job>, Denied> {
        self.apply(id, Event::Answer { answer, to }).await
    }

    /// Submits a job that has ended once more, as a new job. `key` keeps this from happening twice. A job that waits
    /// for an operator is itself begun again.
    pub async fn retry(self, id: JobId, key: Option<Box<str>>) -> Result<Result<Submitted, Unaccepted>, Denied> {
        let watch = self.engine.job(id).await?.ok_or(Denied::NotFound)?;
        let job = watch.job();
        let waits_for_operator = job.aside.is_some() || matches!(job.state, State::Poisoned);
        if waits_for_operator && job.outcome().is_none() {
            // The same job goes on: it only waited for an operator (ALL-13).
            self.apply(id, Event::Release).await?;
            return Ok(Ok(Submitted::Repeat(watch)));
        }
        if job.outcome().is_none() {
            return Err(Denied::NotEnded(job));
        }
        let document = self.engine.document(job.seq()).await?.ok_or(Denied::NotFound)?;
        let request = &job.request;
        let new = NewJob {
            door: request.door,
            caller: request.caller.clone(),
            request_id: None,
            key: key.map_or(Key::None, Key::Other),
            work: request.work.clone(),
            agent: request.pinned.clone(),
            addressed: request.addressed.clone(),
            priority: request.priority,
            limits: request.limits.clone(),
            document,
            input: request.input.start as usize..request.input.end as usize,
            trace: request.trace.clone(),
            echo: request.echo.clone(),
            // The recipient was told the outcome of its request. This is another one, which an operator asked for.
            notify: None,
        };
        Ok(self.submit_from(new, Some(Origin::RetryOf(id.uuid()))).await)
    }

    /// Stops or resumes giving an agent new work.
    pub async fn drain(self, name: &str, drained: bool) -> Result<AgentView, Denied> {
        self.command_agent(name, AgentCommand::Drain(drained)).await
    }

    /// Opens an agent's breaker until an operator closes it, or closes it.
    pub async fn set_breaker(self, name: &str, open: bool) -> Result<AgentView, Denied> {
        let event = if open { breaker::Event::Open } else { breaker::Event::Close };
        self.command_agent(name, AgentCommand::Breaker(event)).await
    }

    async fn command_agent(self, name: &str, command: AgentCommand) -> Result<AgentView, Denied> {
        let answer = self.put(Command::Agent(name.into(), command)).map_err(|_| Denied::Closed)?;
        match answer.await {
            Ok(Answer::Committed { reply: Reply::NoSuchAgent, .. }) => Err(Denied::NotFound),
            Ok(Answer::Committed { .. }) => self.engine.agent(name).ok_or(Denied::NotFound),
            Ok(Answer::Failed(fault)) => Err(Denied::Fault(fault)),
            Ok(Answer::NotTried(fault)) => Err(Denied::NotTried(fault)),
            Err(_) => Err(Denied::Lost),
        }
    }

    /// Forgets an agent that joined and will not come back. Returns the agent as it was.
    pub async fn forget(self, name: &str) -> Result<AgentView, Unjoined> {
        let agent = self.engine.agent(name).ok_or(Unjoined::NotFound)?;
        self.engine.change(self.by, Command::Agent(name.into(), AgentCommand::Forget)).await?;
        Ok(agent)
    }

    async fn apply(self, id: JobId, event: Event) -> Result<Arc<Job>, Denied> {
        let answer = self.put(Command::Job(id, event.clone())).map_err(|_| Denied::Closed)?;
        match answer.await {
            Ok(Answer::Committed { reply: Reply::Job(job), .. }) => Ok(job),
            Ok(Answer::Committed { reply: Reply::Refused(refused), .. }) => Err(Denied::Refused(refused)),
            Ok(Answer::Committed { .. }) => {
                // The job has ended, or never existed. The machine says what that means, without anything to commit.
                let job = self.engine.read(move |readers| readers.job(id)).await?.ok_or(Denied::NotFound)?;
                let step = machine::step(&job, event, Time::default(), &Policy::DEFAULT).map_err(Denied::Refused)?;
                Ok(Arc::new(step.job))
            }
            Ok(Answer::Failed(fault)) => Err(Denied::Fault(fault)),
            Ok(Answer::NotTried(fault)) => Err(Denied::NotTried(fault)),
            Err(_) => Err(Denied::Lost),
        }
    }
}
