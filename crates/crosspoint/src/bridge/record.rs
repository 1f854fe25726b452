//! What drivers remember beside the files: `.agent-bridge.json`.
//!
//! It is written before a request is handed in. So after a crash it is known which command the request belongs to,
//! which server has it, and whether a response with that id was written by this driver (BRIDGE-4.4) and answers what is
//! asked now. It holds ids and no content; the command and what is asked are known by digests, because their words may
//! hold secrets.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crosspoint_bridge::request::Request;
use crosspoint_bridge::{Directory, Fault, Pair};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use crosspoint_bridge::RECORD as NAME;

/// Longest record, in bytes; a longer file is no record.
const BYTES_MAX: u64 = 64 << 10;

/// The format version that this build writes.
const FORM: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    crosspoint: u32,
    /// The digest of the program that left the requests, if it is known.
    pub(crate) command: Option<String>,
    /// What was handed in and may not have been taken by its requester yet.
    pub(crate) requests: Vec<Noted>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) file: String,
    pub(crate) request_id: String,
    /// The digest of what it asks; none if it was too large to be read.
    pub(crate) digest: Option<String>,
    /// The store of the server that was given it, once it is.
    pub(crate) store: Option<String>,
}

/// What identifies a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'r> {
    pub(crate) pair: Pair,
    pub(crate) request_id: &'r str,
    /// The digest of what it asks; none if it is too large to be read.
    pub(crate) digest: Option<&'r str>,
}

impl<'r> From<&'r Request> for Known<'r> {
    fn from(request: &'r Request) -> Known<'r> {
        Known { pair: request.pair, request_id: &request.request_id, digest: Some(&request.digest) }
    }
}

impl Record {
    /// Reads the record of a directory. A record that cannot be understood is set aside; its new name is returned too.
    pub(crate) fn load(directory: &Directory) -> Result<(Record, Option<String>), Fault> {
        let found = match directory.read(NAME, BYTES_MAX) {
            Ok(None) => return Ok((Record::default(), None)),
            Ok(Some(found)) => Some(found),
            Err(Fault::NotAFile { .. }) => None,
            Err(fault) => return Err(fault),
        };
        let record = found.and_then(|found| serde_json::from_slice::<Record>(&found.bytes).ok());
        match record.filter(|record| record.crosspoint == FORM) {
            Some(record) => Ok((record, None)),
            None => Ok((Record::default(), directory.set_aside(NAME)?)),
        }
    }

    pub(crate) fn save(&mut self, directory: &Directory) -> Result<(), Fault> {
        self.crosspoint = FORM;
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        directory.write(NAME, "record", &text)
    }

    /// Notes that a command is begun: of what came before nothing counts any more.
    pub(crate) fn begin(&mut self, command: &str, directory: &Directory) -> Result<(), Fault> {
        let mut begun = Record { command: Some(command.to_owned()), ..Record::default() };
        begun.save(directory)?;
        *self = begun;
        Ok(())
    }

    pub(crate) fn forget(&mut self, directory: &Directory) -> Result<(), Fault> {
        *self = Record::default();
        // In one step: if it were renamed first, it would come back at the next start, and a program that has ended
        // would be resumed.
        directory.discard(NAME, "record")
    }

    /// Whether a request of this id is noted for the pair.
    pub(crate) fn has(&self, pair: Pair, request_id: &str) -> bool {
        let file = pair.request();
        self.requests.iter().any(|noted| noted.file == file && noted.request_id == request_id)
    }

    /// The store of the server that was given the request of this id, if any was.
    pub(crate) fn store_of(&self, request_id: &str) -> Option<&str> {
        self.requests.iter().find(|noted| noted.request_id == request_id)?.store.as_deref()
    }

    /// Whether a request of this id is noted that asks something else: what answers that one does not answer this one
    /// (ALL-1).
    pub(crate) fn differs(&self, known: Known<'_>) -> bool {
        let is_it = |noted: &&Noted| noted.file == known.pair.request() && noted.request_id == known.request_id;
        self.requests.iter().find(is_it).is_some_and(|noted| noted.digest.as_deref() != known.digest)
    }

    /// Notes a request, in the place of the last one of its pair. The store that it was handed in to is kept when it is
    /// noted again.
    pub(crate) fn note(&mut self, known: Known<'_>, store: Option<&str>) {
        let file = known.pair.request();
        let store = store.or(self.store_of(known.request_id)).map(str::to_owned);
        let (request_id, digest) = (known.request_id.to_owned(), known.digest.map(str::to_owned));
        self.requests.retain(|noted| noted.file != file);
        self.requests.push(Noted { file, request_id, digest, store });
    }
}

/// The digest by which a command is known. The same words with another directory to run in are another command.
pub(crate) fn digest(command: &[OsString], cwd: Option<&Path>) -> String {
    let mut words = Vec::new();
    let place = cwd.map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()).into_os_string());
    for word in place.iter().chain(command) {
        words.extend_from_slice(word.as_bytes());
        words.push(0);
    }
    Uuid::new_v5(&Uuid::NAMESPACE_OID, &words).to_string()
}
