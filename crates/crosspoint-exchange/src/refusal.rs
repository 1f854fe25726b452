//! Refusals over any transport: what is wrong, what to do about it, and whether to send the request again.
//!
//! Messages name fields, types and limits, and never quote the request. [`document()`] writes a refusal in the shape of
//! a contract. The server decides its form over HTTP.

mod by_agent;
mod document;
mod facts;
mod known;
mod limit;
mod reasons;
mod shown;
mod token;
mod word;

use std::borrow::Cow;

use crosspoint_contracts::Report;
use crosspoint_contracts::exchange::Wording;
use crosspoint_contracts::failure::{Failure, Repeat};

use crate::echo::Echo;

pub use self::document::document;
pub use self::known::{agents, types_for, works, works_like};
pub use self::limit::Limit;
pub use self::shown::{Found, Shown, found};
pub use self::token::TokenStatus;
pub use self::word::{FailureName, RepeatName};

/// Hint for a request that may or may not have become a job.
pub const JOB_OR_NOT: &str = "it may have become a job: send it again with the same request id or Idempotency-Key";

/// Hint for a request that may or may not have been carried out.
pub const DONE_OR_NOT: &str = "it may have been done: look how things are before you send it again";

/// The kind of a refusal, from which an edge chooses its answer: over HTTP each has a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Situation {
    /// The request is wrong.
    Invalid,
    /// The thing that was asked for does not exist.
    NotFound,
    /// The path does not take this method.
    WrongMethod,
    /// The request is meant for another server, or comes from a page that may not send it.
    Foreign,
    /// The token is missing or wrong.
    Unauthenticated,
    /// The token does not allow what the request asks for.
    WrongScope,
    /// The request contradicts the present state.
    Conflict,
    /// The request is too long.
    TooLarge,
    /// The address of the request is too long.
    UrlTooLong,
    /// The headers of the request are too long.
    HeadTooLong,
    /// The request did not arrive in time.
    TooSlow,
    /// The limit of jobs is reached, or one that an address or a caller has of its own.
    Full,
    /// The fault is ours.
    Internal,
    /// The request cannot be carried out at present.
    Unavailable,
    /// The caller has waited as long as callers may.
    Waited,
}

/// Why a request is not granted.
#[derive(Debug)]
pub struct Refusal {
    situation: Situation,
    failure: Failure,
    repeat: Repeat,
    message: Cow<'static, str>,
    hint: Cow<'static, str>,
    clause: Option<&'static str>,
    at: Option<String>,
    retry_seconds: Option<u32>,
    /// The limit that was reached, for the counters.
    limit: Option<Limit>,
    more: Option<Box<More>>,
    /// For the doors of contracts, which have codes and members of their own.
    own: Option<Box<Own>>,
}

/// What the door of a contract adds to a refusal.
#[derive(Debug, Default)]
struct Own {
    /// The contract's code, if it has a more exact one than the failure's.
    code: Option<&'static str>,
    /// The id of the request, if it could be read.
    request_id: Option<String>,
    /// The work that it asks for, if the contract's answers name it.
    work: Option<String>,
    /// The field that is wrong, if it is a single one.
    field: Option<Text>,
    /// What every answer repeats of its request.
    echo: Echo,
    /// The agent or caller that the request says it is from, where its token is refused.
    agent: Option<String>,
    /// What is wrong with the token.
    token: Option<TokenStatus>,
    /// The works that agents take, as JSON strings.
    works: Vec<String>,
    /// How much of a limited thing there is, and how much was wanted.
    amounts: Option<(u64, u64)>,
    /// Whether the request is of a kind that has no id.
    has_no_id: bool,
}

/// What else is wrong.
#[derive(Debug)]
enum More {
    /// Other mistakes in the request.
    Others(Vec<Refusal>),
    /// Everything that is wrong with the document.
    Report(Report),
}

type Text = Cow<'static, str>;

impl Refusal {
    fn new(situation: Situation, failure: Failure, repeat: Repeat, message: Text, hint: Text) -> Refusal {
        Refusal {
            situation,
            failure,
            repeat,
            message,
            hint,
            clause: None,
            at: None,
            retry_seconds: None,
            limit: None,
            more: None,
            own: None,
        }
    }

    /// Sets the contract's own code.
    pub fn coded(mut self, code: &'static str) -> Refusal {
        self.own.get_or_insert_default().code = Some(code);
        self
    }

    /// Sets the field that is wrong.
    pub fn field(mut self, name: impl Into<Text>) -> Refusal {
        self.own.get_or_insert_default().field = Some(name.into());
        self
    }

