//! Getting files out of the way: set aside, removed, swept up after those who were killed.

use std::time::Duration;

use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::names::{self, STALE, half_removed};
use super::{Directory, Found, modified};
use crate::failpoint;
use crate::fault::Fault;

/// A file of that age, half-written, is nobody's any more.
const ABANDONED_AGE: Duration = Duration::from_secs(60);

/// What came of removing a file that must be a certain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone now.
    Yes,
    /// It was gone already.
    Absent,
    /// It is another one, and is still there.
    Another,
}

impl Directory {
    /// Moves what has this name out of the way, whatever it is, and gives its new name: `NAME.stale-N` (BRIDGE-4.2). `None` where there is
    /// nothing, or not any more.
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

    /// Removes a file if it is what is expected. Should another have been written over it in this very moment, that one stays.
    pub fn remove(&self, name: &str, is_expected: impl Fn(&Found) -> bool, bytes_max: u64) -> Result<Removed, Fault> {
        match self.read(name, bytes_max)? {
            None => return Ok(Removed::Absent),
            Some(found) if !is_expected(&found) => return Ok(Removed::Another),
            Some(_) => {}
        }
        // Whoever put it there may go on as soon as it is answered: what is moved away is looked at again before it is gone for good.
        let moved = half_removed(name);
        match fs::renameat(&self.descriptor, name, &self.descriptor, &moved) {
            Err(Errno::NOENT) => return Ok(Removed::Absent),
            renamed => renamed.map_err(|errno| self.fault(name, errno))?,
        }
        failpoint::reached("removal", "moved");
        let is_another = match self.read(&moved, bytes_max) {
            Ok(found) => found.is_some_and(|found| !is_expected(&found)),
            // What cannot be read is not what was read before.
            Err(_) => true,
        };
        if is_another {
            self.put_back(&moved, name)?;
            return Ok(Removed::Another);
        }
        // Requester and driver may clear away the same file at one time, and either may be first.
        self.unlink(&moved)?;
        failpoint::reached("removal", "unlinked");
        self.sync()?;
        Ok(Removed::Yes)
    }

    /// Gives a file back the name it had before it was to be removed. Where a newer one has that name by now, that one stays and the older
    /// is gone: a name holds one file, and whoever writes the next writes it over the last. So it would have been without us. For any
    /// other reason nothing is unlinked: it is somebody else's, and the next sweep tries again.
    fn put_back(&self, moved: &str, name: &str) -> Result<(), Fault> {
        match self.rename_anew(moved, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => self.unlink(moved),
            // Somebody else was first with it.
            Err(Errno::NOENT) if self.is_there() => Ok(()),
            Err(errno) => Err(self.fault(moved, errno)),
        }
    }

    /// Removes a file at once, whatever it holds; nothing where there is none. `what` names it for failpoints.
    pub fn discard(&self, name: &str, what: &str) -> Result<(), Fault> {
        self.unlink(name)?;
        failpoint::reached(what, "discarded");
        self.sync()
    }

    /// Removes a file, whatever it holds; nothing where there is none.
    pub(crate) fn unlink(&self, name: &str) -> Result<(), Fault> {
        match fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// Removes a directory within this one if nothing is in it.
    pub(crate) fn remove_empty(&self, name: &str) -> Result<(), Fault> {
        match fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// Cleans up after those who were killed while they wrote or removed a file. For the one driver alone, before it does anything else.
    /// It looks at every name of the directory, of which there may be very many.
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

    /// The part of it that may not wait, and that costs the same in any directory: what was half removed is put back, unless it is known to
    /// be done with. What is no file was not put there by us, and is left alone.
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

    /// Whether somebody was killed while a file of this name was being removed.
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
