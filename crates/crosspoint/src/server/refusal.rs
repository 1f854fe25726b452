//! How a request is refused: one shape for all of them, which says what to do and whether to send it again.
//!
//! Messages name fields, types and limits, and never quote what came in.

mod known;
mod shown;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use crosspoint_contracts::Report;
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_engine::core::{Rejected, Share};
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::{Denied, Unaccepted};
use crosspoint_engine::store::Fault;

use super::App;
use super::tally::Limit;

use self::known::names;
pub(super) use self::known::works;
pub(super) use self::shown::Shown;

/// When to come again where nobody can know, in seconds.
const RETRY_SECONDS: u32 = 1;

/// How to get the outcome of work that goes on without its caller.
const JOINS: &str = "send the same request again with the same id: it joins this work and begins nothing new";

/// What to do about a request of which nobody knows whether it became a job.
const JOB_OR_NOT: &str = "it may have become a job: send it again with the same request id or Idempotency-Key";

/// What to do about a wish of which nobody knows whether it was granted.
pub(super) const DONE_OR_NOT: &str = "it may have been done: look how things are before you send it again";

/// Why a request is not granted.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    failure: Failure,
    repeat: Repeat,
    message: Cow<'static, str>,
    hint: Cow<'static, str>,
    clause: Option<&'static str>,
    at: Option<String>,
    retry_seconds: Option<u32>,
    /// The limit that was reached, to be counted.
    limit: Option<Limit>,
    more: Option<Box<More>>,
    /// For the doors of contracts, which have words of their own.
    own: Option<Box<Own>>,
}

/// What the door of a contract adds to a refusal.
#[derive(Debug, Default)]
struct Own {
    /// The contract's code, where it has a more exact one than the failure's.
    code: Option<&'static str>,
    /// The id of the request, where it could be read.
    request_id: Option<String>,
    /// The work that it asks for, where the contract's answers name it.
    work: Option<String>,
    /// The field that is wrong, where it is one.
    field: Option<Text>,
}

/// What else is wrong.
#[derive(Debug)]
enum More {
    /// With the request.
    Others(Vec<Refusal>),
    /// With the document that it is about: all of it.
    Report(Report),
}

type Text = Cow<'static, str>;

