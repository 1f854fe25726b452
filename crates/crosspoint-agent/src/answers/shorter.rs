//! What is kept of a file of answers that has become too long.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use crosspoint_contracts::time::Time;

use super::Keep;
use super::index::{Index, Noted, Place};
use super::line::Line;
use super::seal::is_whole;

/// What was written to the shorter file.
#[derive(Default)]
pub(super) struct Shorter {
    pub(super) index: Index,
    pub(super) bytes: u64,
    /// How many of them are work under way.
    pub(super) carried_bytes: u64,
}

/// Writes the younger half of the answers to another file. Work under way stays noted however long ago it began:
/// otherwise it could be begun twice after a crash. The index can be used meanwhile.
pub(super) fn write(
    (file, bytes): (&File, u64),
    index: &Mutex<Index>,
    (keep, now): (Keep, Time),
    to: &mut impl Write,
) -> io::Result<Shorter> {
    let first = bytes.saturating_sub(keep.bytes / 2);
    let index = index.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut shorter = Shorter::default();
    for (place, names) in index.lines() {
        let noted = index.noted(place);
        if place.start < first && noted != Noted::Open {
            continue;
        }
        let mut line = vec![0; place.bytes];
        file.read_exact_at(&mut line, place.start)?;
        // How old a damaged line is cannot be told; its request is refused for as long as it is there.
        let is_young = match is_whole(&line).and_then(Line::read) {
            Some(read) => now.since(read.at()) <= keep.age,
            None => true,
        };
        if is_young || noted == Noted::Open {
            // The end of a line may have been another byte, which is not part of it.
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            to.write_all(&line)?;
            shorter.add(names, line.len(), noted);
        }
    }
    Ok(shorter)
}

impl Shorter {
    fn add(&mut self, names: Vec<Box<str>>, bytes: usize, noted: Noted) {
        self.index.note(names, Place { start: self.bytes, bytes }, noted);
        self.bytes += bytes as u64;
        self.carried_bytes += if noted == Noted::Open { bytes as u64 } else { 0 };
    }
}
