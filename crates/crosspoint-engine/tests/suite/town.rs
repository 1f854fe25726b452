//! A core with agents, for stories about several jobs. Every command is committed at once, and nothing goes wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Batch, Command, Core, Effect, Mode, Origin, Reply, Room, Spec, Standing, Submission};
use crosspoint_engine::id::{Ids, Seq};
use crosspoint_engine::job::{Job, Phase, Request};
use crosspoint_engine::keys::{Hash, Hashes, Keys};
use crosspoint_engine::machine::{Action, End, Event};
use crosspoint_engine::retention::{Ended, Jumps, Rule};

use crate::made::{POLICY, T0, request};

pub(crate) struct Town {
    pub(crate) core: Core,
    pub(crate) now: Time,
    /// The batch of the last command.
    pub(crate) batch: Batch,
}

pub(crate) fn agent(name: &str, works: &[&str], concurrency: u32) -> Spec {
    Spec {
        name: name.into(),
        contract: "builtin".into(),
        agent_type: None,
        awaited: false,
        works: works.iter().map(|work| Arc::from(*work)).collect(),
        concurrency,
        waiting_max: u32::MAX,
        policy: POLICY,
    }
}

pub(crate) fn origin(agents: Vec<Spec>) -> Origin {
    Origin {
        agents,
        members: Vec::new(),
        present: BTreeMap::new(),
        grants: Vec::new(),
        standings: Vec::new(),
        jobs: Vec::new(),
        keys: Keys::default(),
        last_seq: Seq(0),
        ids: Ids::hidden([7; 32], 0),
        ended: Ended::new(Rule::FOR_EVER, Jumps::default()),
        unrepaired: Vec::new(),
        room: Room { jobs: 1_000, of_work: 1_000, of_agent: 1_000, of_caller: 1_000 },
        mode: Mode::Serve,
        end: End::Unclean,
        visited: std::collections::BTreeSet::new(),
        alive_at: None,
        now: T0,
    }
}

pub(crate) fn submission(request: Request, hash: Option<u64>) -> Submission {
    let document = Block::default();
    Submission {
        request,
        nameless: false,
        hashes: Hashes { key: hash.map(Hash), alias: None },
        others: Vec::new(),
        repeats: None,
        document,
        step: None,
    }
}

impl Town {
    pub(crate) fn new(agents: Vec<Spec>) -> Town {
        Town::of(origin(agents))
    }

    pub(crate) fn of(origin: Origin) -> Town {
        Town { now: origin.now, core: Core::new(origin), batch: Batch::default() }
    }

    /// Applies one command, and everything that follows from it.
    pub(crate) fn tell(&mut self, command: &Command) -> Reply {
        self.batch = Batch::default();
        let reply = self.core.apply(command, self.now, &mut self.batch);
        self.core.settle(self.now, &mut self.batch);
        reply
    }

    pub(crate) fn try_submit(&mut self, request: Request) -> Reply {
        self.tell(&Command::Submit(Arc::new(submission(request, None))))
    }

    pub(crate) fn submit(&mut self, request: Request) -> Seq {
        match self.try_submit(request) {
            Reply::Accepted(job) => job.seq(),
            Reply::Known(_)
            | Reply::MayBeOf(_)
            | Reply::Claimed
            | Reply::Rejected(_)
            | Reply::Job(_)
            | Reply::Refused(_)
            | Reply::NotTheirs
            | Reply::NotLive
            | Reply::Done
            | Reply::NoSuchAgent
            | Reply::Configured
            | Reply::Present
            | Reply::Crowded
            | Reply::OtherContract
            | Reply::Grant(_)
            | Reply::NameTaken
            | Reply::NoSuchGrant
            | Reply::Unusable(_) => panic!("a request of this story is accepted"),
        }
    }

    /// Submits a job of this work, with nothing special about the request.
    pub(crate) fn submit_work(&mut self, work: &str) -> Seq {
        self.submit(request(0, work))
    }

    pub(crate) fn job(&self, seq: Seq) -> Arc<Job> {
        self.core.job(seq).expect("it has not ended").clone()
    }

    pub(crate) fn happens(&mut self, seq: Seq, event: Event) -> Reply {
        let id = self.job(seq).id();
        self.tell(&Command::Job(id, event))
    }

    /// The present attempt of a job succeeds.
    pub(crate) fn finish(&mut self, seq: Seq) {
        let attempt = self.job(seq).attempts;
        self.happens(seq, crate::made::done(attempt));
    }

    pub(crate) fn with(&self, seq: Seq) -> Option<String> {
        let job = self.job(seq);
        (job.phase() == Phase::Running).then(|| job.agent.as_deref().unwrap_or_default().to_owned())
    }

    /// The jobs that the last command had dispatched, in order.
    pub(crate) fn dispatched(&self) -> Vec<Seq> {
        let dispatch = |effect: &Effect| match effect {
            Effect::Job { job, action: Action::Dispatch { .. } } => Some(job.seq()),
            Effect::Job { .. } | Effect::Check { .. } => None,
        };
        self.batch.effects.iter().filter_map(dispatch).collect()
    }

    pub(crate) fn running(&self, name: &str) -> u32 {
        self.core.agent(name).expect("there is such an agent").running
    }

    pub(crate) fn standing(&self, name: &str) -> Standing {
        self.core.agent(name).expect("there is such an agent").standing
    }
}
