//! Handles of the directories that files are written in.
//!
//! A handle that is held stays the same directory even when its path is made to lead elsewhere, so a file that was
//! written through it can be taken back through it. The number of handles is limited; beyond it directories are opened
//! anew each time.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;

use super::fault::Fault;
use super::limit::{HANDLES_MAX, SYNCED_EACH_MAX};
use super::root::{Root, sync, sync_all};

#[derive(Debug)]
pub(super) struct Parents<'r> {
    root: &'r Root,
    held: BTreeMap<String, Rc<OwnedFd>>,
}

impl<'r> Parents<'r> {
    pub(super) fn new(root: &'r Root) -> Parents<'r> {
        Parents { root, held: BTreeMap::new() }
    }

    /// Returns the handle of a directory, by its normal spelling.
    pub(super) fn get(&mut self, path: &str) -> Result<Rc<OwnedFd>, Errno> {
        if let Some(held) = self.held.get(path) {
            return Ok(Rc::clone(held));
        }
        let opened = Rc::new(self.root.directory(path)?);
        if self.held.len() < HANDLES_MAX {
            self.held.insert(path.to_owned(), Rc::clone(&opened));
        }
        Ok(opened)
    }

    /// Returns the handle of a directory after checking that its path still leads to it.
    pub(super) fn get_checked(&mut self, path: &str) -> Result<Rc<OwnedFd>, Fault> {
        let checked = self.get(path).and_then(|held| Ok((self.root.leads_to(path, &held)?, held)));
        match checked {
            Ok((true, held)) => Ok(held),
            // The directory was there a moment ago.
            Ok((false, _)) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(self.fault(path, Errno::LOOP)),
            Err(errno) => Err(self.fault(path, errno)),
        }
    }

    /// Syncs directories, so that the names in them survive a power cut. Those that files were written in are held;
    /// another one that is missing, or that a link has replaced, needs no sync.
    pub(super) fn sync(&mut self, paths: &BTreeSet<String>) -> Result<(), Fault> {
        if paths.len() > SYNCED_EACH_MAX {
            return sync_all(self.root.handle()).map_err(|errno| self.fault("", errno));
        }
        for path in paths {
            match self.get(path).and_then(sync) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(self.fault(path, errno)),
            }
        }
        Ok(())
    }

    pub(super) fn fault(&self, path: &str, errno: Errno) -> Fault {
        self.root.fault(path, errno)
    }
}
