//! The file of the store of answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use super::Keep;
use super::line::Line;
use super::seal::{AROUND_BYTES, is_whole, names_of_damaged, push_sealed};
use crate::backend::Name;

/// How long the file is left as it is after it could not be shortened.
const PAUSE: Duration = Duration::from_secs(60);

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
    file: Arc<File>,
    bytes: u64,
    /// Whether there may be more in the file than was written whole.
    is_torn: bool,
    /// Until when the file is not shortened, after that failed.
    long_until: Option<Time>,
    /// How many bytes of work under way were carried over when the file was shortened. They are beyond its size.
    carried_bytes: u64,
}

/// Where the line of each request is, by all its names.
#[derive(Default)]
pub(super) struct Index {
    places: BTreeMap<Box<str>, Place>,
    /// The lines of work that is under way.
    open: BTreeSet<Place>,
    /// Further names of requests that are about to be written, and a name that the line of the request has.
    also: BTreeMap<Box<str>, Box<str>>,
}

/// What a line says of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// The work is under way.
    Open,
    /// This is what came of it.
    Ended,
    /// There is nothing to be known of it.
    Undone,
}

impl Index {
    /// Returns where the line of this name is.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.places.get(self.held(name)).copied()
    }

    /// Returns the name that the line of this name has.
    pub(super) fn held<'n>(&'n self, name: &'n str) -> &'n str {
        self.also.get(name).map_or(name, |held| held)
    }

    /// Takes further names of a request before they are written.
    pub(super) fn reserve(&mut self, name: Box<str>, held: &str) {
        self.also.insert(name, held.into());
    }

    /// Gives names free that could not be written.
    pub(super) fn unreserve(&mut self, name: &str) {
        self.also.remove(name);
    }

    /// Whether further names of a request wait for its line.
    pub(super) fn is_awaited(&self, held: &str) -> bool {
        self.also.values().any(|of| **of == *held)
    }

    /// Whether this is the line of work under way.
    pub(super) fn is_open(&self, place: Place) -> bool {
        self.open.contains(&place)
    }

    /// Notes what a line says, in the place of what was said before.
    pub(super) fn note(&mut self, names: &[Box<str>], place: Place, noted: Noted) {
        for name in names {
            self.also.remove(name);
            let before = match noted {
                Noted::Undone => self.places.remove(name),
                Noted::Open | Noted::Ended => self.places.insert(name.clone(), place),
            };
            if let Some(before) = before {
                self.open.remove(&before);
            }
        }
        if noted == Noted::Open {
            self.open.insert(place);
        }
    }

    /// Notes that the work of this line is under way again.
    pub(super) fn reopen(&mut self, name: &str) {
        self.open.extend(self.places.get(name));
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&str> {
        self.places.keys().map(|name| &**name).collect()
    }
}

/// The jobs whose outcomes were not told, and the orchestrator that is to be told of each.
pub(super) type Owed = BTreeMap<Uuid, Box<str>>;

