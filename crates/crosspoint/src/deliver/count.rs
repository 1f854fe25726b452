//! What is counted of deliveries, for the metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosspoint_engine::wall_clock;

use super::{Deliveries, lock};

/// How one message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Result {
    /// The recipient acknowledged it at its address.
    Acknowledged,
    /// The recipient answered with another status than 2xx.
    Refused,
    /// No answer came, or none that can be read.
    Unanswered,
    /// The recipient pulled it.
    Pulled,
}

impl Result {
    const ALL: [Result; 4] = [Result::Acknowledged, Result::Refused, Result::Unanswered, Result::Pulled];

    fn name(self) -> &'static str {
        match self {
            Result::Acknowledged => "acknowledged",
            Result::Refused => "refused",
            Result::Unanswered => "unanswered",
            Result::Pulled => "pulled",
        }
    }
}

#[derive(Default)]
pub(super) struct Counts([AtomicU64; Result::ALL.len()]);

impl Counts {
    pub(super) fn add(&self, result: Result) {
        self.0[result as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The numbers of one recipient.
pub(crate) struct Numbers {
    pub(crate) name: Arc<str>,
    /// How many outcomes of jobs that have ended it is owed, as of a moment ago.
    pub(crate) owed: u64,
    /// How many messages went how.
    pub(crate) results: [(&'static str, u64); Result::ALL.len()],
}

/// What the metrics call all recipients that are not configured.
const OTHER: &str = "other";

/// Shortest time between two counts of what is owed. A count looks at every notice, so the pause is also a hundred
/// times as long as the count took.
const COUNT_PAUSE_MIN: Duration = Duration::from_secs(1);
const COUNT_SHARE: u32 = 100;

impl Deliveries {
    /// Counts what is owed whenever that has changed, so that those who ask for the metrics ask nothing of the store. A
    /// count that is higher than what is under way tells of jobs that nobody has named.
    pub(super) async fn count(self: Arc<Deliveries>) {
        let mut look_at = Instant::now();
        loop {
            let began = Instant::now();
            if let Ok(counts) = self.engine.owed_counts().await {
                let long_ago = wall_clock::now().minus(self.times.missed_after);
                if Instant::now() >= look_at {
                    look_at = Instant::now() + self.times.missed_after;
                    let old = counts.iter().filter(|count| count.since <= long_ago);
                    let known = old.filter_map(|count| Some((self.recipients.get(&count.recipient)?, count.jobs)));
                    known.for_each(|(to, owed)| to.expect(owed));
                }
                *lock(&self.owed) = counts.into_iter().map(|count| (count.recipient, count.jobs)).collect();
            }
            let pause =
                (began.elapsed() * COUNT_SHARE).clamp(COUNT_PAUSE_MIN, COUNT_PAUSE_MIN.max(self.times.count_max));
            let resting = async {
                tokio::time::sleep(pause).await;
                let _ = tokio::time::timeout(self.times.count_max, self.changed.notified()).await;
            };
            tokio::select! {
                () = resting => {}
                () = self.closing.cancelled() => return,
            }
        }
    }

    /// Returns the numbers of each configured recipient, and of all others together if they are owed anything.
    pub(crate) fn numbers(&self) -> Vec<Numbers> {
        let mut owed = lock(&self.owed).clone();
        let mut numbers: Vec<Numbers> = Vec::new();
        for (name, to) in &self.recipients {
            let results =
                Result::ALL.map(|result| (result.name(), to.counts.0[result as usize].load(Ordering::Relaxed)));
            numbers.push(Numbers { name: name.clone(), owed: owed.remove(name).unwrap_or(0), results });
        }
        let others: u64 = owed.values().sum();
        // A recipient may have that name: a metric has one line for each label.
        match numbers.iter_mut().find(|of| &*of.name == OTHER) {
            Some(namesake) => namesake.owed += others,
            None if others > 0 => {
                let results = Result::ALL.map(|result| (result.name(), 0));
                numbers.push(Numbers { name: OTHER.into(), owed: others, results });
            }
            None => {}
        }
        numbers
    }
}
