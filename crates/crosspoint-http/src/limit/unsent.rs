//! Long answers that callers have not taken yet: each is in memory until then.
//!
//! Callers may be slow, so a long answer does not wait for room: it would be the fast callers that wait. Instead, when
//! there is too much, the address that has the most of it loses its oldest answer, with the connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Peer;

/// Answers up to this length are not counted, in bytes.
const SHORT_BYTES: usize = 64 << 10;

/// The answers; cloning shares them.
#[derive(Clone)]
pub(crate) struct Unsent {
    bytes_max: usize,
    answers: Arc<Mutex<Answers>>,
}

#[derive(Default)]
struct Answers {
    /// By their age.
    waiting: BTreeMap<u64, Waiting>,
    bytes: usize,
    /// How many bytes each address has.
    of_peers: BTreeMap<Option<u64>, usize>,
    made: u64,
}

struct Waiting {
    peer: Option<u64>,
    bytes: usize,
    cut: CancellationToken,
}

/// One answer, until this value is dropped.
pub(crate) struct UnsentAnswer {
    all: Unsent,
    number: u64,
}

impl Unsent {
    /// Counts answers, of which there may be this many bytes.
    pub(crate) fn new(bytes_max: usize) -> Unsent {
        Unsent { bytes_max, answers: Arc::default() }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more answer, if it is long. `cut` is cancelled when it has to go.
    pub(crate) fn add(&self, peer: Peer, bytes: usize, cut: &CancellationToken) -> Option<UnsentAnswer> {
        if bytes <= SHORT_BYTES {
            return None;
        }
        let mut answers = self.answers();
        let (number, peer) = (answers.made, peer.key());
        answers.made += 1;
        answers.bytes += bytes;
        *answers.of_peers.entry(peer).or_default() += bytes;
        answers.waiting.insert(number, Waiting { peer, bytes, cut: cut.clone() });
        while answers.bytes > self.bytes_max
            && let Some(oldest) = answers.oldest_of_most()
        {
            answers.remove(oldest);
        }
        Some(UnsentAnswer { all: self.clone(), number })
    }
}

impl Answers {
    /// Returns the oldest answer of the address that has the most bytes.
    fn oldest_of_most(&self) -> Option<u64> {
        let (most, _) = self.of_peers.iter().max_by_key(|(_, bytes)| **bytes)?;
        let is_theirs = |waiting: &Waiting| waiting.peer == *most;
        let (number, waiting) = self.waiting.iter().find(|(_, waiting)| is_theirs(waiting))?;
        waiting.cut.cancel();
        Some(*number)
    }

    fn remove(&mut self, number: u64) {
        let Some(Waiting { peer, bytes, .. }) = self.waiting.remove(&number) else { return };
        self.bytes -= bytes;
        if let Some(of_peer) = self.of_peers.get_mut(&peer) {
            *of_peer -= bytes;
            if *of_peer == 0 {
                self.of_peers.remove(&peer);
            }
        }
    }
}

impl Drop for UnsentAnswer {
    fn drop(&mut self) {
        self.all.answers().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn the_address_that_has_the_most_loses_its_oldest() {
        let unsent = Unsent::new(10 << 20);
        let peer = |n| Peer::Address(IpAddr::V4(Ipv4Addr::new(192, 0, 2, n)));
        let add = |n, mib: usize| {
            let cut = CancellationToken::new();
            (unsent.add(peer(n), mib << 20, &cut), cut)
        };
        let short = CancellationToken::new();
        assert!(unsent.add(peer(1), SHORT_BYTES, &short).is_none());
        let (one, fair) = (add(1, 3), add(2, 2));
        let more: Vec<_> = (0..3).map(|_| add(1, 3)).collect();
        let is_cut = |answer: &(Option<UnsentAnswer>, CancellationToken)| answer.1.is_cancelled();
        assert!(is_cut(&one) && is_cut(&more[0]) && !is_cut(&more[1]) && !is_cut(&more[2]) && !is_cut(&fair));
        drop((one, more));
        assert_eq!(unsent.answers().bytes, 2 << 20);
        drop(fair);
        let answers = unsent.answers();
        assert!(answers.of_peers.is_empty() && answers.waiting.is_empty() && answers.bytes == 0);
    }
}
