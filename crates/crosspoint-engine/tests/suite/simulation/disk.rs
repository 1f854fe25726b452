//! What a store would have on disk, as plain maps: rows as they were committed, and what a start makes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;
use crosspoint_engine::claim::Claim;
use crosspoint_engine::core::{Batch, Member, Mode, Origin, Room, Spec, Standing};
use crosspoint_engine::event::{Entry, Violation, What};
use crosspoint_engine::grant::Grant;
use crosspoint_engine::id::{Ids, Seq};
use crosspoint_engine::job::{Ending, Job, State};
use crosspoint_engine::keys::{FurtherName, Hash, Hashes, Keys};
use crosspoint_engine::machine::End;
use crosspoint_engine::retention::{Ended, Jumps};

#[derive(Clone, Default)]
pub(crate) struct Disk {
    /// The rows: all jobs that are kept.
    pub(crate) jobs: BTreeMap<Seq, Arc<Job>>,
    pub(crate) events: BTreeMap<Seq, Vec<Entry>>,
    pub(crate) outcomes: BTreeMap<Seq, Arc<Ending>>,
    pub(crate) hashes: BTreeMap<Seq, Hashes>,
    pub(crate) names: BTreeMap<Seq, Vec<FurtherName>>,
    pub(crate) standings: BTreeMap<Arc<str>, Standing>,
    pub(crate) members: BTreeMap<Arc<str>, Member>,
    pub(crate) violations: Vec<(Seq, Violation)>,
    pub(crate) aside: BTreeMap<Seq, Time>,
    /// Which recipient is owed the outcome of which job.
    pub(crate) owed: BTreeMap<Seq, Arc<str>>,
    pub(crate) grants: BTreeMap<Arc<str>, Arc<Grant>>,
    pub(crate) alive_at: Option<Time>,
    pub(crate) jumps: Jumps,
    pub(crate) epoch: i64,
    pub(crate) is_clean: bool,
    /// Whether the process that has the store open is a server; the epoch of the last server, and of the last write of
    /// each job.
    pub(crate) serves: bool,
    server_epoch: i64,
    epochs: BTreeMap<Seq, i64>,
    pub(crate) last_seq: u64,
    /// Jobs whose rows cannot be written.
    pub(crate) cursed: BTreeSet<Seq>,
}

#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The row of this job cannot be written.
    Job(Seq),
    /// Another opening has claimed the disk.
    Overtaken,
    Wrong(String),
}

impl Disk {
    /// Writes all of a batch for an opening. It fails for what the key of a table would refuse.
    pub(crate) fn commit(&mut self, batch: &Batch, claim: &mut Claim) -> Result<(), Unwritten> {
        if batch.is_empty() {
            return Ok(());
        }
        let epoch = claim.check(self.epoch).map_err(|_| Unwritten::Overtaken)?;
        if let Some(seq) = batch.jobs.keys().find(|seq| self.cursed.contains(seq)) {
            return Err(Unwritten::Job(*seq));
        }
        if let (Claim::Seen(_), true) = (&*claim, self.serves) {
            (self.is_clean, self.server_epoch) = (false, epoch);
        }
        (self.epoch, *claim) = (epoch, Claim::Ours(epoch));
        self.epochs.extend(batch.jobs.keys().map(|seq| (*seq, epoch)));
        self.write(batch).map_err(Unwritten::Wrong)
    }

