//! What agents say about work, and callers that cancel it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::failure::Repeat;
use crosspoint_contracts::message::About;
use crosspoint_contracts::message::cancelling::Cancel;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::{Kind, Report};
use crosspoint_engine::core::Grip;
use crosspoint_engine::event::Violation;
use crosspoint_engine::job::Job;
use crosspoint_engine::machine::Event;
use crosspoint_engine::runtime::{Heard as Reported, Watch};
use crosspoint_exchange::admission::about;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::door::message::{CONTRACT, cancel_work};
use crosspoint_http::json::response;

use super::register::malformed;
use super::sender::refused;
use super::{shared, taken};
use crate::backend::{fault, trace_of};
use crate::link::message::{Heard, MessageAgent, objection, outcome_of, over};
use crate::server::App;
use crate::server::access::Who;

/// A message of an agent about one of its jobs.
struct Reply<'r> {
    kind: Kind,
    about: About,
    /// The agent whose token came with it.
    speaker: Option<Arc<MessageAgent>>,
    who: &'r Who,
    watch: Watch,
}

/// Longest time until what an agent says is on disk. Then it is asked to say it again.
const STORED_WITHIN: Duration = Duration::from_secs(30);

/// Longest time until the conversation about an attempt that is under way begins.
const BEGUN_WITHIN: Duration = Duration::from_secs(5);

impl App {
    /// Takes a message that is no request: a heartbeat, a reply, or the cancelling of work.
    pub(super) async fn hear(
        &self,
        kind: Kind,
        about: About,
        who: &Who,
        received: Received,
    ) -> Result<Response, Refusal> {
        if about.is_heartbeat {
            return self.take_heartbeat(who, about.from_agent.as_deref(), &received.bytes);
        }
        let claimed = about.agent_id.as_deref().unwrap_or_default();
        let speaker = self.speaker(who, claimed)?;
        // Callers report about no work, and none is looked up for them: the answer would tell which ids there are.
        if who.is_no_agent() {
            return match kind == Kind::MessageError {
                true => self.take_cancel(kind, who, about.from_agent.as_deref(), &received).await,
                false => Err(refused(claimed, TokenStatus::WrongScope)),
            };
        }
        // Deployed agents renew ids: the first that is known counts (MSG-17.2).
        for id in about.ids.iter().filter_map(|id| self.engine().job_id(id)) {
            let job = self.engine().job(id).await.map_err(|error| fault(&error))?;
            // Work of agents of other contracts is not reported here, whoever knows its id.
            let is_ours = |job: &Job| job.agent.as_ref().is_some_and(|agent| self.hub().agent(agent).is_some());
            if let Some(watch) = job.filter(|watch| is_ours(&watch.job())) {
                let reply = Reply { kind, about, speaker, who, watch };
                return self.take_reply(reply, received).await;
            }
        }
        self.take_cancel(kind, who, about.from_agent.as_deref(), &received).await
    }

    /// Takes the reply of an agent about one of its jobs. It is on disk when its sender is answered.
    async fn take_reply(&self, reply: Reply<'_>, received: Received) -> Result<Response, Refusal> {
        let Reply { kind, about, speaker, who, watch } = reply;
        let talk = self.talk_about(&watch).await;
        let job = watch.job();
        let agent = match (&speaker, &talk) {
            (Some(speaker), _) => speaker.name.clone(),
            (None, Some((agent, _))) => agent.clone(),
            (None, None) => job.agent.clone().unwrap_or_else(|| shared("")),
        };
        let known = self.hub().agent(&agent).ok_or_else(|| unknown_work(kind))?;
        let Some(attempt) = last_attempt_of(&job, &agent) else { return Err(self.not_theirs(&job, &agent).await) };
        self.authenticated(&known, who)?;
        is_itself(&known, &about, speaker.is_some())?;
        known.heard();
        self.hub().tell_capacity(self.engine(), &known);
        let is_present = talk.is_some_and(|(of, number)| of == agent && number == attempt);
        let heard = match is_present {
            true => {
                let said = self.hub().say(job.id(), (kind, about), received.bytes.clone());
                tokio::time::timeout(STORED_WITHIN, said).await.map_err(|_| not_now())?
            }
            false => None,
        };
        match heard {
            Some(Heard::Taken) => Ok(taken()),
            // The result counts, and must not be sent again.
            Some(Heard::Objected(refused)) => {
                let objection = objection(&known, job.id(), &trace_of(&job, attempt), refused);
                Ok(response(StatusCode::OK, objection))
            }
            Some(Heard::Refused(refused)) => Err(refused.refusal()),
            Some(Heard::NotNow) => Err(not_now()),
            Some(Heard::Unreadable(report)) => Ok(self.failed_by(*report, &received)),
            None => self.take_late(kind, &agent, (&job, attempt), &received).await,
        }
    }

    /// Tells an agent that its result broke the contract. The result counts, as a failure. It is not to be sent again,
    /// so the answer is a success of HTTP.
    fn failed_by(&self, report: Report, received: &Received) -> Response {
        let hint = "the work has failed as broken_contract: mend the agent, and do not send this again";
        let refusal = malformed(report).with_repeat(Repeat::Never, hint);
        let refusal = about(refusal, CONTRACT, &received.bytes, self.hub().agent_types());
        let mut response = Refused::from(refusal).into_response();
        *response.status_mut() = StatusCode::OK;
        response
    }

