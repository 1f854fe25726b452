//! What a refusal knows of its failure, for contracts whose errors must say it.

use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::{Exchange, Fact};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::json::quoted;

use super::{Refusal, Situation, TokenStatus};
use crate::backend::Agent;

/// Most works that a refusal lists. There may be a million of them.
const WORKS_MAX: usize = 100;

/// Longest list of works, in bytes.
const WORKS_BYTES_MAX: usize = 4 << 10;

/// Our own name in place of an agent's: we cannot carry out the request at present.
const OURSELVES: &str = "orchestrator";

impl Refusal {
    /// Adds the works that agents take, if the refusal is for work that none of them takes.
    #[must_use]
    pub fn knowing(mut self, agents: &[Agent]) -> Refusal {
        if self.failure != Failure::Unsupported {
            return self;
        }
        let mut works: Vec<&str> = agents.iter().flat_map(|agent| agent.works.iter().map(|work| &**work)).collect();
        works.sort_unstable();
        works.dedup();
        let mut bytes = 0;
        let within = |work: &&str| {
            bytes += work.len();
            bytes <= WORKS_BYTES_MAX
        };
        let works = works.into_iter().take(WORKS_MAX).take_while(within).map(quoted).collect();
        self.own.get_or_insert_default().works = works;
        self
    }

    /// Returns the members that the details of this failure must have.
    pub(super) fn facts(&self, exchange: &Exchange, failure: Failure, now: &str) -> Vec<(&'static str, Json<'static>)> {
        let wanted = (exchange.details_have)(failure).iter();
        wanted.map(|(name, fact)| (*name, self.fact(*fact, now))).collect()
    }

    fn fact(&self, fact: Fact, now: &str) -> Json<'static> {
        let own = self.own.as_deref();
        let null = || Json::new("null");
        match fact {
            // No attempt follows a refusal, and this was the last.
            Fact::Retries => Json::new("0"),
            Fact::LastAttempt => Json::string(now),
            Fact::Agent => Json::string(own.and_then(|own| own.agent.as_deref()).unwrap_or(OURSELVES)),
            Fact::LastHeartbeat => null(),
            Fact::Message => Json::string(&self.message),
            Fact::Field => own.and_then(|own| own.field.as_deref()).map_or_else(null, Json::string),
            Fact::TokenStatus => Json::string(self.token_status().name()),
            Fact::LimitName => Json::string(self.limit.map_or("unknown", |limit| limit.name())),
            // Where nothing else is known, the limit is reached and one more was wanted.
            Fact::Available => Json::new(own.and_then(|own| own.amounts).map_or(0, |amounts| amounts.0).to_string()),
            Fact::Required => Json::new(own.and_then(|own| own.amounts).map_or(1, |amounts| amounts.1).to_string()),
            Fact::Work => Json::string(self.work().unwrap_or_default()),
            Fact::Works => Json::new(format!("[{}]", own.map(|own| own.works.join(",")).unwrap_or_default())),
        }
    }

    /// Returns what is wrong with the sender's token. A request that is meant for another server has none for this one.
    fn token_status(&self) -> TokenStatus {
        let known = self.own.as_ref().and_then(|own| own.token);
        known.unwrap_or(match self.situation {
            Situation::Foreign => TokenStatus::WrongScope,
            Situation::Unauthenticated
            | Situation::WrongScope
            | Situation::Invalid
            | Situation::NotFound
            | Situation::WrongMethod
            | Situation::Conflict
            | Situation::TooLarge
            | Situation::UrlTooLong
            | Situation::HeadTooLong
            | Situation::TooSlow
            | Situation::Full
            | Situation::Internal
            | Situation::Unavailable
            | Situation::Waited => TokenStatus::Missing,
        })
    }
}
