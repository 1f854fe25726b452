//! The conversation about one attempt, from the request to the end.
//!
//! The agent may say everything on the connection that carried the request, or send it to the server's endpoint, or
//! both: what comes first counts. Signs of life are what the agent sends. Beside them, the clock stands still while a
//! message waits for an agent that pulls, while the agent says that it pauses, and as long as the request allows it to
//! be silent (MSG-6).

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::message::About;
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use crosspoint_engine::runtime::{Attempt, Gone};
use crosspoint_exchange::reply::{self, Meaning};
use tokio::sync::{oneshot, watch};

use super::agent::MessageAgent;
use super::hub::{Begun, Heard, Said};
use super::life::SILENT_AFTER;
use super::outbox::Stage;
use super::quiet::Quiet;
use super::steps::{Finished, Step, Steps, Untaken};
use super::verdict::{self, Answered, Judged, Naming, PushVerdict, Read};
use super::{Message, push, sending};
use crate::link::record::{Broken, Note};
use crate::link::{gone, remote};

type Posting = Pin<Box<dyn Future<Output = Result<Answered, Failed>> + Send>>;

pub(super) struct Conversation<'m> {
    message: &'m Message,
    pub(super) attempt: Attempt,
    begun: Begun,
    broken: Broken,
    steps: Steps,
    /// The answer to a pushed message, while it is awaited.
    posting: Option<Posting>,
    /// What became of a message that waits to be pulled.
    pulled: Option<watch::Receiver<Stage>>,
    /// What the agent waits to be told.
    question: Option<Question>,
    is_paused: bool,
    is_answering: bool,
    /// Until when the agent may be silent that answered the request with something else than a message.
    misanswered_until: Option<Instant>,
    began: Instant,
    quiet: Quiet,
    /// Whether the agent may have the request.
    pub(super) was_sent: bool,
    /// Whether the agent itself has said how the work ended.
    pub(super) has_ended: bool,
}

/// What happens next.
enum Next {
    Said(Box<Said>),
    Posted(Result<Answered, Failed>),
    Pulled(Stage),
    Answered(Result<Body, Gone>),
    Gone,
    Stopped,
    Misanswered,
    Tick,
}

impl<'m> Conversation<'m> {
    pub(super) fn new(message: &'m Message, attempt: Attempt, begun: Begun, steps: Steps) -> Conversation<'m> {
        let began = Instant::now();
        let (quiet, was_sent) = (Quiet::new(began, sending::quiet_for(&attempt)), attempt.is_resumed());
        Conversation {
            message,
            attempt,
            begun,
            broken: Broken::default(),
            steps,
            posting: None,
            pulled: None,
            question: None,
            is_paused: false,
            is_answering: false,
            misanswered_until: None,
            began,
            quiet,
            // An attempt that is taken up may be with the agent.
            was_sent,
            has_ended: false,
        }
    }

    fn agent(&self) -> &Arc<MessageAgent> {
        &self.message.agent
    }

    /// Has the work done.
    pub(super) async fn work(&mut self) -> Result<Success, Failed> {
        self.send(None).await?;
        let mut ticks = tokio::time::interval(self.agent().tick_period());
        ticks.reset();
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let ended = match self.next(&mut ticks).await {
                Next::Said(said) => self.said(said).await?,
                Next::Posted(answer) => self.posted(answer?).await?,
                Next::Pulled(stage) => {
                    self.quiet.given(stage, self.message.agent.silence, Instant::now());
                    self.was_sent |= stage >= Stage::Given;
                    // The result may be the next thing that comes, and need not wait for a commit.
                    self.attempt.heard_at_once();
                    None
                }
                Next::Answered(answer) => {
                    let answered = self.question.take().zip(Some(answer.map_err(gone)?));
                    self.send(answered).await?;
                    None
                }
                Next::Gone => return Err(self.agent_gone()),
                Next::Stopped => return Err(gone(Gone)),
                Next::Misanswered => return Err(verdict::misanswered(self.agent().silence.unwrap_or_default())),
                Next::Tick => {
                    self.tick().await?;
                    None
                }
            };
            if let Some(result) = ended {
                self.has_ended = true;
                return result.map_err(|failed| *failed);
            }
        }
    }

