//! The agents that joined: workers (`crosspoint agent`) that start the same program as the server does, each for the
//! work of one purpose at one door.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::super::doors::Door;
use super::{Kind, Purpose, exec, name};
use crate::support::server::Server;
use crate::support::workers::{Place, Worker};

/// What the workers are told beside their names.
const PURPOSES: [(Purpose, &[&str]); 4] = [
    (Purpose::Plain, &["--ask", "--concurrency", "8"]),
    (Purpose::Quiet, &["--silence-seconds", "2"]),
    (Purpose::Strict, &["--output-bytes", "10000"]),
    (Purpose::Away, &[]),
];

#[derive(Default)]
pub(super) struct Workers {
    place: OnceLock<Place>,
    workers: Mutex<Vec<Worker>>,
}

impl Workers {
    /// Has all workers join. Those that are to be away leave again: their work stays known.
    pub(super) fn join(&self, server: &Server) {
        self.place.set(Place::of(server)).expect("there is one server");
        let all: Vec<(Purpose, Worker)> = Door::ALL
            .iter()
            .flat_map(|door| PURPOSES.map(|(purpose, _)| (purpose, self.start(*door, purpose))))
            .collect();
        for (purpose, mut worker) in all {
            worker.says("has joined");
            if purpose == Purpose::Away {
                worker.signal("TERM");
                worker.wait();
            } else {
                self.keep(worker);
            }
        }
    }

    /// Lets a worker come back that was away.
    pub(super) fn come(&self, door: Door) {
        self.keep(self.start(door, Purpose::Away));
    }

    fn keep(&self, worker: Worker) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }

    fn start(&self, door: Door, purpose: Purpose) -> Worker {
        let (_, more) = PURPOSES.iter().find(|(known, _)| *known == purpose).expect("it is one of them");
        let program = [&*exec::interpreter(), "-I", "-S", "agent.py"];
        let place = self.place.get().expect("it is known before there is work");
        Worker::start_at(place, &name(Kind::Joined, door, purpose), more, &program)
    }
}
