//! What all requests to one server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crosspoint_contracts::Contract;
use crosspoint_exchange::refusal::{Limit, Refusal};
use tokio_util::sync::CancellationToken;

use crate::limit::{Bodies, Each, Failures, Peer, Rates, Shares, Unsent};
use crate::reach::Ours;
use crate::tally::{Route, Tally};

/// The limits that a server sets to connections and bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of one body.
    pub body_bytes_max: usize,
    /// Most bytes of all bodies that are being read or waiting at one time.
    pub bodies_bytes_max: usize,
    /// Longest time in which the head of a request must arrive.
    pub header_time_max: Duration,
    /// Longest time in which a body must arrive.
    pub body_time_max: Duration,
    /// Longest time in which a caller may take next to nothing of an answer.
    pub write_time_max: Duration,
    /// Longest time for which a connection stays open after an answer if nothing is asked over it.
    pub idle_time_max: Duration,
    /// Most bytes of the headers of a request.
    pub header_bytes_max: usize,
    /// Most bytes of the address of a request.
    pub url_bytes_max: usize,
    /// Most connections of one address at a time.
    pub connections_per_address: Each,
    /// Most requests of one address in a second.
    pub requests_per_address: Each,
    /// Most requests with one token in a second.
    pub requests_per_token: Each,
    /// Most failures of one address within a minute to show who it is.
    pub failures_per_address: Each,
    /// Most event streams of one caller at a time.
    pub streams_per_caller: Each,
    /// Most bytes of all long answers that callers have not taken.
    pub unsent_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes_max: 16 << 20,
            bodies_bytes_max: 128 << 20,
            header_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(60),
            write_time_max: Duration::from_secs(60),
            // Agents send a sign of life every 30 s over the same connection.
            idle_time_max: Duration::from_secs(75),
            header_bytes_max: 32 << 10,
            url_bytes_max: 8 << 10,
            connections_per_address: Each { set: None, default: 256 },
            requests_per_address: Each { set: None, default: 1_000 },
            requests_per_token: Each { set: None, default: 1_000 },
            failures_per_address: Each { set: None, default: 10 },
            streams_per_caller: Each { set: None, default: 100 },
            unsent_bytes_max: 256 << 20,
        }
    }
}

/// Where a server is, and what it offers.
pub struct Plan {
    /// The limits of connections and bodies.
    pub limits: Limits,
    /// The routes that are counted by their own names.
    pub routes: Vec<Route>,
    /// The names of the server.
    pub ours: Ours,
    /// The doors of contracts, by the path that they are under: refusals there have the shape of the contract.
    pub doors: Vec<(&'static str, Contract)>,
}

/// What all requests to one server share; cloning shares it.
#[derive(Clone)]
pub struct Site(Arc<Shared>);

struct Shared {
    plan: Plan,
    /// Whether it is that of an agent, and not of a server.
    is_agent: bool,
    tally: Tally,
    /// Bytes of all bodies that are being read or are waiting to be committed.
    bodies: Bodies,
    /// Requests that have not been answered.
    requests: AtomicUsize,
    /// The connections of each address.
    connections: Shares,
    /// The event streams of each caller.
    streams: Shares,
    /// The requests of each address.
    address_rates: Rates,
    /// The requests with each token.
    token_rates: Rates,
    /// How often each address failed to show who it is.
    failures: Failures,
    /// The long answers that callers have not taken.
    unsent: Unsent,
    stopping: CancellationToken,
    closing: CancellationToken,
}

impl Site {
    /// Makes the site of a server that is about to begin.
    pub fn new(plan: Plan) -> Site {
        Site::made(plan, false)
    }

    /// Makes the site of an agent that serves its callers itself. It refuses in words of its own.
    pub fn of_agent(plan: Plan) -> Site {
        Site::made(plan, true)
    }

    fn made(plan: Plan, is_agent: bool) -> Site {
        let tally = Tally::new(plan.routes.clone());
        let limits = &plan.limits;
        Site(Arc::new(Shared {
            connections: Shares::default(),
            streams: Shares::default(),
            address_rates: Rates::new(limits.requests_per_address.number()),
            token_rates: Rates::new(limits.requests_per_token.number()),
            failures: Failures::new(limits.failures_per_address.number()),
            unsent: Unsent::new(limits.unsent_bytes_max),
            bodies: Bodies::new(limits),
            plan,
            is_agent,
            tally,
            requests: AtomicUsize::new(0),
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
        }))
    }

    /// Returns what is counted.
    pub fn tally(&self) -> &Tally {
        &self.0.tally
    }

    /// Returns the token that is cancelled when no new work is taken any more.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Returns the token that is cancelled when no request is answered any more.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Whether requests are under way that have not been answered.
    pub fn is_answering(&self) -> bool {
        self.0.requests.load(Ordering::Acquire) > 0
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.plan.limits
    }

    pub(crate) fn ours(&self) -> &Ours {
        &self.0.plan.ours
    }

