//! What the function does: the same in all contracts.

use std::future::pending;
use std::sync::Arc;

use crosspoint_agent::{Context, Failure, Handler};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::super::super::ledger::{Ledger, Seen};
use super::super::{blob, own_members, text};

#[derive(Clone)]
pub(super) struct Function {
    pub(super) ledger: Arc<Ledger>,
    /// Ends the agent that the function belongs to.
    pub(super) death: Option<Arc<Notify>>,
}

type Done = Result<Box<RawValue>, Failure>;

impl Function {
    pub(super) fn handler(self) -> impl Handler<(Value, Box<RawValue>, Failure)> {
        move |input: Value, context: Context| self.clone().work(input, context)
    }

    async fn work(self, input: Value, context: Context) -> Done {
        let (cell, wanted) = (text(&input, "cell"), text(&input, "do"));
        let turn = self.ledger.seen(&cell, "new").len();
        self.note(&cell, "new", &context);
        if ["progress", "die", "hold"].contains(&&*wanted) {
            context.progress(40.0, "Half-way");
        }
        let outputs = match (&*wanted, turn) {
            ("progress", _) => {
                self.until_released(&cell).await;
                input
            }
            ("die", 0) => {
                self.until_released(&cell).await;
                self.death.expect("only agents that may die are told to").notify_one();
                pending().await
            }
            ("hold" | "silent", _) => {
                context.cancelled().await;
                self.note(&cell, "told", &context);
                return Err(Failure::new("it is not wanted any more"));
            }
            ("ask", _) => self.answer(&cell, &context).await?,
            ("fail", _) => return Err(failure(&input)),
            ("again", 0) => return Err(Failure::new("there is no room").retryable()),
            ("raw", _) => return Ok(RawValue::from_string(text(&input, "raw"))?),
            ("big", _) => json!({"blob": blob()}),
            ("artifacts", _) => {
                context.artifact("report.md", "text/markdown", "# Report")?;
                input
            }
            (_, _) => input,
        };
        Ok(serde_json::value::to_raw_value(&outputs)?)
    }

    async fn answer(&self, cell: &str, context: &Context) -> Result<Value, Failure> {
        let answer = context.ask::<Value>("Which pan?", Some(&json!({"type": "string"}))).await;
        if context.is_cancelled() {
            self.note(cell, "told", context);
        }
        Ok(json!({"answer": answer?}))
    }

    async fn until_released(&self, cell: &str) {
        let (ledger, cell) = (self.ledger.clone(), cell.to_owned());
        spawn_blocking(move || ledger.until_released(&cell)).await.expect("it is released");
    }

    fn note(&self, cell: &str, what: &'static str, context: &Context) {
        let document = serde_json::from_slice(context.document()).expect("it was read before");
        let trace = context.traceparent().unwrap_or_default().to_owned();
        self.ledger.note(cell, Seen { what, id: context.request_id().to_owned(), trace, document });
    }
}

fn failure(input: &Value) -> Failure {
    let failure = Failure::new(text(input, "message")).code(text(input, "code")).details(json!({"own": own_members()}));
    if input["again"] == true { failure.retryable() } else { failure }
}
