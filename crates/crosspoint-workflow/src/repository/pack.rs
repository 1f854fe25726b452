//! The contents of a step, before and after, one file for each.
//!
//! One file for all contents is written and synced at once, where a file for each would cost as much as the step.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::fault::Fault;
use super::inspect::open_file;
use super::journal::Extent;
use super::limit::KEPT_FILE_BYTES_MAX;
use super::parents::Parents;
use super::record::{Record, Side};
use super::spelling;

/// Contents that are being written.
#[derive(Debug)]
pub(super) struct Pack<'r> {
    record: &'r Record,
    step: u32,
    side: Side,
    file: BufWriter<File>,
    offset: u64,
}

impl<'r> Pack<'r> {
    pub(super) fn create(record: &'r Record, step: u32, side: Side) -> Result<Pack<'r>, Fault> {
        let file = BufWriter::new(record.create_contents(step, side)?);
        Ok(Pack { record, step, side, file, offset: 0 })
    }

    pub(super) fn add(&mut self, content: &[u8]) -> Result<Extent, Fault> {
        let length = content.len() as u64;
        let kept = length <= KEPT_FILE_BYTES_MAX;
        if kept {
            self.file.write_all(content).map_err(|source| self.fault(source))?;
        }
        let digest = (!kept).then(|| Sha256::digest(content).into());
        Ok(Extent { digest, ..self.extent(length, kept) })
    }

    /// Adds what a file of the repository holds now.
    pub(super) fn add_file(&mut self, parents: &mut Parents<'_>, path: &str) -> Result<Extent, Fault> {
        let (directory, name) = spelling::split(path);
        let file = parents.get(directory).and_then(|parent| open_file(parent, name));
        let file = File::from(file.map_err(|errno| parents.fault(path, changed(errno)))?);
        let length = file.metadata().map_err(|source| self.fault(source))?.len();
        if length > KEPT_FILE_BYTES_MAX {
            return Ok(self.extent(length, false));
        }
        // Another program may be writing to the file: what was read counts, not what was measured.
        let read =
            io::copy(&mut file.take(KEPT_FILE_BYTES_MAX), &mut self.file).map_err(|source| self.fault(source))?;
        Ok(self.extent(read, true))
    }

    pub(super) fn finish(mut self) -> Result<(), Fault> {
        self.file.flush().map_err(|source| self.fault(source))?;
        self.file.get_ref().sync_all().map_err(|source| self.fault(source))
    }

    fn extent(&mut self, length: u64, kept: bool) -> Extent {
        let offset = self.offset;
        self.offset += if kept { length } else { 0 };
        Extent { offset, length, kept, digest: None }
    }

    fn fault(&self, source: io::Error) -> Fault {
        Fault::from_io(&self.record.contents_path(self.step, self.side), source)
    }
}

/// The file was there a moment ago.
fn changed(errno: Errno) -> Errno {
    if errno == Errno::NOENT { Errno::LOOP } else { errno }
}

/// Reads one content back. The caller checks that it was kept.
///
/// A damaged record may say any length: it is believed only as far as the file goes, and no program kept more.
pub(super) fn read(record: &Record, step: u32, side: Side, extent: Extent) -> io::Result<Vec<u8>> {
    // People read of the error who may not see where the record is.
    let file = record.contents(step, side).map_err(|fault| io::Error::other(fault.kind()))?;
    let mut file = file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let held = file.metadata()?.len();
    let end = extent.offset.checked_add(extent.length).filter(|_| extent.length <= KEPT_FILE_BYTES_MAX);
    if end.is_none_or(|end| end > held) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the journal names a part that it does not have"));
    }
    file.seek(SeekFrom::Start(extent.offset))?;
    let mut bytes = vec![0; usize::try_from(extent.length).unwrap_or_default()];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
