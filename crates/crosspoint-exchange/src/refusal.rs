//! Refusals over any transport: what is wrong, what to do about it, and whether to send the request again.
//!
//! Messages name fields, types and limits, and never quote the request. [`document()`] writes a refusal in the shape of
//! a contract. The server decides its form over HTTP.

mod document;
mod known;
mod limit;
mod shown;

use std::borrow::Cow;
use std::time::Duration;

use crosspoint_contracts::Report;
use crosspoint_contracts::exchange::Wording;
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_engine::core::{Rejected, Share};
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::{Denied, Engine, Unaccepted};
use crosspoint_engine::store::Fault;

pub(crate) use self::document::document;
use self::known::names;
pub(crate) use self::known::works;
pub(crate) use self::limit::Limit;
pub(crate) use self::shown::Shown;

/// Pause after which to try again if no better time is known, in seconds.
const RETRY_SECONDS: u32 = 1;

/// Hint on how to get the outcome of work that goes on without its caller.
const JOINS: &str = "send the same request again with the same id: it joins this work and begins nothing new";

/// Hint for a request that may or may not have become a job.
const JOB_OR_NOT: &str = "it may have become a job: send it again with the same request id or Idempotency-Key";

/// Hint for a request that may or may not have been carried out.
pub(crate) const DONE_OR_NOT: &str = "it may have been done: look how things are before you send it again";

/// The kind of a refusal, from which an edge chooses its answer: over HTTP each has a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// The request is wrong.
    Invalid,
    /// The thing that was asked for does not exist.
    NotFound,
    /// The path does not take this method.
    WrongMethod,
    /// The request is meant for another server, or comes from a page that may not send it.
    Foreign,
    /// The request contradicts the present state.
    Conflict,
    /// The request is too long.
    TooLarge,
    /// The request did not arrive in time.
    TooSlow,
    /// The limit of jobs is reached.
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
pub(crate) struct Refusal {
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
    pub(crate) fn coded(mut self, code: &'static str) -> Refusal {
        self.own.get_or_insert_default().code = Some(code);
        self
    }

    /// Sets the field that is wrong.
    pub(crate) fn field(mut self, name: impl Into<Text>) -> Refusal {
        self.own.get_or_insert_default().field = Some(name.into());
        self
    }

    /// Sets the id of the request that is refused.
    pub(crate) fn of_request(mut self, request_id: Option<String>) -> Refusal {
        self.own.get_or_insert_default().request_id = request_id;
        self
    }

    /// Sets the work that the request asks for.
    pub(crate) fn of_work(mut self, work: Option<String>) -> Refusal {
        self.own.get_or_insert_default().work = work;
        self
    }

    pub(crate) fn situation(&self) -> Situation {
        self.situation
    }

    /// Seconds after which to try again.
    pub(crate) fn retry_seconds(&self) -> Option<u32> {
        self.retry_seconds
    }

