//! The places for connections: of all callers, and of each address.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_exchange::refusal::{Limit, Refusal};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::turn_away;
use crate::Site;
use crate::socket::Stream;

/// Most callers that are told at a time that there are too many connections. Further callers wait for their turn to be
/// told. It always comes, since telling takes no longer than [`super::LINGER_TIME_MAX`].
const TURNED_AWAY_MAX: usize = 64;

/// Shortest interval between log lines that say that callers are turned away.
const TURNED_AWAY_PERIOD: Duration = Duration::from_secs(1);

/// The places for connections.
pub struct Places {
    pub(super) served: Arc<Semaphore>,
    pub(super) turned_away: Arc<Semaphore>,
    /// For callers whose address has too many connections. They do not take the places of others.
    of_address: Arc<Semaphore>,
    max: u32,
}

impl Places {
    /// Makes places for this many connections.
    pub fn new(connections_max: usize) -> Places {
        let max = u32::try_from(connections_max.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Places {
            served: Arc::new(Semaphore::new(max as usize)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
            of_address: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
            max,
        }
    }

    /// Completes when no connection is left.
    pub async fn all_free(&self) {
        let _ = self.served.acquire_many(self.max).await;
    }

    pub(super) fn none_left(&self) -> Refusal {
        Refusal::unavailable(
            format!("there are {} connections, and no more may be", self.max),
            "nothing was done; send it again later; the operator can raise [limits] connections",
        )
    }

    /// Turns a caller away whose address has as many connections as it may. The accept loop does not wait for that: an
    /// address that connects faster than it can be told is not told.
    pub(super) fn refuse_address(&self, stream: Stream, site: &Site, most: usize) {
        site.tally().refused(Limit::ConnectionsPerAddress);
        if let Ok(permit) = self.of_address.clone().try_acquire_owned() {
            let refusal = Refusal::too_many("connections from this address", Limit::ConnectionsPerAddress, most);
            tokio::spawn(turn_away(stream, refusal, permit));
        }
    }
}

/// Callers that were turned away and are not in the log yet.
#[derive(Default)]
pub(super) struct TurnedAway {
    /// Because there were too many connections.
    pub(super) count: u64,
    /// Because their address had too many.
    pub(super) of_address: u64,
    said_at: Option<Instant>,
}

impl TurnedAway {
    /// Completes when there is something to log and the interval has passed.
    pub(super) async fn is_due(&self) {
        if self.count == 0 && self.of_address == 0 {
            return pending().await;
        }
        if let Some(said_at) = self.said_at {
            tokio::time::sleep_until(said_at + TURNED_AWAY_PERIOD).await;
        }
    }

    pub(super) fn say(&mut self, places: &Places) {
        let TurnedAway { count, of_address, .. } = *self;
        if count > 0 {
            tracing::warn!(count, connections = places.max, "callers were turned away: too many connections");
        }
        if of_address > 0 {
            tracing::warn!(count = of_address, "callers were turned away: too many connections of one address");
        }
        *self = TurnedAway { said_at: Some(Instant::now()), ..TurnedAway::default() };
    }
}
