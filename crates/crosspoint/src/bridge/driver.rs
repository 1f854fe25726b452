//! The requests of one directory, for the one driver that holds its lock.
//!
//! The order of the steps makes a crash harmless between any two of them: the record notes a request before it is
//! handed in; the response is there before the request is gone; and a request is only removed if it still is the one
//! that was answered.

use std::path::Path;

use crosspoint_bridge::document::is_of;
use crosspoint_bridge::request::{self, Look, Malformed, Request};
use crosspoint_bridge::{Directory, Fault, Found, Lock, Pair, Removed, failpoint, response};

use super::record::{Known, Record};

/// A directory that no other driver answers in at present.
pub(crate) struct DrivenDirectory {
    pub(crate) directory: Directory,
    pub(crate) record: Record,
    /// The name under which an unreadable record was set aside.
    pub(crate) odd_record: Option<String>,
    /// For a process that must hold the directory as long as this driver does, and longer if this driver dies.
    pub(crate) lock: Lock,
}

/// A request that waits in a directory.
pub(crate) enum Waiting {
    /// It can be handed in.
    Request(Box<Request>),
    /// It is too large, and has this id and length.
    TooLarge(Pair, String, u64),
    /// It cannot be acted on.
    Malformed(Pair, Box<Malformed>),
    /// It is no file, or cannot be read.
    Unreadable(Pair, Fault),
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its response is there: a driver ended before it could remove the request.
    Answered,
    /// This driver is to hand it in.
    Ours,
    /// A server with another store has it.
    Elsewhere,
}

impl DrivenDirectory {
    /// Takes the lock, and cleans up after drivers that were killed here.
    pub(crate) fn open(path: &Path) -> Result<DrivenDirectory, Fault> {
        DrivenDirectory::opened(path, |directory, is_done| directory.sweep(is_done, request::BYTES_MAX))
    }

    /// Like `open`, for a driver that was here before: it does not look at every name of the directory again.
    pub(crate) fn open_again(path: &Path) -> Result<DrivenDirectory, Fault> {
        DrivenDirectory::opened(path, |directory, is_done| directory.sweep_removed(is_done, request::BYTES_MAX))
    }

    fn opened(
        path: &Path,
        sweep: impl FnOnce(&Directory, &dyn Fn(&Found) -> bool) -> Result<(), Fault>,
    ) -> Result<DrivenDirectory, Fault> {
        let directory = Directory::open(path)?;
        let lock = directory.lock()?;
        let (record, odd_record) = Record::load(&directory)?;
        let is_done = |found: &Found| record.requests.iter().any(|noted| is_of(found, &noted.request_id));
        sweep(&directory, &is_done)?;
        Ok(DrivenDirectory { directory, record, odd_record, lock })
    }

    /// Returns what waits, in the order of the phases.
    pub(crate) fn waiting(&self) -> Result<Vec<Waiting>, Fault> {
        let mut all = Vec::new();
        for pair in Pair::all() {
            all.extend(self.waiting_as(pair)?);
        }
        Ok(all)
    }

    /// Returns what waits under the names of one pair.
    pub(crate) fn waiting_as(&self, pair: Pair) -> Result<Option<Waiting>, Fault> {
        Ok(match request::look(&self.directory, pair) {
            Ok(Look::Nothing) => None,
            Ok(Look::Request(request)) => Some(Waiting::Request(request)),
            Ok(Look::TooLarge { request_id, length }) => Some(Waiting::TooLarge(pair, request_id, length)),
            Ok(Look::Malformed(malformed)) => Some(Waiting::Malformed(pair, Box::new(malformed))),
            Err(fault @ (Fault::NotAFile { .. } | Fault::Denied { .. })) => Some(Waiting::Unreadable(pair, fault)),
            Err(fault) => return Err(fault),
        })
    }

    /// Whether the response to this request is there. If the id is not noted, the response is that of a person or of
    /// another driver.
    pub(crate) fn is_answered(&self, known: Known<'_>) -> Result<bool, Fault> {
        Ok(!self.record.differs(known) && self.has_response(known)?)
    }

    fn has_response(&self, known: Known<'_>) -> Result<bool, Fault> {
        let found = response::look(&self.directory, known.pair, known.request_id)?;
        Ok(matches!(found, response::Look::Answer(_)))
    }

    /// Returns how far a request has come, for a driver whose server has this store.
    pub(crate) fn stage(&self, request: &Request, store: &str) -> Result<Stage, Fault> {
        if self.is_answered(request.into())? {
            return Ok(Stage::Answered);
        }
        Ok(if self.is_elsewhere(&request.request_id, store) { Stage::Elsewhere } else { Stage::Ours })
    }

    /// Whether a server with another store than this has a request.
    pub(crate) fn is_elsewhere(&self, request_id: &str, store: &str) -> bool {
        self.record.store_of(request_id).is_some_and(|other| other != store)
    }

    /// Notes that these requests are handed in to the server with this store. Returns the names of responses that were
    /// set aside.
    pub(crate) fn claim(&mut self, requests: &[&Request], store: &str) -> Result<Vec<String>, Fault> {
        let requests: Vec<Known<'_>> = requests.iter().map(|request| Known::from(*request)).collect();
        let command = self.record.command.clone();
        self.note(command, &requests, Some(store))
    }

    /// Notes these requests of a command; requests that were noted for another command are forgotten. Without a store
    /// they are not handed in yet. Returns the names of responses that were set aside.
    pub(crate) fn note(
        &mut self,
        command: Option<String>,
        requests: &[Known<'_>],
        store: Option<&str>,
    ) -> Result<Vec<String>, Fault> {
        let mut aside = Vec::new();
        for known in requests {
            // Before it is noted anew: after that, this response would be taken for its answer.
            if self.record.differs(*known) && self.has_response(*known)? {
                aside.extend(self.directory.set_aside(&known.pair.response())?);
            }
        }
        let before = self.record.clone();
        if self.record.command != command {
            self.record.command = command;
            // A watcher notes no command. Which server has a request that is still asked must not be forgotten with the
            // old command.
            let is_asked = |id: &str| requests.iter().any(|known| known.request_id == id);
            self.record.requests.retain(|noted| is_asked(&noted.request_id));
        }
        for known in requests {
            self.record.note(*known, store);
        }
        if self.record == before {
            return Ok(aside);
        }
        self.record.save(&self.directory)?;
        failpoint::reached("driver", "claimed");
        Ok(aside)
    }

    /// Writes the response to a request, and removes the request. Returns the name under which another response was set
    /// aside.
    pub(crate) fn put(&self, known: Known<'_>, document: &str) -> Result<Option<String>, Fault> {
        failpoint::reached("driver", "answered");
        let aside = response::write(&self.directory, known.pair, document)?;
        failpoint::reached("driver", "responded");
        self.finish(known)?;
        Ok(aside)
    }

    /// Removes a request whose response is there.
    pub(crate) fn finish(&self, known: Known<'_>) -> Result<Removed, Fault> {
        let Known { pair, request_id, digest } = known;
        let removed = match digest {
            Some(digest) => request::remove_same(&self.directory, pair, request_id, digest)?,
            None => request::remove(&self.directory, pair, request_id)?,
        };
        failpoint::reached("driver", "removed");
        Ok(removed)
    }
}
