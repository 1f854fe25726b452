//! `crosspoint store export --audit`: writes who did what, as lines of JSON.

use std::io::Write;

use anyhow::Result;
use crosspoint_contracts::time::Time;
use crosspoint_engine::store::Readers;

use super::export::put;
use super::line::Line;

/// Exports all entries since a time, the oldest first. Returns the number of entries that could not be read.
pub(super) fn export(readers: &Readers, out: &mut dyn Write, harmless: bool, since: Option<Time>) -> Result<u64> {
    let (schema, last) = readers.origin()?;
    put(out, harmless, Line::store(schema, last).bytes()?)?;
    let (mut entries, mut unread, mut after) = (0, 0, 0);
    loop {
        let page = readers.audit(after)?;
        // Times may go back where a clock was set, so every entry is looked at.
        for row in page.rows.iter().filter(|row| since.is_none_or(|since| row.entry.at >= since)) {
            entries += 1;
            put(out, harmless, Line::audit(row).bytes()?)?;
        }
        for seq in page.unread {
            unread += 1;
            put(out, harmless, Line::Unread { seq: seq.unsigned_abs() }.bytes()?)?;
        }
        match page.next {
            Some(last) => after = last,
            None => break,
        }
    }
    put(out, harmless, Line::End { jobs: None, entries: Some(entries), unread }.bytes()?)?;
    Ok(unread)
}
