//! One agent of the message contract: the way to it, its token, and what was heard of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_engine::id::JobId;
use crosspoint_exchange::outgoing::AgentOptions;
use crosspoint_http::call::{AnswerRoom, Endpoint, Http};
use reqwest::Url;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::life::{Beat, Life, Manner};
use super::outbox::{Outbox, Stage};
use crate::config::Token;
use crate::link::cancelling::Cancellations;
use crate::link::token::TokenState;

/// How often signs of life stand in for the agent's within the time that it may be silent.
const TICKS_PER_SILENCE: u32 = 3;

/// Period of those signs where the agent's silence is not limited.
const TICK_DEFAULT: Duration = Duration::from_secs(10);

/// Shortest period of those signs.
const TICK_MIN: Duration = Duration::from_millis(10);

/// Where messages are posted, below the agent's address (MSG-14).
const PATH: &str = "api/agent/message";

/// What is known of an agent before anything was heard of it.
pub(super) struct Plan {
    pub(super) name: Arc<str>,
    pub(super) agent_type: Option<Arc<str>>,
    pub(super) protocol_version: String,
    /// Whether it is an agent of the configuration, and not one that registered.
    pub(super) is_configured: bool,
    pub(super) token: Option<Token>,
    /// Its address, if messages are pushed to it.
    pub(super) url: Option<Url>,
    pub(super) concurrency: u32,
    pub(super) silence: Option<Duration>,
    pub(super) answer_bytes_max: u64,
    pub(super) carry: bool,
    /// How many jobs the engine believes that it takes.
    pub(super) told: u32,
}

/// One agent of the message contract.
pub(crate) struct MessageAgent {
    pub(crate) name: Arc<str>,
    pub(crate) agent_type: Option<Arc<str>>,
    /// The version that is spoken with it (MSG-10).
    pub(crate) protocol_version: String,
    pub(super) is_configured: bool,
    token: Option<Token>,
    pub(super) push: Option<Push>,
    pub(super) options: AgentOptions,
    pub(super) silence: Option<Duration>,
    pub(super) answer_bytes_max: usize,
    concurrency: u32,
    pub(super) token_state: TokenState,
    pub(super) cancellations: Cancellations,
    known: Arc<Known>,
}

/// What outlasts a registration: an agent that registers again with other works is the same agent, and has the same
/// work.
pub(super) struct Known {
    life: Mutex<Life>,
    outbox: Mutex<Outbox>,
    /// Wakes its polls: there may be a message.
    woken: Notify,
    /// Whether it is gone, for attempts that it has (MSG-12.3).
    gone: watch::Sender<bool>,
    /// How many jobs the engine was told that it takes.
    told: Mutex<u32>,
}

/// The way to an agent that messages are pushed to.
pub(super) struct Push {
    pub(super) http: Http,
    pub(super) endpoint: Endpoint,
}

impl MessageAgent {
    pub(super) fn new(
        plan: Plan,
        server: &str,
        agent_types: &Arc<[Box<str>]>,
        answers: &AnswerRoom,
        before: Option<&MessageAgent>,
    ) -> MessageAgent {
        let push = plan.url.as_ref().map(|url| {
            let http = Http::new(&plan.name, url, plan.token.as_ref().map(Token::reveal), answers);
            let endpoint = http.endpoint(PATH);
            Push { http, endpoint }
        });
        let options = AgentOptions {
            contract: Contract::Message,
            agent: plan.name.to_string(),
            server: server.to_owned(),
            mode: None,
            carry: plan.carry,
            agent_type: plan.agent_type.as_deref().map(str::to_owned),
            agent_types: agent_types.clone(),
        };
        MessageAgent {
            token_state: TokenState::new(&plan.name, plan.token.is_some()),
            name: plan.name,
            agent_type: plan.agent_type,
            protocol_version: plan.protocol_version,
            is_configured: plan.is_configured,
            token: plan.token,
            push,
            options,
            silence: plan.silence,
            answer_bytes_max: usize::try_from(plan.answer_bytes_max).unwrap_or(usize::MAX),
            concurrency: plan.concurrency,
            cancellations: Cancellations::new(),
            known: before.map_or_else(|| Arc::new(Known::new(plan.told)), |before| before.known.clone()),
        }
    }

    /// Whether the agent must present a token (MSG-13.8).
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns how much output an attempt may have, in bytes.
    pub(super) fn output_bytes_max(&self) -> u64 {
        self.answer_bytes_max as u64
    }

    /// Whether messages wait here until the agent asks for them.
    pub(crate) fn pulls(&self) -> bool {
        self.push.is_none()
    }

    fn manner(&self) -> Manner {
        if self.pulls() { Manner::Pulled } else { Manner::Pushed }
    }

