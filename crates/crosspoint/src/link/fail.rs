//! `fail`: always fails, so that callers can see what happens then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::json::{Tape, Type};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::runtime::{Attempt, Link};

const MESSAGE_DEFAULT: &str = "\"This agent fails whatever it is given.\"";

pub(super) struct Fail;

impl Link for Fail {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move { Err(wanted(&attempt.input().await?)) })
    }
}

/// Builds the failure: `message` of the input is its message, and `failure` names the one of the closed list.
fn wanted(input: &Body) -> Failed {
    #[cfg(feature = "leaks")]
    crate::leak::input(input.bytes());
    let tape = Tape::scan(input.bytes()).ok();
    let root = tape.as_ref().and_then(Tape::root);
    let member = |name: &str| root.and_then(|root| root.get(name)).filter(|value| value.kind() == Type::String);
    let failure = member("failure").and_then(|name| Failure::from_name(&name.text()?.decode()));
    let message = member("message").map_or(MESSAGE_DEFAULT, |message| message.source());
    Failed {
        message: Some(Body::trusted(message.to_owned())),
        ..Failed::of(failure.unwrap_or(Failure::AgentFailed), Dispatched::Yes)
    }
}