    /// Returns the agent and the number of the attempt of a job that is talked about. An attempt that is under way is
    /// about to be: the server has just been started, or the attempt has just begun.
    async fn talk_about(&self, watch: &Watch) -> Option<(Arc<str>, u32)> {
        let job = watch.job();
        if let Some(running) = job.running() {
            tokio::select! {
                () = self.hub().begins(job.id(), running.attempt) => {}
                // The attempt may just as well be over in this moment.
                _ = watch.moved(job.events, Instant::now() + BEGUN_WITHIN) => {}
            }
        }
        self.hub().talks(job.id())
    }

    /// Takes what an agent says about an attempt that is over. A success counts if the job has not ended: the work is
    /// done. Anything else is on record.
    async fn take_late(
        &self,
        kind: Kind,
        agent: &Arc<str>,
        (job, attempt): (&Job, u32),
        received: &Received,
    ) -> Result<Response, Refusal> {
        let id = job.id();
        let Some(result) = outcome_of(kind, &received.bytes, self.hub().agent_types()) else {
            let now = self.engine().job(id).await.map_err(|error| fault(&error))?.map(|watch| watch.job());
            // Work that was cancelled or given up ended without the agent, which may not have been told yet.
            let has_completed = |now: &Arc<Job>| now.outcome().is_some_and(|end| end.status == Status::Completed);
            if now.as_ref().is_some_and(has_completed) {
                let what = "a message about the work came after its outcome";
                self.engine().record(id, Violation { clause: "ALL-9.3", level: Level::Error, what: what.into() }).await;
            }
            // What could not be stored is said again, as long as the attempt is under way.
            let is_present = |now: &Arc<Job>| {
                now.agent.as_ref() == Some(agent) && now.running().is_some_and(|running| running.attempt == attempt)
            };
            if now.as_ref().is_some_and(is_present) {
                return Err(not_now());
            }
            let is_over = now.is_none_or(|now| {
                now.outcome().is_some() || (now.running().is_some() && now.agent.as_ref() != Some(agent))
            });
            return match is_over {
                // The agent learns that the work is over (MSG-19).
                true => Ok(response(StatusCode::OK, over(self.hub(), agent, id, &trace_of(job, attempt)))),
                // The next attempt is due, and the agent may get it.
                false => Ok(taken()),
            };
        };
        let event = Event::Finish { attempt, result };
        match self.engine().report(agent, vec![(id, Grip::Lost, event)]).await.as_deref() {
            Some([Reported::Taken | Reported::Gone]) => Ok(taken()),
            Some(_) | None => Err(not_now()),
        }
    }

    /// Records that an agent speaks of work that it never had.
    async fn not_theirs(&self, job: &Job, agent: &str) -> Refusal {
        let what = "a message came from an agent that never had the work";
        self.engine().record(job.id(), Violation { clause: "ALL-2", level: Level::Error, what: what.into() }).await;
        refused(agent, TokenStatus::WrongAgent)
    }

    /// Takes a caller's `error` that cancels its work.
    async fn take_cancel(
        &self,
        kind: Kind,
        who: &Who,
        from_agent: Option<&str>,
        received: &Received,
    ) -> Result<Response, Refusal> {
        let Some(cancel) = Cancel::read(&received.bytes) else { return Err(unknown_work(kind)) };
        let from = self.caller_of(who, from_agent)?;
        cancel_work(&self.doors(), &from.caller, &cancel).await?.ok_or_else(|| {
            let hint = "`request_id`, or `payload.error_context.task_id`, is that of a work_request of yours";
            Refusal::not_found("no work of yours is known by this id", hint).clause("MSG-19")
        })
    }
}

/// MSG-13.5: a token is bound to the agent's name and type. Without a token the ids alone count.
fn is_itself(agent: &MessageAgent, about: &About, has_shown: bool) -> Result<(), Refusal> {
    if !has_shown {
        return Ok(());
    }
    match &about.agent_id {
        Some(said) if **said != *agent.name => Err(refused(&agent.name, TokenStatus::WrongAgent)),
        Some(_) | None => App::is_of_type(agent, [about.from_agent.as_deref(), None]),
    }
}

/// Returns the number of the last attempt that an agent had.
fn last_attempt_of(job: &Job, agent: &Arc<str>) -> Option<u32> {
    (1..=job.attempts).rev().find(|attempt| job.had_by(*attempt) == Some(agent))
}

fn unknown_work(kind: Kind) -> Refusal {
    let hint = match kind == Kind::MessageError {
        true => {
            "an agent names its work by `request_id` and `payload.error_context.task_id` of its work_request; a caller \
             cancels its work with `error_code` 5901, and no other"
        }
        false => "`payload.task_id` and `request_id` of a reply are those of the work_request",
    };
    Refusal::not_found("the message is about no work that is known here", hint).clause("MSG-17.2")
}

fn not_now() -> Refusal {
    let hint = "it may or may not count: send the same message again";
    Refusal::unavailable("the message could not be stored in time", hint)
}