    /// Returns the last heartbeat.
    pub(crate) fn last_beat(&self) -> Option<Beat> {
        lock(&self.known.life).last_beat().cloned()
    }

    /// Whether something was heard of the agent within this time.
    pub(super) fn is_fresh(&self, within: Duration) -> bool {
        lock(&self.known.life).is_fresh(within, Instant::now())
    }

    /// Something came from the agent.
    pub(crate) fn heard(&self) {
        lock(&self.known.life).heard(Instant::now());
    }

    /// A heartbeat came.
    pub(crate) fn beats(&self, beat: Beat) {
        lock(&self.known.life).beats(beat, Instant::now());
    }

    /// Tells the engine how many jobs the agent takes now, if the engine does not know it yet, and attempts whether the
    /// agent is gone. One at a time, so that the engine is told last what was found last.
    pub(super) fn tell_capacity(&self, tell: impl FnOnce(u32)) {
        let mut told = lock(&self.known.told);
        let (capacity, is_gone) = {
            let (life, now) = (lock(&self.known.life), Instant::now());
            (life.capacity(self.manner(), self.concurrency, now), life.is_gone(now))
        };
        if std::mem::replace(&mut *told, capacity) != capacity {
            tell(capacity);
        }
        // Attempts that go back into the queue find the agent away.
        self.known.gone.send_if_modified(|gone| std::mem::replace(gone, is_gone) != is_gone);
    }

    /// Whether a message would not reach the agent at present, and the engine knows that.
    pub(super) fn is_away(&self) -> bool {
        *lock(&self.known.told) == 0 && lock(&self.known.life).is_away(self.manner(), Instant::now())
    }

    /// Completes when the agent is gone.
    pub(super) async fn gone(&self) {
        // The sender lives as long as the agent.
        let _ = self.known.gone.subscribe().wait_for(|gone| *gone).await;
    }

    /// Returns how often signs of life stand in for the agent's, where its silence is not its own.
    pub(super) fn tick_period(&self) -> Duration {
        let silence = self.silence.map(|silence| silence / TICKS_PER_SILENCE);
        silence.unwrap_or(TICK_DEFAULT).clamp(TICK_MIN, TICK_DEFAULT)
    }

    /// Leaves the work of an attempt for the agent to take.
    pub(super) fn leave(&self, job: JobId, attempt: u32, message: (Uuid, Bytes)) -> watch::Receiver<Stage> {
        let stage = lock(&self.known.outbox).put(job, attempt, message);
        self.known.woken.notify_waiters();
        stage
    }

    /// Removes the work of an attempt that is over.
    pub(super) fn clear(&self, job: JobId, attempt: u32) {
        lock(&self.known.outbox).remove(job, attempt);
    }

    /// Leaves a message that work is no longer wanted. Returns whether there was room for it.
    pub(super) fn leave_cancel(&self, job: JobId, message: (Uuid, Bytes)) -> bool {
        let left = lock(&self.known.outbox).cancel(job, message, Instant::now());
        self.known.woken.notify_waiters();
        left
    }

    /// Notes which messages the agent has.
    pub(crate) fn acknowledges(&self, ids: &[Uuid]) {
        lock(&self.known.outbox).acknowledge(ids);
    }

    /// Begins a poll for so many messages.
    pub(super) fn poll(self: &Arc<Self>, max: u32) -> Poll {
        let held = lock(&self.known.outbox).held();
        lock(&self.known.life).poll_begins(held, max, Instant::now());
        Poll { agent: self.clone(), max }
    }
}

impl Known {
    fn new(told: u32) -> Known {
        Known {
            life: Mutex::default(),
            outbox: Mutex::default(),
            woken: Notify::new(),
            gone: watch::Sender::new(false),
            told: Mutex::new(told),
        }
    }
}

/// A poll under way.
pub(super) struct Poll {
    agent: Arc<MessageAgent>,
    max: u32,
}

impl Poll {
    /// Returns what there is for the agent, or waits for something until a point in time.
    pub(super) async fn messages(&self, until: Instant) -> Vec<Bytes> {
        loop {
            let woken = self.agent.known.woken.notified();
            tokio::pin!(woken);
            // Before the look, so that a message that comes in between wakes it.
            woken.as_mut().enable();
            let now = Instant::now();
            let due = {
                let mut outbox = lock(&self.agent.known.outbox);
                let messages = outbox.take(self.max as usize, now);
                if !messages.is_empty() || now >= until {
                    return messages;
                }
                outbox.next_due(now)
            };
            let _ = tokio::time::timeout_at(due.map_or(until, |due| due.min(until)).into(), woken).await;
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        lock(&self.agent.known.life).poll_ends(self.max, Instant::now());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic while the lock was held leaves at worst a message that comes again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