    pub(crate) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    pub(crate) fn own_code(&self) -> Option<&'static str> {
        self.own.as_ref()?.code
    }

    /// The id of the request, if it could be read.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.own.as_ref()?.request_id.as_deref()
    }

    /// The work that the request asks for, if it could be read.
    pub(crate) fn work(&self) -> Option<&str> {
        self.own.as_ref()?.work.as_deref()
    }

    pub(crate) fn invalid(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Invalid, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    pub(crate) fn not_found(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::NotFound, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    pub(crate) fn no_such_job() -> Refusal {
        let hint =
            "GET /api/v1/jobs lists the jobs there are; those that have ended are kept for [store] retention_days";
        Refusal::not_found("no job has this id", hint)
    }

    pub(crate) fn no_such_agent() -> Refusal {
        Refusal::not_found("no agent has this name", "GET /api/v1/agents lists the agents there are")
    }

    pub(crate) fn wrong_method(method: &str) -> Refusal {
        let message = format!("this path does not take {}", if method.len() > 16 { "this" } else { method });
        let hint = "the Allow header names what it takes";
        Refusal::new(Situation::WrongMethod, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    /// The request is meant for another server, or comes from a page that may not send it.
    pub(crate) fn foreign(message: &'static str, hint: &'static str) -> Refusal {
        let (situation, failure) = (Situation::Foreign, Failure::Unauthenticated);
        Refusal::new(situation, failure, Repeat::Never, message.into(), hint.into()).over(Limit::Foreign)
    }

    pub(crate) fn conflict(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Conflict, Failure::Conflict, Repeat::Never, message.into(), hint.into())
    }

    /// The request cannot be carried out in the present state, though nothing contradicts it.
    pub(crate) fn untimely(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Conflict, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    pub(crate) fn unsupported(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Invalid, Failure::Unsupported, Repeat::Never, message.into(), hint.into())
    }

    pub(crate) fn delegation(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Invalid, Failure::Delegation, Repeat::Never, message.into(), hint.into())
    }

    pub(crate) fn too_large(bytes_max: usize) -> Refusal {
        let message = format!("the body is larger than {bytes_max} bytes");
        let hint = "send less, or raise [limits] body_bytes";
        let situation = Situation::TooLarge;
        Refusal::new(situation, Failure::ResourceLimit, Repeat::Never, message.into(), hint.into())
            .over(Limit::BodyBytes)
    }

    pub(crate) fn too_slow(what: &'static str, limit: Limit, time_max: Duration) -> Refusal {
        let message = format!("the {what} did not arrive within {} s", time_max.as_secs_f64());
        let hint = "nothing was done; send the request again";
        let situation = Situation::TooSlow;
        Refusal::new(situation, Failure::Timeout, Repeat::Safe, message.into(), hint.into()).over(limit)
    }

    pub(crate) fn unavailable(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        let situation = Situation::Unavailable;
        Refusal {
            retry_seconds: Some(RETRY_SECONDS),
            ..Refusal::new(situation, Failure::Unavailable, Repeat::Safe, message.into(), hint.into())
        }
    }

    pub(crate) fn stopping() -> Refusal {
        Refusal::unavailable("the server is stopping", "nothing was done; send it again once the server is back")
    }

    /// The server ended while it carried out the request.
    pub(crate) fn ended() -> Refusal {
        let message = "the server ended before it could say whether this was done";
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, DONE_OR_NOT) }
    }

    /// ALL-5.4: the caller has waited as long as callers may, and the job goes on.
    pub(crate) fn waited(job: JobId, time_max: Duration) -> Refusal {
        let message = format!("the work has not ended within {} s, and goes on as job {job}", time_max.as_secs_f64());
        let situation = Situation::Waited;
        Refusal::new(situation, Failure::Timeout, Repeat::Unknown, message.into(), JOINS.into()).clause("ALL-5.4")
    }

    /// The server stops while a caller waits for a job. The job is taken up at the next start.
    pub(crate) fn leaving(job: JobId) -> Refusal {
        let message = format!("the server is stopping; the work goes on as job {job} when the server is back");
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, JOINS) }
    }

    pub(crate) fn internal() -> Refusal {
        let hint = "the server's log says where; whether the request was carried out is not known";
        let situation = Situation::Internal;
        let message = Failure::Internal.sentence();
        Refusal::new(situation, Failure::Internal, Repeat::Unknown, message.into(), hint.into())
    }

    /// Makes one refusal of several mistakes: the first one, with all of them listed.
    pub(crate) fn all(mistakes: Vec<Refusal>) -> Refusal {
        let mut mistakes = mistakes.into_iter();
        let first = mistakes.next().unwrap_or_else(Refusal::internal);
        let others: Vec<Refusal> = mistakes.collect();
        if others.is_empty() { first } else { Refusal { more: Some(Box::new(More::Others(others))), ..first } }
    }

    /// Sets the place in the body that is wrong, as a JSON pointer.
    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Refusal {
        self.at = Some(pointer.into());
        self
    }

    /// Sets the limit that was reached.
    pub(crate) fn over(mut self, limit: Limit) -> Refusal {
        self.limit = Some(limit);
        self
    }

    /// Adds everything that is wrong with the document.
    pub(crate) fn because(mut self, report: Report) -> Refusal {
        self.more = Some(Box::new(More::Report(report)));
        self
    }

    pub(crate) fn clause(mut self, clause: &'static str) -> Refusal {
        self.clause = Some(clause);
        self
    }

    /// Uses the words of a contract, if it has its own.
    #[must_use]
    pub(crate) fn worded(mut self, wording: Wording) -> Refusal {
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
    pub(crate) fn naming_field(self) -> Refusal {
        let field = self.at.as_deref().map(|at| at.trim_start_matches('/').replace('/', "."));
        match field.filter(|field| !field.is_empty()) {
            Some(field) => self.field(field),
            None => self,
        }
    }

    /// Returns the refusal of a request that did not become a job.
    pub(crate) fn unaccepted(engine: &Engine, why: &Unaccepted) -> Refusal {
        match why {
            Unaccepted::Conflict(job) => Refusal::conflict(
                format!("this request key is that of job {}, which has other work or another input", job.id()),
                "use a new request id or Idempotency-Key for other work",
            )
            .clause("ALL-1"),
            Unaccepted::Rejected(rejected) => Refusal::rejected(engine, rejected),
            Unaccepted::Overloaded => {
                Refusal::unavailable("too many requests wait to be written", "nothing was done; send it again later")
                    .over(Limit::Waiting)
            }
            Unaccepted::Closed => Refusal::stopping(),
            Unaccepted::Lost => Refusal::lost("the server ended before it could say whether this became a job"),
            Unaccepted::Fault(fault) => Refusal::tried(fault, JOB_OR_NOT),
            Unaccepted::NotTried(fault) => Refusal::fault(fault),
        }
    }

    /// A write failed. After a full disk nothing was written; after any other error it is not known what is on disk.
    pub(crate) fn tried(fault: &Fault, hint: &'static str) -> Refusal {
        let refusal = Refusal::fault(fault);
        if matches!(fault, Fault::Full { .. }) {
            return refusal;
        }
        Refusal { repeat: Repeat::Unknown, hint: hint.into(), ..refusal }
    }

    fn lost(message: impl Into<Text>) -> Refusal {
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, JOB_OR_NOT) }
    }

    fn rejected(engine: &Engine, rejected: &Rejected) -> Refusal {
        match rejected {
            Rejected::UnknownWork => {
                Refusal::unsupported("no agent takes this work", format!("known works: {}", works(engine)))
                    .at("/work")
                    .clause("ALL-6")
            }
            Rejected::UnknownAgent => {
                Refusal::unsupported("no agent has this name", format!("known agents: {}", names(engine)))
                    .at("/agent")
                    .clause("ALL-6")
            }
            Rejected::NotItsWork => {
                let hint = "leave `agent` out, or GET /api/v1/agents for who takes what";
                Refusal::unsupported("this agent does not take this work", hint).at("/agent").clause("ALL-6")
            }
            Rejected::Full { share, most } => Refusal::full(*share, *most),
        }
    }

    /// The limit of jobs is reached, of all jobs or of one share.
    fn full(share: Share, most: usize) -> Refusal {
        let (of, key, limit) = match share {
            Share::All => ("", "jobs", Limit::Jobs),
            Share::Work => (" of this work", "jobs_per_work", Limit::JobsPerWork),
            Share::Agent => (" for the one agent that can take it", "jobs_per_agent", Limit::JobsPerAgent),
            Share::Caller => (" of this caller", "jobs", Limit::JobsPerCaller),
        };
        let message = format!("there are {most} jobs{of} that have not ended, and no more may be");
        let hint = format!("nothing was done; send it again later, or raise [limits] {key}");
        let situation = Situation::Full;
        let refusal = Refusal::new(situation, Failure::ResourceLimit, Repeat::Safe, message.into(), hint.into());
        Refusal { retry_seconds: Some(RETRY_SECONDS), ..refusal }.over(limit)
    }

    /// Returns the refusal of a request that was denied. `missing` is the refusal if the job or agent does not exist.
    pub(crate) fn denied(why: &Denied, missing: fn() -> Refusal) -> Refusal {
        match why {
            Denied::NotFound => missing(),
            Denied::Refused(refused) => Refusal::conflict(refused.to_string(), "GET the job to see how it is"),
            Denied::NotEnded(job) => Refusal::conflict(
                format!("the job is {} and has not ended", job.phase().name()),
                "wait for its outcome, or cancel it first",
            ),
            Denied::Closed => Refusal::stopping(),
            Denied::Lost => Refusal::ended(),
            Denied::Fault(fault) => Refusal::tried(fault, DONE_OR_NOT),
            Denied::NotTried(fault) => Refusal::fault(fault),
        }
    }

    /// The store failed. The log says how, callers are only told the kind of fault.
    pub(crate) fn fault(fault: &Fault) -> Refusal {
        tracing::error!(error = %fault, "a request could not be carried out");
        let message = format!("the store cannot be used at present: {}", reason(fault));
        let refusal = Refusal::unavailable(message, "nothing was done; send it again later, and see the server's log");
        if matches!(fault, Fault::Full { .. }) { refusal.over(Limit::StoreBytes) } else { refusal }
    }
}

/// What is wrong with the store, without its place.
pub(crate) fn reason(fault: &Fault) -> &'static str {
    match fault {
        Fault::Newer { .. } => "a later version wrote it",
        Fault::NotOurs { .. } => "it is not a store",
        Fault::Damaged { .. } => "it is damaged",
        Fault::InUse { .. } => "another process uses it",
        Fault::Full { .. } => "the disk or its configured size is full",
        Fault::NotWritable { .. } => "it cannot be written",
        Fault::Unwritable { .. } => "it does not take this",
        Fault::Lost { .. } => "it was moved or replaced, or another process has taken it over",
        Fault::Broken { .. } => "it could not be read or written",
    }
}
