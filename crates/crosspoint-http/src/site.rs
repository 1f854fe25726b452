//! What all requests to one server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crosspoint_contracts::Contract;
use tokio_util::sync::CancellationToken;

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
    /// Longest time for which a caller may read nothing of an answer.
    pub write_time_max: Duration,
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
    pub doors: &'static [(&'static str, Contract)],
}

/// What all requests to one server share; cloning shares it.
#[derive(Clone)]
pub struct Site(Arc<Shared>);

struct Shared {
    plan: Plan,
    tally: Tally,
    /// Bytes of all bodies that are being read or are waiting to be committed.
    bodies_bytes: AtomicUsize,
    /// Requests that have not been answered.
    requests: AtomicUsize,
    stopping: CancellationToken,
    closing: CancellationToken,
}

impl Site {
    /// Makes the site of a server that is about to begin.
    pub fn new(plan: Plan) -> Site {
        let tally = Tally::new(plan.routes.clone());
        Site(Arc::new(Shared {
            plan,
            tally,
            bodies_bytes: AtomicUsize::new(0),
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

    /// Returns the contract in whose shape requests for this path are refused, if the path belongs to a door. A caller
    /// that misspells a path of a door still speaks its contract.
    pub(crate) fn contract_at(&self, path: &str) -> Option<Contract> {
        let is_under = |door| path.strip_prefix(door).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.0.plan.doors.iter().find(|(door, _)| is_under(*door)).map(|(_, contract)| *contract)
    }

    /// Reserves room for bytes of a body; returns whether there is room.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let before = self.0.bodies_bytes.fetch_add(bytes, Ordering::Relaxed);
        before + bytes <= self.limits().bodies_bytes_max
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.bodies_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn begin_request(&self) {
        self.0.requests.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end_request(&self) {
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}
