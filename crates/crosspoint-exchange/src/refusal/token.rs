//! Refusals of tokens. They never quote a token.

use crosspoint_contracts::failure::{Failure, Repeat};

use super::{Refusal, Situation};

/// What is wrong with a token (MSG-19.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenStatus {
    /// There is none.
    Missing,
    /// It is not of the form that tokens have.
    Malformed,
    /// It is nobody's.
    Unknown,
    /// Its time is over.
    Expired,
    /// Another one has replaced it.
    Replaced,
    /// It was taken back.
    Revoked,
    /// It is that of another agent, or of an agent of another type.
    WrongAgent,
    /// It does not allow this.
    WrongScope,
}

impl TokenStatus {
    /// All of them.
    pub const ALL: [TokenStatus; 8] = [
        TokenStatus::Missing,
        TokenStatus::Malformed,
        TokenStatus::Unknown,
        TokenStatus::Expired,
        TokenStatus::Replaced,
        TokenStatus::Revoked,
        TokenStatus::WrongAgent,
        TokenStatus::WrongScope,
    ];

    /// Returns the word that senders are given.
    pub fn name(self) -> &'static str {
        match self {
            TokenStatus::Missing => "missing",
            TokenStatus::Malformed => "malformed",
            TokenStatus::Unknown => "unknown",
            // The list of words is closed (MSG-19.4), and has none of its own for it.
            TokenStatus::Expired | TokenStatus::Replaced => "expired",
            TokenStatus::Revoked => "revoked",
            TokenStatus::WrongAgent => "wrong_agent",
            TokenStatus::WrongScope => "wrong_scope",
        }
    }

    /// Returns what is wrong, and what to do about it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            TokenStatus::Missing => {
                ("a token is needed", "send the header Authorization: Bearer TOKEN, with the token that you were given")
            }
            TokenStatus::Malformed => {
                ("the Authorization header holds no token", "write it like this: Authorization: Bearer TOKEN")
            }
            TokenStatus::Unknown => {
                ("the token is not known here", "use the token that you were given for this server")
            }
            TokenStatus::Expired => ("the token has expired", "ask the operator for a new one"),
            TokenStatus::Replaced => ("the token was replaced", "ask the operator for the new one"),
            TokenStatus::Revoked => ("the token was revoked", "ask the operator for a new one"),
            TokenStatus::WrongAgent => {
                ("the token is that of another agent", "use the agent's own token, name and type")
            }
            TokenStatus::WrongScope => ("the token does not allow this", "ask the operator for a token that does"),
        }
    }
}

impl Refusal {
    /// The token is missing or wrong. `agent_id` is the agent or caller that the message says it is from.
    pub fn unauthenticated(agent_id: &str, status: TokenStatus) -> Refusal {
        let (situation, clause) = match status {
            TokenStatus::WrongScope => (Situation::WrongScope, "MSG-13.4"),
            TokenStatus::WrongAgent => (Situation::Unauthenticated, "MSG-13.5"),
            TokenStatus::Missing
            | TokenStatus::Malformed
            | TokenStatus::Unknown
            | TokenStatus::Expired
            | TokenStatus::Replaced
            | TokenStatus::Revoked => (Situation::Unauthenticated, "MSG-13.4"),
        };
        let (message, hint) = status.words();
        let mut refusal = Refusal::new(situation, Failure::Unauthenticated, Repeat::Never, message.into(), hint.into());
        let own = refusal.own.get_or_insert_default();
        (own.agent, own.token) = (Some(agent_id.to_owned()), Some(status));
        refusal.clause(clause)
    }

    /// The token does not allow this, and one for `needed` would.
    pub fn wrong_scope(claimed: &str, needed: &str) -> Refusal {
        let refusal = Refusal::unauthenticated(claimed, TokenStatus::WrongScope);
        let hint = format!("a token for {needed} is needed; ask the operator for one");
        Refusal { hint: hint.into(), ..refusal }
    }

    /// The token is that of the agent `own`, and the request is in the name of another.
    pub fn wrong_agent(claimed: &str, own: &str) -> Refusal {
        let refusal = Refusal::unauthenticated(claimed, TokenStatus::WrongAgent);
        let hint = format!("this token is for the agent {own}: use that name, or the other agent's own token");
        Refusal { hint: hint.into(), ..refusal }
    }

    /// The token is that of the agent, and the type is not.
    pub fn wrong_type(agent_id: &str, agent_type: &str) -> Refusal {
        let refusal = Refusal::unauthenticated(agent_id, TokenStatus::WrongAgent);
        let hint = format!("the agent is configured with the type {agent_type}: use that, or change its `type`");
        Refusal { hint: hint.into(), ..refusal.saying("the token is that of an agent of another type") }
    }

    /// The token is that of an agent, and only a caller may do this.
    pub fn no_caller(caller: &str) -> Refusal {
        let refusal = Refusal::unauthenticated(caller, TokenStatus::WrongAgent);
        let hint = "use the token of a caller; the operator makes one";
        Refusal { hint: hint.into(), ..refusal.saying("the token is that of an agent, and not of a caller") }
    }
}
