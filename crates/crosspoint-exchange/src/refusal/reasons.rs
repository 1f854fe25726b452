//! The reasons for refusing a request, each with its message and hint.

use std::fmt::Display;
use std::time::Duration;

use crosspoint_contracts::failure::{Failure, Repeat};

use super::{DONE_OR_NOT, Limit, Refusal, Situation, Text};

/// Pause after which to try again if no better time is known, in seconds.
const RETRY_SECONDS: u32 = 1;

/// Hint on how to get the outcome of work that goes on without its caller.
const JOINS: &str = "send the same request again with the same id: it joins this work and begins nothing new";

impl Refusal {
    /// The request is wrong.
    pub fn invalid(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Invalid, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    /// What the request names does not exist.
    pub fn not_found(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::NotFound, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    /// No job has the id.
    pub fn no_such_job() -> Refusal {
        let hint =
            "GET /api/v1/jobs lists the jobs there are; those that have ended are kept for [store] retention_days";
        Refusal::not_found("no job has this id", hint)
    }

    /// No agent has the name.
    pub fn no_such_agent() -> Refusal {
        Refusal::not_found("no agent has this name", "GET /api/v1/agents lists the agents there are")
    }

    /// The path does not take this method.
    pub fn wrong_method(method: &str) -> Refusal {
        let message = format!("this path does not take {}", if method.len() > 16 { "this" } else { method });
        let hint = "the Allow header names what it takes";
        Refusal::new(Situation::WrongMethod, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    /// The request is meant for another server, or comes from a page that may not send it.
    pub fn foreign(message: &'static str, hint: impl Into<Text>) -> Refusal {
        let (situation, failure) = (Situation::Foreign, Failure::Unauthenticated);
        Refusal::new(situation, failure, Repeat::Never, message.into(), hint.into()).over(Limit::Foreign)
    }

    /// The request contradicts what is there.
    pub fn conflict(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Conflict, Failure::Conflict, Repeat::Never, message.into(), hint.into())
    }

    /// The request cannot be carried out in the present state, though nothing contradicts it.
    pub fn untimely(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Conflict, Failure::Invalid, Repeat::Never, message.into(), hint.into())
    }

    /// No agent can do what is asked.
    pub fn unsupported(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Invalid, Failure::Unsupported, Repeat::Never, message.into(), hint.into())
    }

    /// The work was handed on too often, or in a circle.
    pub fn delegation(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Invalid, Failure::Delegation, Repeat::Never, message.into(), hint.into())
    }

    /// The body is longer than it may be.
    pub fn too_large(bytes_max: usize) -> Refusal {
        let message = format!("the body is larger than {bytes_max} bytes");
        let hint = "send less; the operator can raise [limits] body_bytes";
        let situation = Situation::TooLarge;
        Refusal::new(situation, Failure::ResourceLimit, Repeat::Never, message.into(), hint.into())
            .over(Limit::BodyBytes)
    }

    /// The head of a request, or the address in it, is longer than it may be.
    pub fn head_too_long(what: &'static str, limit: Limit, bytes_max: usize) -> Refusal {
        let message = format!("the {what} of the request is longer than {bytes_max} bytes");
        let hint = format!("send less; the operator can raise [limits] {}", limit.name());
        let situation = if limit == Limit::UrlBytes { Situation::UrlTooLong } else { Situation::HeadTooLong };
        Refusal::new(situation, Failure::Invalid, Repeat::Never, message.into(), hint.into()).over(limit)
    }

    /// An address or a caller has as many of something as it may.
    pub fn too_many(what: &'static str, limit: Limit, most: usize) -> Refusal {
        let message = format!("there are {most} {what}, and no more may be");
        let hint =
            format!("nothing was done; end one and send it again; the operator can raise [limits] {}", limit.name());
        let (situation, failure) = (Situation::Full, Failure::ResourceLimit);
        let refusal = Refusal::new(situation, failure, Repeat::Safe, message.into(), hint.into()).over(limit);
        Refusal { retry_seconds: Some(RETRY_SECONDS), ..refusal }
    }

