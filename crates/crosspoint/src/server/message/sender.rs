//! Who sends a message: agents and callers show it by their tokens (MSG-13).

use std::sync::Arc;

use crosspoint_engine::grant::Role;
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};

use crate::config;
use crate::link::message::MessageAgent;
use crate::server::App;
use crate::server::access::{Identity, Who};

/// Who asks for work.
pub(super) struct From {
    /// The owner of the job.
    pub(super) caller: Caller,
    /// The recipient that is told of the outcome.
    pub(super) notify: Option<Arc<str>>,
}

impl From {
    /// Returns the warning that no caller is told, where callers are configured.
    pub(super) fn untold(&self, callers: &[config::Caller]) -> Option<String> {
        let is_untold = self.notify.is_none() && !callers.is_empty();
        is_untold.then(|| UNTOLD.to_owned())
    }
}

/// Callers are configured, and the request is from none of them.
const UNTOLD: &str = "MSG-17.4: `from_agent` is not the name of a [[caller]], so no caller is told the outcome; write the \
                      caller's name there, or add ?wait=SECONDS, or send the same request again later";

/// MSG-13.4: a token is refused with what is wrong with it, and not with whose it is.
pub(super) fn refused(agent: &str, status: TokenStatus) -> Refusal {
    Refusal::unauthenticated(agent, status)
}

impl App {
    /// Checks that a message that claims to come from this agent does (MSG-13.5).
    pub(super) fn authenticated(&self, agent: &MessageAgent, who: &Who) -> Result<(), Refusal> {
        self.speaks_as(who, &agent.name)
    }

    /// Checks the types that a message gives its sender: the sender's token is bound to one (MSG-13.5).
    pub(super) fn is_of_type(agent: &MessageAgent, said: [Option<&str>; 2]) -> Result<(), Refusal> {
        match agent.agent_type.as_deref() {
            Some(of) if said.into_iter().flatten().any(|said| said != of) => Err(Refusal::wrong_type(&agent.name, of)),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks who sends an agent's message before anything in it is looked up (MSG-13.4). Returns the agent whose token
    /// came with it.
    pub(super) fn speaker(&self, who: &Who, claimed: &str) -> Result<Option<Arc<MessageAgent>>, Refusal> {
        match who {
            Who::Unknown(status) => Err(refused(claimed, *status)),
            Who::Anyone { is_strange: true, .. } if self.hub().all_have_tokens() => {
                Err(refused(claimed, TokenStatus::Unknown))
            }
            Who::Known(Identity { role: Role::Agent(name), .. }) => Ok(self.hub().agent(name)),
            Who::Anyone { .. } | Who::Known(_) => Ok(None),
        }
    }

    /// Checks the same of a request that names its agent: the token of another agent does not count for it (MSG-13.5),
    /// nor does that of a caller.
    pub(super) fn speaks_for(&self, who: &Who, claimed: &str) -> Result<(), Refusal> {
        let is_caller = self.callers().iter().any(|caller| caller.name == claimed);
        self.speaker(who, claimed)?;
        match who {
            Who::Known(Identity { role: Role::Agent(name), .. }) if **name != *claimed => {
                Err(Refusal::wrong_agent(claimed, name))
            }
            Who::Known(Identity { role: Role::Caller | Role::Admin, .. }) if !is_caller => {
                Err(Refusal::wrong_scope(claimed, "agent"))
            }
            Who::Anyone { .. } | Who::Known(_) | Who::Unknown(_) => Ok(()),
        }
    }

    /// Returns who sends a `work_request`. A caller shows by its token who it is. One without a token is known by its
    /// name in `from_agent`, or because it is the only one that is configured.
    pub(super) fn caller_of(&self, who: &Who, from_agent: Option<&str>) -> Result<From, Refusal> {
        let callers = self.callers();
        let told = |name: &str| callers.iter().find(|caller| caller.name == name).map(|caller| caller.name.as_str());
        let named = from_agent.and_then(told);
        match who {
            Who::Unknown(status) => Err(refused(named.unwrap_or_default(), *status)),
            Who::Known(Identity { role: Role::Agent(_), .. }) => Err(Refusal::no_caller(named.unwrap_or_default())),
            Who::Known(Identity { name, role: Role::Caller | Role::Admin }) => {
                Ok(From { caller: who.caller(), notify: told(name).map(Into::into) })
            }
            Who::Anyone { .. } => {
                let only = if let [only] = callers { Some(only.name.as_str()) } else { None };
                Ok(From { caller: who.caller(), notify: named.or(only).map(Into::into) })
            }
        }
    }
}
