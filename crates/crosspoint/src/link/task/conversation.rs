//! The conversation about one task, from the post to the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::clause::all::ALL_145;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Progress, Success};
use crosspoint_contracts::task::clause::{TASK_3, TASK_4_2, TASK_4_5, TASK_5};
use crosspoint_engine::runtime::{Attempt, Gone};
use crosspoint_exchange::outgoing::Outgoing;
use crosspoint_exchange::reply::{Meaning, unreadable};
use crosspoint_http::call::{Answer, Media, Unanswered, Unread};

use super::Task;
use super::memory::Memory;
use super::pace::{Pace, WAIT_MAX};
use super::poll::{self, CallKind, TaskAnswer, UNREADABLE, Whole};
use super::question::Questions;
use crate::link::record::Record;
use crate::link::{gone, remote, status};

/// Longest time until an answer begins, in addition to the wait that was asked for. Then the agent is asked again.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// How often an unanswered post, which may be the simple pattern with long work, is followed by a look at the task.
const BESIDE_PERIOD: Duration = Duration::from_secs(5);

/// Shortest time between two signs of life for answered polls.
const LIFE_PERIOD: Duration = Duration::from_secs(1);

/// Each of these times is at most the silence that the agent is allowed, divided by this: their results come in time.
const SILENCE_PARTS: u32 = 4;

/// Wrong answers in a row after which the task is given up.
const WRONG_MAX: u32 = 3;

/// Most looks for a task whose post was not answered.
const LOOKS_MAX: u32 = 5;

/// What is recorded if an answer is not even HTTP.
const GARBLED: &str = "what came is no HTTP that can be read";

pub(super) struct Conversation<'t> {
    pub(super) task: &'t Task,
    pub(super) attempt: &'t Attempt,
    request: Outgoing,
    pub(super) questions: Questions,
    pub(super) pace: Pace,
    /// How long the last poll took.
    took: Duration,
    /// How long the agent wanted to be left alone after it (`Retry-After`).
    asked_rest: Duration,
    /// How many answers in a row were wrong.
    wrong: u32,
    /// The progress that was shown last; `None` until the task has begun.
    shown: Option<Progress>,
    told_at: Option<Instant>,
    record: Record,
    /// What is stored about the task.
    memory: Option<Memory>,
}

/// Why there is no answer to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mute {
    Unanswered(Unanswered),
    TooLong,
}

/// What is known of a task that is taken up.
enum Found {
    Stands(Meaning),
    Unknown { in_its_words: bool, failed: Box<Failed> },
}

