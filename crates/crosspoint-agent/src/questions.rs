//! The questions of a job to a person, and the answers that were given.
//!
//! Every question has a number, which callers see. So no two questions of a job are the same, and work that is begun
//! again after a restart finds the answers that it was given before: it asks the same questions under the same numbers.

use std::collections::VecDeque;
use std::time::Instant;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::{Tape, Type, Value};
use crosspoint_contracts::reply::Question;

use crate::same::Likeness;

/// Most bytes of questions and answers that are remembered of one job. What is beyond is asked again after a restart.
const GIVEN_BYTES_MAX: usize = 1 << 20;

/// Most messages with answers that are remembered of one job.
const BROUGHT_MAX: usize = 64;

/// The member of a question that has its number.
const NUMBER: &str = "number";

/// A question, and the answer that a person gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) question: Question,
    pub(crate) answer: Body,
}

/// The question that an answer is for, as its sender names it.
#[derive(Clone, Debug)]
pub(crate) enum AnswerTo {
    Number(u32),
    /// The question as it was shown, or a part of it.
    Shown {
        number: Option<u32>,
        prompt: Option<Likeness>,
        schema: Option<Likeness>,
    },
    /// What names it cannot be read: it is no question of this job.
    None,
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The job has ended.
    Ended,
    /// Nothing is asked at present.
    NotAsked,
    /// The question was not shown to anyone when the answer came, which is for an earlier one.
    NotShown,
    /// The answer is for another question.
    Other,
}

/// What a job knows of its questions, beside the one that is asked.
#[derive(Default)]
pub(crate) struct Questions {
    /// The number of the last question.
    pub(crate) asked: u32,
    /// What was answered, also before the work was interrupted.
    given: Vec<Answered>,
    given_bytes: usize,
    /// Answers that the handler has not taken, with the numbers of their questions.
    due: VecDeque<(u32, Body)>,
    /// An answer to a question that will be asked.
    held: Option<(AnswerTo, Body)>,
    /// The messages that brought answers, the latest last.
    brought: VecDeque<Box<str>>,
}

impl Questions {
    /// Returns the questions of work that was interrupted after these answers.
    pub(crate) fn after(answered: Vec<Answered>) -> Questions {
        let mut questions = Questions::default();
        for answered in answered {
            questions.remember(answered);
        }
        questions
    }

    /// Remembers an answer. Returns whether there was room.
    pub(crate) fn remember(&mut self, answered: Answered) -> bool {
        let bytes = self.given_bytes + answered.question.json().get().len() + answered.answer.get().len();
        if bytes > GIVEN_BYTES_MAX {
            return false;
        }
        self.given_bytes = bytes;
        self.given.push(answered);
        true
    }

    /// Returns what was answered so far.
    pub(crate) fn given(&self) -> &[Answered] {
        &self.given
    }

    /// Returns the answer that was given to this question before.
    pub(crate) fn known(&self, question: &Question) -> Option<Body> {
        self.given
            .iter()
            .find(|known| is_same(known.question.json(), question.json()))
            .map(|known| known.answer.clone())
    }

    /// Whether this answer was given to this question before.
    pub(crate) fn has(&self, to: &AnswerTo, answer: &Body) -> bool {
        self.given.iter().any(|known| to.is(&known.question) && is_same(&known.answer, answer))
    }

    /// Has an answer for the handler.
    pub(crate) fn give(&mut self, number: u32, answer: Body) {
        self.due.push_back((number, answer));
    }

    /// Takes the answer to the question of this number. Answers to questions before it are not waited for any more.
    pub(crate) fn take(&mut self, number: u32) -> Option<Body> {
        self.due.retain(|(other, _)| *other >= number);
        let at = self.due.iter().position(|(other, _)| *other == number)?;
        self.due.remove(at).map(|(_, answer)| answer)
    }

    /// Keeps an answer until its question is asked.
    pub(crate) fn hold(&mut self, to: AnswerTo, answer: Body) {
        self.held = Some((to, answer));
    }

    /// Returns the answer that is kept for this question.
    pub(crate) fn take_held(&mut self, question: &Question) -> Option<Body> {
        self.held.take_if(|(to, _)| to.is(question)).map(|(_, answer)| answer)
    }

    /// Returns whether a message of this id has brought no answer so far.
    pub(crate) fn is_new(&mut self, message_id: &str) -> bool {
        if self.brought.iter().any(|id| **id == *message_id) {
            return false;
        }
        self.brought.push_back(message_id.into());
        if self.brought.len() > BROUGHT_MAX {
            self.brought.pop_front();
        }
        true
    }
}

/// Whether both are the same JSON, as it is written. The store has no line breaks between its parts.
fn is_same(one: &Body, other: &Body) -> bool {
    let breaks_no_line = |json: &Body| json.get().replace('\n', " ");
    one == other || breaks_no_line(one) == breaks_no_line(other)
}

