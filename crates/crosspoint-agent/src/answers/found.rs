//! What is in a file of answers when it is opened, and how its end is mended.
//!
//! A crash tears at most the last line, which then ends too early. Whether that is what happened, or the line was whole
//! and its end was lost later, cannot be told. So nothing is cut off: the line is ended with a mark, and its request is
//! refused if the work is done at most once. Other work is done again, because in an ordinary crash no caller has had
//! the answer. Any other line that is not whole was damaged later: the requests in it are refused.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use super::Keep;
use super::index::{Index, Noted, Place};
use super::line::Line;
use super::seal;
use crate::backend::Name;

/// The jobs whose outcomes were not told, and the orchestrator that is to be told of each.
pub(super) type Owed = BTreeMap<Uuid, Box<str>>;

/// What is in a file.
#[derive(Default)]
pub(super) struct Found {
    pub(super) index: Index,
    pub(super) owed: Owed,
    /// How many bytes of the file stay.
    pub(super) bytes: u64,
    /// What is to be added, so that the last line has an end.
    pub(super) missing: Vec<u8>,
    /// How many lines are damaged, and how many of those say whose requests are refused for it.
    damaged: usize,
    refused: usize,
    /// Whether the last line was just found torn.
    is_torn: bool,
    /// Whether a line is one of ours, whole or not.
    is_ours: bool,
}

/// How far a line goes: to its end, or to that of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Line,
    File,
}

impl Found {
    /// Reads a file. One that has bytes and no line of ours is of another program, and an error.
    pub(super) fn read(file: &File, keep: Keep, now: Time) -> io::Result<Found> {
        let mut found = Found::default();
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            let end = if line.ends_with(b"\n") { End::Line } else { End::File };
            let mut parts = seal::parts(&line).into_iter().peekable();
            while let Some(part) = parts.next() {
                // What is before another line of ours has lost its own end.
                let end = if parts.peek().is_some() { End::Line } else { end };
                found.read_part(part, end, |line| now.since(line.at()) <= keep.age);
            }
            line.clear();
        }
        if found.bytes > 0 && !found.is_ours {
            let why = "it holds something else; name another file, or remove this one if nothing in it is needed";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let index = &found.index;
        found.owed.retain(|id, _| index.place(&Name::told(*id).text()).is_none());
        Ok(found)
    }

    /// Logs what is wrong with the file.
    pub(super) fn say(&self, path: &Path) {
        let path = path.display();
        if self.damaged > 0 {
            tracing::warn!(
                %path, lines = self.damaged, refused = self.refused,
                "lines of the store of answers are damaged: requests whose ids can still be read are refused, as it \
                 cannot be told whether their work was done; the others would run again"
            );
        }
        if self.is_torn {
            tracing::warn!(
                %path,
                "the last line of the store of answers is torn, as by a crash, and stays there marked as `[torn ...]`: \
                 if its id can still be read, its request is refused if the work is done at most once, as it cannot \
                 be told whether it was done; other work would run again"
            );
        }
    }

    fn read_part(&mut self, part: &[u8], end: End, is_young: impl Fn(&Line<'_>) -> bool) {
        self.is_ours |= seal::begins(part);
        let start = self.bytes;
        self.bytes += part.len() as u64;
        // A line is whole also where another byte is in the place of its end.
        let read = |line| Some((line, Line::read(seal::is_whole(line)?)?));
        let shorter = part.split_last().map_or(part, |(_, rest)| rest);
        if let Some((held, line)) = read(part).or_else(|| read(shorter)) {
            self.is_ours = true;
            let place = Place { start, bytes: held.len() };
            if is_young(&line) {
                self.add(&line, place);
            }
            if end == End::File {
                (self.bytes, self.missing) = (start + held.len() as u64, b"\n".to_vec());
            }
            return;
        }
        let place = Place { start, bytes: part.len() };
        if let Some(torn) = seal::marked_torn(part) {
            self.index.note(seal::names(torn), place, Noted::Torn);
        } else if end == End::File && seal::is_torn(part) {
            self.missing = seal::torn_mark(part);
            self.is_torn = true;
            self.index.note(seal::names(part), place, Noted::Torn);
        } else {
            self.add_damaged(part, place);
            if end == End::File {
                self.missing = b"\n".to_vec();
            }
        }
    }

    fn add(&mut self, line: &Line<'_>, place: Place) {
        let names: Vec<Box<str>> = line.names().map(Into::into).collect();
        self.index.note(names, place, if line.is_undone() { Noted::Undone } else { Noted::Ended });
        self.owed.extend(line.owed().map(|(id, to)| (id, to.into())));
    }

    /// A line that is no longer whole costs its requests, not the file. Whether their work was done cannot be told.
    fn add_damaged(&mut self, part: &[u8], place: Place) {
        let names = seal::names(part);
        self.is_ours |= !names.is_empty();
        self.damaged += 1;
        self.refused += usize::from(!names.is_empty());
        self.index.note(names, place, Noted::Ended);
    }
}
