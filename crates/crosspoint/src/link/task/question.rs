//! Questions that an agent has for a person, and the answers that are delivered to it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Question};
use crosspoint_contracts::task::clause::TASK_4_3;
use crosspoint_engine::job::{Answered, State};
use crosspoint_engine::runtime::Attempt;
use crosspoint_exchange::reply::Meaning;

use super::conversation::{Conversation, Mute};
use super::memory::Memory;
use super::pace::Pace;
use super::poll::{CallKind, TaskAnswer};
use crate::link::gone;
use crate::link::status::{is_absent, is_at_the_gate};

/// The question if the agent does not say what it asks (TASK-2.6).
const UNSAID: &str = r#""The agent needs input.""#;

/// Most times that an answer is sent while it is not known whether the agent has taken it.
const DELIVERIES_MAX: u32 = 10;

/// An agent that has taken an answer may show its question a little longer. After this many polls the person is asked
/// anew.
const SETTLING_POLLS: u32 = 3;

/// What was asked and answered in an attempt.
pub(super) struct Questions {
    /// What a person is asked at present.
    open: Option<Question>,
    /// Answers that may not have reached the agent, in the order of their questions, so that no person is asked twice.
    owed: VecDeque<Answered>,
    /// Whether the task was begun anew, and asks everything again.
    pub(super) replays: bool,
    answered: Arc<Vec<Answered>>,
    /// How many answers people have given in this attempt.
    given: usize,
    /// Whether the last answer that is not owed is on its way, and the task has not gone on since.
    on_its_way: bool,
}

/// What came of sending an answer.
enum Sent {
    /// The agent has it. It may say how the task stands now.
    Taken(Option<Meaning>),
    /// The agent does not want it.
    Refused,
    /// The agent has no endpoint for answers.
    Absent,
    /// It is not known whether the agent has it.
    Unheard,
}

impl Questions {
    /// The server may have ended between an answer and its delivery. What is remembered of an attempt that is taken up
    /// tells.
    pub(super) fn of(attempt: &Attempt, memory: Option<&Memory>) -> Questions {
        let job = attempt.job();
        let given = job.running().map_or(0, |running| running.asked as usize);
        let answered = job.answers.clone();
        // If nothing is remembered, at most the last answer is missing.
        let taken = memory.map_or(given.saturating_sub(1), |memory| memory.answers).min(given);
        let owed = answered.iter().take(given).skip(taken).cloned().collect();
        let (open, owed) = match &job.state {
            State::Waiting { question, .. } => (Some(question.clone()), VecDeque::new()),
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned | State::Ended(_) => {
                (None, owed)
            }
        };
        let replays = memory.is_some_and(|memory| memory.replays);
        Questions { open, owed, replays, answered, given, on_its_way: false }
    }

    /// Notes that the task is begun anew, and so will ask everything again.
    pub(super) fn begin_again(&mut self) {
        self.owed = self.answered.iter().take(self.given).cloned().collect();
        self.replays = true;
    }

    /// How many answers the agent surely has: the task has gone on since.
    pub(super) fn taken(&self) -> usize {
        self.given.saturating_sub(self.owed.len() + usize::from(self.on_its_way))
    }

    fn known_answer(&mut self, question: &Question) -> Option<Body> {
        let is_first = self.owed.front().is_some_and(|known| known.question == *question);
        let mut others = self.owed.iter().enumerate().filter(|(_, known)| known.question == *question);
        // An agent that keeps answers itself does not ask again what it had the answer to.
        let place = match (others.next(), others.next()) {
            (Some((place, _)), None) => Some(place),
            (Some(_), Some(_)) | (None, _) => is_first.then_some(0),
        };
        let Some(place) = place else {
            self.owed.clear();
            return None;
        };
        self.owed.drain(..=place).next_back().map(|known| known.answer)
    }
}

