//! Who sends a message: agents and callers show it by their tokens (MSG-13).

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};

use crate::config;
use crate::link::message::MessageAgent;
use crate::server::App;

/// The token that came with a request. It never prints itself.
pub(super) struct Presented(Option<String>);

/// Who asks for work.
pub(super) struct From {
    /// The owner of the job.
    pub(super) caller: Caller,
    /// The recipient that is told of the outcome.
    pub(super) notify: Option<Arc<str>>,
}

impl From {
    /// Returns the warning that nobody is told, where others are.
    pub(super) fn untold(&self, callers: &[config::Caller]) -> Option<String> {
        let is_untold = self.notify.is_none() && !callers.is_empty();
        is_untold.then(|| UNTOLD.to_owned())
    }
}

/// Callers are configured, and the request is from none of them.
const UNTOLD: &str = "MSG-17.4: `from_agent` is not the name of a [[caller]], so nobody is told the outcome; write the \
                      caller's name there, or add ?wait=SECONDS, or send the same request again later";

impl Presented {
    /// Reads the `Authorization` header of a request that claims to come from this agent.
    pub(super) fn read(headers: &HeaderMap, claimed: &str) -> Result<Presented, Refusal> {
        let Some(value) = headers.get(AUTHORIZATION) else { return Ok(Presented(None)) };
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
        });
        match token.filter(|token| !token.is_empty()) {
            Some(token) => Ok(Presented(Some(token))),
            None => Err(refused(claimed, TokenStatus::Malformed)),
        }
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// MSG-13.4: a token is refused with what is wrong with it, and not with whose it is.
pub(super) fn refused(agent: &str, status: TokenStatus) -> Refusal {
    Refusal::unauthenticated(agent, status)
}

impl App {
    /// Checks that a message that claims to come from this agent does (MSG-13.5).
    pub(super) fn authenticated(&self, agent: &MessageAgent, presented: &Presented) -> Result<(), Refusal> {
        let Some(token) = presented.token() else {
            return if agent.has_token() { Err(refused(&agent.name, TokenStatus::Missing)) } else { Ok(()) };
        };
        if agent.is_token(token) {
            return Ok(());
        }
        match self.owner_of(token) {
            Some(_) => Err(refused(&agent.name, TokenStatus::WrongAgent)),
            None if agent.has_token() => Err(refused(&agent.name, TokenStatus::Unknown)),
            // Nothing is asked of this agent, so whatever it presents is nothing to us.
            None => Ok(()),
        }
    }

    /// Checks the types that a message gives its sender: the sender's token is bound to one (MSG-13.5).
    pub(super) fn is_of_type(agent: &MessageAgent, said: [Option<&str>; 2]) -> Result<(), Refusal> {
        match agent.agent_type.as_deref() {
            Some(of) if said.into_iter().flatten().any(|said| said != of) => Err(Refusal::wrong_type(&agent.name, of)),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the agent whose token this is.
    pub(super) fn owner_of(&self, token: &str) -> Option<Arc<MessageAgent>> {
        self.hub().owner_of(token)
    }

    /// Checks the token of an agent's request before anything in it is looked up (MSG-13.4). Returns the agent that the
    /// token belongs to.
    pub(super) fn speaker(&self, presented: &Presented, claimed: &str) -> Result<Option<Arc<MessageAgent>>, Refusal> {
        let all_have_tokens = || self.hub().all_have_tokens();
        match presented.token() {
            None if !self.callers_are_open() && all_have_tokens() => Err(refused(claimed, TokenStatus::Missing)),
            None => Ok(None),
            Some(token) => match self.owner_of(token) {
                Some(agent) => Ok(Some(agent)),
                None if !self.is_caller_token(token) && all_have_tokens() => {
                    Err(refused(claimed, TokenStatus::Unknown))
                }
                None => Ok(None),
            },
        }
    }

    /// Checks the same of a request that names its agent: the token of another agent does not count for it (MSG-13.5),
    /// nor does that of a caller.
    pub(super) fn speaks_for(&self, presented: &Presented, claimed: &str) -> Result<(), Refusal> {
        let is_agent = self.callers().iter().all(|caller| caller.name != claimed);
        if is_agent && presented.token().is_some_and(|token| self.is_caller_token(token)) {
            return Err(refused(claimed, TokenStatus::WrongScope));
        }
        match self.speaker(presented, claimed)? {
            Some(agent) if *agent.name != *claimed => Err(refused(claimed, TokenStatus::WrongAgent)),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns who sends a `work_request`. A caller shows by its token who it is. One without a token is known by its
    /// name in `from_agent`, or because it is the only one that is configured.
    pub(super) fn caller_of(&self, presented: &Presented, from_agent: Option<&str>) -> Result<From, Refusal> {
        let callers = self.callers();
        // All are compared, so that the time says nothing about which one it is.
        let known = |token| callers.iter().fold(None, |found, one| if one.is_token(token) { Some(one) } else { found });
        if let Some(known) = presented.token().and_then(known) {
            let name: Arc<str> = known.name.as_str().into();
            return Ok(From { caller: Caller::named(name.clone()), notify: Some(name) });
        }
        let named = callers.iter().find(|caller| Some(caller.name.as_str()) == from_agent);
        if callers.iter().any(config::Caller::has_token) {
            let name = named.map(|caller| caller.name.as_str()).unwrap_or_default();
            return Err(match presented.token() {
                Some(token) if self.owner_of(token).is_some() => Refusal::no_caller(name),
                Some(_) => refused(name, TokenStatus::Unknown),
                None => refused(name, TokenStatus::Missing),
            });
        }
        let only = if let [only] = callers { Some(only) } else { None };
        let notify = named.or(only).map(|caller| caller.name.as_str().into());
        Ok(From { caller: Caller::everyone(), notify })
    }

    fn callers_are_open(&self) -> bool {
        !self.callers().iter().any(config::Caller::has_token)
    }

    pub(super) fn is_caller_token(&self, token: &str) -> bool {
        // All are compared, so that the time says nothing about which one it is.
        self.callers().iter().fold(false, |found, caller| caller.is_token(token) | found)
    }
}