    /// An address or a token asks too often, and may again after this time.
    pub fn too_often(what: &'static str, limit: Limit, wait: Duration) -> Refusal {
        let hint = format!(
            "nothing was done; wait as long as Retry-After says; the operator can raise [limits] {}",
            limit.name()
        );
        let (situation, failure) = (Situation::Full, Failure::ResourceLimit);
        let refusal = Refusal::new(situation, failure, Repeat::Safe, what.into(), hint.into()).over(limit);
        // Whole seconds, and not before the time.
        let seconds = wait.as_millis().div_ceil(1_000).max(1);
        Refusal { retry_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)), ..refusal }
    }

    /// The output of a job is more than it may be. What came before stays.
    pub fn too_much_output(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        Refusal::new(Situation::Full, Failure::ResourceLimit, Repeat::Never, message.into(), hint.into())
            .over(Limit::OutputBytes)
    }

    /// There are as many agents as there may be.
    pub fn crowded() -> Refusal {
        let message = "as many agents have joined as may";
        let hint = "nothing was done; DELETE /api/v1/agents/{name} forgets one that will not come back";
        let situation = Situation::Full;
        let refusal = Refusal::new(situation, Failure::ResourceLimit, Repeat::Safe, message.into(), hint.into());
        Refusal { retry_seconds: Some(RETRY_SECONDS), ..refusal }.over(Limit::Agents)
    }

    /// Part of the request did not arrive in time.
    pub fn too_slow(what: &'static str, limit: Limit, time_max: Duration) -> Refusal {
        let message = format!("the {what} did not arrive within {} s", time_max.as_secs_f64());
        let hint = "nothing was done; send the request again";
        let situation = Situation::TooSlow;
        Refusal::new(situation, Failure::Timeout, Repeat::Safe, message.into(), hint.into()).over(limit)
    }

    /// The request cannot be carried out at present.
    pub fn unavailable(message: impl Into<Text>, hint: impl Into<Text>) -> Refusal {
        let situation = Situation::Unavailable;
        Refusal {
            retry_seconds: Some(RETRY_SECONDS),
            ..Refusal::new(situation, Failure::Unavailable, Repeat::Safe, message.into(), hint.into())
        }
    }

    /// The server is about to end.
    pub fn stopping() -> Refusal {
        Refusal::unavailable("the server is stopping", "nothing was done; send it again once the server is back")
    }

    /// The server ended while it carried out the request.
    pub fn ended() -> Refusal {
        let message = "the server ended before it could say whether this was done";
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, DONE_OR_NOT) }
    }

    /// ALL-5.4: the caller has waited as long as callers may, and the job goes on.
    pub fn waited(job: impl Display, time_max: Duration) -> Refusal {
        let message = format!("the work has not ended within {} s, and goes on as job {job}", time_max.as_secs_f64());
        let situation = Situation::Waited;
        Refusal::new(situation, Failure::Timeout, Repeat::Unknown, message.into(), JOINS.into()).clause("ALL-5.4")
    }

    /// The server stops while a caller waits for a job. The job is taken up at the next start.
    pub fn leaving(job: impl Display) -> Refusal {
        let message = format!("the server is stopping; the work goes on as job {job} when the server is back");
        Refusal { repeat: Repeat::Unknown, ..Refusal::unavailable(message, JOINS) }
    }

    /// The fault is the server's.
    pub fn internal() -> Refusal {
        let hint = "the server's log says where; whether the request was carried out is not known";
        let situation = Situation::Internal;
        let message = Failure::Internal.sentence();
        Refusal::new(situation, Failure::Internal, Repeat::Unknown, message.into(), hint.into())
    }

    /// There are as many jobs as there may be, by this limit.
    pub fn full(limit: Limit, most: usize) -> Refusal {
        let (of, key) = match limit {
            Limit::JobsPerWork => (" of this work", "jobs_per_work"),
            Limit::JobsPerAgent => (" for the one agent that can take it", "jobs_per_agent"),
            Limit::JobsPerCaller => (" of this caller", "jobs_per_caller"),
            Limit::Jobs
            | Limit::Waiting
            | Limit::BodyBytes
            | Limit::BodiesBytes
            | Limit::Connections
            | Limit::ConnectionsPerAddress
            | Limit::RequestsPerAddress
            | Limit::RequestsPerToken
            | Limit::FailuresPerAddress
            | Limit::StreamsPerCaller
            | Limit::HeaderBytes
            | Limit::UrlBytes
            | Limit::HeaderSeconds
            | Limit::BodySeconds
            | Limit::WriteSeconds
            | Limit::IdleSeconds
            | Limit::AnswersBytes
            | Limit::UnsentBytes
            | Limit::StoreBytes
            | Limit::Documents
            | Limit::OutputBytes
            | Limit::Agents
            | Limit::Foreign => ("", "jobs"),
        };
        // How many jobs of others there are is not for a caller to know.
        let message = match limit == Limit::JobsPerCaller {
            true => format!("there are {most} jobs{of} that have not ended, and no more may be"),
            false => format!("as many jobs{of} as there may be have not ended"),
        };
        let hint = format!("nothing was done; send it again later; the operator can raise [limits] {key}");
        let situation = Situation::Full;
        let refusal = Refusal::new(situation, Failure::ResourceLimit, Repeat::Safe, message.into(), hint.into());
        Refusal { retry_seconds: Some(RETRY_SECONDS), ..refusal }.over(limit)
    }
}
