//! The same store without everything around it: the same two batches of bytes for each set of jobs, committed in a
//! loop.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::request::{Door, Key, Limits, Priority};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Batch, Command, Core, Mode, Origin, Reply, Room, Spec, Submission};
use crosspoint_engine::id::{Ids, JobId, Seq};
use crosspoint_engine::job::Request;
use crosspoint_engine::keys::{Hashes, Keys};
use crosspoint_engine::machine::{End, Event};
use crosspoint_engine::policy::Policy;
use crosspoint_engine::retention::{Ended, Jumps, Rule};
use crosspoint_engine::store::{Options, Store};

use crate::call::native_document;

/// Jobs per second, if each batch holds as many jobs as there are clients.
pub(crate) fn rate(directory: &Path, clients: usize, time: Duration) -> f64 {
    let (mut store, readers) = open(directory);
    let mut maker = Maker::new(readers.salt(), readers.ids(), "bare");
    let (mut jobs, mut spent) = (0, Duration::ZERO);
    while spent < time {
        // The batches are made beforehand, so that only the store is measured.
        let batches: Vec<Batch> = (0..32).flat_map(|_| maker.pair(clients)).collect();
        let start = Instant::now();
        for batch in &batches {
            store.commit(batch).expect("it can be committed");
        }
        spent += start.elapsed();
        jobs += 32 * clients;
    }
    jobs as f64 / spent.as_secs_f64()
}

/// Fills a store with jobs that have ended.
pub(crate) fn fill(directory: &Path, jobs: usize) {
    const AT_ONCE: usize = 2_000;
    let (mut store, readers) = open(directory);
    let mut maker = Maker::new(readers.salt(), readers.ids(), "fill");
    let mut made = 0;
    while made < jobs {
        let some = AT_ONCE.min(jobs - made);
        for batch in maker.pair(some) {
            store.commit(&batch).expect("it can be committed");
        }
        made += some;
    }
}

fn open(directory: &Path) -> (Store, crosspoint_engine::store::Readers) {
    Store::open(&Options { path: directory.join("jobs.db"), bytes_max: None }).expect("the store opens")
}

/// Makes batches as the server does.
struct Maker {
    core: Core,
    salt: crosspoint_engine::keys::Salt,
    name: &'static str,
    made: u64,
    now: Time,
}

impl Maker {
    fn new(salt: crosspoint_engine::keys::Salt, ids: &Ids, name: &'static str) -> Maker {
        let spec = Spec {
            name: "echo".into(),
            contract: "builtin".into(),
            agent_type: None,
            awaited: false,
            works: vec!["echo".into()],
            concurrency: u32::MAX,
            waiting_max: u32::MAX,
            policy: Policy::DEFAULT,
        };
        let now = crosspoint_engine::wall_clock::now();
        let core = Core::new(Origin {
            agents: vec![spec],
            members: Vec::new(),
            present: std::collections::BTreeMap::new(),
            grants: Vec::new(),
            standings: Vec::new(),
            jobs: Vec::new(),
            keys: Keys::default(),
            last_seq: Seq(0),
            ids: ids.clone(),
            ended: Ended::new(Rule::FOR_EVER, Jumps::default()),
            unrepaired: Vec::new(),
            room: Room::of(usize::MAX),
            end: End::Clean,
            visited: std::collections::BTreeSet::new(),
            alive_at: None,
            mode: Mode::Serve,
            now,
        });
        Maker { core, salt, name, made: 0, now }
    }

    /// One batch with `jobs` jobs accepted and begun, and one with the same jobs ended.
    fn pair(&mut self, jobs: usize) -> [Batch; 2] {
        let mut accepted = Batch::default();
        let mut ids: Vec<(JobId, Body)> = Vec::new();
        for _ in 0..jobs {
            let submission = self.submission();
            let input = Body::trusted(submission.input());
            let reply = self.core.apply(&Command::Submit(Arc::new(submission)), self.now, &mut accepted);
            let Reply::Accepted(job) = reply else { panic!("it was not accepted") };
            ids.push((job.id(), input));
        }
        self.core.settle(self.now, &mut accepted);
        let mut ended = Batch::default();
        for (id, outputs) in ids {
            let success = Success::of(outputs);
            let event = Event::Finish { attempt: 1, result: Ok(success) };
            self.core.apply(&Command::Job(id, event), self.now, &mut ended);
        }
        self.core.settle(self.now, &mut ended);
        [accepted, ended]
    }

    fn submission(&mut self) -> Submission {
        self.made += 1;
        let request_id = format!("{}-{:020}", self.name, self.made);
        let text = native_document("echo", &request_id);
        let start = text.find("\"input\":").expect("it has an input") + "\"input\":".len();
        let end = text.len() - 1;
        let hash = self.salt.hash("", Door::Native, &request_id, &Key::RequestId);
        let place = |at: usize| u32::try_from(at).expect("it is short");
        Submission {
            request: Request {
                id: JobId::new(Seq(0), self.now, 0),
                origin: None,
                door: Door::Native,
                caller: "".into(),
                request_id: request_id.into(),
                key: Key::RequestId,
                work: "echo".into(),
                pinned: None,
                addressed: None,
                priority: Priority::Normal,
                limits: Limits::default(),
                trace: None,
                echo: None,
                notify: None,
                accepted_at: self.now,
                input: place(start)..place(end),
            },
            nameless: false,
            hashes: Hashes { key: hash, alias: None },
            others: Vec::new(),
            repeats: None,
            document: Block(text.into()),
            step: None,
        }
    }
}
