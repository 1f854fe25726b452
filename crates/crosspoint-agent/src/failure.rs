//! Why a handler could not do the work, in its own words.

use std::fmt;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{self, Dispatched, Repeat};
use crosspoint_contracts::reply::Failed;

/// Why the work failed. Its words go to the caller, and into no log.
///
/// Every error becomes a failure with the error's text, so a handler can use `?`:
///
/// ```
/// # use crosspoint_agent::Failure;
/// fn parse(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Clone)]
pub struct Failure {
    message: String,
    code: Option<String>,
    details: Option<serde_json::Value>,
    kind: Kind,
}

/// What the caller may do about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The work was tried and failed.
    Final,
    /// Nothing was done, and the same work may be given again.
    Retry,
    /// The input is none that the work can be done with.
    Invalid,
    /// The handler gave more than a caller is given.
    TooLarge,
    /// The handler gave up because it was told to.
    Cancelled,
}

impl Failure {
    /// Returns a failure with one sentence for people.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, _: Context) -> Result<Value, Failure> {
    ///     Err(Failure::new("the host does not answer"))
    /// }
    /// # let answer = called(Agent::new("worker").on("work", work).forgetful(), "work", json!({}));
    /// # assert_eq!(answer["error"]["message"], "the host does not answer");
    /// ```
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: None, details: None, kind: Kind::Final }
    }

    /// Returns the failure of an input that the work cannot be done with, which callers are told as an invalid request.
    /// Such a failure is not remembered.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(input: Value, _: Context) -> Result<Value, Failure> {
    ///     let host = input["host"].as_str().ok_or_else(|| Failure::invalid("there is no `host`"))?;
    ///     Ok(json!({"host": host}))
    /// }
    /// # let answer = called(Agent::new("worker").on("work", work).forgetful(), "work", json!({}));
    /// # assert_eq!(answer["error"]["code"], "VALIDATION_ERROR");
    /// # assert_eq!(answer["error"]["message"], "there is no `host`");
    /// ```
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure { kind: Kind::Invalid, ..Failure::new(message) }
    }

    /// Returns the failure of work that gives more than a caller is given.
    pub(crate) fn too_large(what: &str, bytes_max: usize) -> Failure {
        let message = format!("{what} more than {} MiB", bytes_max >> 20);
        Failure { kind: Kind::TooLarge, ..Failure::new(message) }
    }

    /// Adds a code for programs, such as `NOT_FOUND`.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, _: Context) -> Result<Value, Failure> {
    ///     Err(Failure::new("there is no such host").code("NOT_FOUND"))
    /// }
    /// # let answer = called(Agent::new("worker").on("work", work).forgetful(), "work", json!({}));
    /// # assert_eq!(answer["error"]["code"], "NOT_FOUND");
    /// ```
    #[must_use]
    pub fn code(self, code: impl Into<String>) -> Failure {
        Failure { code: Some(code.into()), ..self }
    }

    /// Adds what else is known: a JSON object.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, _: Context) -> Result<Value, Failure> {
    ///     Err(Failure::new("there is no such host").details(json!({"host": "a7"})))
    /// }
    /// # let answer = called(Agent::new("worker").on("work", work).forgetful(), "work", json!({}));
    /// # assert_eq!(answer["error"]["details"]["host"], "a7");
    /// ```
    #[must_use]
    pub fn details(self, details: serde_json::Value) -> Failure {
        Failure { details: Some(details), ..self }
    }

    /// Says that nothing was done and that the same work may be given again. Such a failure is not remembered: the next
    /// request runs the handler.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, _: Context) -> Result<Value, Failure> {
    ///     Err(Failure::new("the printer is busy").retryable())
    /// }
    /// # let answer = called(Agent::new("worker").on("work", work).forgetful(), "work", json!({}));
    /// # assert_eq!(answer["error"]["details"]["repeat"], "safe");
    /// ```
    #[must_use]
    pub fn retryable(self) -> Failure {
        Failure { kind: Kind::Retry, ..self }
    }

    pub(crate) fn cancelled() -> Failure {
        Failure { kind: Kind::Cancelled, ..Failure::new(failure::Failure::Cancelled.sentence()) }
    }

    /// Returns it as the doors know failures.
    #[doc(hidden)]
    pub fn failed(self) -> Failed {
        let (failure, repeat) = match self.kind {
            Kind::Final => (failure::Failure::AgentFailed, None),
            Kind::Retry => (failure::Failure::ResourceLimit, Some(Repeat::Safe)),
            Kind::Invalid => (failure::Failure::Invalid, None),
            Kind::TooLarge => (failure::Failure::ResourceLimit, Some(Repeat::Never)),
            Kind::Cancelled => (failure::Failure::Cancelled, None),
        };
        let details = match (self.details, &self.code) {
            (Some(details), _) => Some(details),
            (None, Some(code)) => Some(serde_json::json!({ "code": code })),
            (None, None) => None,
        };
        Failed {
            message: Some(Body::of(&self.message)),
            code: self.code.map(|code| Body::of(&code)),
            details: details.map(|details| Body::trusted(details.to_string())),
            repeat,
            ..Failed::of(failure, Dispatched::Yes)
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error.to_string())
    }
}

/// Writes the message, for the program that made it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Hides the words: they may be content.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure([{} bytes])", self.message.len())
    }
}
