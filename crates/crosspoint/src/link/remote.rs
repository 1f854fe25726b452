//! What agents behind an address have in common: the way to them, and how their requests are written.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::clause::all::ALL_129;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::request::Door;
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::Health;
use crosspoint_engine::runtime::{Attempt, Gone, Reached};
use crosspoint_exchange::outgoing::{self, AgentOptions, Outgoing};
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{AnswerRoom, Endpoint, Http, Unanswered};
use reqwest::StatusCode;
use uuid::Uuid;

use super::status::is_absent;
use super::token::TokenState;
use crate::backend::assignment;
use crate::config::{self, Token};

/// Longest time for a health check.
const HEALTH_TIME_MAX: Duration = Duration::from_secs(5);

/// Shortest time between two signs of life that are reported while an answer is awaited in one piece.
const PATIENCE_MIN: Duration = Duration::from_millis(10);

/// Where an agent may say that it is there (RUN-1). Many agents have only one of the two, or none.
const HEALTH_PATHS: [&str; 2] = ["health/ready", "health"];

pub(crate) struct Agent {
    pub(super) http: Http,
    options: AgentOptions,
    /// Longest answer of the agent, in bytes.
    pub(super) answer_bytes_max: usize,
    silence: Option<Duration>,
    /// Whether it is asked for streams, where its contract has them.
    pub(super) streams: bool,
    token: TokenState,
    has_whole_address: bool,
}

impl Agent {
    pub(super) fn new(settled: &config::Agent, remote: &config::Remote, server: &str, answers: &AnswerRoom) -> Agent {
        let options = AgentOptions {
            contract: remote.spoken.contract,
            agent: settled.name.clone(),
            server: server.to_owned(),
            mode: remote.mode.clone(),
            carry: remote.carry,
            agent_type: None,
            agent_types: Arc::default(),
        };
        let answer_bytes_max = usize::try_from(settled.output_bytes_max).unwrap_or(usize::MAX);
        Agent {
            http: Http::new(&settled.name, &remote.url, remote.token.as_ref().map(Token::reveal), answers),
            options,
            answer_bytes_max,
            silence: settled.silence,
            streams: remote.stream,
            token: TokenState::new(&settled.name, remote.token.is_some()),
            has_whole_address: remote.spoken.whole_address,
        }
    }

    /// Returns since when the agent refuses our token.
    pub(super) fn token_refused_since(&self) -> Option<Time> {
        self.token.refused_since()
    }

    /// Returns where the agent is.
    pub(super) fn reached(&self) -> Option<Reached> {
        Some(Reached { address: self.http.address(), trouble: self.http.trouble() })
    }

    /// Takes note of how an attempt ended, and returns its result as the job's caller is told it: `unauthenticated` is
    /// about our token, and not about the caller's (RUN-5).
    pub(super) fn concluded(&self, result: Result<Success, Failed>) -> Result<Success, Failed> {
        match &result {
            Err(failed) if failed.failure == Failure::Unauthenticated => self.token.refused(),
            // A document shows that the agent has looked at the work.
            Err(failed) if failed.document.is_none() => {}
            Ok(_) | Err(_) => self.token.accepted(),
        }
        result.map_err(Failed::by_agent)
    }

    /// Returns what came of an attempt in a contract that has no way to cancel: when the attempt is stopped, the
    /// connection is closed.
    pub(super) async fn until_stopped(
        &self,
        attempt: &Attempt,
        answer: impl Future<Output = Result<Success, Failed>>,
    ) -> Result<Success, Failed> {
        tokio::select! {
            // An answer that has come counts, even if the attempt is stopped in this very moment.
            biased;
            result = answer => self.concluded(result),
            () = attempt.stopped() => Err(super::gone(Gone)),
        }
    }

    /// How long the agent may say nothing about this attempt.
    pub(super) fn silence(&self, attempt: &Attempt) -> Option<Duration> {
        self.silence.map(|settled| attempt.job().request.limits.silence.unwrap_or(settled))
    }

    /// Writes the request of an attempt.
    pub(super) async fn request(&self, attempt: &Attempt) -> Result<Outgoing, Failed> {
        request(attempt, &self.options).await
    }