impl Conversation<'_> {
    /// Takes back a question that the agent no longer has.
    pub(super) async fn settle_question(&mut self, stands: &Meaning) -> Result<(), Failed> {
        if matches!(stands, Meaning::Running(_)) && !self.questions.replays {
            // The task goes on, so it has its answer: whatever it asks next, in whatever words, is another question.
            self.questions.owed.clear();
            self.questions.on_its_way = false;
            self.remember().await?;
        }
        let stays = match stands {
            Meaning::Ended(_) => true,
            Meaning::Waiting(question) => self.questions.open.as_ref() == Some(&put(question.clone())),
            Meaning::Queued | Meaning::Running(_) => false,
        };
        if stays || self.questions.open.take().is_none() {
            return Ok(());
        }
        self.pace = Pace::working();
        self.attempt.unasked().await.map_err(gone)
    }

    /// Asks a person and delivers the answer, unless the task goes on by itself.
    pub(super) async fn ask(&mut self, question: Option<Question>) -> Result<Meaning, Failed> {
        let question = put(question);
        // What was on its way before is past: the task asks anew.
        self.questions.on_its_way = false;
        if let Some(answer) = self.questions.known_answer(&question) {
            self.questions.on_its_way = true;
            return self.deliver(&question, &answer).await;
        }
        self.remember().await?;
        self.questions.open = Some(question.clone());
        self.pace = Pace::asking();
        let attempt = self.attempt;
        let answer = tokio::select! {
            biased;
            answer = attempt.ask(question.clone()) => answer.map_err(gone)?,
            stands = self.until_other(&question) => return stands,
        };
        self.questions.open = None;
        self.questions.given += 1;
        self.questions.on_its_way = true;
        self.pace = Pace::working();
        self.deliver(&question, &answer).await
    }

    /// Polls until the task no longer waits for an answer to this question.
    async fn until_other(&mut self, question: &Question) -> Result<Meaning, Failed> {
        loop {
            let stands = self.poll().await?;
            if !is_asking(&stands, question) {
                return Ok(stands);
            }
        }
    }

    /// Delivers an answer. If it is not clear that it arrived, a poll shows whether the task still waits.
    async fn deliver(&mut self, question: &Question, answer: &Body) -> Result<Meaning, Failed> {
        let document = Bytes::from(format!("{{\"input\":{}}}", answer.get()));
        for _ in 0..DELIVERIES_MAX {
            let sent = self.sent(document.clone()).await?;
            let stands = match sent {
                Sent::Taken(stands) => {
                    // Before anything else: from here on the same words are another question, also after a restart.
                    self.questions.on_its_way = false;
                    self.remember().await?;
                    return self.taken(stands, question).await;
                }
                Sent::Refused | Sent::Absent | Sent::Unheard => self.poll().await?,
            };
            match sent {
                Sent::Absent if is_asking(&stands, question) => {
                    let message = "The agent asks for input, and has no place to send it to.";
                    return Err(Failed::said(Failure::BrokenContract, Dispatched::Yes, message));
                }
                Sent::Unheard if is_asking(&stands, question) => {}
                // An agent that refuses the answer may be given another.
                Sent::Taken(_) | Sent::Refused | Sent::Absent | Sent::Unheard => return Ok(stands),
            }
        }
        Err(Failed::said(Failure::Unavailable, Dispatched::Yes, "The agent did not take the answer that it asked for."))
    }

    async fn sent(&mut self, document: Bytes) -> Result<Sent, Failed> {
        let answer = match self.send("input", document).await {
            Ok(answer) => answer,
            Err(Mute::TooLong) => return Err(self.too_long()),
            Err(Mute::Unanswered(_)) => return Ok(Sent::Unheard),
        };
        let status = answer.status;
        if status.is_success() && answer.body.is_empty() {
            return Ok(Sent::Taken(None));
        }
        let task_answer = self.hear(CallKind::Input, &answer);
        if let TaskAnswer::Stands(stands) = task_answer {
            self.alive().await?;
            return Ok(Sent::Taken(Some(stands)));
        }
        if status.is_success() {
            return Ok(Sent::Taken(None));
        }
        if is_absent(status) {
            self.note(&TASK_4_3, "the agent has no place for the input that it asks for");
            return Ok(Sent::Absent);
        }
        if status.is_client_error() && !is_at_the_gate(status) {
            self.note(&TASK_4_3, format!("the agent refused an answer with HTTP {}", status.as_u16()));
            return Ok(Sent::Refused);
        }
        Ok(Sent::Unheard)
    }

    /// Returns how the task stands once the agent has had the time to read the answer.
    async fn taken(&mut self, stands: Option<Meaning>, question: &Question) -> Result<Meaning, Failed> {
        let mut stands = match stands {
            Some(stands) => stands,
            None => self.poll().await?,
        };
        for _ in 0..SETTLING_POLLS {
            if !is_asking(&stands, question) {
                break;
            }
            stands = self.poll().await?;
        }
        Ok(stands)
    }
}

/// The question as it is put to a person.
fn put(question: Option<Question>) -> Question {
    question.unwrap_or_else(|| Question::of(UNSAID))
}

fn is_asking(stands: &Meaning, question: &Question) -> bool {
    match stands {
        Meaning::Waiting(asked) => put(asked.clone()) == *question,
        Meaning::Queued | Meaning::Running(_) | Meaning::Ended(_) => false,
    }
}