impl AnswerTo {
    /// Reads how a question is named: by its number, or as it was shown.
    pub(crate) fn read(value: Value<'_, '_>) -> AnswerTo {
        match value.kind() {
            Type::Number => value.source().parse().map_or(AnswerTo::None, AnswerTo::Number),
            Type::Object => AnswerTo::Shown {
                number: value.get(NUMBER).and_then(|number| number.source().parse().ok()),
                prompt: value.get("prompt").map(alike),
                schema: value.get("schema").map(alike),
            },
            Type::Array | Type::String | Type::Key | Type::Boolean | Type::Null => AnswerTo::None,
        }
    }

    /// Returns the number of the question, if it is said.
    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            AnswerTo::Number(number) => Some(*number),
            AnswerTo::Shown { number, .. } => *number,
            AnswerTo::None => None,
        }
    }

    /// Whether this question is meant.
    pub(crate) fn is(&self, question: &Question) -> bool {
        let shown = question.for_callers();
        let Ok(tape) = Tape::scan(shown.as_bytes()) else { return false };
        let Some(root) = tape.root() else { return false };
        match (self, AnswerTo::read(root)) {
            (AnswerTo::Number(number), asked) => asked.number() == Some(*number),
            (
                AnswerTo::Shown { number, prompt, schema },
                AnswerTo::Shown { number: own, prompt: words, schema: form },
            ) => prompt.is_some() && *prompt == words && *schema == form && (number.is_none() || *number == own),
            (AnswerTo::Shown { .. } | AnswerTo::None, _) => false,
        }
    }
}

fn alike(value: Value<'_, '_>) -> Likeness {
    Likeness::of(&"".into(), value.source().as_bytes())
}

/// Returns a question with its number.
pub(crate) fn numbered(question: &Question, number: u32) -> Question {
    let text = question.json().get();
    let has_one = Tape::scan(text.as_bytes()).ok().and_then(|tape| tape.root()?.get(NUMBER).map(drop)).is_some();
    match text.trim_end().strip_suffix('}') {
        Some(open) if !has_one => Question::read(Body::trusted(format!("{open},\"{NUMBER}\":{number}}}"))),
        Some(_) | None => question.clone(),
    }
}

/// When a question was first shown to a caller; cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(std::sync::Arc<std::sync::OnceLock<Instant>>);

impl Shown {
    /// Notes that a document with the question leaves the agent.
    pub(crate) fn note(&self) {
        self.0.get_or_init(Instant::now);
    }

    /// Whether the question was shown before this time.
    pub(crate) fn is_before(&self, time: Instant) -> bool {
        self.0.get().is_some_and(|shown| *shown < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &str) -> Question {
        Question::read(Body::trusted(text.to_owned()))
    }

    fn to(text: &str) -> AnswerTo {
        AnswerTo::read(Tape::scan(text.as_bytes()).expect("it is JSON").root().expect("it has a value"))
    }

    #[test]
    fn an_answer_names_its_question_by_number_or_as_it_was_shown() {
        let asked = numbered(&question(r#"{"prompt":"Size?","schema":{"type":"string"}}"#), 2);
        assert_eq!(asked.json().get(), r#"{"prompt":"Size?","schema":{"type":"string"},"number":2}"#);
        for right in ["2", asked.json().get(), r#"{"schema": {"type":"string"}, "prompt": "Si\u007ae?"}"#] {
            assert!(to(right).is(&asked), "{right}");
        }
        let wrong = ["1", "true", "{}", r#"{"number":2}"#, r#"{"prompt":"Size?"}"#, r#""Size?""#];
        let other = r#"{"prompt":"Size?","schema":{"type":"string"},"number":1}"#;
        for wrong in wrong.into_iter().chain([other]) {
            assert!(!to(wrong).is(&asked), "{wrong}");
        }
    }

    #[test]
    fn an_answer_that_came_before_its_question_was_shown_is_for_another() {
        let (came, shown) = (Instant::now(), Shown::default());
        shown.note();
        assert!(!shown.is_before(came));
        assert!(shown.is_before(came + std::time::Duration::from_secs(3_600)));
        assert!(!Shown::default().is_before(came), "it was never shown");
    }

    #[test]
    fn as_much_is_remembered_as_there_is_room_for() {
        let mut questions = Questions::default();
        let answer = Body::of(&"x".repeat(GIVEN_BYTES_MAX / 2));
        let answered =
            |number| Answered { question: numbered(&question(r#"{"prompt":"?"}"#), number), answer: answer.clone() };
        assert_eq!((questions.remember(answered(1)), questions.remember(answered(2))), (true, false));
        assert_eq!(questions.known(&answered(1).question), Some(answer.clone()));
        assert_eq!(questions.known(&answered(2).question), None);
    }
}
