//! What is known of a failed job, for contracts whose errors must say it.

use crosspoint_contracts::Contract;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::Fact;
use crosspoint_contracts::job::{Canonical, Home};

use crate::snapshot::Snapshot;

/// Returns the members that the details of the job's failure must have. What the agent said of them counts more.
pub(super) fn of(job: &Snapshot<'_>, canonical: &Canonical<'_>, to: Contract) -> Vec<(&'static str, Json<'static>)> {
    let Some(failure) = canonical.failure() else { return Vec::new() };
    let held = |home: Home| canonical.get(home).cloned().map(Json::into_owned);
    let fact = |fact: Fact| match fact {
        Fact::Retries => Json::new(job.retries.to_string()),
        Fact::LastAttempt => Json::string(&job.ended().map_or(job.updated_at, |ended| ended.at).to_string()),
        Fact::Agent => Json::string(job.agent.or(job.pinned).unwrap_or("unknown")),
        Fact::LastHeartbeat | Fact::Field => Json::new("null"),
        Fact::Message => held(Home::Message).unwrap_or_else(|| Json::string(failure.sentence())),
        Fact::TokenStatus => Json::string("unknown"),
        // An agent that names its limit does so by its code.
        Fact::LimitName => held(Home::Code).unwrap_or_else(|| Json::string("unknown")),
        Fact::Available => Json::new("0"),
        Fact::Required => Json::new("1"),
        Fact::Work => Json::string(job.work),
        // An agent refused work that it is known to take.
        Fact::Works => Json::new("[]"),
    };
    (to.exchange().details_have)(failure).iter().map(|(name, what)| (*name, fact(*what))).collect()
}
