//! Telling an agent that a task is no longer wanted, until it has heard.
//!
//! The job has its outcome already. The agent is told once before the attempt is over, so that a server which is
//! about to end has told the agents that are there. Nothing waits for more than that. An agent that cannot be reached,
//! or that is in trouble, is told again until it is given up. If the server ends meanwhile, its next start tells the
//! agent again (`stop_ended`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::Kind;
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::TOLD_WITHIN;
use crosspoint_exchange::reply::{self, Meaning};
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{Http, Media};
use reqwest::StatusCode;
use tokio::sync::Semaphore;

use crate::link::status::is_absent;

/// Longest time that an agent has to answer once.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// How long an agent is told. Then it is given up.
const TELL_TIME_MAX: Duration = Duration::from_secs(600);

// What is still being told when the server ends must be found again at its next start.
const _: () = assert!(TELL_TIME_MAX.as_secs() < TOLD_WITHIN.as_secs());

/// The pauses between two tries.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Longest answer that is looked at, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Most cancellations of one agent that are sent at a time, and most that wait or are sent. A further one is dropped:
/// the agent was away for ten minutes of it already.
const AT_ONCE_MAX: usize = 16;
const WAITING_MAX: usize = 10_000;

/// The cancellations on their way to one agent.
pub(super) struct Cancellations {
    sending: Semaphore,
    waiting: Arc<Semaphore>,
}

/// What came of telling an agent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The agent knows: it has stopped, it had ended before, or it cannot stop.
    Heard,
    /// It is not certain that the agent knows.
    Unheard,
}

impl Cancellations {
    pub(super) fn new() -> Cancellations {
        let (sending, waiting) = (Semaphore::new(AT_ONCE_MAX), Arc::new(Semaphore::new(WAITING_MAX)));
        Cancellations { sending, waiting }
    }

    /// Tells the agent again until it has heard, or is given up.
    pub(super) async fn tell_on(&self, http: &Http, agent: &str, job: JobId, trace: &Trace) {
        let Ok(_place) = self.waiting.clone().try_acquire_owned() else {
            tracing::warn!(%job, agent, most = WAITING_MAX, "too many cancellations wait; the agent is not told");
            return;
        };
        tracing::warn!(%job, agent, "the agent has not heard that its task is cancelled; it is told again");
        let until = Instant::now() + TELL_TIME_MAX;
        let mut pause = PAUSE_FIRST;
        while Instant::now() + pause < until {
            tokio::time::sleep(pause).await;
            if self.tell(http, job, trace).await == Told::Heard {
                tracing::info!(%job, agent, "the agent has heard that its task is cancelled");
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        tracing::warn!(%job, agent, seconds = TELL_TIME_MAX.as_secs(), "the agent is given up and may still be at work");
    }

    /// Tells the agent once.
    pub(super) async fn tell(&self, http: &Http, job: JobId, trace: &Trace) -> Told {
        let _turn = self.sending.acquire().await;
        let endpoint = http.endpoint(&format!("tasks/{job}/cancel"));
        let telling = async {
            let answer = http.post(&endpoint, "{}", trace, Media::Json).await.ok()?;
            let status = answer.status;
            // An answer that is cut off has its status all the same.
            Some((status, answer.whole(ANSWER_BYTES_MAX).await.unwrap_or_default()))
        };
        match tokio::time::timeout(ANSWER_TIME_MAX, telling).await {
            Ok(Some((status, body))) => heard(status, &body, job),
            Ok(None) | Err(_) => Told::Unheard,
        }
    }
}

/// Decides whether an answer shows that the agent knows.
fn heard(status: StatusCode, body: &bytes::Bytes, job: JobId) -> Told {
    let knows = status.is_success() || is_absent(status) || [StatusCode::CONFLICT, StatusCode::GONE].contains(&status);
    let has_ended = || {
        let reply = reply::read(Kind::TaskResponse, body);
        reply.is_ok_and(|reply| {
            let is_about = reply.request_id.is_some_and(|id| id == job.to_string());
            is_about && matches!(reply.meaning, Meaning::Ended(_))
        })
    };
    if knows || has_ended() { Told::Heard } else { Told::Unheard }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::time::Time;
    use crosspoint_engine::id::Seq;

    use super::*;

    #[test]
    fn an_agent_that_knows_is_told_no_more() {
        let job = JobId::new(Seq(7), Time(1), 3);
        let told = |status: u16, body: &str| {
            heard(StatusCode::from_u16(status).expect("a status"), &body.to_owned().into(), job)
        };
        for status in [200, 202, 204, 404, 405, 409, 410] {
            assert_eq!(told(status, ""), Told::Heard, "{status}");
        }
        for status in [302, 400, 401, 403, 408, 425, 429, 500, 502, 503] {
            assert_eq!(told(status, ""), Told::Unheard, "{status}");
            let ended = format!(r#"{{"id": "{job}", "status": "cancelled"}}"#);
            assert_eq!(told(status, &ended), Told::Heard, "{status}: the document says that it has ended");
            let goes_on = format!(r#"{{"id": "{job}", "status": "in_progress"}}"#);
            assert_eq!(told(status, &goes_on), Told::Unheard, "{status}");
            assert_eq!(told(status, r#"{"id": "other", "status": "cancelled"}"#), Told::Unheard, "{status}");
        }
    }
}
