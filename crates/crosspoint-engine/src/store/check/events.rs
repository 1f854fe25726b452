//! Checks the chains of events, in one pass over their table, in the order in which they were written.
//!
//! Each event names the one before it. So it is enough to remember, for every job that is under way at this place of
//! the table, which of its events came last. The next event must name that one, be numbered one higher, and its output
//! must begin where that of the last ended. A job that has ended is forgotten at the event that its row names as the
//! last, so no more jobs are remembered than were alive at one time.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use super::{Came, Check, Flaw, came};
use crate::id::Seq;
use crate::store::open::has_table;
use crate::store::row::FIRST_END;

/// Most events that are looked at in one transaction.
const PAGE_ROWS: i64 = 5_000;

/// The number of kinds of events that are stored in this table: kinds have numbers below it.
const KINDS: i64 = 8;
const STARTED: i64 = 1;
const OUTPUT: i64 = 3;

const SQL: &str = "SELECT seq, job, prev, n, kind, number, place, coalesce(length(body), 0) FROM event WHERE seq > ?1
    ORDER BY seq LIMIT ?2";

struct Event {
    seq: i64,
    job: i64,
    prev: i64,
    n: i64,
    kind: i64,
    number: i64,
    place: i64,
    bytes: i64,
}

/// What the row of a job says about its events.
#[derive(Clone, Copy)]
struct Named {
    head: i64,
    ended: bool,
    output_bytes: i64,
}

/// The last event of a job so far.
#[derive(Clone, Copy)]
struct Tip {
    seq: i64,
    n: i64,
    attempt: i64,
    output_bytes: i64,
    named: Named,
    /// The page on which the job's row was read: while a server runs, the row may say more by a later page.
    page: u64,
    /// Whether a flaw was found in the chain. What follows in it would only be a consequence.
    broken: bool,
}

#[derive(Default)]
struct Chains {
    tips: BTreeMap<i64, Tip>,
    page: u64,
    /// The last job that was reported as missing.
    stray: i64,
    leftovers: bool,
}

impl Check<'_> {
    pub(super) fn events(&mut self) -> rusqlite::Result<()> {
        let leftovers = has_table(self.connection, "leftover")?;
        let mut chains = Chains { leftovers, ..Chains::default() };
        self.pages("event", |check, after| check.page_of_events(after, &mut chains))
    }

    fn page_of_events(&mut self, after: i64, chains: &mut Chains) -> rusqlite::Result<Came> {
        chains.page += 1;
        let (mut at, mut rows_read, mut found) = (after, 0, Vec::new());
        let mut page = || {
            let moment = self.moment()?;
            let mut all = moment.prepare_cached(SQL)?;
            let mut rows = all.query([after, PAGE_ROWS])?;
            while let Some(row) = rows.next()? {
                let event = Event {
                    seq: row.get(0)?,
                    job: row.get(1)?,
                    prev: row.get(2)?,
                    n: row.get(3)?,
                    kind: row.get(4)?,
                    number: row.get(5)?,
                    place: row.get(6)?,
                    bytes: row.get(7)?,
                };
                let flaw = chains.take(&moment, &event)?;
                found.extend(flaw.map(|(flaw, what)| (flaw, Seq(event.job.unsigned_abs()), what)));
                at = event.seq;
                rows_read += 1;
            }
            Ok(if rows_read < PAGE_ROWS { Came::End } else { Came::To(at) })
        };
        let came_to = page();
        self.checked.events += rows_read.unsigned_abs();
        for (flaw, seq, what) in found {
            self.found(flaw, Some(seq), what);
        }
        came(came_to, at)
    }
}

impl Chains {
    fn take(&mut self, moment: &Connection, event: &Event) -> rusqlite::Result<Option<(Flaw, String)>> {
        let mut tip = match self.tips.get(&event.job) {
            Some(tip) => *tip,
            None => match named(moment, event.job)? {
                Some(named) => {
                    // The job's acceptance is event 1.
                    let page = self.page;
                    Tip { seq: 0, n: 1, attempt: 0, output_bytes: 0, named, page, broken: false }
                }
                None => return self.stray(moment, event),
            },
        };
        if event.seq >= tip.named.head && tip.page < self.page {
            let Some(named) = named(moment, event.job)? else {
                // The job was removed during the check.
                self.tips.remove(&event.job);
                return Ok(None);
            };
            (tip.named, tip.page) = (named, self.page);
        }
        if event.seq > tip.named.head {
            let what = format!("event {} comes after the one that its row names as the last", event.n);
            return Ok(Some((Flaw::Stray, what)));
        }
        let flaw = if tip.broken { None } else { tip.follow(event) };
        tip.broken |= flaw.is_some();
        if event.seq == tip.named.head && tip.named.ended {
            self.tips.remove(&event.job);
        } else {
            self.tips.insert(event.job, tip);
        }
        Ok(flaw)
    }

    /// Handles an event of a job that is not there. The event may be about to be removed too.
    fn stray(&mut self, moment: &Connection, event: &Event) -> rusqlite::Result<Option<(Flaw, String)>> {
        let sql = "SELECT 1 FROM leftover WHERE job = ?1";
        if self.leftovers && moment.prepare_cached(sql)?.exists([event.job])? {
            return Ok(None);
        }
        let is_reported = std::mem::replace(&mut self.stray, event.job) == event.job;
        Ok((!is_reported).then(|| (Flaw::Stray, "there are events of it, and no such job".to_owned())))
    }
}

impl Tip {
    /// Checks whether this event is the next one, and whether the output is complete at the last one.
    fn follow(&mut self, event: &Event) -> Option<(Flaw, String)> {
        let next = self.n + 1;
        if event.prev != self.seq || event.n != next {
            return Some((
                Flaw::Events,
                format!("event {next} is missing, or is not where event {} looks for it", event.n),
            ));
        }
        (self.seq, self.n) = (event.seq, event.n);
        if !(0..KINDS).contains(&event.kind) {
            return Some((Flaw::Events, format!("event {next} is of no kind that there is")));
        }
        if event.kind == STARTED {
            (self.attempt, self.output_bytes) = (event.number, 0);
        }
        if event.kind == OUTPUT {
            if event.number != self.attempt || event.place != self.output_bytes {
                let what =
                    format!("output of event {next} is at {}, and should be at {}", event.place, self.output_bytes);
                return Some((Flaw::Output, what));
            }
            self.output_bytes += event.bytes;
        }
        let wanted = self.named.output_bytes;
        if event.seq == self.named.head && self.output_bytes != wanted {
            let what = format!("it has printed {wanted} bytes, and {} of them are there", self.output_bytes);
            return Some((Flaw::Output, what));
        }
        None
    }
}

fn named(moment: &Connection, job: i64) -> rusqlite::Result<Option<Named>> {
    let mut one = moment.prepare_cached("SELECT head, state, output_bytes FROM job WHERE seq = ?1")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Named { head: row.get(0)?, ended: row.get::<_, i64>(1)? >= FIRST_END, output_bytes: row.get(2)? })
    };
    one.query_row([job], read).optional()
}
