//! Telling agents that work is no longer wanted, until they have heard.
//!
//! The job has its outcome already. The agent is told once before the attempt is over, so that a server which is
//! about to end has told the agents that are there. Nothing waits for more than that. An agent that cannot be reached,
//! or that is in trouble, is told again until it is given up. If the server ends meanwhile, its next start tells the
//! agent again (`stop_ended`).

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::TOLD_WITHIN;
use tokio::sync::Semaphore;

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
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;

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

    /// Tells the agent again until it has heard, or is given up. `tell` tells it once.
    pub(super) async fn tell_on<F: Future<Output = Told>>(&self, agent: &str, job: JobId, tell: impl Fn() -> F) {
        let Ok(_place) = self.waiting.clone().try_acquire_owned() else {
            tracing::warn!(%job, agent, most = WAITING_MAX, "too many cancellations wait; the agent is not told");
            return;
        };
        tracing::warn!(%job, agent, "the agent has not heard that its work is cancelled; it is told again");
        let until = Instant::now() + TELL_TIME_MAX;
        let mut pause = PAUSE_FIRST;
        while Instant::now() + pause < until {
            tokio::time::sleep(pause).await;
            if self.tell(tell()).await == Told::Heard {
                tracing::info!(%job, agent, "the agent has heard that its work is cancelled");
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        tracing::warn!(%job, agent, seconds = TELL_TIME_MAX.as_secs(), "the agent is given up and may still be at work");
    }

    /// Tells the agent once.
    pub(super) async fn tell(&self, telling: impl Future<Output = Told>) -> Told {
        let _turn = self.sending.acquire().await;
        tokio::time::timeout(ANSWER_TIME_MAX, telling).await.unwrap_or(Told::Unheard)
    }
}
