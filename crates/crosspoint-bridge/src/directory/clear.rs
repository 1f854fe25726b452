//! Sets files aside, removes them, and cleans up after processes that were killed.

use std::time::Duration;

use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::names::{self, STALE, half_removed};
use super::{Directory, Found, modified};
use crate::failpoint;
use crate::fault::Fault;

/// Age from which a half-written file counts as abandoned by its writer.
const ABANDONED_AGE: Duration = Duration::from_secs(60);

/// The result of removing a file that must be a certain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// The file was removed.
    Yes,
    /// The file was gone already.
    Absent,
    /// Another file has the name, and it was left there.
    Another,
}

impl Directory {
    /// Moves the entry of this name out of the way, whatever it is, and returns its new name: `NAME.stale-N`
    /// (BRIDGE-4.2). Returns `None` where there is no such entry, or no longer.
    pub fn set_aside(&self, name: &str) -> Result<Option<String>, Fault> {
        if !self.has(name)? {
            return Ok(None);
        }
        let prefix = format!("{name}{STALE}");
        let mut number = 1;
        self.each_name(|taken| {
            let taken = taken.strip_prefix(&prefix).and_then(|taken| taken.parse::<u64>().ok());
            number = number.max(taken.map_or(1, |taken| taken.saturating_add(1)));
        })?;
        loop {
            let aside = format!("{prefix}{number}");
            match self.rename_anew(name, &aside) {
                Ok(()) => break self.sync().map(|()| Some(aside)),
                Err(Errno::EXIST) if number < u64::MAX => number += 1,
                Err(Errno::NOENT) if self.is_there() => break Ok(None),
                Err(errno) => break Err(self.fault(name, errno)),
            }
        }
    }

    /// Gives the entry that was set aside last its name back, and returns the name that it had meanwhile. Returns
    /// `None` where none was set aside, or where another entry has the name by now.
    pub fn take_back(&self, name: &str) -> Result<Option<String>, Fault> {
        let prefix = format!("{name}{STALE}");
        let mut last: Option<u64> = None;
        self.each_name(|taken| {
            let number = taken.strip_prefix(&prefix).and_then(|number| number.parse().ok());
            last = last.max(number);
        })?;
        let Some(aside) = last.map(|number| format!("{prefix}{number}")) else { return Ok(None) };
        match self.rename_anew(&aside, name) {
            Ok(()) => self.sync().map(|()| Some(aside)),
            Err(Errno::EXIST) => Ok(None),
            Err(Errno::NOENT) if self.is_there() => Ok(None),
            Err(errno) => Err(self.fault(&aside, errno)),
        }
    }

    /// Removes a file if it is the expected one. A file that is written over it at the same moment stays.
    pub fn remove(&self, name: &str, is_expected: impl Fn(&Found) -> bool, bytes_max: u64) -> Result<Removed, Fault> {
        match self.read(name, bytes_max)? {
            None => return Ok(Removed::Absent),
            Some(found) if !is_expected(&found) => return Ok(Removed::Another),
            Some(_) => {}
        }
        // The requester may go on as soon as it has its answer and write the next request. So the file is moved away
        // first and read again before it is unlinked.
        let moved = half_removed(name);
        match fs::renameat(&self.descriptor, name, &self.descriptor, &moved) {
            Err(Errno::NOENT) => return Ok(Removed::Absent),
            renamed => renamed.map_err(|errno| self.fault(name, errno))?,
        }
        failpoint::reached("removal", "moved");
        let is_another = match self.read(&moved, bytes_max) {
            Ok(found) => found.is_some_and(|found| !is_expected(&found)),
            // A file that cannot be read is not the one that was read before.
            Err(_) => true,
        };
        if is_another {
            self.put_back(&moved, name)?;
            return Ok(Removed::Another);
        }
        // The requester and the driver may remove the same file at the same time, and either may be first.
        self.unlink(&moved)?;
        failpoint::reached("removal", "unlinked");
        self.sync()?;
        Ok(Removed::Yes)
    }

    /// Gives a file that was to be removed its name back. Where a newer file has that name by now, the newer one stays
    /// and the older one is unlinked: a name holds one file, and the next writer would have overwritten the older one
    /// anyway. On any other error nothing is unlinked, because the file is not ours, and the next sweep tries again.
    fn put_back(&self, moved: &str, name: &str) -> Result<(), Fault> {
        match self.rename_anew(moved, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => self.unlink(moved),
            // Another process moved or removed it first.
            Err(Errno::NOENT) if self.is_there() => Ok(()),
            Err(errno) => Err(self.fault(moved, errno)),
        }
    }

    /// Removes a file at once, whatever it holds. Does nothing where there is none. `what` names the file for
    /// failpoints.
    pub fn discard(&self, name: &str, what: &str) -> Result<(), Fault> {
        self.unlink(name)?;
        failpoint::reached(what, "discarded");
        self.sync()
    }

    /// Removes a file, whatever it holds. Does nothing where there is none.
    pub(crate) fn unlink(&self, name: &str) -> Result<(), Fault> {
        match fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// Removes a directory within this one if it is empty.
    pub(crate) fn remove_empty(&self, name: &str) -> Result<(), Fault> {
        match fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// Cleans up after processes that were killed while they wrote or removed a file. Only the driver that holds the
    /// lock may call this, before it does anything else. It looks at every name of the directory, and there may be very
    /// many.
    pub fn sweep(&self, is_done: impl Fn(&Found) -> bool, bytes_max: u64) -> Result<(), Fault> {
        self.sweep_removed(is_done, bytes_max)?;
        let mut half_written = Vec::new();
        self.each_name(|name| half_written.extend(names::is_half_written(name).then(|| name.to_owned())))?;
        for name in half_written {
            if self.look(&name)?.is_some_and(|stat| is_file(&stat) && is_abandoned(&stat)) {
                self.unlink(&name)?;
            }
        }
        Ok(())
    }

    /// Does the part of [`Directory::sweep`] that may not wait, at a cost that does not grow with the directory: files
    /// that were half removed are put back, unless `is_done` says that they are finished with. An entry that is no file
    /// was not put there by us, and is left alone.
    pub fn sweep_removed(&self, is_done: impl Fn(&Found) -> bool, bytes_max: u64) -> Result<(), Fault> {
        for name in names::removable() {
            let moved = half_removed(&name);
            match self.read(&moved, bytes_max) {
                Ok(None) | Err(Fault::NotAFile { .. }) => {}
                Ok(Some(found)) if is_done(&found) => self.unlink(&moved)?,
                Ok(Some(_)) => self.put_back(&moved, &name)?,
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Returns whether a process was killed while it removed a file of this name.
    pub fn is_half_removed(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.look(&half_removed(name))?.is_some_and(|stat| is_file(&stat)))
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn is_abandoned(stat: &Stat) -> bool {
    modified(stat).elapsed().is_ok_and(|age| age > ABANDONED_AGE)
}