    /// Returns the connections of each address.
    pub(crate) fn connections(&self) -> &Shares {
        &self.0.connections
    }

    /// Returns the event streams of each caller.
    pub(crate) fn streams(&self) -> &Shares {
        &self.0.streams
    }

    /// Returns the bodies that are being read or are waiting to be committed.
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.0.bodies
    }

    /// Returns the long answers that callers have not taken.
    pub(crate) fn unsent(&self) -> &Unsent {
        &self.0.unsent
    }

    /// Takes one request of an address, unless it has sent too many.
    pub(crate) fn take_request_of(&self, peer: Peer, now: Instant) -> Result<(), Refusal> {
        let Some((key, _)) = self.limits().requests_per_address.of(peer) else { return Ok(()) };
        let refusal = |wait| Refusal::too_often("this address asks too often", Limit::RequestsPerAddress, wait);
        self.0.address_rates.take(key, now).map_err(refusal)
    }

    /// Takes one request with a token, unless too many have come with it. `token` is any number that is always the same
    /// for the same token.
    pub fn take_request_with(&self, token: u64, peer: Peer, now: Instant) -> Result<(), Refusal> {
        if self.limits().requests_per_token.of(peer).is_none() {
            return Ok(());
        }
        let refusal = |wait| Refusal::too_often("this token is used too often", Limit::RequestsPerToken, wait);
        self.0.token_rates.take(token, now).map_err(refusal)
    }

    /// Says whether this address may fail to show who it is. It may not for a while after it failed too often: then it
    /// is told how long to wait instead.
    pub fn may_fail_to_authenticate(&self, peer: Peer, now: Instant) -> Result<(), Refusal> {
        let Some((key, _)) = self.limits().failures_per_address.of(peer) else { return Ok(()) };
        let what = "too many requests of this address came without a token that is good";
        let refusal = |wait| Refusal::too_often(what, Limit::FailuresPerAddress, wait);
        self.0.failures.may_fail(key, now).map_err(refusal)
    }

    /// Takes note that this address failed to show who it is, and says the same.
    pub fn failed_to_authenticate(&self, peer: Peer, now: Instant) -> Result<(), Refusal> {
        let refused = self.may_fail_to_authenticate(peer, now);
        if let (Peer::Address(address), Some(key)) = (peer, peer.key())
            && let Some(count) = self.0.failures.failed(key, now)
        {
            tracing::warn!(%address, count, "an address presents tokens that are not good");
        }
        refused
    }

    /// Returns the contract in whose shape requests for this path are refused, if the path belongs to a door. A caller
    /// that misspells a path of a door still speaks its contract.
    pub(crate) fn contract_at(&self, path: &str) -> Option<Contract> {
        self.0.plan.doors.iter().find(|(door, _)| is_under(path, door)).map(|(_, contract)| *contract)
    }

    /// Whether it is that of an agent, and not of a server.
    pub(crate) fn is_agent(&self) -> bool {
        self.0.is_agent
    }

    pub(crate) fn begin_request(&self) {
        self.0.requests.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end_request(&self) {
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether a path is below the one of a door, in which `*` stands for any one part.
fn is_under(path: &str, door: &str) -> bool {
    if !door.contains('*') {
        return path.strip_prefix(door).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    }
    let mut parts = path.split('/');
    door.split('/').all(|wanted| parts.next().is_some_and(|part| wanted == "*" || part == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Peer = Peer::Address(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));
    const HERE: Peer = Peer::Address(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn site() -> Site {
        let plan = Plan {
            limits: Limits::default(),
            routes: Vec::new(),
            ours: Ours::new("127.0.0.1:0", &[]),
            doors: Vec::new(),
        };
        Site::new(plan)
    }

    #[test]
    fn a_token_is_good_for_so_many_requests_from_other_machines() {
        let (site, now) = (site(), Instant::now());
        let taken = |token, peer| (0..5_000).filter(|_| site.take_request_with(token, peer, now).is_ok()).count();
        assert_eq!((taken(1, OTHER), taken(2, OTHER), taken(3, HERE)), (2_000, 2_000, 5_000));
        let refusal = site.take_request_with(1, OTHER, now).expect_err("it is one too many");
        assert_eq!((refusal.limit(), refusal.retry_seconds()), (Some(Limit::RequestsPerToken), Some(1)));
    }

    #[test]
    fn an_address_that_fails_too_often_has_to_wait() {
        let (site, now) = (site(), Instant::now());
        for _ in 0..10 {
            assert!(site.failed_to_authenticate(OTHER, now).is_ok());
        }
        let refusal = site.failed_to_authenticate(OTHER, now).expect_err("it failed too often");
        assert_eq!((refusal.limit(), refusal.retry_seconds()), (Some(Limit::FailuresPerAddress), Some(60)));
        assert!(site.may_fail_to_authenticate(OTHER, now).is_err());
        for peer in [HERE, Peer::Local] {
            assert!((0..100).all(|_| site.failed_to_authenticate(peer, now).is_ok()), "{peer:?}");
        }
    }
}