impl<'t> Conversation<'t> {
    pub(super) fn new(task: &'t Task, attempt: &'t Arc<Attempt>, request: Outgoing) -> Conversation<'t> {
        let memory = Memory::of(attempt);
        Conversation {
            task,
            attempt,
            request,
            questions: Questions::of(attempt, memory.as_ref()),
            memory,
            pace: Pace::working(),
            took: Duration::ZERO,
            asked_rest: Duration::ZERO,
            wrong: 0,
            shown: None,
            told_at: None,
            record: Record::new(attempt.clone()),
        }
    }

    /// Has the task done.
    pub(super) async fn work(&mut self) -> Result<Success, Failed> {
        let mut stands = self.begin().await?;
        if !matches!(stands, Meaning::Ended(_)) {
            self.remember().await?;
        }
        loop {
            self.settle_question(&stands).await?;
            stands = match stands {
                Meaning::Ended(result) => return result.map_err(|failed| *failed),
                Meaning::Waiting(question) => self.ask(question).await?,
                Meaning::Queued | Meaning::Running(_) => {
                    self.show(stands).await?;
                    self.poll().await?
                }
            };
        }
    }

    /// Begins the task. One that was with the agent when the server ended is taken up where it is; one that the agent
    /// does not know is posted (ALL-3).
    async fn begin(&mut self) -> Result<Meaning, Failed> {
        if self.attempt.is_resumed() {
            match self.find().await? {
                Found::Stands(stands) => return Ok(stands),
                Found::Unknown { in_its_words, .. } if self.begins_again(in_its_words) => self.questions.begin_again(),
                Found::Unknown { failed, .. } => return Err(*failed),
            }
        }
        self.post().await
    }

    /// Whether a task that was taken up, and that the agent does not know, is posted again (ALL-3). An agent that says
    /// so in the words of the contract keeps its tasks, so it has this one no more or has never had it. An answer that
    /// only says that the path is unknown says nothing about the task: the agent may know the simple pattern alone, and
    /// be at work.
    fn begins_again(&self, in_its_words: bool) -> bool {
        self.task.repeatable.unwrap_or(in_its_words)
    }

    /// The id by which the agent knows the task.
    fn id(&self) -> String {
        self.memory.as_ref().map_or_else(|| self.attempt.job().id().to_string(), |memory| memory.task.clone())
    }

    /// Stores that the agent has the task, and how many answers it surely has.
    pub(super) async fn remember(&mut self) -> Result<(), Failed> {
        let (answers, replays) = (self.questions.taken(), self.questions.replays);
        let memory = Memory { task: self.attempt.job().id().to_string(), answers, replays };
        if self.memory.as_ref() != Some(&memory) {
            memory.keep(self.attempt).await.map_err(|_| gone(Gone))?;
            self.memory = Some(memory);
        }
        Ok(())
    }

    /// Looks until an answer says something about the task.
    async fn find(&mut self) -> Result<Found, Failed> {
        loop {
            let task_answer = self.look().await?;
            if let TaskAnswer::Unknown { in_its_words, failed } = task_answer {
                return Ok(Found::Unknown { in_its_words, failed });
            }
            if let Some(stands) = self.bear(task_answer)? {
                return Ok(Found::Stands(stands));
            }
            self.rest().await;
        }
    }

    /// Polls until an answer says how the task stands.
    pub(super) async fn poll(&mut self) -> Result<Meaning, Failed> {
        loop {
            self.rest().await;
            let task_answer = self.look().await?;
            if let TaskAnswer::Unknown { .. } = task_answer {
                self.note(&TASK_4_2, "the agent does not know a task that it has taken");
            }
            if let Some(stands) = self.bear(task_answer)? {
                return Ok(stands);
            }
        }
    }

    async fn rest(&mut self) {
        let rest = self.pace.rest(self.took);
        // A longer rest than this would look like silence.
        let asked = self.part_of_silence(self.asked_rest);
        tokio::time::sleep(rest.max(asked)).await;
    }

    /// Tolerates a few wrong answers in a row, and any number of polls that say nothing: the limit on silence ends
    /// those.
    fn bear(&mut self, task_answer: TaskAnswer) -> Result<Option<Meaning>, Failed> {
        let failed = match task_answer {
            TaskAnswer::Nothing(_) => return Ok(None),
            TaskAnswer::Stands(stands) => {
                self.wrong = 0;
                return Ok(Some(stands));
            }
            TaskAnswer::Unknown { failed, .. } => *failed,
            TaskAnswer::Refused(failed) => Failed { dispatched: Dispatched::Yes, ..*failed },
            TaskAnswer::Conflict => unreadable(UNREADABLE, &[]),
            TaskAnswer::Broken { why, answer } => unreadable(why, &answer),
        };
        self.wrong += 1;
        if self.wrong < WRONG_MAX { Ok(None) } else { Err(failed) }
    }

    /// Posts the task. If the answer does not say what became of it, the agent is asked.
    async fn post(&mut self) -> Result<Meaning, Failed> {
        let task_answer = match self.posted().await? {
            Ok(task_answer) => task_answer,
            Err(Mute::TooLong) => return Err(self.too_long()),
            Err(Mute::Unanswered(Unanswered::Unconnected)) => return Err(remote::unanswered(Unanswered::Unconnected)),
            Err(Mute::Unanswered(Unanswered::Lost)) => {
                return self.found_or(remote::unanswered(Unanswered::Lost)).await;
            }
            Err(Mute::Unanswered(Unanswered::Garbled)) => {
                self.note(&TASK_4_5, GARBLED);
                return self.found_or(remote::unanswered(Unanswered::Garbled)).await;
            }
        };
        match task_answer {
            TaskAnswer::Stands(stands) => {
                self.alive().await?;
                Ok(stands)
            }
            TaskAnswer::Refused(failed) => Err(*failed),
            TaskAnswer::Conflict => {
                self.note(&TASK_5, "the agent says that it knows the id with other work or input");
                let message = "The agent says that it knows the id of the task with other work or input.";
                self.found_or(Failed::said(Failure::Conflict, Dispatched::Yes, message)).await
            }
            TaskAnswer::Nothing(failed) => self.found_or(*failed).await,
            TaskAnswer::Unknown { .. } => self.found_or(unreadable(UNREADABLE, &[])).await,
            TaskAnswer::Broken { why, answer } => self.found_or(unreadable(why, &answer)).await,
        }
    }

    /// Returns the answer to the post, or what is found out meanwhile.
    async fn posted(&mut self) -> Result<Result<TaskAnswer, Mute>, Failed> {
        let Task { agent, .. } = self.task;
        let (document, trace) = (self.request.text.clone(), self.request.trace.clone());
        let attempt = self.attempt;
        let posting = async {
            let began = Instant::now();
            let answer = agent.http.post(&agent.http.endpoint("tasks"), document, &trace, Media::Json).await;
            logged(attempt, began, whole(answer, agent.answer_bytes_max).await)
        };
        let answer = tokio::select! {
            biased;
            answer = posting => answer,
            stands = self.look_beside() => return Ok(Ok(TaskAnswer::Stands(stands?))),
        };
        Ok(answer.map(|answer| self.hear(CallKind::Post, &answer)))
    }

    /// Looks at the task now and then while the post is not answered; returns a task that will not go on by itself. An
    /// agent that knows only the simple pattern answers that it knows no such task, which shows that it lives.
    async fn look_beside(&mut self) -> Result<Meaning, Failed> {
        loop {
            tokio::time::sleep(self.part_of_silence(BESIDE_PERIOD)).await;
            match self.look().await? {
                TaskAnswer::Stands(stands @ (Meaning::Ended(_) | Meaning::Waiting(_))) => return Ok(stands),
                TaskAnswer::Stands(stands) => self.show(stands).await?,
                TaskAnswer::Nothing(_) => {}
                TaskAnswer::Unknown { .. }
                | TaskAnswer::Conflict
                | TaskAnswer::Refused(_)
                | TaskAnswer::Broken { .. } => {
                    self.alive().await?;
                }
            }
        }
    }

    /// Returns the task, if the agent has it after all. If it has not, that proves nothing: it may have died over the
    /// task, or keep none.
    async fn found_or(&mut self, failed: Failed) -> Result<Meaning, Failed> {
        for _ in 0..LOOKS_MAX {
            if let TaskAnswer::Stands(stands) = self.look().await? {
                return Ok(stands);
            }
            self.rest().await;
        }
        Err(failed)
    }

    /// Asks once how the task stands.
    async fn look(&mut self) -> Result<TaskAnswer, Failed> {
        let wait = self.part_of_silence(WAIT_MAX).as_secs();
        let http = &self.task.agent.http;
        let path = format!("tasks/{}", self.id());
        let endpoint = if wait > 0 { http.endpoint_with(&path, &format!("wait={wait}")) } else { http.endpoint(&path) };
        let (began, time_max) = (Instant::now(), Duration::from_secs(wait) + ANSWER_TIME_MAX);
        let answer = tokio::time::timeout(time_max, http.get(&endpoint, &self.request.trace)).await;
        let answer = whole(answer.unwrap_or(Err(Unanswered::Lost)), self.task.agent.answer_bytes_max).await;
        let answer = logged(self.attempt, began, answer);
        self.took = began.elapsed();
        self.asked_rest = answer.as_ref().ok().and_then(|answer| answer.retry_after).unwrap_or_default();
        match answer {
            Err(Mute::Unanswered(Unanswered::Garbled)) => {
                self.note(&TASK_4_5, GARBLED);
                Ok(TaskAnswer::Broken { why: UNREADABLE, answer: Bytes::new() })
            }
            Err(Mute::Unanswered(Unanswered::Unconnected | Unanswered::Lost)) => {
                Ok(TaskAnswer::Nothing(Box::new(remote::unanswered(Unanswered::Lost))))
            }
            Err(Mute::TooLong) => Err(self.too_long()),
            Ok(answer) => {
                let task_answer = self.hear(CallKind::Look, &answer);
                if let TaskAnswer::Stands(_) = task_answer {
                    self.alive().await?;
                }
                Ok(task_answer)
            }
        }
    }

    /// Judges an answer, and records what is wrong with it.
    pub(super) fn hear(&mut self, asked: CallKind, answer: &Whole) -> TaskAnswer {
        let (task_answer, notes) = poll::read(asked, answer, &self.attempt.job().request);
        self.record.all(notes);
        task_answer
    }

    /// Posts something about the task, with the same limit on the wait for the answer as for any other.
    pub(super) async fn send(&self, what: &str, document: Bytes) -> Result<Whole, Mute> {
        let agent = &self.task.agent;
        let endpoint = agent.http.endpoint(&format!("tasks/{}/{what}", self.id()));
        let began = Instant::now();
        let sending = agent.http.post(&endpoint, document, &self.request.trace, Media::Json);
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, sending).await;
        logged(self.attempt, began, whole(answer.unwrap_or(Err(Unanswered::Lost)), agent.answer_bytes_max).await)
    }

    /// Shows the progress of the task, if it is new.
    async fn show(&mut self, stands: Meaning) -> Result<(), Failed> {
        let Meaning::Running(progress) = stands else {
            if self.shown.is_some() {
                self.note(&TASK_3, "a task that had begun is pending again");
            }
            return Ok(());
        };
        let far = |progress: &Progress| (progress.percent, progress.step.clone());
        if self.shown.as_ref().map(far) != Some(far(&progress)) {
            self.pace.quicken();
        }
        if self.shown.as_ref() != Some(&progress) {
            self.shown = Some(progress.clone());
            self.told_at = Some(Instant::now());
            self.attempt.advanced(progress).await.map_err(gone)?;
        }
        Ok(())
    }

    /// Reports a sign of life, because the agent has answered.
    pub(super) async fn alive(&mut self) -> Result<(), Failed> {
        let period = self.part_of_silence(LIFE_PERIOD);
        if self.told_at.is_none_or(|at| at.elapsed() >= period) {
            self.told_at = Some(Instant::now());
            self.attempt.heard().await.map_err(gone)?;
        }
        Ok(())
    }

    /// Returns `most`, or less if the agent may not be silent for long.
    fn part_of_silence(&self, most: Duration) -> Duration {
        self.task.agent.silence(self.attempt).map_or(most, |silence| most.min(silence / SILENCE_PARTS))
    }

    pub(super) fn note(&mut self, clause: &'static Clause, what: impl Into<std::borrow::Cow<'static, str>>) {
        self.record.clause(clause, what);
    }

    pub(super) fn too_long(&mut self) -> Failed {
        self.note(&ALL_145, "the answer is longer than it may be");
        remote::too_long(self.task.agent.answer_bytes_max)
    }
}

fn logged(attempt: &Attempt, began: Instant, answer: Result<Whole, Mute>) -> Result<Whole, Mute> {
    let status = answer.as_ref().map(|whole| (whole.status, Some(whole.body.len())));
    remote::log(attempt, began, status.map_err(|mute| mute as _));
    answer
}

/// Reads an answer with its body.
async fn whole(answer: Result<Answer, Unanswered>, bytes_max: usize) -> Result<Whole, Mute> {
    let answer = answer.map_err(Mute::Unanswered)?;
    let (status, media, retry_after) = (answer.status, answer.media, answer.retry_after);
    let (body, cut) = answer.beginning(bytes_max).await;
    match cut {
        // A refusal is complete with its status line.
        Some(_) if status::meaning(status).is_some() => {}
        None => {}
        Some(Unread::TooLong) => return Err(Mute::TooLong),
        Some(Unread::Lost) => return Err(Mute::Unanswered(Unanswered::Lost)),
        Some(Unread::Garbled) => return Err(Mute::Unanswered(Unanswered::Garbled)),
    }
    Ok(Whole { status, media, retry_after, body })
}
