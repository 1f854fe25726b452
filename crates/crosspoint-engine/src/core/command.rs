//! The commands and replies of the core, and what a core is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::request::Key;
use crosspoint_contracts::time::Time;

use super::{AgentCommand, GrantCommand, Grip, Member, Room, Share, Spec, Standing};
use crate::audit::Deed;
use crate::event::Violation;
use crate::grant::{Grant, Unusable};
use crate::id::{Ids, JobId, Seq};
use crate::job::{Job, Request};
use crate::keys::{FurtherName, Hash, Hashes, Keys, Name, Other};
use crate::machine::{End, Event, Refused};
use crate::retention::Ended;

/// A command to the core.
#[derive(Clone, Debug)]
pub enum Command {
    /// Accept a job.
    Submit(Arc<Submission>),
    /// Find the job with this hash that is not among these jobs.
    Find(Hash, Vec<Other>),
    /// Something happened to a job.
    Job(JobId, Event),
    /// An agent that joined reports something about an attempt.
    Report {
        /// The agent's name.
        agent: Arc<str>,
        /// Whether the session that reports it holds the attempt.
        grip: Grip,
        /// The job's id.
        id: JobId,
        /// What is reported.
        event: Event,
    },
    /// A command about an agent.
    Agent(Arc<str>, AgentCommand),
    /// Drive a job from now on that is held, because it was submitted again.
    TakeUp(JobId),
    /// An agent joins, or joins again with other works or limits.
    Join(Arc<Member>),
    /// The recipient that is owed the outcome of this job was told it.
    Told(JobId),
    /// A command about grants.
    Grant(GrantCommand),
    /// Write that something was done which is no command itself.
    Audit(Deed),
    /// Record that a rule about a job that has ended was broken.
    Violation(Seq, Violation),
    /// The clock jumped.
    ClockJumped {
        /// The part of the jump, in microseconds, that is not reflected on disk yet.
        micros: i64,
        /// The sum of all jumps in microseconds, this one included.
        total_micros: i64,
    },
    /// Hand out no more work: the orchestrator is about to end, and what waits can wait for its next start.
    Rest,
}

/// A request, before it is a job.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The request. Its id and its time are placeholders until it is accepted.
    pub request: Request,
    /// Whether the request id is to be the job's own id, because the caller gave none.
    pub nameless: bool,
    /// The hashes that the job is found by.
    pub hashes: Hashes,
    /// Jobs whose keys have the same hash and are known to be different keys.
    pub others: Vec<Other>,
    /// The job that it was found to repeat, where it has names that the job lacks: they are claimed for that job.
    pub repeats: Option<Repeats>,
    /// The document, as it came.
    pub document: crosspoint_contracts::content::Block,
    /// The step that the parent has come to with this stage, by which of its attempts. It is stored with the new job,
    /// by the same commit.
    pub step: Option<(u32, Body)>,
}

/// The job that a request repeats, by one of its names.
#[derive(Clone, Debug)]
pub struct Repeats {
    /// The number of the job.
    pub seq: Seq,
    /// The names of the request that the job lacks.
    pub names: Vec<FurtherName>,
    /// How many further names the job had by then.
    pub had: usize,
}

/// The reply to a command. It may be sent once the batch is on disk.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The request was accepted as this job.
    Accepted(Arc<Job>),
    /// The key is taken by this job, unless two different keys have the same hash.
    Known(Seq),
    /// The request repeats a job, and another of its names is that of this job, unless two different keys have the same
    /// hash.
    MayBeOf(Seq),
    /// All names of the request are now those of the job that it repeats.
    Claimed,
    /// The request cannot be accepted.
    Rejected(Rejected),
    /// The job as it is now.
    Job(Arc<Job>),
    /// The request to change the job was refused.
    Refused(Refused),
    /// The agent does not have the attempt that it reports about.
    NotTheirs,
    /// No job that has not ended has this id.
    NotLive,
    /// The command was carried out.
    Done,
    /// No agent has this name.
    NoSuchAgent,
    /// The agent with this name is configured: it can neither join nor be forgotten.
    Configured,
    /// The agent cannot be forgotten: it is present, or has work.
    Present,
    /// The limit on the number of agents that joined, or of grants, is reached.
    Crowded,
    /// An agent of this name that speaks another contract is present, or has work.
    OtherContract,
    /// The grant as it is now.
    Grant(Arc<Grant>),
    /// A grant has, or once had, this name.
    NameTaken,
    /// No grant has this name.
    NoSuchGrant,
    /// The token of the grant cannot be replaced, because no token of it can be used any more.
    Unusable(Unusable),
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
    /// Agents take this work, but none of the type that the request is addressed to, nor one without a type (MSG-18).
    WrongType,
    /// The job whose stage this was to be has ended.
    ParentEnded,
    /// The job that the request repeats has as many further names as a job may have.
    TooManyNames,
    /// A limit on the number of jobs is reached.
    Full {
        /// Which limit is reached.
        share: Share,
        /// The limit.
        most: usize,
    },
}

