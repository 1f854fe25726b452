//! Agents that are killed and begun again while their jobs run.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::ledger::Ledgers;
use super::proxy::Proxy;
use crate::support::server::{exchange, until, within};

/// How often each agent is killed.
const RESTARTS: usize = 3;

/// How many effects of one work there are between two kills. A kill waits for them, and not for a time.
const BETWEEN: usize = 20;

/// Longest time that an agent stays away to be missed.
const MISSED_TIME_MAX: Duration = Duration::from_secs(5);

/// An agent that runs. It is killed when this is dropped.
pub(super) type Alive = Box<dyn Any + Send>;

/// Begins an agent.
enum Begin<'s> {
    /// One that is called, at the address that this returns.
    Called(Box<dyn FnMut() -> (SocketAddr, Alive) + Send + 's>),
    /// One that calls the server at this address, or works with files.
    Calling(SocketAddr, Box<dyn FnMut() -> Alive + Send + 's>),
}

/// An agent, how it is begun, and the proxies between it and the server.
pub(super) struct Restarted<'s> {
    /// Its kinds, of which the first says when it is killed.
    pub(super) kinds: &'static [&'static str],
    proxies: Vec<&'s Proxy>,
    begin: Begin<'s>,
    restarts: AtomicUsize,
}

impl<'s> Restarted<'s> {
    pub(super) fn called<A: Any + Send>(
        kinds: &'static [&'static str],
        proxies: Vec<&'s Proxy>,
        mut begin: impl FnMut() -> (SocketAddr, A) + Send + 's,
    ) -> Restarted<'s> {
        let begin = move || {
            let (address, agent) = begin();
            (address, Box::new(agent) as Alive)
        };
        Restarted { kinds, proxies, begin: Begin::Called(Box::new(begin)), restarts: AtomicUsize::new(0) }
    }

    pub(super) fn calling<A: Any + Send>(
        kinds: &'static [&'static str],
        (proxies, server): (Vec<&'s Proxy>, SocketAddr),
        mut begin: impl FnMut() -> A + Send + 's,
    ) -> Restarted<'s> {
        let begin = move || Box::new(begin()) as Alive;
        Restarted { kinds, proxies, begin: Begin::Calling(server, Box::new(begin)), restarts: AtomicUsize::new(0) }
    }

    /// How often it was killed.
    pub(super) fn restarts(&self) -> usize {
        self.restarts.load(Ordering::SeqCst)
    }

    /// Begins it, and kills it whenever it has done some more. Returns it as it runs at the end. One that is called
    /// stays away until the server has missed it: then there are attempts that certainly never began.
    pub(super) fn go(&mut self, ledgers: &Ledgers, server: SocketAddr) -> Alive {
        let mut alive = self.begin();
        for turn in 1..=RESTARTS {
            until("it has done some work", || (ledgers.count(self.kinds[0]) >= turn * BETWEEN).then_some(()));
            self.proxies.iter().for_each(|proxy| proxy.shut());
            drop(alive);
            if let Begin::Called(_) = self.begin {
                let _ = within(MISSED_TIME_MAX, || is_missed(server, self.kinds[0]).then_some(()));
            }
            alive = self.begin();
            self.restarts.fetch_add(1, Ordering::SeqCst);
        }
        alive
    }

    /// One that calls finds its server, and one that is called is there before it can be reached.
    fn begin(&mut self) -> Alive {
        let open = |address| self.proxies.iter().for_each(|proxy| proxy.open(address));
        match &mut self.begin {
            Begin::Called(begin) => {
                let (address, alive) = begin();
                open(address);
                alive
            }
            Begin::Calling(server, begin) => {
                open(*server);
                begin()
            }
        }
    }
}

/// Whether the server has found out that the agent does not answer.
fn is_missed(server: SocketAddr, agent: &str) -> bool {
    let answer = exchange(server, "GET", &format!("/api/v1/agents/{agent}"), &[], b"");
    answer.is_some_and(|answer| answer.json()["breaker"]["failures"] != 0)
}
