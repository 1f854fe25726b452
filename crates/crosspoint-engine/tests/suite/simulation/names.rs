//! Requests with two names: what is a repeat by one of them makes the other one a name of the same job (ALL-1).

use std::sync::Arc;

use crosspoint_contracts::request::{Door, Key};
use crosspoint_engine::core::{Command, Repeats, Submission};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Request;
use crosspoint_engine::keys::{FURTHER_NAMES_MAX, FurtherName, Hash, Name, Other};

use super::rule::{Verdict, ensure};
use super::world::World;

/// Gives some requests a second name, which now and then is that of another request. No dice are thrown, so that the
/// seeds tell the stories that they told before.
pub(crate) fn second(request: Request, key: u64, count: u64) -> (Request, Option<Hash>) {
    if key.is_multiple_of(5) || !key.is_multiple_of(3) {
        return (request, None);
    }
    let id = if count.is_multiple_of(4) { count % 30 } else { key + count % 3 };
    let request = Request { key: Key::Other(format!("id-{id}").into()), ..request };
    // There are few hashes, so that these names collide too.
    (request, Some(Hash(200 + id % 9)))
}

fn own(request: &Request) -> Vec<Name> {
    let id = match &request.key {
        Key::Other(id) => Some(Name { door: Some(Door::Native), text: id.clone() }),
        Key::RequestId | Key::None => None,
    };
    [Name { door: None, text: request.request_id.clone() }].into_iter().chain(id).collect()
}

fn names(submission: &Submission) -> Vec<FurtherName> {
    let hashes = submission.hashes.iter();
    hashes.zip(own(&submission.request)).map(|(hash, name)| FurtherName { hash, name }).collect()
}

impl World {
    /// A request was accepted: all its names were free.
    pub(crate) fn takes_names(&mut self, submission: &Submission, seq: Seq) -> Verdict {
        for FurtherName { name, .. } in names(submission) {
            ensure!(!self.model.keys.contains_key(&name.text), "the name {} was taken", name.text);
            self.model.keys.insert(name.text, seq);
        }
        Ok(())
    }

    /// The names that a job lacked are claimed for it: all of them were free.
    pub(crate) fn claims_names(&mut self, submission: &Submission) -> Verdict {
        let Some(Repeats { seq, names, .. }) = &submission.repeats else { return Err("it repeats no job".to_owned()) };
        ensure!(self.model.jobs.get(seq).is_some_and(|job| !job.purged), "a name of a job that is gone");
        *self.model.further.entry(*seq).or_default() += names.len();
        for FurtherName { name, .. } in names {
            let holder = self.model.keys.insert(name.text.clone(), *seq);
            ensure!(holder.is_none(), "the name {} was taken", name.text);
        }
        Ok(())
    }

    /// A job as others that are looked at now.
    pub(crate) fn other(&self, seq: Seq) -> Other {
        Other { seq, had: self.model.further.get(&seq).copied().unwrap_or(0) }
    }

    pub(crate) fn has_too_many_names(&self, submission: &Submission) -> bool {
        let repeats = submission.repeats.as_ref();
        repeats.is_some_and(|repeats| self.other(repeats.seq).had + repeats.names.len() > FURTHER_NAMES_MAX)
    }

    /// The caller is told that its request is that job's: its names are on disk by then.
    pub(crate) fn told_of_names(&mut self, submission: &Submission) -> Verdict {
        let Some(Repeats { seq, names, .. }) = &submission.repeats else { return Ok(()) };
        let of_job = self.disk.names.get(seq).map(Vec::as_slice).unwrap_or_default();
        ensure!(names.iter().all(|name| of_job.contains(name)), "a name of job {} is not on disk", seq.0);
        self.count("a further name");
        Ok(())
    }

    /// Does what a door does: reads the job that may have one of the names, and compares. `other` says that the request
    /// was found to repeat another job.
    pub(crate) fn submit_known(&mut self, submission: &Submission, seq: Seq, other: bool) -> Verdict {
        let row = self.disk.jobs.get(&seq).cloned().ok_or_else(|| format!("job {} is known and not on disk", seq.0))?;
        let of_row = self.disk.names.get(&seq).map(Vec::as_slice).unwrap_or_default();
        let is_of_row = |name: &Name| own(&row.request).contains(name) || of_row.iter().any(|of| of.name == *name);
        let (held, lacking): (Vec<_>, Vec<_>) = names(submission).into_iter().partition(|of| is_of_row(&of.name));
        if held.is_empty() {
            let others = submission.others.iter().copied().chain([Other { seq, had: of_row.len() }]).collect();
            self.count("two keys of one hash");
            return self.submit_again(Submission { others, ..submission.clone() });
        }
        for FurtherName { name, .. } in held {
            ensure!(self.model.keys.get(&name.text) == Some(&seq), "the name {} is that of two jobs", name.text);
        }
        if other {
            self.count("two names of two jobs");
            return Ok(());
        }
        if row.request.work != submission.request.work {
            self.count("other work with the same key");
            return Ok(());
        }
        if !lacking.is_empty() {
            let repeats = Some(Repeats { seq, names: lacking, had: of_row.len() });
            return self.submit_again(Submission { repeats, ..submission.clone() });
        }
        self.count("repeat");
        // A repeated submission takes up a job that no process drives.
        if row.outcome().is_none() && !self.model.drives(seq) {
            self.post(0, Command::TakeUp(row.request.id));
        }
        Ok(())
    }

    fn submit_again(&mut self, submission: Submission) -> Verdict {
        let delay = self.dice.between(0, 1_000_000) as i64;
        self.post(delay, Command::Submit(Arc::new(submission)));
        Ok(())
    }
}