impl Refusal {
    fn new(status: StatusCode, failure: Failure, repeat: Repeat, message: Text, hint: Text) -> Refusal {
        Refusal {
            status,
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

    /// The contract's own code for it.
    pub(super) fn coded(mut self, code: &'static str) -> Refusal {
        self.own.get_or_insert_default().code = Some(code);
        self
    }

    /// The field that is wrong.
    pub(super) fn field(mut self, name: impl Into<Text>) -> Refusal {
        self.own.get_or_insert_default().field = Some(name.into());
        self
    }

    /// The id of the request that is refused.
    pub(super) fn of_request(mut self, request_id: Option<String>) -> Refusal {
        self.own.get_or_insert_default().request_id = request_id;
        self
    }

    /// The work that the request asks for.
    pub(super) fn of_work(mut self, work: Option<String>) -> Refusal {
        self.own.get_or_insert_default().work = work;
        self
    }

    /// The status of the answer, and why.
    pub(super) fn status_and_failure(&self) -> (StatusCode, Failure) {
        (self.status, self.failure)
    }

    /// What is wrong.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The contract's own code, and the id of the request.
    pub(super) fn own_code(&self) -> Option<&'static str> {
        self.own.as_ref()?.code
    }

    /// The id of the request, where it could be read.
    pub(super) fn request_id(&self) -> Option<&str> {
        self.own.as_ref()?.request_id.as_deref()
    }

    /// The work that the request asks for, where it could be read.
    pub(super) fn work(&self) -> Option<&str> {
        self.own.as_ref()?.work.as_deref()
    }

    pub(super) fn invalid(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    pub(super) fn not_found(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    pub(super) fn no_such_job() -> Refusal {
        let hint =
            "GET /api/v1/jobs lists the jobs there are; those that have ended are kept for [store] retention_days";
        Refusal::not_found("no job has this id", hint)
    }

    pub(super) fn no_such_agent() -> Refusal {
        Refusal::not_found("no agent has this name", "GET /api/v1/agents lists the agents there are")
    }

    pub(super) fn wrong_method(method: &Method) -> Refusal {
        let message =
            format!("this path does not take {}", if method.as_str().len() > 16 { "this" } else { method.as_str() });
        let hint = "the Allow header names what it takes";
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    /// It is meant for another server, or comes from a page that may not ask.
    pub(super) fn foreign(message: &'static str, hint: &'static str) -> Refusal {
        let (status, failure) = (StatusCode::FORBIDDEN, Failure::Unauthenticated);
        Refusal::new(status, failure, Repeat::Never, message.into(), hint.into()).over(Limit::Foreign)
    }

    pub(super) fn conflict(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, Failure::Conflict, Repeat::Never, message.into(), hint.into())
    }

    /// It cannot be done as things are, though nothing contradicts it.
    pub(super) fn untimely(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    pub(super) fn unsupported(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, Failure::Unsupported, Repeat::Never, message.into(), hint.into())
    }

    pub(super) fn delegation(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, Failure::Delegation, Repeat::Never, message.into(), hint.into())
    }

    pub(super) fn too_large(bytes_max: usize) -> Refusal {
        let message = format!("the body is larger than {bytes_max} bytes");
        let hint = "send less, or raise [limits] body_bytes";
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Refusal::new(status, Failure::ResourceLimit, Repeat::Never, message.into(), hint.into()).over(Limit::BodyBytes)
    }

    pub(super) fn too_slow(what: &'static str, limit: Limit, time_max: Duration) -> Refusal {
        let message = format!("the {what} did not arrive within {} s", time_max.as_secs_f64());
        let hint = "nothing was done; send the request again";
        let status = StatusCode::REQUEST_TIMEOUT;
        Refusal::new(status, Failure::Timeout, Repeat::Safe, message.into(), hint.into()).over(limit)
    }

    pub(super) fn unavailable(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Refusal {
            retry_seconds: Some(RETRY_SECONDS),
            ..Refusal::new(status, Failure::Unavailable, Repeat::Safe, message.into(), hint.into())
        }
    }

    pub(super) fn stopping() -> Refusal {
        Refusal::unavailable("the server is stopping", "nothing was done; send it again once the server is back")
    }

    /// The server ended while it was at it.
    pub(super) fn ended() -> Refusal {
        let message = "the server ended before it could say whether this was done";
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, DONE_OR_NOT) }
    }

    /// ALL-5.4: the caller has waited as long as anybody may, and the job goes on.
    pub(super) fn waited(job: JobId, time_max: Duration) -> Refusal {
        let message = format!("the work has not ended within {} s, and goes on as job {job}", time_max.as_secs_f64());
        let status = StatusCode::GATEWAY_TIMEOUT;
        Refusal::new(status, Failure::Timeout, Repeat::Unknown, message.into(), JOINS.into()).clause("ALL-5.4")
    }

