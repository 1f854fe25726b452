//! What agents said on the way, for jobs that are taken up.
//!
//! A job's row holds how far it is. What its agent said about that, in its own words, is in the job's events: each is
//! written once, and not again with every change of the row. A start reads them back along the chain of events, up to
//! the event that began the present attempt.

use std::sync::Arc;

use crosspoint_contracts::reply::Progress;
use rusqlite::{Connection, OptionalExtension};

use super::event_row;
use crate::job::Job;

/// Most events that a start looks at for all jobs together: about two seconds' worth. Beyond that jobs are shown
/// without their agents' own words.
const LOOKED_AT_MAX: usize = 1_000_000;

/// Adds to jobs that agents have what these agents said last, and what they said when they began.
pub(super) fn add(connection: &Connection, jobs: &mut [Job]) -> rusqlite::Result<()> {
    let mut left = LOOKED_AT_MAX;
    jobs.iter_mut().filter(|job| job.running().is_some()).try_for_each(|job| add_to(connection, job, &mut left))
}

fn add_to(connection: &Connection, job: &mut Job, left: &mut usize) -> rusqlite::Result<()> {
    let seq = job.seq().0.cast_signed();
    let mut head = connection.prepare_cached("SELECT head FROM job WHERE seq = ?1")?;
    let mut at: i64 = head.query_row([seq], |row| row.get(0)).optional()?.unwrap_or(0);
    let mut one = connection.prepare_cached("SELECT prev, kind, number FROM event WHERE seq = ?1 AND job = ?2")?;
    let mut body = connection.prepare_cached("SELECT body FROM event WHERE seq = ?1")?;
    let mut has_progress = false;
    while at != 0 && *left > 0 {
        *left -= 1;
        let found = one.query_row([at, seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        let Some((prev, kind, number)) = found else { break };
        let (prev, kind, number): (i64, i64, i64) = (prev, kind, number);
        if kind == event_row::STARTED {
            break;
        }
        let brings_start = number != 0 && job.began.is_none();
        if kind == event_row::PROGRESS && (!has_progress || brings_start) {
            let bytes: Option<Vec<u8>> = body.query_row([at], |row| row.get(0))?;
            let mut progress = event_row::progress(&bytes.unwrap_or_default());
            if let Some(began) = progress.began.take() {
                job.began = Some(Arc::new(began));
            }
            if !has_progress && progress != Progress::default() {
                (has_progress, job.progress) = (true, Some(Arc::new(progress)));
            }
        }
        // In a damaged store an earlier event may have a larger number, and the chain would never end.
        at = if prev < at { prev } else { 0 };
    }
    Ok(())
}