/// What a core is made from: the content of the store, and the operator's configuration.
#[derive(Debug)]
pub struct Origin {
    /// The configured agents.
    pub agents: Vec<Spec>,
    /// The agents that have ever joined. An agent whose name is now configured is ignored.
    pub members: Vec<Member>,
    /// The joined agents that are present, and how many jobs they take at a time. At a start none is present.
    pub present: BTreeMap<Arc<str>, u32>,
    /// All grants.
    pub grants: Vec<Grant>,
    /// The stored state of agents, by name.
    pub standings: Vec<(Arc<str>, Standing)>,
    /// The jobs that have not ended.
    pub jobs: Vec<Job>,
    /// The keys of all jobs.
    pub keys: Keys,
    /// The number of the last job.
    pub last_seq: Seq,
    /// What makes the ids of jobs.
    pub ids: Ids,
    /// The jobs that have ended and are still kept.
    pub ended: Ended,
    /// Jobs that have an outcome although their rows do not say so.
    pub unrepaired: Vec<Seq>,
    /// How many jobs there may be that have not ended.
    pub room: Room,
    /// Which of the jobs that exist already this orchestrator drives.
    pub mode: Mode,
    /// How the server before this one ended.
    pub end: End,
    /// Jobs that were last driven, after that end, by a process that was not a server and only visited the store.
    pub visited: BTreeSet<Seq>,
    /// When an orchestrator was last alive, as far as is known; `None` where there never was one.
    pub alive_at: Option<Time>,
    /// The present time. Silence before it is not the agents' fault.
    pub now: Time,
}

/// Which of the jobs that exist already an orchestrator drives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All jobs.
    #[default]
    Serve,
    /// All jobs but these: stages whose jobs have not come to them again since the start.
    ServeBut {
        /// Those stages.
        behind: BTreeSet<Seq>,
    },
    /// None: only jobs that are submitted from now on are driven, whether they are new or submitted again.
    Held,
    /// Like [`Mode::Held`], but from a job on that was submitted before.
    HeldBefore {
        /// The first job that is driven.
        first: Seq,
        /// Jobs before it that were submitted again and are driven too.
        taken: BTreeSet<Seq>,
    },
}

impl Mode {
    /// Whether the orchestrator is the one to which all jobs are left.
    pub fn is_serve(&self) -> bool {
        matches!(self, Mode::Serve | Mode::ServeBut { .. })
    }

    /// Takes note that these jobs are driven from now on, or have ended.
    pub(crate) fn take(&mut self, seqs: &BTreeSet<Seq>) {
        match self {
            Mode::ServeBut { behind } => {
                for seq in seqs {
                    behind.remove(seq);
                }
                if behind.is_empty() {
                    *self = Mode::Serve;
                }
            }
            Mode::HeldBefore { taken, .. } => taken.extend(seqs),
            Mode::Serve | Mode::Held => {}
        }
    }
}

impl Submission {
    /// Returns the names that its caller knows the job by, with their hashes.
    pub fn names(&self) -> Vec<FurtherName> {
        let (request, hashes) = (&self.request, self.hashes);
        let key = hashes.key.map(|hash| match &request.key {
            Key::Other(key) => FurtherName { hash, name: Name { door: None, text: key.clone() } },
            Key::RequestId | Key::None => FurtherName { hash, name: request.own_id() },
        });
        let alias = hashes.alias.map(|hash| FurtherName { hash, name: request.own_id() });
        key.into_iter().chain(alias).collect()
    }

    /// Returns the input, cut out of the document.
    pub fn input(&self) -> Bytes {
        self.request.input_in(&self.document).unwrap_or_default()
    }
}