impl AnswerFile {
    /// Opens the file and finds what is in it. What a crash tore off at its end is cut off.
    pub(super) fn open(path: &Path, keep: Keep, now: Time) -> io::Result<(AnswerFile, Index, Owed)> {
        let file = regular(path)?;
        locked(&file)?;
        // Another agent may just have put a shorter file in its place.
        if file.metadata()?.ino() != fs::metadata(path)?.ino() {
            return Err(in_use());
        }
        sync_directory(path)?;
        let Found { index, mut owed, bytes, damaged, refused, is_unended } = Found::read(&file, keep, now)?;
        file.set_len(bytes)?;
        if is_unended {
            (&file).write_all(b"\n")?;
        }
        if damaged > 0 {
            tracing::warn!(
                path = %path.display(), lines = damaged, refused,
                "lines of the store of answers are damaged: requests whose ids can still be read are refused, as it \
                 cannot be told whether their work was done; the others would run again"
            );
        }
        owed.retain(|id, _| index.place(&Name::told(*id).text()).is_none());
        let bytes = bytes + u64::from(is_unended);
        let answers = AnswerFile { path: path.to_owned(), keep, open: Mutex::new(Open::new(file, bytes, 0)) };
        Ok((answers, index, owed))
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
        let mut all = Vec::with_capacity(lines.iter().map(|line| line.len() + AROUND_BYTES).sum());
        let mut places = Vec::with_capacity(lines.len());
        for line in lines {
            places.push(Place { start: open.bytes + all.len() as u64, bytes: line.len() + AROUND_BYTES });
            push_sealed(&mut all, line);
        }
        // Half a line would be taken for the beginning of the next one.
        if open.is_torn {
            open.file.set_len(open.bytes)?;
        }
        open.is_torn = true;
        let written = (&*open.file).write_all(&all).and_then(|()| open.file.sync_data());
        if let Err(error) = written {
            open.is_torn = open.file.set_len(open.bytes).is_err();
            return Err(error);
        }
        open.is_torn = false;
        open.bytes += all.len() as u64;
        Ok(places)
    }

    /// Returns a line.
    pub(super) fn read(&self, place: Place) -> io::Result<Vec<u8>> {
        let mut line = vec![0; place.bytes];
        let file = self.lock().file.clone();
        file.read_exact_at(&mut line, place.start)?;
        let whole = is_whole(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it was changed"))?;
        Ok(whole.to_vec())
    }

    /// Writes the younger half of the answers, and what is known of work under way, to a new file, if this one has
    /// become too long. Only the thread that appends calls it. The index can be used while the new file is written.
    pub(super) fn shorten(&self, index: &Mutex<Index>, now: Time) -> io::Result<()> {
        let (file, bytes) = {
            let open = self.lock();
            if open.bytes <= self.keep.bytes.saturating_add(open.carried_bytes)
                || open.long_until.is_some_and(|until| now < until)
            {
                return Ok(());
            }
            (open.file.clone(), open.bytes)
        };
        let shortened = self.younger(&file, bytes, index, now).and_then(|shorter| self.replace(index, shorter));
        if shortened.is_err() {
            self.lock().long_until = Some(now.plus(PAUSE));
        }
        shortened
    }

    /// Writes the younger half of the answers to a file of its own. Work under way stays noted however long ago it
    /// began: otherwise it could be begun twice after a crash.
    fn younger(&self, file: &File, bytes: u64, index: &Mutex<Index>, now: Time) -> io::Result<Shorter> {
        let first = bytes.saturating_sub(self.keep.bytes / 2);
        let (mut names, open): (BTreeMap<Place, Vec<Box<str>>>, BTreeSet<Place>) = {
            let index = index.lock().unwrap_or_else(PoisonError::into_inner);
            let mut names: BTreeMap<Place, Vec<Box<str>>> = BTreeMap::new();
            for (name, place) in &index.places {
                names.entry(*place).or_default().push(name.clone());
            }
            (names, index.open.clone())
        };
        names.retain(|place, _| place.start >= first || open.contains(place));
        let mut options = OpenOptions::new();
        let shorter = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(self.beside())?;
        let mut shorter = BufWriter::new(shorter);
        let (mut kept, mut bytes, mut carried_bytes) = (Index::default(), 0, 0);
        for (place, names) in names {
            let mut line = vec![0; place.bytes];
            file.read_exact_at(&mut line, place.start)?;
            let is_open = open.contains(&place);
            // How old a damaged line is cannot be told; its request is refused for as long as it is there.
            let is_young = match is_whole(&line).and_then(Line::read) {
                Some(read) => now.since(read.at()) <= self.keep.age,
                None => true,
            };
            if is_young || is_open {
                shorter.write_all(&line)?;
                let place = Place { start: bytes, bytes: line.len() };
                bytes += line.len() as u64;
                carried_bytes += if is_open { line.len() as u64 } else { 0 };
                kept.note(&names, place, if is_open { Noted::Open } else { Noted::Ended });
            }
        }
        shorter.into_inner()?.sync_all()?;
        Ok(Shorter { index: kept, bytes, carried_bytes })
    }

    /// Puts the shorter file in the place of this one.
    fn replace(&self, index: &Mutex<Index>, shorter: Shorter) -> io::Result<()> {
        let path = self.beside();
        let file = OpenOptions::new().read(true).append(true).open(&path)?;
        locked(&file)?;
        {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            let mut open = self.lock();
            fs::rename(&path, &self.path)?;
            let also = std::mem::take(&mut index.also);
            (*index, *open) = (Index { also, ..shorter.index }, Open::new(file, shorter.bytes, shorter.carried_bytes));
        }
        sync_directory(&self.path)
    }

    /// Returns where a shorter file is written: beside this one, with a name that no other store has.
    fn beside(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        name.into()
    }
}

/// A file with the younger half of the answers.
struct Shorter {
    index: Index,
    bytes: u64,
    carried_bytes: u64,
}

/// What is in a file.
struct Found {
    index: Index,
    owed: Owed,
    /// How many bytes are whole lines.
    bytes: u64,
    /// How many lines are damaged, and how many requests are refused for it.
    damaged: usize,
    refused: usize,
    /// Whether the last line is whole and only its end is missing.
    is_unended: bool,
}

impl Found {
    fn read(file: &File, keep: Keep, now: Time) -> io::Result<Found> {
        let (index, owed) = (Index::default(), Owed::new());
        let mut found = Found { index, owed, bytes: 0, damaged: 0, refused: 0, is_unended: false };
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            found.is_unended = !line.ends_with(b"\n");
            if found.is_unended && is_whole(&line).is_none() {
                // Nobody was told what this line was to say.
                (found.is_unended, found.damaged) = (false, found.damaged + 1);
                break;
            }
            let place = Place { start: found.bytes, bytes: line.len() };
            match is_whole(&line).and_then(Line::read) {
                Some(read) => found.add(&read, place, now.since(read.at()) <= keep.age),
                None => found.add_damaged(&line, place),
            }
            found.bytes += line.len() as u64;
            line.clear();
        }
        Ok(found)
    }

