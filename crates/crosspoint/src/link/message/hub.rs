//! What the endpoints of the message contract and its links share: the agents, and the conversations about attempts.
//!
//! A link begins a conversation for each attempt. What the agent sends to the server's endpoint finds the conversation
//! by the job's id, and its sender is answered when what it said is on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::message::About;
use crosspoint_contracts::{Kind, Report};
use crosspoint_engine::core::Member;
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::{Engine, Link};
use crosspoint_http::call::AnswerRoom;
use tokio::sync::{Notify, mpsc, oneshot};

use super::agent::{MessageAgent, Plan};
use super::registered::Registered;
use super::steps;
use super::{CONTRACT_NAME, Message};
use crate::config::{self, Via};

/// How often it is looked whether agents are there.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Most messages about one attempt that wait to be read. Senders of more wait.
const WAITING_MAX: usize = 16;

/// The version that is spoken with agents of the configuration (MSG-11.3).
const ASSUMED_VERSION: &str = "1.0";

/// What the endpoints of the message contract and its links share.
pub(crate) struct Hub {
    server: String,
    agent_types: Arc<[Box<str>]>,
    /// Where chunks of long output are put together.
    spool: std::path::PathBuf,
    /// Room for the answers of agents that messages are pushed to.
    answers: AnswerRoom,
    agents: RwLock<BTreeMap<Arc<str>, Arc<MessageAgent>>>,
    conversations: Mutex<BTreeMap<JobId, Talk>>,
    /// Tells that a conversation has begun.
    begun: Notify,
    /// The senders of results, by job and attempt, until the results are on disk.
    concluding: Mutex<BTreeMap<(JobId, u32), Concluding>>,
    /// Attempts that are over and may have left a file of output. Most attempts have none.
    left: Mutex<BTreeSet<(JobId, u32)>>,
}

/// The conversation about the present attempt of a job.
#[derive(Clone)]
struct Talk {
    attempt: u32,
    agent: Arc<str>,
    // Boxed, because a channel has room for many from its beginning, and most conversations have none.
    said: mpsc::Sender<Box<Said>>,
}

/// Something that an agent said about an attempt.
pub(super) struct Said {
    pub(super) kind: Kind,
    pub(super) about: About,
    pub(super) document: Bytes,
    /// Tells the sender what became of it.
    pub(super) heard: oneshot::Sender<Heard>,
}

/// What became of a message of an agent.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It counts, and is on disk.
    Taken,
    /// It counts, and is on disk. What was printed before it is not whole.
    Objected(steps::Refused),
    /// It cannot be stored just now, and has to be sent again.
    NotNow,
    /// Its chunk of output cannot be taken. The attempt goes on.
    Refused(steps::Refused),
    /// No outcome could be made of it, for what is wrong with it. The attempt has failed, and that is on disk.
    Unreadable(Box<Report>),
}

/// The sender of a result, and what to tell it.
type Concluding = (oneshot::Sender<Heard>, Heard);

/// A conversation that a link has begun. It ends when this is dropped.
pub(super) struct Begun {
    hub: Arc<Hub>,
    job: JobId,
    attempt: u32,
    pub(super) said: mpsc::Receiver<Box<Said>>,
}

impl Hub {
    /// Makes what the agents of this configuration need.
    pub(crate) fn new(config: &config::Config, answers: AnswerRoom) -> Arc<Hub> {
        let configured = config.agents.iter().filter_map(|agent| agent.agent_type.clone());
        // A caller without a token says by its name who it is, in the place of a type.
        let callers = config.callers.iter().map(|caller| caller.name.clone());
        let added = config.server.agent_types.iter().cloned().chain(configured).chain(callers);
        let mut types: Vec<Box<str>> = added.map(Into::into).collect();
        types.sort_unstable();
        types.dedup();
        Arc::new(Hub {
            server: config.server.name.clone(),
            agent_types: types.into(),
            spool: config.data.join(steps::DIRECTORY),
            answers,
            agents: RwLock::default(),
            conversations: Mutex::default(),
            begun: Notify::new(),
            concluding: Mutex::default(),
            left: Mutex::default(),
        })
    }

