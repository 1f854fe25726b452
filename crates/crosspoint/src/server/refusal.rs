//! How a request is refused: one shape for all of them, which says what to do and whether to send it again.
//!
//! Messages name fields, types and limits, and never quote what came in.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use crosspoint_contracts::Report;
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_engine::core::Rejected;
use crosspoint_engine::runtime::{Denied, Unaccepted};
use crosspoint_engine::store::Fault;
use schemars::JsonSchema;
use serde::Serialize;

use super::App;
use super::openapi::{FailureName, RepeatName};
use super::tally::Limit;
use crate::judged::{self, Found};

/// When to come again where nobody can know, in seconds.
const RETRY_SECONDS: u32 = 1;

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
}

/// What else is wrong.
#[derive(Debug)]
enum More {
    /// With the request.
    Others(Vec<Refusal>),
    /// With the document that it is about: all of it.
    Report(Report),
}

/// Why a request was refused: one shape for all of them.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Refusal")]
pub(super) struct Shown<'a> {
    error: Error<'a>,
}

/// What is wrong, and what to do about it. It quotes nothing that came in.
#[derive(Serialize, JsonSchema)]
struct Error<'a> {
    /// One of the twelve failures.
    #[schemars(with = "FailureName")]
    code: &'static str,
    /// What is wrong.
    message: &'a str,
    /// What to do about it.
    hint: &'a str,
    /// Whether sending the same again is safe.
    #[schemars(with = "RepeatName")]
    repeat: &'static str,
    /// The rule that was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    clause: Option<&'static str>,
    /// Where in the request it is wrong, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    /// All that is wrong with the request, where that is more than one thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Mistake<'static>>>")]
    mistakes: Vec<Mistake<'a>>,
    /// All that is wrong with the document, where one was to be judged or translated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Found<'static>>>")]
    findings: Vec<Found<'a>>,
}

/// One of several things that are wrong.
#[derive(Serialize, JsonSchema)]
struct Mistake<'a> {
    /// What is wrong.
    message: &'a str,
    /// What to do about it.
    hint: &'a str,
    /// Where in the request it is wrong, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
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
        }
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

    pub(super) fn conflict(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, Failure::Conflict, Repeat::Never, message.into(), hint.into())
    }

    pub(super) fn unsupported(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, Failure::Unsupported, Repeat::Never, message.into(), hint.into())
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

    fn mistakes(&self) -> Vec<Mistake<'_>> {
        let Some(More::Others(others)) = self.more.as_deref() else { return Vec::new() };
        let all = std::iter::once(self).chain(others);
        all.map(|one| Mistake { message: &one.message, hint: &one.hint, at: one.at.as_deref() }).collect()
    }

    fn findings(&self) -> Vec<Found<'_>> {
        let Some(More::Report(report)) = self.more.as_deref() else { return Vec::new() };
        judged::found(report)
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

    fn clause(mut self, clause: &'static str) -> Refusal {
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
            // A full disk takes nothing; after any other error nobody can say what the disk has.
            Unaccepted::Fault(fault) if matches!(**fault, Fault::Full { .. }) => Refusal::fault(fault),
            Unaccepted::Fault(fault) => Refusal::lost(Refusal::fault(fault).message),
        }
    }

    fn lost(message: impl Into<Text>) -> Refusal {
        let hint = "it may have become a job: send it again with the same request id or Idempotency-Key";
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, hint) }
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
            Rejected::Full { jobs_live_max } => {
                let message = format!("there are {jobs_live_max} jobs that have not ended, and no more may be");
                let hint = "nothing was done; send it again later, or raise [limits] jobs";
                let status = StatusCode::TOO_MANY_REQUESTS;
                Refusal {
                    retry_seconds: Some(RETRY_SECONDS),
                    ..Refusal::new(status, Failure::ResourceLimit, Repeat::Safe, message.into(), hint.into())
                }
                .over(Limit::Jobs)
            }
        }
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
            Denied::Fault(fault) => Refusal::fault(fault),
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

    fn body(&self) -> Vec<u8> {
        let error = Error {
            code: self.failure.name(),
            message: &self.message,
            hint: &self.hint,
            repeat: self.repeat.name(),
            clause: self.clause,
            at: self.at.as_deref(),
            mistakes: self.mistakes(),
            findings: self.findings(),
        };
        serde_json::to_vec(&Shown { error }).unwrap_or_default()
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
        Fault::Broken { .. } => "it could not be read or written",
    }
}

fn works(app: &App) -> String {
    let agents = app.engine().agents();
    let mut works: Vec<&str> = agents.iter().flat_map(|agent| agent.spec.works.iter().map(|work| &**work)).collect();
    works.sort_unstable();
    works.dedup();
    works.join(", ")
}

fn names(app: &App) -> String {
    let agents = app.engine().agents();
    agents.iter().map(|agent| &*agent.spec.name).collect::<Vec<&str>>().join(", ")
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(limit) = self.limit {
            response.extensions_mut().insert(limit);
        }
        response
    }
}