    /// Waits for an answer in one piece, and reports signs of life meanwhile: such an agent cannot show that it is
    /// alive, so only the total time counts (ALL-4).
    pub(super) async fn patiently<T>(&self, attempt: &Attempt, answer: impl Future<Output = T>) -> T {
        let Some(silence) = self.silence(attempt) else { return answer.await };
        let mut period = tokio::time::interval((silence / 3).max(PATIENCE_MIN));
        // Without this the first tick would come at once.
        period.reset();
        tokio::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => return answered,
                // An attempt that is not wanted any more is stopped elsewhere.
                _ = period.tick() => drop(attempt.heard().await),
            }
        }
    }

    /// Asks the agent for its health. No contract demands that it answers: an agent that has no such path, and
    /// says so, is well.
    pub(super) async fn health(&self) -> Health {
        // Nothing is known of the paths below a whole address, so the host is asked.
        let place = if self.has_whole_address { Http::at_root } else { Http::endpoint };
        health_at(&self.http, place).await
    }
}

/// Writes the request of an attempt. What the agent's contract cannot say and may not carry is recorded.
pub(super) async fn request(attempt: &Attempt, options: &AgentOptions) -> Result<Outgoing, Failed> {
    let document = attempt.document().await?;
    let assignment = assignment(attempt.job(), attempt.number(), &document, attempt.time_left());
    // A stage of a run came from no caller. In the contract that it was written in, its document has everything in it,
    // and is as that contract prints it.
    let asked = &attempt.job().request;
    if asked.child_of().is_some() && asked.door == Door::Contract(options.contract) {
        return outgoing::request(&assignment, &AgentOptions { carry: false, ..options.clone() });
    }
    let outgoing = outgoing::request(&assignment, options)?;
    if let Some(lost) = &outgoing.lost {
        attempt.noted(ALL_129.id, ALL_129.level, lost.clone());
    }
    Ok(outgoing)
}

/// Asks the agent at this address for its health.
pub(super) async fn health(http: &Http) -> Health {
    health_at(http, Http::endpoint).await
}

async fn health_at(http: &Http, place: fn(&Http, &str) -> Endpoint) -> Health {
    tokio::time::timeout(HEALTH_TIME_MAX, asked_after(http, place)).await.unwrap_or(Health::Sick)
}

async fn asked_after(http: &Http, place: fn(&Http, &str) -> Endpoint) -> Health {
    // A check belongs to no job, so it is a trace of its own (TASK-8).
    let trace = Trace::of_attempt(Uuid::new_v4(), None, 1);
    for path in HEALTH_PATHS {
        let Ok(answer) = http.get(&place(http, path), &trace).await else { return Health::Sick };
        let status = answer.status;
        answer.dismiss().await;
        if !is_absent(status) {
            return if status.is_success() { Health::Well } else { Health::Sick };
        }
    }
    Health::Well
}

/// Returns what a missing answer means for the attempt (ALL-3): work that surely never started may be tried again.
pub(super) fn unanswered(unanswered: Unanswered) -> Failed {
    use Failure::{BrokenContract, Unavailable};
    match unanswered {
        Unanswered::Unconnected => Failed::said(Unavailable, Dispatched::No, "The agent cannot be connected to."),
        Unanswered::Lost => Failed::dropped("The connection to the agent was lost before it answered."),
        Unanswered::Garbled => {
            Failed::said(BrokenContract, Dispatched::Yes, "What the agent answered is no HTTP that could be read.")
        }
    }
}

/// The failure for an answer that is longer than it may be.
pub(super) fn too_long(bytes_max: usize) -> Failed {
    let message = format!("The agent's output is longer than the {bytes_max} bytes that it may have.");
    let failed = Failed::said(Failure::ResourceLimit, Dispatched::Yes, &message);
    // A repeat would be as long.
    Failed { repeat: Some(Repeat::Never), ..failed }
}

/// Logs one line about each exchange: ids, codes and counts (RUN-11). The length is that of an answer that was read
/// whole.
pub(super) fn log(
    attempt: &Attempt,
    began: Instant,
    answer: Result<(StatusCode, Option<usize>), &(dyn fmt::Debug + Sync)>,
) {
    let job = attempt.job();
    let agent = job.agent.as_deref().unwrap_or_default();
    let duration_ms = began.elapsed().as_millis();
    match answer {
        Ok((status, bytes)) => {
            tracing::debug!(job = %job.id(), agent, status = status.as_u16(), bytes, duration_ms, "the agent answered");
        }
        Err(why) => tracing::debug!(job = %job.id(), agent, ?why, duration_ms, "the agent did not answer"),
    }
}