    /// Returns the agent types that the operator added to those of the contract (MSG-1).
    pub(crate) fn agent_types(&self) -> &Arc<[Box<str>]> {
        &self.agent_types
    }

    pub(super) fn spool(&self) -> &std::path::Path {
        &self.spool
    }

    /// Returns the agent of this name.
    pub(crate) fn agent(&self, name: &str) -> Option<Arc<MessageAgent>> {
        self.agents.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns all agents.
    pub(crate) fn agents(&self) -> Vec<Arc<MessageAgent>> {
        self.agents.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Whether agents are configured, and each must present a token. Agents that registered do not count: one that was
    /// let in must not open the door to others.
    pub(crate) fn all_have_tokens(&self) -> bool {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let mut configured = agents.values().filter(|agent| agent.is_configured).peekable();
        configured.peek().is_some() && configured.all(|agent| agent.has_token())
    }

    /// Makes the link to an agent of the configuration. One that pulls gets no work until it polls.
    pub(crate) fn configured(self: &Arc<Hub>, settled: &config::Agent, message: &config::Message) -> Arc<dyn Link> {
        let (url, told) = match &message.via {
            Via::Push(url) => (Some(url.clone()), settled.concurrency),
            Via::Pull => (None, 0),
        };
        let plan = Plan {
            name: settled.name.as_str().into(),
            agent_type: settled.agent_type.as_deref().map(Into::into),
            protocol_version: ASSUMED_VERSION.to_owned(),
            is_configured: true,
            token: message.token.clone(),
            url,
            concurrency: settled.concurrency,
            silence: settled.silence,
            answer_bytes_max: settled.output_bytes_max,
            carry: message.carry,
            told,
        };
        self.link(plan)
    }

    /// Makes the link to an agent that registered; `None` if the member speaks another contract.
    pub(crate) fn registered(self: &Arc<Hub>, member: &Member) -> Option<Arc<dyn Link>> {
        if *member.spec.contract != *CONTRACT_NAME {
            // An agent of another contract may have taken the name of one that is away.
            self.forget(&member.spec.name);
            return None;
        }
        let registered = Registered::of(member)?;
        let plan = Plan {
            name: member.spec.name.clone(),
            agent_type: member.spec.agent_type.clone(),
            protocol_version: registered.protocol_version,
            is_configured: false,
            token: None,
            url: registered.base_url,
            concurrency: member.spec.concurrency,
            silence: member.spec.policy.silence,
            answer_bytes_max: member.spec.policy.output_bytes_max,
            carry: true,
            // An agent that joins is away until something else is said of it.
            told: 0,
        };
        Some(self.link(plan))
    }

    fn link(self: &Arc<Hub>, plan: Plan) -> Arc<dyn Link> {
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        let before = agents.get(&plan.name).map(|before| &**before);
        let agent = Arc::new(MessageAgent::new(plan, &self.server, &self.agent_types, &self.answers, before));
        agents.insert(agent.name.clone(), agent.clone());
        drop(agents);
        Arc::new(Message { agent, hub: self.clone() })
    }

    /// Forgets an agent that registered and will not come back.
    pub(crate) fn forget(&self, name: &str) {
        self.agents.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Watches until the server ends whether agents are there.
    pub(crate) async fn keep_looking(&self, engine: &Engine) {
        steps::remove_leftovers(&self.spool, engine).await;
        loop {
            for agent in self.agents() {
                self.tell_capacity(engine, &agent);
            }
            tokio::time::sleep(LOOK_PERIOD).await;
        }
    }

    /// Tells the engine how many jobs an agent takes, if that has changed.
    pub(crate) fn tell_capacity(&self, engine: &Engine, agent: &MessageAgent) {
        // The command is in the inbox; nothing here depends on when it is carried out.
        agent.tell_capacity(|capacity| drop(engine.set_capacity(&agent.name, capacity)));
    }

    /// Gives an agent its messages, or waits for some until a point in time.
    pub(crate) async fn poll(
        &self,
        engine: &Engine,
        agent: &Arc<MessageAgent>,
        max: u32,
        until: Instant,
    ) -> Vec<Bytes> {
        let poll = agent.poll(max);
        self.tell_capacity(engine, agent);
        poll.messages(until).await
    }

    /// Begins the conversation about an attempt.
    pub(super) fn begin(self: &Arc<Hub>, job: JobId, attempt: u32, agent: &Arc<str>) -> Begun {
        let (said, receiver) = mpsc::channel(WAITING_MAX);
        let talk = Talk { attempt, agent: agent.clone(), said };
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner).insert(job, talk);
        self.begun.notify_waiters();
        Begun { hub: self.clone(), job, attempt, said: receiver }
    }

    /// Returns the agent and the number of the attempt of a job that is talked about.
    pub(crate) fn talks(&self, job: JobId) -> Option<(Arc<str>, u32)> {
        let conversations = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        conversations.get(&job).map(|talk| (talk.agent.clone(), talk.attempt))
    }

    /// Completes when the conversation about an attempt has begun, or one about a later attempt.
    pub(crate) async fn begins(&self, job: JobId, attempt: u32) {
        loop {
            let begun = self.begun.notified();
            tokio::pin!(begun);
            // Before the look, so that a conversation that begins in between is seen.
            begun.as_mut().enable();
            if self.talks(job).is_some_and(|(_, of)| of >= attempt) {
                return;
            }
            begun.await;
        }
    }

    /// Passes on what an agent said about a job; returns what became of it, once that is on disk. `None` if no attempt
    /// of the job is under way.
    pub(crate) async fn say(&self, job: JobId, (kind, about): (Kind, About), document: Bytes) -> Option<Heard> {
        let talk = {
            let conversations = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
            conversations.get(&job).cloned()
        }?;
        let (heard, answer) = oneshot::channel();
        talk.said.send(Box::new(Said { kind, about, document, heard })).await.ok()?;
        answer.await.ok()
    }

    /// Notes that an attempt that is over may have left a file of output.
    pub(super) fn leaves(&self, job: JobId, attempt: u32) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).insert((job, attempt));
    }

