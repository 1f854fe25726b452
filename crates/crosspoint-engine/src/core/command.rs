//! What a core is asked and answers, and what it is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::{AgentCommand, Grip, Member, Room, Share, Spec, Standing};
use crate::event::Violation;
use crate::id::{JobId, Seq};
use crate::job::{Job, Request};
use crate::keys::{Hash, Hashes, Keys};
use crate::machine::{End, Event, Refused};
use crate::retention::Ended;
use crate::time::Time;

/// What can be asked of the core.
#[derive(Clone, Debug)]
pub enum Command {
    /// Accept a job.
    Submit(Arc<Submission>),
    /// Somebody looks for the job that is found by this hash, and is none of these.
    Find(Hash, Vec<Seq>),
    /// Something happened to a job.
    Job(JobId, Event),
    /// An agent that joined says something about an attempt.
    Report {
        /// The agent.
        agent: Arc<str>,
        /// Whether the session that says it holds the attempt.
        grip: Grip,
        /// The job.
        id: JobId,
        /// What it says.
        event: Event,
    },
    /// Something is wanted of an agent, or known about it.
    Agent(Arc<str>, AgentCommand),
    /// Somebody wants this job again that nobody drives: it is driven from now on.
    TakeUp(JobId),
    /// An agent joins, or has other works or limits than when it joined.
    Join(Arc<Member>),
    /// Somebody broke a rule about a job that has ended.
    Violation(Seq, Violation),
    /// The clock jumped.
    ClockJumped {
        /// By so many microseconds that what is on disk does not know of.
        micros: i64,
        /// By so many in all, with those before.
        total_micros: i64,
    },
    /// Hand out no more work: we are about to end, and what waits can wait for our next start.
    Rest,
}

/// A request, before it is a job.
#[derive(Clone, Debug)]
pub struct Submission {
    /// All about it but what acceptance gives: its id and its time are those of nobody yet.
    pub request: Request,
    /// Whether the request id is to be the job's own id, because the caller gave none.
    pub nameless: bool,
    /// The hashes that it is found by.
    pub hashes: Hashes,
    /// Jobs whose keys have the same hash, and are known to be other keys.
    pub others: Vec<Seq>,
    /// The document, as it came.
    pub document: crosspoint_contracts::content::Block,
    /// For the id.
    pub chance: u64,
}

/// What came of a command. It may be told once the batch is on disk.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It is a job now.
    Accepted(Arc<Job>),
    /// The key is taken, by this job unless the hashes deceive.
    Known(Seq),
    /// It cannot be accepted.
    Rejected(Rejected),
    /// The job as it is now.
    Job(Arc<Job>),
    /// The wish was not granted.
    Refused(Refused),
    /// The agent does not have the attempt that it speaks of.
    NotTheirs,
    /// No job that is alive has this id.
    NotLive,
    /// It was done.
    Done,
    /// No agent has this name.
    NoSuchAgent,
    /// The agent of this name is configured: it neither joins nor leaves.
    Configured,
    /// The agent cannot be forgotten: it is there, or has work.
    Present,
    /// As many agents have joined as may.
    Crowded,
}

/// Why a request is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// No agent was ever known to take this work (ALL-6).
    UnknownWork,
    /// No agent has the name that the caller gave.
    UnknownAgent,
    /// The agent that the caller named does not take this work.
    NotItsWork,
    /// There are as many jobs as there may be.
    Full {
        /// Of what.
        share: Share,
        /// How many that is.
        most: usize,
    },
}

/// What a core is made of: what the store knows, and what the operator has settled.
#[derive(Debug)]
pub struct Origin {
    /// The agents there are.
    pub agents: Vec<Spec>,
    /// The agents that have joined, now or some time; one whose name is configured now is passed over.
    pub members: Vec<Member>,
    /// Those of them that are there, and how much they take. At a start nobody is.
    pub present: BTreeMap<Arc<str>, u32>,
    /// What was known of agents when we ended, by name.
    pub standings: Vec<(Arc<str>, Standing)>,
    /// The jobs that have not ended.
    pub jobs: Vec<Job>,
    /// The keys of all jobs.
    pub keys: Keys,
    /// The number of the last job.
    pub last_seq: Seq,
    /// The jobs that have ended, for as long as they are kept.
    pub ended: Ended,
    /// Jobs that have an outcome and whose rows do not say so.
    pub unrepaired: Vec<Seq>,
    /// How many jobs there may be that have not ended.
    pub room: Room,
    /// Who drives the jobs that are there already.
    pub mode: Mode,
    /// How the orchestrator before us ended.
    pub end: End,
    /// Jobs that were last driven by what only visited the store after that.
    pub visited: BTreeSet<Seq>,
    /// When an orchestrator was last alive, as far as is known; none where there never was one.
    pub alive_at: Option<Time>,
    /// The time: whatever silence there was before it is not the agents' fault.
    pub now: Time,
}

/// Who drives the jobs that are there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// We do.
    Serve,
    /// Nobody, or somebody later: only what is submitted from now on is driven, for the first time or again.
    Held,
    /// The same, from a job on that was submitted before.
    HeldBefore {
        /// That job.
        first: Seq,
        /// Those before it that were submitted again, and are driven too.
        taken: BTreeSet<Seq>,
    },
}

impl Submission {
    /// The input, within the document.
    pub fn input(&self) -> Bytes {
        self.request.input_in(&self.document).unwrap_or_default()
    }
}
