//! The directory where an agent is asked: one pair of files. Everything here waits for a disk.
//!
//! Files in the directory that are not this server's are left alone: a foreign request is for its requester to take
//! back. The request is written without replacing a file, so that of two requesters at one time one learns that the
//! other was first.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crosspoint_bridge::document::{id_of, is_of, laid_out};
use crosspoint_bridge::{Directory, Fault, Leftover, Pair, half_removed};
use crosspoint_engine::breaker::Health;
use rustix::fs::Access;

/// The one pair of files in the directory.
const PAIR: Pair = Pair::PLAIN;

/// Most bytes of a foreign file that are read in search of its id.
const SEARCH_BYTES_MAX: u64 = 1 << 20;

/// The name of the request file, as people are told.
pub(super) fn request_name() -> String {
    PAIR.request()
}

/// The name of the response file, as people are told.
pub(super) fn response_name() -> String {
    PAIR.response()
}

pub(super) struct Inbox {
    path: PathBuf,
    /// Longest file that is taken for an answer, in bytes.
    pub(super) bytes_max: usize,
}

/// A file that stands where a request is to be put, or where its response will be.
pub(super) struct InTheWay {
    pub(super) file: Which,
    pub(super) thing: Thing,
}

/// Which file of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Request,
    Response,
    /// A request that a driver was about to remove.
    HalfRemovedRequest,
    /// A response that a driver was about to remove.
    HalfRemovedResponse,
}

/// What stands in the way.
pub(super) enum Thing {
    /// A document with this id.
    Of(String, SystemTime),
    /// A file without an id.
    Nameless,
    /// Something other than a file.
    NotAFile(&'static str),
}

/// What is found of an answer.
pub(super) enum Seen {
    /// No answer, and whether the request is still there.
    Nothing { asked: bool },
    /// A file.
    Written(Written),
    /// Something that is not opened, and what it is.
    NotAFile(&'static str),
}

/// A file under the name of the response. It is content, and does not print itself.
pub(super) struct Written {
    /// As much of it as may be an answer, and one byte more.
    pub(super) bytes: Vec<u8>,
    /// Identifies this version of the file: another look that finds the same mark found the same file.
    pub(super) mark: (SystemTime, u64),
}

impl Which {
    fn name(self) -> String {
        match self {
            Which::Request => PAIR.request(),
            Which::Response => PAIR.response(),
            Which::HalfRemovedRequest => half_removed(&PAIR.request()),
            Which::HalfRemovedResponse => half_removed(&PAIR.response()),
        }
    }
}

impl Inbox {
    pub(super) fn new(path: &Path, bytes_max: usize) -> Inbox {
        Inbox { path: path.to_owned(), bytes_max }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory. It is created if only its last part is missing.
    fn open(&self) -> Result<Directory, Fault> {
        match Directory::open(&self.path) {
            Err(Fault::Gone(path)) => {
                let made = DirBuilder::new().mode(0o700).create(&self.path);
                if made.is_err() { Err(Fault::Gone(path)) } else { Directory::open(&self.path) }
            }
            opened => opened,
        }
    }

    /// Returns what keeps a request from being put there.
    pub(super) fn in_the_way(&self) -> Result<Option<InTheWay>, Fault> {
        let directory = self.open()?;
        for file in [Which::Request, Which::Response, Which::HalfRemovedRequest, Which::HalfRemovedResponse] {
            let thing = match directory.read(&file.name(), SEARCH_BYTES_MAX) {
                Ok(None) => continue,
                Ok(Some(found)) => match id_of(&found.bytes) {
                    Some(id) => Thing::Of(id, found.modified),
                    None => Thing::Nameless,
                },
                Err(Fault::NotAFile { what, .. }) => Thing::NotAFile(what),
                Err(fault) => return Err(fault),
            };
            return Ok(Some(InTheWay { file, thing }));
        }
        Ok(None)
    }

    /// Writes a request; returns whether the name was free.
    pub(super) fn put(&self, document: &str) -> Result<bool, Fault> {
        self.open()?.write_anew(&PAIR.request(), "target", &laid_out(document))
    }

    /// Whether the request of this id is there.
    pub(super) fn has(&self, id: &str) -> Result<bool, Fault> {
        let found = Directory::open(&self.path)?.read(&PAIR.request(), SEARCH_BYTES_MAX);
        match found {
            Ok(found) => Ok(found.is_some_and(|found| is_of(&found, id))),
            Err(Fault::NotAFile { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Looks for an answer.
    pub(super) fn look(&self, id: &str) -> Result<Seen, Fault> {
        let directory = Directory::open(&self.path)?;
        let found = match directory.read(&PAIR.response(), self.bytes_max as u64 + 1) {
            Ok(Some(found)) => found,
            Ok(None) => return self.look_aside(&directory, id),
            Err(Fault::NotAFile { what, .. }) => return Ok(Seen::NotAFile(what)),
            Err(fault) => return Err(fault),
        };
        Ok(Seen::Written(Written { mark: (found.modified, found.length), bytes: found.bytes }))
    }

    /// Looks for an answer that was set aside: a driver that answers another request there sets aside a response that
    /// was not taken yet (BRIDGE-4.2). It is an answer all the same.
    fn look_aside(&self, directory: &Directory, id: &str) -> Result<Seen, Fault> {
        let asked = self.has(id)?;
        let response = PAIR.response();
        let names = if asked { Vec::new() } else { directory.names()? };
        for name in names.iter().filter(|name| Leftover::of(name) == Some(Leftover::Stale(&response))) {
            let Ok(Some(found)) = directory.read(name, self.bytes_max as u64 + 1) else { continue };
            if is_of(&found, id) {
                return Ok(Seen::Written(Written { mark: (found.modified, found.length), bytes: found.bytes }));
            }
        }
        Ok(Seen::Nothing { asked })
    }

    /// Removes a file if it has this id.
    pub(super) fn remove(&self, file: Which, id: &str) -> Result<(), Fault> {
        let directory = Directory::open(&self.path)?;
        directory.remove(&file.name(), |found| is_of(found, id), self.bytes_max as u64 + 1).map(|_| ())
    }

    /// Moves a file out of the way, and returns its new name if it still was there.
    pub(super) fn set_aside(&self, file: Which) -> Result<Option<String>, Fault> {
        Directory::open(&self.path)?.set_aside(&file.name())
    }

    /// Moves the response to the request of this id out of the way, if it is there.
    pub(super) fn set_answer_aside(&self, id: &str) -> Result<(), Fault> {
        let directory = Directory::open(&self.path)?;
        match directory.read(&PAIR.response(), self.bytes_max as u64 + 1) {
            Ok(Some(found)) if is_of(&found, id) => directory.set_aside(&PAIR.response()).map(|_| ()),
            Ok(_) | Err(Fault::NotAFile { .. }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Whether requests can be put there.
    pub(super) fn health(&self) -> Health {
        let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        let usable = self.open().is_ok() && rustix::fs::access(&self.path, access).is_ok();
        if usable { Health::Well } else { Health::Sick }
    }
}
