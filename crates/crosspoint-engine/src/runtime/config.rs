//! What an engine is started with.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::Link;
use super::judge::Judge;
use super::links::MemberLink;
use super::pull::PullQueues;
use crate::core::{Mode, Room, Spec};
use crate::retention::Rule;
use crate::store;

/// What an engine is made from.
pub struct Config {
    /// Where jobs are kept.
    pub store: store::Options,
    /// The configured agents, and how work reaches them.
    pub agents: Vec<(Spec, Arc<dyn Link>)>,
    /// The pull queues for agents that join; without them no agent can join.
    pub queues: Option<Arc<dyn PullQueues>>,
    /// Makes the links of agents that join, where they are not reached by the pull queues. It is asked at a start for
    /// the agents that have joined before, and whenever one joins or changes. It must not wait.
    pub member_link: Option<MemberLink>,
    /// The limits on jobs and on requests that wait.
    pub limits: Limits,
    /// How long jobs that have ended are kept.
    pub retention: Rule,
    /// How long entries of the audit are kept; `None` keeps them for ever.
    pub audit_age: Option<Duration>,
    /// Which of the jobs that exist already this engine drives.
    pub mode: Mode,
    /// What looks at results before they are committed, if anything does.
    pub judge: Option<Arc<dyn Judge>>,
}

/// The limits on jobs and on requests that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most jobs that have not ended.
    pub room: Room,
    /// Most requests that wait to be committed.
    pub waiting_max: usize,
    /// Most bytes of requests that wait to be committed.
    pub waiting_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { room: Room::of(200_000), waiting_max: 10_000, waiting_bytes_max: 64 << 20 }
    }
}
