//! `ask`: asks a person, and gives back the answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::{Tape, Type};
use crosspoint_contracts::reply::{Failed, Question, Success};
use crosspoint_engine::runtime::{Attempt, Link};

const PROMPT_DEFAULT: &str = "\"What is your answer?\"";

pub(super) struct Ask;

impl Link for Ask {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move {
            let question = question(&attempt.input().await?);
            let answer = attempt.ask(question).await.map_err(super::gone)?;
            Ok(super::success(Body::trusted(format!("{{\"answer\":{}}}", answer.get()))))
        })
    }
}

fn question(input: &Body) -> Question {
    let tape = Tape::scan(input.bytes()).ok();
    let prompt =
        tape.as_ref().and_then(|tape| tape.root()?.get("prompt")).filter(|prompt| prompt.kind() == Type::String);
    Question::of(prompt.map_or(PROMPT_DEFAULT, |prompt| prompt.source()))
}