    /// The server stops while a caller waits for a job, which is taken up by the next start.
    pub(super) fn leaving(job: JobId) -> Refusal {
        let message = format!("the server is stopping; the work goes on as job {job} when the server is back");
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, JOINS) }
    }

    pub(super) fn internal() -> Refusal {
        let hint = "the server's log says where; whether the request was carried out is not known";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let message = Failure::Internal.sentence();
        Refusal::new(status, Failure::Internal, Repeat::Unknown, message.into(), hint.into())
    }

    /// One refusal for several mistakes: it is that of the first, and names all.
    pub(super) fn all(mistakes: Vec<Refusal>) -> Refusal {
        let mut mistakes = mistakes.into_iter();
        let first = mistakes.next().unwrap_or_else(Refusal::internal);
        let others: Vec<Refusal> = mistakes.collect();
        if others.is_empty() { first } else { Refusal { more: Some(Box::new(More::Others(others))), ..first } }
    }

    /// Where in the body it is wrong, as a JSON pointer.
    pub(super) fn at(mut self, pointer: impl Into<String>) -> Refusal {
        self.at = Some(pointer.into());
        self
    }

    /// The limit that was reached.
    pub(super) fn over(mut self, limit: Limit) -> Refusal {
        self.limit = Some(limit);
        self
    }

    /// All that is wrong with the document.
    pub(super) fn because(mut self, report: Report) -> Refusal {
        self.more = Some(Box::new(More::Report(report)));
        self
    }

    pub(super) fn clause(mut self, clause: &'static str) -> Refusal {
        self.clause = Some(clause);
        self
    }

    /// Why a request is no job.
    pub(super) fn unaccepted(app: &App, why: &Unaccepted) -> Refusal {
        match why {
            Unaccepted::Conflict(job) => Refusal::conflict(
                format!("this request key is that of job {}, which has other work or another input", job.id()),
                "use a new request id or Idempotency-Key for other work",
            )
            .clause("ALL-1"),
            Unaccepted::Rejected(rejected) => Refusal::rejected(app, rejected),
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

    /// Something was to be written, and that failed. A full disk takes nothing; after any other error nobody can say what the disk has.
    pub(super) fn tried(fault: &Fault, hint: &'static str) -> Refusal {
        let refusal = Refusal::fault(fault);
        if matches!(fault, Fault::Full { .. }) {
            return refusal;
        }
        Refusal { repeat: Repeat::Unknown, hint: hint.into(), ..refusal }
    }

    fn lost(message: impl Into<Text>) -> Refusal {
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, JOB_OR_NOT) }
    }

    fn rejected(app: &App, rejected: &Rejected) -> Refusal {
        match rejected {
            Rejected::UnknownWork => {
                Refusal::unsupported("no agent takes this work", format!("known works: {}", works(app)))
                    .at("/work")
                    .clause("ALL-6")
            }
            Rejected::UnknownAgent => {
                Refusal::unsupported("no agent has this name", format!("known agents: {}", names(app)))
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

    /// There are as many jobs as there may be, of all or of one share.
    fn full(share: Share, most: usize) -> Refusal {
        let (of, key, limit) = match share {
            Share::All => ("", "jobs", Limit::Jobs),
            Share::Work => (" of this work", "jobs_per_work", Limit::JobsPerWork),
            Share::Agent => (" for the one agent that can take it", "jobs_per_agent", Limit::JobsPerAgent),
            Share::Caller => (" of this caller", "jobs", Limit::JobsPerCaller),
        };
        let message = format!("there are {most} jobs{of} that have not ended, and no more may be");
        let hint = format!("nothing was done; send it again later, or raise [limits] {key}");
        let status = StatusCode::TOO_MANY_REQUESTS;
        let refusal = Refusal::new(status, Failure::ResourceLimit, Repeat::Safe, message.into(), hint.into());
        Refusal { retry_seconds: Some(RETRY_SECONDS), ..refusal }.over(limit)
    }

    /// Why a wish was not granted; `missing` is what the path named.
    pub(super) fn denied(why: &Denied, missing: fn() -> Refusal) -> Refusal {
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

    /// The store failed us. What exactly is said in the log, not to callers.
    pub(super) fn fault(fault: &Fault) -> Refusal {
        tracing::error!(error = %fault, "a request could not be carried out");
        let message = format!("the store cannot be used at present: {}", reason(fault));
        let refusal = Refusal::unavailable(message, "nothing was done; send it again later, and see the server's log");
        if matches!(fault, Fault::Full { .. }) { refusal.over(Limit::StoreBytes) } else { refusal }
    }

    /// The whole answer as it goes over a connection that no server serves.
    pub(super) fn to_http(&self) -> Vec<u8> {
        let body = self.body();
        let retry = self.retry_seconds.map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{retry}connection: close\r\n\r\n",
            self.status,
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }
}

/// What is wrong with the store, without where it is.
pub(super) fn reason(fault: &Fault) -> &'static str {
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

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(limit) = self.limit {
            response.extensions_mut().insert(limit);
        }
        // What it says comes later: every door has a shape of its own.
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}