    /// Returns whether an attempt may have left a file of output, and forgets it.
    pub(super) fn has_left(&self, job: JobId, attempt: u32) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(&(job, attempt))
    }

    /// Keeps the sender of a result waiting until the result is on disk.
    fn concludes(&self, job: JobId, attempt: u32, concluding: Concluding) {
        self.concluding.lock().unwrap_or_else(PoisonError::into_inner).insert((job, attempt), concluding);
    }

    /// Tells the sender of a result that the result is on disk.
    pub(super) fn concluded(&self, job: JobId, attempt: u32) {
        let heard = self.concluding.lock().unwrap_or_else(PoisonError::into_inner).remove(&(job, attempt));
        if let Some((heard, told)) = heard {
            // The sender may have left.
            let _ = heard.send(told);
        }
    }
}

impl Begun {
    /// Keeps the sender of the result waiting until the result is on disk.
    pub(super) fn concludes(&self, heard: oneshot::Sender<Heard>, told: Heard) {
        self.hub.concludes(self.job, self.attempt, (heard, told));
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut conversations = self.hub.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        // The next attempt may have begun already.
        if conversations.get(&self.job).is_some_and(|talk| talk.attempt == self.attempt) {
            conversations.remove(&self.job);
        }
    }
}

impl config::Message {
    /// Whether the agent gets no work until something is heard of it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.via == Via::Pull
    }
}