    async fn next(&mut self, ticks: &mut tokio::time::Interval) -> Next {
        let Conversation { attempt, begun, posting, pulled, question, message, misanswered_until, .. } = self;
        let posted = async {
            match posting {
                Some(posting) => posting.await,
                None => pending().await,
            }
        };
        let stage = async {
            let Some(pulled) = pulled else { return pending().await };
            // The entry of the outbox is removed by this conversation, or replaced by it.
            if pulled.changed().await.is_err() {
                pending::<()>().await;
            }
            *pulled.borrow_and_update()
        };
        let answer = async {
            match question {
                Some(question) => attempt.ask(question.clone()).await,
                None => pending().await,
            }
        };
        let misanswered = async {
            match misanswered_until {
                Some(until) => tokio::time::sleep_until((*until).into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            // What has come counts, even if the attempt is stopped in this very moment.
            biased;
            Some(said) = begun.said.recv() => Next::Said(said),
            answer = posted => Next::Posted(answer),
            () = attempt.stopped() => Next::Stopped,
            stage = stage => Next::Pulled(stage),
            answer = answer => Next::Answered(answer),
            () = message.agent.gone() => Next::Gone,
            () = misanswered => Next::Misanswered,
            _ = ticks.tick() => Next::Tick,
        }
    }

    /// Sends the request, or sends it again with a person's answer in it: the agent knows by its id that it has it.
    async fn send(&mut self, answer: Option<(Question, Body)>) -> Result<(), Failed> {
        self.is_answering = answer.is_some();
        let request = sending::request(self.agent(), &self.attempt, answer).await?;
        let (job, attempt) = (self.attempt.job().id(), self.attempt.number());
        let agent = self.agent().clone();
        if agent.push.is_none() {
            self.pulled = Some(agent.leave(job, attempt, (request.message_id, request.text)));
            return Ok(());
        }
        self.was_sent = true;
        self.posting = Some(Box::pin(async move { push::request(&agent, request).await }));
        Ok(())
    }

    /// Handles the answer to a pushed message.
    async fn posted(&mut self, answer: Answered) -> Result<Option<Ended>, Failed> {
        self.posting = None;
        remote::log(&self.attempt, self.began, Ok((answer.status, Some(answer.body.len()))));
        let Judged { verdict, about, notes } = verdict::of_answer(&answer, &self.agent().options.agent_types);
        let is_message = notes.is_empty();
        self.note(notes);
        let naming = verdict::naming(&about, self.attempt.job().id());
        match verdict {
            PushVerdict::Accepted => {
                self.misanswered_until = self.silent_until().filter(|_| !is_message);
                self.attempt.heard_at_once();
                Ok(None)
            }
            // The agent asks something else by now, and says what if it is asked how the work goes.
            PushVerdict::Refused(failed) if self.is_answering && failed.failure == Failure::Conflict => {
                self.send(None).await.map(|()| None)
            }
            PushVerdict::Refused(failed) => Ok(Some(Err(failed))),
            PushVerdict::Said(_) if naming == Naming::Foreign => {
                self.note(naming.note());
                Err(reply::unreadable("The agent answered about another task.", &answer.body))
            }
            PushVerdict::Said(kind) => self.hear(kind, &about, answer.body, None).await,
        }
    }

    /// Returns until when an agent may be silent that was just heard.
    fn silent_until(&self) -> Option<Instant> {
        let now = Instant::now();
        self.quiet.allowed_until(now).checked_add(self.agent().silence?)
    }

    /// Handles what the agent sent to the server's endpoint. The sender is answered when it is on disk.
    async fn said(&mut self, said: Box<Said>) -> Result<Option<Ended>, Failed> {
        let Said { kind, about, document, heard } = *said;
        self.was_sent = true;
        self.quiet.heard();
        // Its answer tells nothing more.
        if self.pulled.take().is_some() {
            self.agent().acknowledges(&[self.attempt.job().id().uuid()]);
        }
        self.hear(kind, &about, document, Some(heard)).await
    }

    /// Handles a message about the work. Returns how the work ended, once it has.
    async fn hear(
        &mut self,
        kind: Kind,
        about: &About,
        document: Bytes,
        heard: Option<oneshot::Sender<Heard>>,
    ) -> Result<Option<Ended>, Failed> {
        self.misanswered_until = None;
        self.note(verdict::naming(about, self.attempt.job().id()).note());
        let read = match verdict::read(kind, &document, &self.agent().options.agent_types) {
            Ok(read) => read,
            Err(unreadable) => {
                self.note(unreadable.notes);
                self.conclude(heard, Heard::Unreadable(Box::new(unreadable.report)));
                return Ok(Some(Err(Box::new(unreadable.failed))));
            }
        };
        // MSG-6.3.
        self.is_paused = about.is_paused;
        let read = if about.is_paused { verdict::paused(read, &document) } else { read };
        let Read { meaning, progress, notes } = read;
        self.note(notes);
        if let Meaning::Ended(result) = meaning {
            return self.ends(result, &document, heard).await;
        }
        match (Box::pin(self.goes_on(meaning, progress, &document)).await?, heard) {
            // The sender may have left.
            (taken, Some(heard)) => drop(heard.send(taken)),
            (Heard::Refused(refused), None) => push::object(self.agent(), &self.attempt, refused),
            (Heard::Taken | Heard::Objected(_) | Heard::NotNow | Heard::Unreadable(_), None) => {}
        }
        Ok(None)
    }

    /// Handles a message that says how the work ended.
    async fn ends(
        &mut self,
        ended: Ended,
        document: &Bytes,
        heard: Option<oneshot::Sender<Heard>>,
    ) -> Result<Option<Ended>, Failed> {
        let finished = if self.steps.may_have_file(&self.attempt) {
            Box::pin(self.steps.finish(&mut self.attempt, ended, document)).await
        } else {
            Ok(Finished { ended, refused: None })
        };
        match (finished, heard) {
            (Ok(Finished { ended, refused }), heard) => {
                self.note(refused.map(|refused| refused.note()));
                self.conclude(heard, refused.map_or(Heard::Taken, Heard::Objected));
                Ok(Some(ended))
            }
            (Err(Untaken::Gone(why)), _) => Err(gone(why)),
            (Err(Untaken::NotNow), Some(heard)) => {
                let _ = heard.send(Heard::NotNow);
                Ok(None)
            }
            (Err(Untaken::NotNow), None) => Err(Failed::of(Failure::Internal, Dispatched::Yes)),
        }
    }

    /// Handles a message of work that goes on.
    async fn goes_on(&mut self, meaning: Meaning, so_far: Option<Progress>, document: &Bytes) -> Result<Heard, Failed> {
        let (question, progress) = match meaning {
            Meaning::Waiting(question) => (question, so_far),
            Meaning::Queued | Meaning::Ended(_) => (None, None),
            Meaning::Running(progress) => (None, Some(progress)),
        };
        if let Some(progress) = progress {
            match self.steps.status(&mut self.attempt, document, progress).await {
                Ok(Step { notes, refused }) => {
                    self.note(notes);
                    if let Some(refused) = refused {
                        return Ok(Heard::Refused(refused));
                    }
                }
                Err(Untaken::Gone(why)) => return Err(gone(why)),
                Err(Untaken::NotNow) => return Ok(Heard::NotNow),
            }
        }
        if question.is_none() && self.question.is_some() {
            self.attempt.unasked().await.map_err(gone)?;
        } else {
            self.attempt.heard().await.map_err(gone)?;
        }
        self.question = question;
        Ok(Heard::Taken)
    }

    /// Keeps the sender of a result waiting until the result is on disk, when it is told this.
    fn conclude(&mut self, heard: Option<oneshot::Sender<Heard>>, told: Heard) {
        match (heard, told) {
            (Some(heard), told) => self.begun.concludes(heard, told),
            (None, Heard::Objected(refused)) => push::object(self.agent(), &self.attempt, refused),
            (None, Heard::Taken | Heard::NotNow | Heard::Refused(_) | Heard::Unreadable(_)) => {}
        }
    }

    /// Stands in for the agent where its silence is not its own.
    async fn tick(&mut self) -> Result<(), Failed> {
        if let Some(pulled) = &self.pulled
            && *pulled.borrow() == Stage::Waits
        {
            return self.still_waits().await;
        }
        let is_fair = self.quiet.is_fair(Instant::now());
        // The end of that silence is said with its cause.
        if is_fair || self.misanswered_until.is_some() || (self.is_paused && self.question.is_none()) {
            self.attempt.heard().await.map_err(gone)?;
        }
        Ok(())
    }

    /// Decides about a message that the agent has not asked for. If the agent is away, the job waits until it is back,
    /// and no attempt is used up. An agent that has the work gets as long to come back as it may be silent.
    async fn still_waits(&mut self) -> Result<(), Failed> {
        // An agent that has registered anew may want its work pushed, and ask for no message again.
        let has_changed = self.message.hub.agent(&self.agent().name).is_none_or(|now| !now.pulls());
        let is_away = has_changed || self.agent().is_away();
        if is_away && !self.may_have_it() {
            self.attempt.withdraw();
            return Err(gone(Gone));
        }
        if is_away && self.began.elapsed() >= SILENT_AFTER {
            let message = "The agent has the work, and has not come back.";
            return Err(Failed::said(Failure::Unavailable, Dispatched::Yes, message));
        }
        self.attempt.heard().await.map_err(gone)
    }

    /// Whether the agent may have the work: from this attempt, or from before a restart.
    fn may_have_it(&self) -> bool {
        self.was_sent || self.attempt.is_resumed()
    }

    /// MSG-12.3: the agent has stopped saying anything at all.
    fn agent_gone(&mut self) -> Failed {
        if !self.may_have_it() {
            self.attempt.withdraw();
            return gone(Gone);
        }
        verdict::silent(self.agent().last_beat().map(|beat| beat.at))
    }

    fn note(&mut self, notes: impl IntoIterator<Item = Note>) {
        notes.into_iter().for_each(|note| self.broken.note(&self.attempt, note));
    }
}

/// How the work ended, in the agent's own words.
pub(super) type Ended = Result<Success, Box<Failed>>;

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        let (job, number) = (self.attempt.job().id(), self.attempt.number());
        if self.steps.may_have_file(&self.attempt) {
            self.message.hub.leaves(job, number);
        }
        self.agent().clear(job, number);
    }
}