    fn write(&mut self, batch: &Batch) -> Result<(), String> {
        for (seq, written) in &batch.jobs {
            match &written.accepted {
                Some(accepted) => {
                    if self.jobs.contains_key(seq) || seq.0 <= self.last_seq {
                        return Err(format!("job {} is written as new, and its number was given before", seq.0));
                    }
                    self.last_seq = seq.0;
                    self.events.insert(*seq, Vec::new());
                    self.hashes.insert(*seq, accepted.hashes);
                    self.owed.extend(written.job.request.notify.clone().map(|recipient| (*seq, recipient)));
                }
                None if !self.jobs.contains_key(seq) => return Err(format!("job {} has no row", seq.0)),
                None => {}
            }
            for entry in &written.entries {
                if let What::Ended(outcome) = &entry.what
                    && self.outcomes.insert(*seq, outcome.clone()).is_some()
                {
                    return Err(format!("job {} has a second outcome", seq.0));
                }
                self.events.entry(*seq).or_default().push(entry.clone());
            }
            self.jobs.insert(*seq, written.job.clone());
        }
        for (seq, name) in &batch.names {
            let names = self.names.entry(*seq).or_default();
            if !self.jobs.contains_key(seq) || names.contains(name) {
                return Err(format!("a further name of job {} cannot be written", seq.0));
            }
            names.push(name.clone());
        }
        for (seq, at) in &batch.aside {
            match at {
                Some(at) => drop(self.aside.insert(*seq, *at)),
                None => drop(self.aside.remove(seq)),
            }
        }
        for id in &batch.told {
            if self.jobs.get(&id.seq()).is_some_and(|job| job.id() == *id) {
                self.owed.remove(&id.seq());
            }
        }
        self.standings.extend(batch.agents.iter().map(|(name, standing)| (name.clone(), *standing)));
        for (name, member) in &batch.members {
            match member {
                Some(member) => drop(self.members.insert(name.clone(), member.clone())),
                None => {
                    self.members.remove(name);
                    self.standings.remove(name);
                }
            }
        }
        self.violations.extend(batch.violations.iter().map(|(seq, _, violation)| (*seq, violation.clone())));
        self.grants.extend(batch.grants.iter().map(|(name, grant)| (name.clone(), grant.clone())));
        self.alive_at = batch.alive_at.or(self.alive_at);
        if let Some(jumps) = &batch.jumps {
            self.jumps = Jumps::new(jumps.log().to_vec());
        }
        self.is_clean |= batch.is_clean_end;
        Ok(())
    }

    /// Removes a job that need no longer be kept, and returns its keys.
    pub(crate) fn purge(&mut self, seq: Seq) -> Vec<Hash> {
        self.jobs.remove(&seq);
        self.events.remove(&seq);
        self.outcomes.remove(&seq);
        self.owed.remove(&seq);
        let names = self.names.remove(&seq).unwrap_or_default();
        let hashes = self.hashes.remove(&seq).unwrap_or_default();
        hashes.iter().chain(names.iter().map(|name| name.hash)).collect()
    }

    pub(crate) fn end(&self) -> End {
        if self.is_clean || self.server_epoch == 0 { End::Clean } else { End::Unclean }
    }

    /// What a start finds.
    pub(crate) fn origin(
        &self,
        agents: &[Spec],
        room: Room,
        mode: Mode,
        (now, wall): (Time, Time),
        mut ended: Ended,
    ) -> Origin {
        let mut keys = Keys::default();
        for (seq, hashes) in &self.hashes {
            hashes.iter().for_each(|hash| keys.claim(hash, *seq));
        }
        for (seq, names) in &self.names {
            names.iter().for_each(|name| keys.add_further(name.hash, *seq));
        }
        for (seq, outcome) in &self.outcomes {
            ended.note_again(*seq, outcome.at, wall);
        }
        Origin {
            agents: agents.to_vec(),
            members: self.members.values().cloned().collect(),
            present: BTreeMap::new(),
            grants: self.grants.values().map(|grant| (**grant).clone()).collect(),
            standings: self.standings.iter().map(|(name, standing)| (name.clone(), *standing)).collect(),
            jobs: self.jobs.values().filter(|job| job.outcome().is_none()).map(|job| self.row(job)).collect(),
            keys,
            last_seq: Seq(self.last_seq),
            ids: Ids::hidden([7; 32], 0),
            ended,
            unrepaired: Vec::new(),
            room,
            mode,
            end: self.end(),
            visited: self.epochs.iter().filter(|(_, epoch)| **epoch > self.server_epoch).map(|(seq, _)| *seq).collect(),
            alive_at: self.alive_at,
            now,
        }
    }

    /// A job as its row says: everything without a column has its initial value.
    fn row(&self, job: &Job) -> Job {
        let mut job = job.clone();
        let updated_at = job.updated_at;
        if let State::Running(running) | State::Waiting { running, .. } = &mut job.state {
            (running.heard_at, running.timed_from, running.taken_up_at) = (updated_at, updated_at, None);
            running.attempt = job.attempts;
        }
        let aside = self.aside.get(&job.seq()).copied();
        Job { aside, pending: None, progress_at: Time::default(), waited: whole_micros(job.waited), ..job }
    }
}

fn whole_micros(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