    fn add(&mut self, line: &Line<'_>, place: Place, is_young: bool) {
        if is_young {
            let names: Vec<Box<str>> = line.names().map(Into::into).collect();
            self.index.note(&names, place, if line.is_undone() { Noted::Undone } else { Noted::Ended });
            self.owed.extend(line.owed().map(|(id, to)| (id, to.into())));
        }
    }

    /// A line that is no longer whole costs one request, not the file. Whether its work was done cannot be told.
    fn add_damaged(&mut self, line: &[u8], place: Place) {
        let names = names_of_damaged(line);
        self.damaged += 1;
        self.refused += usize::from(!names.is_empty());
        self.index.note(&names, place, Noted::Ended);
    }
}

impl Open {
    fn new(file: File, bytes: u64, carried_bytes: u64) -> Open {
        Open { file: Arc::new(file), bytes, is_torn: false, long_until: None, carried_bytes }
    }
}

/// Opens a file, or makes it. Nothing but a regular file is used: a pipe or a device keeps nothing.
fn regular(path: &Path) -> io::Result<File> {
    let is_regular = |found: &fs::Metadata| match found.is_file() {
        true => Ok(()),
        false if found.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        false => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file; name one, or none that exists"))
        }
    };
    // Opening a pipe or a device may do something to it.
    match fs::metadata(path) {
        Ok(found) => is_regular(&found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    is_regular(&file.metadata()?)?;
    Ok(file)
}

/// One process at a time uses a store of answers.
fn locked(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|_| in_use())
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "another agent uses it")
}

/// Makes a new name of a file last: it is in its directory, which has to be synced too.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}
