//! How recipients stand, for people: what they are owed, since when, and why they do not get it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crosspoint_contracts::time::Time;
use crosspoint_engine::job::Job;
use crosspoint_engine::store::Fault;
use crosspoint_engine::wall_clock;
use reqwest::Url;

use super::Deliveries;
use super::trouble::Trouble;

/// One recipient.
pub(crate) struct Standing {
    pub(crate) name: Arc<str>,
    /// Whether it is in the configuration. What another one is owed is kept, and not sent.
    pub(crate) is_known: bool,
    pub(crate) callback: Option<Url>,
    /// How many jobs have ended whose outcome it was not told.
    pub(crate) owed: u64,
    /// When the first of them ended.
    pub(crate) since: Option<Time>,
    pub(crate) failing: Option<Failing>,
}

/// A job whose outcome is owed.
pub(crate) struct OwedJob {
    pub(crate) to: Arc<str>,
    /// When the job ended.
    pub(crate) since: Time,
    pub(crate) failing: Option<Failing>,
}

/// How telling has failed so far.
pub(crate) struct Failing {
    pub(crate) since: Time,
    pub(crate) tries: u32,
    /// What happened last.
    pub(crate) last: Cow<'static, str>,
    pub(crate) next_at: Time,
}

impl Failing {
    fn of(since: Time, tries: u32, last: Trouble, next_at: Instant) -> Failing {
        let next_at = wall_clock::now().plus(next_at.saturating_duration_since(Instant::now()));
        Failing { since, tries, last: last.text(), next_at }
    }
}

impl Deliveries {
    /// Returns how each recipient stands, by name: all that are configured, and others that are owed something.
    pub(crate) async fn standings(&self) -> Result<Vec<Standing>, Fault> {
        let mut counts = self.engine.owed_counts().await?;
        let mut standings: Vec<Standing> = Vec::new();
        for (name, to) in &self.recipients {
            let at = counts.iter().position(|count| count.recipient == *name);
            let count = at.map(|at| counts.remove(at));
            let failing = to.outbox().failing();
            standings.push(Standing {
                name: name.clone(),
                is_known: true,
                callback: to.callback.as_ref().map(|callback| callback.url.clone()),
                owed: count.as_ref().map_or(0, |count| count.jobs),
                since: count.map(|count| count.since),
                failing: failing.map(|it| Failing::of(it.since, it.tries, it.last, it.next_at)),
            });
        }
        standings.extend(counts.into_iter().map(|count| Standing {
            name: count.recipient,
            is_known: false,
            callback: None,
            owed: count.jobs,
            since: Some(count.since),
            failing: None,
        }));
        standings.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(standings)
    }

    /// Returns who is owed the outcome of a job, if it has ended and somebody is.
    pub(crate) async fn owed(&self, job: &Job) -> Result<Option<OwedJob>, Fault> {
        let Some(ending) = job.outcome() else { return Ok(None) };
        let Some(to) = self.engine.owed_to(job).await? else { return Ok(None) };
        let stumbled = self.recipients.get(&to).and_then(|known| known.outbox().stumbled(job.id()));
        let failing = stumbled.map(|it| Failing::of(it.since, it.tries, it.last, it.next_at));
        Ok(Some(OwedJob { to, since: ending.at, failing }))
    }
}