    /// Sets the id of the request that is refused.
    pub fn of_request(mut self, request_id: Option<String>) -> Refusal {
        self.own.get_or_insert_default().request_id = request_id;
        self
    }

    /// Says that the request is of a kind that has no id.
    #[must_use]
    pub fn of_no_id(mut self) -> Refusal {
        self.own.get_or_insert_default().has_no_id = true;
        self
    }

    /// Sets the work that the request asks for.
    pub fn of_work(mut self, work: Option<String>) -> Refusal {
        self.own.get_or_insert_default().work = work;
        self
    }

    /// Sets what every answer repeats of the request.
    pub(crate) fn echoing(mut self, echo: Echo) -> Refusal {
        self.own.get_or_insert_default().echo = echo;
        self
    }

    /// Returns the same refusal in other words.
    #[must_use]
    pub(crate) fn saying(self, message: impl Into<Text>) -> Refusal {
        Refusal { message: message.into(), ..self }
    }

    /// Says that what the request is sent to does not exist.
    #[must_use]
    pub(crate) fn nowhere(self) -> Refusal {
        Refusal { situation: Situation::NotFound, ..self }
    }

    /// Returns why the request is refused, from the closed list.
    pub fn failure(&self) -> Failure {
        self.failure
    }

    /// Returns the situation, from which an edge chooses its status.
    pub fn situation(&self) -> Situation {
        self.situation
    }

    /// Seconds after which to try again.
    pub fn retry_seconds(&self) -> Option<u32> {
        self.retry_seconds
    }

    /// Returns the limit that was reached, to be counted.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Returns the contract's own code, where it is more exact than the failure's.
    pub fn own_code(&self) -> Option<&'static str> {
        self.own.as_ref()?.code
    }

    /// The id of the request, if it could be read.
    pub fn request_id(&self) -> Option<&str> {
        self.own.as_ref()?.request_id.as_deref()
    }

    /// The work that the request asks for, if it could be read.
    pub fn work(&self) -> Option<&str> {
        self.own.as_ref()?.work.as_deref()
    }

    /// Makes one refusal of several mistakes: the first one, with all of them listed.
    pub fn all(mistakes: Vec<Refusal>) -> Refusal {
        let mut mistakes = mistakes.into_iter();
        let first = mistakes.next().unwrap_or_else(Refusal::internal);
        let others: Vec<Refusal> = mistakes.collect();
        if others.is_empty() { first } else { Refusal { more: Some(Box::new(More::Others(others))), ..first } }
    }

    /// Sets the place in the body that is wrong, as a JSON pointer.
    pub fn at(mut self, pointer: impl Into<String>) -> Refusal {
        self.at = Some(pointer.into());
        self
    }

    /// Says how much there is of what is limited, and how much was wanted.
    pub fn wanting(mut self, available: u64, required: u64) -> Refusal {
        self.own.get_or_insert_default().amounts = Some((available, required));
        self
    }

    /// Sets the limit that was reached.
    pub fn over(mut self, limit: Limit) -> Refusal {
        self.limit = Some(limit);
        self
    }

    /// Adds everything that is wrong with the document.
    pub fn because(mut self, report: Report) -> Refusal {
        self.more = Some(Box::new(More::Report(report)));
        self
    }

    /// Names the clause that the request breaks.
    pub fn clause(mut self, clause: &'static str) -> Refusal {
        self.clause = Some(clause);
        self
    }

    /// Uses the words of a contract, if it has its own.
    #[must_use]
    pub fn worded(mut self, wording: Wording) -> Refusal {
        if let Some((message, hint)) = wording.text {
            (self.message, self.hint) = (message.into(), hint.into());
        }
        self.clause = wording.clause.or(self.clause);
        if let Some(at) = wording.at {
            self.at = Some(at.to_owned()).filter(|at| !at.is_empty());
        }
        match wording.code {
            Some(code) => self.coded(code),
            None => self,
        }
    }

    /// Derives the name of the wrong field from its place.
    #[must_use]
    pub fn naming_field(self) -> Refusal {
        let field = self.at.as_deref().map(|at| at.trim_start_matches('/').replace('/', "."));
        match field.filter(|field| !field.is_empty()) {
            Some(field) => self.field(field),
            None => self,
        }
    }

    /// Returns the same refusal, with another word on whether sending the request again is safe.
    #[must_use]
    pub fn with_repeat(self, repeat: Repeat, hint: impl Into<Text>) -> Refusal {
        Refusal { repeat, hint: hint.into(), ..self }
    }
}
