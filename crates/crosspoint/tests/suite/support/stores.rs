//! Stores that are made without a server: jobs as a core makes them, as many and as long as a test needs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::request::{Door, Key, Limits, Priority};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Batch, Command, Core, Mode, Origin, Reply, Room, Spec, Submission};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Request};
use crosspoint_engine::keys::{Hashes, Keys, Salt};
use crosspoint_engine::machine::{End, Event};
use crosspoint_engine::policy::Policy;
use crosspoint_engine::retention::{Ended, Jumps, Rule};
use crosspoint_engine::store::{Options, Store};

/// A store, and a core that makes its jobs.
pub(crate) struct Stored {
    core: Core,
    store: Store,
    salt: Salt,
    made: u64,
}

impl Stored {
    /// Makes a store in this directory, where a server has it.
    pub(crate) fn new(data: &Path) -> Stored {
        let (store, readers) =
            Store::open(&Options { path: data.join("jobs.db"), bytes_max: None }).expect("the store opens");
        let core = Core::new(Origin {
            agents: vec![Spec {
                name: "echo".into(),
                contract: "builtin".into(),
                agent_type: None,
                awaited: false,
                works: vec!["echo".into()],
                concurrency: u32::MAX,
                waiting_max: u32::MAX,
                policy: Policy { output_bytes_max: 1 << 32, ..Policy::DEFAULT },
            }],
            members: Vec::new(),
            present: BTreeMap::new(),
            grants: Vec::new(),
            standings: Vec::new(),
            jobs: Vec::new(),
            keys: Keys::default(),
            last_seq: Seq(0),
            ids: readers.ids().clone(),
            ended: Ended::new(Rule::FOR_EVER, Jumps::default()),
            unrepaired: Vec::new(),
            room: Room { jobs: usize::MAX, of_work: usize::MAX, of_agent: usize::MAX, of_caller: usize::MAX },
            mode: Mode::Serve,
            end: End::Clean,
            visited: std::collections::BTreeSet::new(),
            alive_at: None,
            now: crosspoint_engine::wall_clock::now(),
        });
        Stored { core, store, salt: readers.salt(), made: 0 }
    }

    /// Adds a job that is under way.
    pub(crate) fn begin(&mut self) -> JobId {
        self.made += 1;
        let request_id = format!("made-{}", self.made);
        let document = format!(r#"{{"work":"echo","input":{{}},"request_id":"{request_id}"}}"#);
        let submission = Submission {
            hashes: Hashes { key: self.salt.hash("", Door::Native, &request_id, &Key::RequestId), alias: None },
            request: Request {
                id: JobId::new(Seq(0), Time::default(), 0),
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
                accepted_at: Time::default(),
                input: 23..25,
            },
            nameless: false,
            others: Vec::new(),
            repeats: None,
            document: Block(document.into()),
            step: None,
        };
        let Reply::Accepted(job) = self.apply(&Command::Submit(Arc::new(submission))) else { panic!("it is accepted") };
        job.id()
    }

    /// Adds a block of the job's output.
    pub(crate) fn print(&mut self, id: JobId, offset: u64, block: Vec<u8>) -> Arc<Job> {
        let event = Event::Output { attempt: 1, offset, block: Block(block.into()) };
        let Reply::Job(job) = self.apply(&Command::Job(id, event)) else { panic!("it is printed") };
        job
    }

    pub(crate) fn end(&mut self, id: JobId) {
        let success = Success::of(Body::trusted("{}"));
        self.apply(&Command::Job(id, Event::Finish { attempt: 1, result: Ok(success) }));
    }

    fn apply(&mut self, command: &Command) -> Reply {
        let mut batch = Batch::default();
        let now = crosspoint_engine::wall_clock::now();
        let reply = self.core.apply(command, now, &mut batch);
        self.core.settle(now, &mut batch);
        self.store.commit(&batch).expect("it can be committed");
        reply
    }
}
