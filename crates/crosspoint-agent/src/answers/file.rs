//! The file of the store of answers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::Keep;
use super::found::{Found, Owed};
use super::index::{Index, Place};
use super::seal::{Sealed, is_whole};
use super::shorter::{self, Shorter};

/// How long the file is left as it is after it could not be shortened.
const PAUSE: Duration = Duration::from_secs(60);

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

impl AnswerFile {
    /// Opens the file and finds what is in it. A last line that a crash tore is ended.
    pub(super) fn open(path: &Path, keep: Keep, now: Time) -> io::Result<(AnswerFile, Index, Owed)> {
        let file = regular(path)?;
        locked(&file)?;
        // Another agent may just have put a shorter file in its place.
        is_at(&file, path).map_err(|_| in_use())?;
        sync_directory(path)?;
        let found = Found::read(&file, keep, now)?;
        file.set_len(found.bytes)?;
        if !found.missing.is_empty() {
            (&file).write_all(&found.missing)?;
            file.sync_all()?;
        }
        found.say(path);
        let Found { index, owed, bytes, missing, .. } = found;
        let open = Mutex::new(Open::new(file, bytes + missing.len() as u64, 0));
        let answers = AnswerFile { path: path.to_owned(), keep, open };
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
    pub(super) fn append(&self, lines: &[&Sealed]) -> io::Result<Vec<Place>> {
        let mut open = self.lock();
        let mut all = Vec::with_capacity(lines.iter().map(|line| line.bytes().len()).sum());
        let mut places = Vec::with_capacity(lines.len());
        for line in lines.iter().map(|line| line.bytes()) {
            places.push(Place { start: open.bytes + all.len() as u64, bytes: line.len() });
            all.extend_from_slice(line);
        }
        // Half a line would be taken for the beginning of the next one.
        if open.is_torn {
            open.file.set_len(open.bytes)?;
        }
        open.is_torn = true;
        let synced = (&*open.file).write_all(&all).and_then(|()| open.file.sync_data());
        let written = synced.and_then(|()| self.is_in_place(&open.file));
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
        let shortened = self.younger((&file, bytes), index, now).and_then(|shorter| self.replace(index, shorter));
        if shortened.is_err() {
            self.lock().long_until = Some(now.plus(PAUSE));
        }
        shortened
    }

    /// Writes the younger half of the answers to a file of its own. Nothing that stands there is used: another user may
    /// have made it, and read it later.
    fn younger(&self, of: (&File, u64), index: &Mutex<Index>, now: Time) -> io::Result<(File, Shorter)> {
        let path = self.beside();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
        locked(&file)?;
        let mut file = BufWriter::new(file);
        let shorter = shorter::write(of, index, (self.keep, now), &mut file)?;
        let file = file.into_inner()?;
        file.sync_all()?;
        Ok((file, shorter))
    }

    /// Puts the shorter file in the place of this one.
    fn replace(&self, index: &Mutex<Index>, (file, shorter): (File, Shorter)) -> io::Result<()> {
        {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            let mut open = self.lock();
            // The file of another agent may be there by now.
            self.is_in_place(&open.file)?;
            fs::rename(self.beside(), &self.path)?;
            index.replace(shorter.index);
            *open = Open::new(file, shorter.bytes, shorter.carried_bytes);
        }
        sync_directory(&self.path)
    }

    /// Makes sure that the path still leads to the file. What is written to a file that was removed or replaced is not
    /// there after a restart, and another agent may already use what is at the path.
    fn is_in_place(&self, file: &File) -> io::Result<()> {
        is_at(file, &self.path).map_err(|error| {
            let path = self.path.display();
            let what = format!("{path} was removed or replaced while the agent uses it ({error})");
            io::Error::new(error.kind(), format!("{what}; put it back, or start the agent again"))
        })
    }

    /// Returns where a shorter file is written: beside this one, with a name that no other store has.
    fn beside(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        name.into()
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
    // Opening a pipe or a device may do something to it. Where a link leads may be changed by others.
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link; name the file itself"));
        }
        Ok(found) => is_regular(&found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    is_regular(&file.metadata()?)?;
    Ok(file)
}

/// Makes sure that a path leads to a file, and not by a link.
fn is_at(file: &File, path: &Path) -> io::Result<()> {
    let (own, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    match (own.dev(), own.ino()) == (there.dev(), there.ino()) {
        true => Ok(()),
        false => Err(io::Error::other("another file is there")),
    }
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
