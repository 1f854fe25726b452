//! What agents meet that come to the server by themselves: the pull queues, and the hub of the message contract; and
//! the room for the answers of those that are called.

use std::sync::Arc;

use crosspoint_engine::runtime::MemberLink;
use crosspoint_http::call::AnswerRoom;

use crate::config::Config;
use crate::link::message::Hub;
use crate::pull::Queues;
use crate::workflow::{Places, Runs};

/// What agents meet that come to the server by themselves; cloning shares it.
#[derive(Clone)]
pub(crate) struct AgentSide {
    /// Where attempts wait for workers that joined.
    pub(crate) queues: Arc<Queues>,
    /// Where agents of the message contract are known.
    pub(crate) hub: Arc<Hub>,
    /// Room for the answers of all agents.
    pub(crate) answers: AnswerRoom,
    /// The runs of workflows that are under way.
    pub(crate) runs: Arc<Runs>,
    /// Where they may work, and what they know of each other.
    pub(crate) places: Places,
}

impl AgentSide {
    /// Makes it for a server with this configuration.
    pub(crate) fn new(config: &Config) -> AgentSide {
        let answers = AnswerRoom::new(config.limits.answers_bytes_max);
        AgentSide {
            queues: Arc::new(Queues::default()),
            hub: Hub::new(config, answers.clone()),
            answers,
            runs: Arc::default(),
            places: Places::of(config),
        }
    }

    /// Returns the way to members that registered instead of having joined.
    pub(crate) fn member_link(&self) -> MemberLink {
        let hub = self.hub.clone();
        Arc::new(move |member| hub.registered(member))
    }
}
