//! The file of the store of answers.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::Keep;
use super::line::{Line, is_whole, sealed};

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
}

pub(super) type Index = BTreeMap<Box<str>, Place>;

impl AnswerFile {
    /// Opens the file and finds what is in it. What a crash tore off at its end is cut off.
    pub(super) fn open(path: &Path, keep: Keep, now: Time) -> io::Result<(AnswerFile, Index)> {
        let options = || OpenOptions::new().read(true).append(true).create(true).mode(0o600).clone();
        let file = options().open(path)?;
        locked(&file)?;
        // Another agent may just have put a shorter file in its place.
        if file.metadata()?.ino() != fs::metadata(path)?.ino() {
            return Err(in_use());
        }
        sync_directory(path)?;
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
        let answers = AnswerFile { path: path.to_owned(), keep, open: Mutex::new(Open::new(file, bytes)) };
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

    /// Writes the younger half of the answers to a new file, if this one has become too long. Only the thread that
    /// appends calls it. The index can be used while the new file is written.
    pub(super) fn shorten(&self, index: &Mutex<Index>, now: Time) -> io::Result<()> {
        let (file, bytes) = {
            let open = self.lock();
            if open.bytes <= self.keep.bytes || open.long_until.is_some_and(|until| now < until) {
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

    /// Writes the younger half of the answers to a file of its own.
    fn younger(&self, file: &File, bytes: u64, index: &Mutex<Index>, now: Time) -> io::Result<Shorter> {
        let first = bytes.saturating_sub(self.keep.bytes / 2);
        let mut names: BTreeMap<Place, Vec<Box<str>>> = BTreeMap::new();
        for (name, place) in index.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if place.start >= first {
                names.entry(*place).or_default().push(name.clone());
            }
        }
        let mut options = OpenOptions::new();
        let shorter = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(self.beside())?;
        let mut shorter = BufWriter::new(shorter);
        let (mut kept, mut bytes) = (Index::new(), 0);
        for (place, names) in names {
            let mut line = vec![0; place.bytes];
            file.read_exact_at(&mut line, place.start)?;
            let is_young = |line: &Line<'_>| now.since(line.at()) <= self.keep.age;
            if is_whole(&line).and_then(Line::read).is_some_and(|line| is_young(&line)) {
                shorter.write_all(&line)?;
                let place = Place { start: bytes, bytes: line.len() };
                bytes += line.len() as u64;
                kept.extend(names.into_iter().map(|name| (name, place)));
            }
        }
        shorter.into_inner()?.sync_all()?;
        Ok(Shorter { index: kept, bytes })
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
            (*index, *open) = (shorter.index, Open::new(file, shorter.bytes));
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
}

impl Open {
    fn new(file: File, bytes: u64) -> Open {
        Open { file: Arc::new(file), bytes, is_torn: false, long_until: None }
    }
}

/// Notes what a line says: where the answer is, or that there is none.
pub(super) fn note(index: &mut Index, names: &[Box<str>], place: Place, is_undone: bool) {
    for name in names {
        match is_undone {
            true => drop(index.remove(name)),
            false => drop(index.insert(name.clone(), place)),
        }
    }
}

/// One process at a time uses a store of answers.
fn locked(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|_| in_use())
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "another agent uses this store of answers")
}

/// Makes a new name of a file last: it is in its directory, which has to be synced too.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}
