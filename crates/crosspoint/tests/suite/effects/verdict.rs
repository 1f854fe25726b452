//! Whether a promise was kept: what became of the jobs of one kind, beside what the agent has done.

use std::collections::BTreeMap;
use std::fmt;

use super::callers::Ended;
use super::kinds::{Kind, Promise};

/// What was lost and killed on the way between the server and the agents of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) answers_lost: usize,
    pub(super) requests_lost: usize,
    pub(super) restarts: usize,
}

/// One line of the table.
pub(super) struct Row {
    kind: Kind,
    trouble: Trouble,
    completed: u32,
    unknown: u32,
    again: usize,
    /// Number of jobs without an effect, with one, and with more.
    effects: [u32; 3],
    pub(super) faults: Vec<String>,
}

impl Row {
    /// Judges the jobs of a kind. `effects` are the processes that had the effect of each job.
    pub(super) fn of(kind: Kind, trouble: Trouble, jobs: &[&Ended], effects: &BTreeMap<u32, Vec<String>>) -> Row {
        let faults = Vec::new();
        let mut row = Row { kind, trouble, completed: 0, unknown: 0, again: 0, effects: [0; 3], faults };
        let numbers: Vec<u32> = jobs.iter().map(|ended| ended.number).collect();
        row.expect((0..kind.jobs).eq(numbers.iter().copied()), "not every job is there once");
        row.expect(effects.keys().all(|number| numbers.contains(number)), "there are effects without a job");
        for ended in jobs {
            row.judge(ended, effects.get(&ended.number).map_or(&[], Vec::as_slice));
        }
        row.expect(row.unknown <= kind.unknown_max, "too many jobs were given up");
        row.expect(trouble.restarts > 0, "no process was killed");
        if kind.connected {
            row.expect(trouble.answers_lost > 0, "no answer was lost");
        }
        if kind.promise == Promise::AtLeastOnce {
            row.expect(row.effects[2] > 0, "nothing was done twice, so this shows nothing");
        }
        row
    }

    fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.faults.push(format!("{}: {what}", self.kind.name));
        }
    }

    fn judge(&mut self, ended: &Ended, effects: &[String]) {
        let (outcome, mut lives) = (&ended.job["outcome"], effects.to_vec());
        self.effects[effects.len().min(2)] += 1;
        self.again += ended.again;
        lives.sort();
        lives.dedup();
        let is_completed = outcome["status"] == "completed";
        let is_unknown = outcome["status"] == "failed" && outcome["failure"]["repeat"] == "unknown";
        self.completed += u32::from(is_completed);
        self.unknown += u32::from(is_unknown);
        let count = effects.len();
        let is_kept = match self.kind.promise {
            Promise::Completed => is_completed && count == 0,
            Promise::Once => is_completed && count == 1,
            Promise::AtMostOnce => (is_completed && count == 1) || (is_unknown && count <= 1),
            Promise::OnceEachLife => {
                // A worker that a busy machine held up for longer than its lease counts as dead: that is an attempt.
                let attempts = ended.job["attempts"].as_u64().and_then(|attempts| usize::try_from(attempts).ok());
                let lives_max = 1 + self.trouble.restarts.max(attempts.unwrap_or(0));
                (is_unknown || (is_completed && count >= 1)) && lives.len() == count && count <= lives_max
            }
            Promise::AtLeastOnce => is_unknown || (is_completed && count >= 1),
        };
        self.expect(is_kept, &format!("{} has the effects {effects:?}: {}", ended.number, ended.job));
    }
}

/// The head of the table.
pub(super) const HEAD: &str = "kind               jobs completed unknown  again | effects: 0    1   2+ | \
                               lost: answers requests | kills | promise";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { kind, trouble, completed, unknown, again, effects: [none, one, more], .. } = self;
        let Trouble { answers_lost, requests_lost, restarts } = trouble;
        let (name, jobs, promise) = (kind.name, kind.jobs, kind.promise);
        write!(f, "{name:<18} {jobs:>4} {completed:>9} {unknown:>7} {again:>6} | {none:>10} {one:>4} {more:>4} | ")?;
        write!(f, "{answers_lost:>13} {requests_lost:>8} | {restarts:>5} | {promise:?}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{Row, Trouble};
    use crate::effects::callers::Ended;
    use crate::effects::kinds::{Kind, Promise};

    const KILLED: Trouble = Trouble { answers_lost: 1, requests_lost: 0, restarts: 1 };

    /// How many faults two jobs have: one that completed and one that failed like this, with effects of processes.
    fn faults(promise: Promise, repeat: &str, trouble: Trouble, effects: [&[&str]; 2]) -> usize {
        let kind = Kind { name: "tested", jobs: 2, promise, unknown_max: 1, connected: true };
        let outcomes = [json!({"status": "completed"}), json!({"status": "failed", "failure": {"repeat": repeat}})];
        let ended: Vec<Ended> = (0..)
            .zip(outcomes)
            .map(|(number, outcome)| Ended { kind: "tested", number, job: json!({"outcome": outcome}), again: 0 })
            .collect();
        let lives = effects.map(|lives| lives.iter().map(ToString::to_string).collect());
        let effects: BTreeMap<u32, Vec<String>> = (0..).zip(lives).collect();
        Row::of(kind, trouble, &ended.iter().collect::<Vec<_>>(), &effects).faults.len()
    }

    #[test]
    fn a_broken_promise_is_seen() {
        use Promise::{AtLeastOnce, AtMostOnce, Once, OnceEachLife};
        let cases: [(Promise, &str, [&[&str]; 2], usize); 12] = [
            (AtMostOnce, "unknown", [&["a"], &[]], 0),
            (AtMostOnce, "unknown", [&["a"], &["a"]], 0),
            (AtMostOnce, "unknown", [&["a", "b"], &[]], 1),
            (AtMostOnce, "unknown", [&["a"], &["a", "b"]], 1),
            (AtMostOnce, "unknown", [&[], &[]], 1),
            (AtMostOnce, "never", [&["a"], &[]], 1),
            (OnceEachLife, "unknown", [&["a", "b"], &[]], 0),
            (OnceEachLife, "unknown", [&["a", "a"], &[]], 1),
            (OnceEachLife, "unknown", [&["a", "b", "c"], &[]], 1),
            (Once, "unknown", [&["a"], &["a"]], 1),
            (AtLeastOnce, "unknown", [&["a", "a"], &[]], 0),
            (AtLeastOnce, "unknown", [&["a"], &[]], 1),
        ];
        for (promise, repeat, effects, expected) in cases {
            assert_eq!(faults(promise, repeat, KILLED, effects), expected, "{promise:?} {repeat} {effects:?}");
        }
        for calm in [Trouble { answers_lost: 0, ..KILLED }, Trouble { restarts: 0, ..KILLED }] {
            assert_eq!(faults(AtMostOnce, "unknown", calm, [&["a"], &[]]), 1, "{calm:?}");
        }
    }
}
