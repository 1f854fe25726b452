//! The question that a job asks, and how it is answered.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Question;
use crosspoint_exchange::backend::Followed;

use super::{Job, Phase, Record};
use crate::questions::{AnswerTo, Answered, NotTaken, Questions, Shown};

impl Job {
    pub(super) fn questions(&self) -> MutexGuard<'_, Questions> {
        self.0.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer that a person has given to this question before the work was interrupted.
    pub(crate) fn known_answer(&self, question: &Question) -> Option<Body> {
        self.questions().known(question)
    }

    /// Asks this question. If an answer is kept for it, nobody is shown it: it would end the wait for the outcome.
    pub(crate) async fn ask(&self, question: Question, number: u32) {
        let mut held = None;
        self.change(|record| {
            let mut questions = self.questions();
            questions.asked = number;
            held = questions.take_held(&question);
            match held {
                Some(_) => record.answers += 1,
                None => {
                    record.phase = Phase::Waiting { question: question.clone(), number, shown: Shown::default() };
                }
            }
        });
        if let Some(answer) = held {
            self.give(Answered { question, answer }, number).await;
        }
    }

    /// Waits for an answer to the question of this number.
    pub(crate) async fn answered(&self, number: u32) -> Body {
        loop {
            let answered = self.0.answered.notified();
            if let Some(answer) = self.questions().take(number) {
                return answer;
            }
            answered.await;
        }
    }

    /// Gives the handler an answer to its question, which came at this time and may name its question. Returns the job
    /// as it is then, before it asks anything else.
    pub(crate) async fn answer(
        &self,
        answer: Body,
        to: Option<&AnswerTo>,
        came: Instant,
    ) -> Result<Arc<Record>, NotTaken> {
        // The same answer to the same question again says nothing new.
        if to.is_some_and(|to| self.questions().has(to, &answer)) {
            return Ok(self.now());
        }
        let (question, number) = self.take_question(|question, shown| match to {
            Some(to) if !to.is(question) => Err(NotTaken::Other),
            Some(_) | None if !shown.is_before(came) => Err(NotTaken::NotShown),
            Some(_) | None => Ok(()),
        })?;
        let now = self.now();
        self.give(Answered { question, answer }, number).await;
        Ok(now)
    }

    /// Whether the question of this number may be the next one.
    pub(crate) fn will_ask(&self, number: u32) -> bool {
        // The questions are left before the job is looked at, which is changed while they are held.
        let asked = self.questions().asked;
        asked < number && matches!(self.now().phase, Phase::Queued | Phase::Running)
    }

    /// Keeps an answer for a question that is still to be asked: the work was begun again.
    pub(crate) async fn hold(&self, to: AnswerTo, answer: Body) {
        self.questions().hold(to, answer);
        self.answer_held().await;
    }

    /// Answers the question that is asked, if an answer is kept for it.
    async fn answer_held(&self) {
        let mut answer = None;
        let taken = self.take_question(|question, _| {
            answer = self.questions().take_held(question);
            answer.is_some().then_some(()).ok_or(NotTaken::Other)
        });
        if let (Ok((question, number)), Some(answer)) = (taken, answer) {
            self.give(Answered { question, answer }, number).await;
        }
    }

    /// Takes the question that is asked, if it may be answered. Nothing else changes the job meanwhile, so that one
    /// answer takes it.
    fn take_question(
        &self,
        may: impl FnOnce(&Question, &Shown) -> Result<(), NotTaken>,
    ) -> Result<(Question, u32), NotTaken> {
        let mut taken = Err(NotTaken::Ended);
        self.change_if(|record| {
            taken = match &record.phase {
                Phase::Waiting { question, number, shown } => {
                    may(question, shown).map(|()| (question.clone(), *number))
                }
                Phase::Queued | Phase::Running | Phase::Ended { .. } => Err(NotTaken::NotAsked),
            };
            if taken.is_ok() {
                record.phase = Phase::Running;
                record.answers += 1;
            }
            taken.is_ok()
        });
        taken
    }

    /// Keeps an answer, and gives it to the handler. It is done whole, whatever becomes of the caller.
    async fn give(&self, answered: Answered, number: u32) {
        let answer = answered.answer.clone();
        let is_kept = self.questions().remember(answered);
        if let Some(answers) = self.0.answers.clone().filter(|_| is_kept) {
            let (job, answer) = (self.clone(), answer);
            let kept = tokio::spawn(async move {
                let (_guard, ended) = job.ending().await;
                // What came of the work is noted last.
                if ended.is_none() {
                    let given = job.questions().given().to_vec();
                    answers.answered(&job.now(), &given).await;
                }
                job.hand_over(number, answer);
            });
            return drop(kept.await);
        }
        self.hand_over(number, answer);
    }

    fn hand_over(&self, number: u32, answer: Body) {
        self.questions().give(number, answer);
        self.0.answered.notify_waiters();
    }

    /// Returns whether a message of this id has brought no answer so far.
    pub(crate) fn is_new_answer(&self, message_id: &str) -> bool {
        self.questions().is_new(message_id)
    }
}
