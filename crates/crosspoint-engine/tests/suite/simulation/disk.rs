//! What a store would have on disk, as plain maps: rows as they were committed, and what a start makes of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_engine::core::{Batch, Member, Mode, Origin, Spec, Standing};
use crosspoint_engine::event::{Entry, Violation, What};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Outcome, State};
use crosspoint_engine::keys::{Hash, Keys};
use crosspoint_engine::time::Time;

#[derive(Default)]
pub(crate) struct Disk {
    /// The rows: all jobs there ever were.
    pub(crate) jobs: BTreeMap<Seq, Arc<Job>>,
    pub(crate) events: BTreeMap<Seq, Vec<Entry>>,
    pub(crate) outcomes: BTreeMap<Seq, Arc<Outcome>>,
    pub(crate) hashes: BTreeMap<Seq, Hash>,
    pub(crate) standings: BTreeMap<Arc<str>, Standing>,
    pub(crate) members: BTreeMap<Arc<str>, Member>,
    pub(crate) violations: Vec<(Seq, Violation)>,
}

impl Disk {
    /// Writes all of a batch. What a table's key would refuse is a reason to fail.
    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<(), String> {
        for (seq, written) in &batch.jobs {
            match &written.fresh {
                Some(fresh) => {
                    if self.jobs.contains_key(seq) {
                        return Err(format!("job {} is written as new, and is there", seq.0));
                    }
                    self.events.insert(*seq, Vec::new());
                    for hash in fresh.hashes.iter() {
                        self.hashes.insert(*seq, hash);
                    }
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
        Ok(())
    }

    /// What a start finds.
    pub(crate) fn origin(&self, agents: &[Spec], jobs_live_max: usize, now: Time) -> Origin {
        let mut keys = Keys::default();
        for (seq, hash) in &self.hashes {
            keys.claim(*hash, *seq);
        }
        Origin {
            agents: agents.to_vec(),
            members: self.members.values().cloned().collect(),
            present: BTreeMap::new(),
            standings: self.standings.iter().map(|(name, standing)| (name.clone(), *standing)).collect(),
            jobs: self.jobs.values().filter(|job| job.outcome().is_none()).map(|job| row(job)).collect(),
            keys,
            last_seq: self.jobs.keys().last().copied().unwrap_or(Seq(0)),
            jobs_live_max,
            mode: Mode::Serve,
            now,
        }
    }
}

/// A job as its row says: whatever has no column is as it was at the beginning.
pub(crate) fn row(job: &Job) -> Job {
    let mut job = job.clone();
    let updated_at = job.updated_at;
    if let State::Running(running) | State::Waiting { running, .. } = &mut job.state {
        running.heard_at = updated_at;
        running.attempt = job.attempts;
    }
    Job { skew_micros: 0, pending: None, progress_at: Time::default(), waited: whole_micros(job.waited), ..job }
}

fn whole_micros(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
