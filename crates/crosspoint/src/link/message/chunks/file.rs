//! The file of one attempt: what is known of its output, and the bytes that are held.
//!
//! The bytes stand at their places, so that any of them can be read or compared without an index; the file has holes
//! where nothing came. What is known is written anew with every change, by turns into one of two slots at the beginning
//! of the file. Each slot has a number and a digest, so a slot that was torn is recognised, and the other one has what
//! was known before. It also has a digest of the bytes that were written with it: the disk may keep the slot and lose
//! the bytes, because both are synced at once.
//!
//! So a crash at any point leaves the last state that was synced, and nothing is acknowledged before it is. A journal
//! with a record for each chunk would do as well, but its length and its index would grow with the number of chunks,
//! which the agent chooses. Two slots never grow: a reassembler holds a bounded number of ranges.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest;
use super::state::State;

/// Room for what is known, in bytes: 4,096 ranges take less than 100 KiB as JSON.
const SLOT_BYTES: u64 = 128 << 10;

/// Where the bytes begin.
const BYTES_AT: u64 = 2 * SLOT_BYTES;

/// The length of what is known, and its digest, before each slot's JSON.
const HEAD_BYTES: usize = 4 + 16;

/// What was found in a file.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// Nothing was ever acknowledged: there is no file, or its first slot was never finished.
    Nothing,
    /// The last state that was synced.
    State(Box<State>),
    /// The file is damaged: neither slot can be used.
    Damaged,
}

/// The file of one attempt. It is made when something is written.
pub(super) struct SpoolFile {
    path: PathBuf,
    file: Option<File>,
    /// The number of the last state that was synced.
    number: u64,
}

/// What a slot holds.
#[derive(Serialize, Deserialize)]
struct Slot<S> {
    number: u64,
    /// The places of the bytes that were written with it, and their digest.
    wrote: Option<(u64, u64, u128)>,
    state: S,
}

impl SpoolFile {
    pub(super) fn open(path: PathBuf) -> io::Result<(SpoolFile, Found)> {
        let mut spool = SpoolFile { path, file: None, number: 0 };
        let file = match OpenOptions::new().read(true).write(true).open(&spool.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((spool, Found::Nothing)),
            Err(error) => return Err(error),
        };
        let slots = [slot(&file, 0)?, slot(&file, 1)?];
        // The file begins with its first slot. The second is written when the first is synced.
        let is_begun = !matches!(slots[1], Read::Empty);
        let mut usable: Vec<Slot<State>> = slots.into_iter().filter_map(Read::usable).collect();
        usable.sort_by_key(|slot| slot.number);
        while let Some(slot) = usable.pop() {
            if has_bytes(&file, &slot)? {
                spool.file = Some(file);
                spool.number = slot.number;
                return Ok((spool, Found::State(Box::new(slot.state))));
            }
        }
        Ok((spool, if is_begun { Found::Damaged } else { Found::Nothing }))
    }

    /// Writes bytes at their places, and what is known with them. Both are on disk when it returns. `before` is what
    /// was known until now.
    pub(super) fn save(&mut self, before: &State, state: &State, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.create(before)?);
        }
        let Some(file) = &self.file else { return Err(ErrorKind::NotFound.into()) };
        for (place, bytes) in pieces {
            file.write_all_at(bytes, BYTES_AT + place)?;
        }
        let number = self.number + 1;
        write_slot(file, &Slot { number, wrote: wrote(file, pieces)?, state })?;
        file.sync_data()?;
        self.number = number;
        Ok(())
    }

    /// Makes the file. What was known until now is its first state, so that from the beginning one slot can be used.
    fn create(&mut self, before: &State) -> io::Result<File> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        if !directory.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            sync_directory(directory.parent().unwrap_or(Path::new(".")))?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        write_slot(&file, &Slot { number: 0, wrote: None, state: before })?;
        file.sync_data()?;
        sync_directory(directory)?;
        self.number = 0;
        Ok(file)
    }

    /// Reads the bytes at these places.
    pub(super) fn read(&self, places: &Range<u64>) -> io::Result<Vec<u8>> {
        let file = self.file.as_ref().ok_or(ErrorKind::NotFound)?;
        read(file, places)
    }
}

/// Removes the file of an attempt, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A slot as it was found.
enum Read {
    Empty,
    Torn,
    Usable(Box<Slot<State>>),
}

impl Read {
    fn usable(self) -> Option<Slot<State>> {
        match self {
            Read::Usable(slot) => Some(*slot),
            Read::Empty | Read::Torn => None,
        }
    }
}

fn slot(file: &File, which: u64) -> io::Result<Read> {
    let at = which * SLOT_BYTES;
    let length = file.metadata()?.len();
    if length < at + HEAD_BYTES as u64 {
        return Ok(if length <= at { Read::Empty } else { Read::Torn });
    }
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, at)?;
    if head == [0; HEAD_BYTES] {
        return Ok(Read::Empty);
    }
    let (bytes, expected) = head.split_at(4);
    let bytes = bytes.try_into().map_or(u64::MAX, |bytes| u64::from(u32::from_le_bytes(bytes)));
    let start = at + HEAD_BYTES as u64;
    if bytes > SLOT_BYTES - HEAD_BYTES as u64 || start + bytes > length {
        return Ok(Read::Torn);
    }
    let mut json = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read_exact_at(&mut json, start)?;
    let slot = Some(&json).filter(|json| digest(json).as_bytes() == expected);
    let slot = slot.and_then(|json| serde_json::from_slice(json).ok());
    Ok(slot.map_or(Read::Torn, |slot| Read::Usable(Box::new(slot))))
}

fn write_slot(file: &File, slot: &Slot<&State>) -> io::Result<()> {
    let json = serde_json::to_vec(slot)?;
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes();
    let out = [&length, digest(&json).as_bytes().as_slice(), &json].concat();
    if out.len() as u64 > SLOT_BYTES {
        return Err(io::Error::new(ErrorKind::InvalidData, "what is known of the output does not fit its slot"));
    }
    file.write_all_at(&out, slot.number % 2 * SLOT_BYTES)
}

/// Returns the stretch of places from the first piece to the end of the last, and the digest of all bytes there.
fn wrote(file: &File, pieces: &[(u64, &[u8])]) -> io::Result<Option<(u64, u64, u128)>> {
    let (Some((start, _)), Some((last, bytes))) = (pieces.first(), pieces.last()) else { return Ok(None) };
    let end = last + bytes.len() as u64;
    let digest = match pieces {
        [(_, bytes)] => digest(bytes),
        _ => digest(&read(file, &(*start..end))?),
    };
    Ok(Some((*start, end, digest.as_u128())))
}

/// Whether the bytes that were written with a slot are there.
fn has_bytes<S>(file: &File, slot: &Slot<S>) -> io::Result<bool> {
    let Some((start, end, expected)) = slot.wrote else { return Ok(true) };
    match read(file, &(start..end)) {
        Ok(bytes) => Ok(digest(&bytes).as_u128() == expected),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn read(file: &File, places: &Range<u64>) -> io::Result<Vec<u8>> {
    let bytes = places.end.saturating_sub(places.start);
    let mut out = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut out, BYTES_AT + places.start)?;
    Ok(out)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    // The parent of a relative name is the empty path.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}
