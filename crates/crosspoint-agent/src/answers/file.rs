//! The file of the store of answers.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosspoint_contracts::time::Time;

use super::Keep;
use super::line::{Line, is_whole, sealed};

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    start: u64,
    bytes: usize,
}

pub(super) struct AnswerFile {
    path: PathBuf,
    keep: Keep,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
}

type Index = BTreeMap<Box<str>, Place>;

impl AnswerFile {
    /// Opens the file and finds what is in it. What a crash tore off at its end is cut off.
    pub(super) fn open(path: &Path, keep: Keep, now: Time) -> io::Result<(AnswerFile, Index)> {
        let options = || OpenOptions::new().read(true).append(true).create(true).mode(0o600).clone();
        let file = options().open(path)?;
        locked(&file)?;
        let (mut index, mut bytes) = (Index::new(), 0);
        let mut lines = BufReader::new(&file);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if !line.ends_with(b"\n") {
                break;
            }
            let place = Place { start: bytes, bytes: line.len() };
            // A line that is no longer whole costs the repetition of one request, not the file.
            if let Some(read) = is_whole(&line).and_then(Line::read)
                && now.since(read.at()) <= keep.age
            {
                let names: Vec<Box<str>> = read.names().map(Into::into).collect();
                note(&mut index, &names, place, read.is_undone());
            }
            bytes += line.len() as u64;
            line.clear();
        }
        file.set_len(bytes)?;
        let answers = AnswerFile { path: path.to_owned(), keep, open: Mutex::new(Open { file, bytes }) };
        Ok((answers, index))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets another process have the file.
    pub(super) fn unlock(&self) {
        let _ = self.lock().file.unlock();
    }

    /// Adds lines and syncs them. Returns where they are.
    pub(super) fn append(&self, lines: &[&[u8]]) -> io::Result<Vec<Place>> {
        let mut open = self.lock();
        let mut all = Vec::new();
        let mut places = Vec::new();
        for line in lines {
            let line = sealed(line);
            places.push(Place { start: open.bytes + all.len() as u64, bytes: line.len() });
            all.extend_from_slice(&line);
        }
        let written = open.file.write_all(&all).and_then(|()| open.file.sync_data());
        if let Err(error) = written {
            // Half a line would be taken for the beginning of the next one.
            open.file.set_len(open.bytes)?;
            return Err(error);
        }
        open.bytes += all.len() as u64;
        Ok(places)
    }

    /// Returns a line.
    pub(super) fn read(&self, place: Place) -> io::Result<Vec<u8>> {
        let mut line = vec![0; place.bytes];
        self.lock().file.read_exact_at(&mut line, place.start)?;
        let whole = is_whole(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it was changed"))?;
        Ok(whole.to_vec())
    }

    /// Writes the younger half of the answers to a new file, if this one has become too long.
    pub(super) fn shorten(&self, index: &mut Index, now: Time) -> io::Result<()> {
        let mut open = self.lock();
        if open.bytes <= self.keep.bytes {
            return Ok(());
        }
        let mut names: BTreeMap<Place, Vec<Box<str>>> = BTreeMap::new();
        for (name, place) in index.iter() {
            names.entry(*place).or_default().push(name.clone());
        }
        let path = self.path.with_extension("new");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let first = open.bytes.saturating_sub(self.keep.bytes / 2);
        let (mut kept, mut bytes) = (Index::new(), 0);
        for (place, names) in names.into_iter().filter(|(place, _)| place.start >= first) {
            let mut line = vec![0; place.bytes];
            open.file.read_exact_at(&mut line, place.start)?;
            let is_young = |line: &Line<'_>| now.since(line.at()) <= self.keep.age;
            if is_whole(&line).and_then(Line::read).is_some_and(|line| is_young(&line)) {
                file.write_all(&line)?;
                let place = Place { start: bytes, bytes: line.len() };
                bytes += line.len() as u64;
                kept.extend(names.into_iter().map(|name| (name, place)));
            }
        }
        file.sync_all()?;
        drop(file);
        let file = OpenOptions::new().read(true).append(true).open(&path)?;
        locked(&file)?;
        fs::rename(&path, &self.path)?;
        *index = kept;
        *open = Open { file, bytes };
        Ok(())
    }
}

/// Notes what a line says: where the answer is, or that there is none.
pub(super) fn note(index: &mut BTreeMap<Box<str>, Place>, names: &[Box<str>], place: Place, is_undone: bool) {
    for name in names {
        match is_undone {
            true => drop(index.remove(name)),
            false => drop(index.insert(name.clone(), place)),
        }
    }
}

/// One process at a time uses a store of answers.
fn locked(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "another agent uses this store of answers"))
}
