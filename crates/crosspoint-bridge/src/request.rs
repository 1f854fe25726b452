//! What a request file holds.

use std::fmt;
use std::time::{Duration, SystemTime};

use crosspoint_contracts::bridge::clause::BRIDGE_105;
use crosspoint_contracts::bridge::input;
use crosspoint_contracts::document::Document;
use crosspoint_contracts::json::{Tape, compact};
use crosspoint_contracts::{Kind, Options, Report, read};
use uuid::Uuid;

use crate::directory::{Directory, Found, Removed};
use crate::document::{id_of, is_of};
use crate::fault::Fault;
use crate::pair::Pair;

/// Largest request that drivers take, in bytes. A larger one is answered as too large (BRIDGE-8).
pub const BYTES_MAX: u64 = 1 << 20;

/// Most bytes of a too large request that are read in search of its id.
const SEARCH_BYTES_MAX: u64 = 64 << 20;

/// Age from which a request is answered with a warning (BRIDGE-8.3).
pub const AGE_MAX: Duration = Duration::from_secs(600);

/// How long the requester waits if its request does not say (BRIDGE-110).
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

/// A request that can be acted on. `Debug` does not print what it asks, because that is content.
pub struct Request {
    /// The pair of files that it was found in.
    pub pair: Pair,
    /// The requester's id for the request.
    pub request_id: String,
    /// The work or the agent that the requester wants.
    pub agent_name: String,
    /// The phase of the requester's run: from the request, else from the file's name.
    pub phase: Option<i64>,
    /// The requester's name for the phase.
    pub phase_name: Option<String>,
    /// How long the requester waits, in seconds, where the request says so.
    pub timeout_seconds: Option<f64>,
    /// The bytes of the file, unchanged.
    pub document: Vec<u8>,
    /// A digest of the agent's name and the input. The same id with another digest is another request (ALL-1).
    pub digest: String,
    /// When the request was made, where it says so.
    pub created_at: Option<String>,
    /// When the file was written.
    pub written: SystemTime,
    /// The warnings about the request.
    pub report: Report,
}

/// What was found under the name of a request.
pub enum Look {
    /// No file.
    Nothing,
    /// A request that can be acted on.
    Request(Box<Request>),
    /// A request that is too large.
    TooLarge {
        /// The requester's id for the request.
        request_id: String,
        /// How long the file is, in bytes.
        length: u64,
    },
    /// A file that cannot be acted on (BRIDGE-8.5).
    Malformed(Malformed),
}

/// A file that cannot be acted on.
pub struct Malformed {
    /// What is wrong with the file.
    pub report: Report,
    /// The bytes of the file, for callers that show where it is wrong.
    pub document: Vec<u8>,
    /// The id, where one can be found in the file.
    pub request_id: Option<String>,
    /// When the file was written.
    pub written: SystemTime,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?}, {:?}, [{} bytes])", self.pair, self.request_id, self.document.len())
    }
}

/// Reads and judges the request of a pair.
pub fn look(directory: &Directory, pair: Pair) -> Result<Look, Fault> {
    let name = pair.request();
    let Some(found) = directory.read(&name, BYTES_MAX + 1)? else { return Ok(Look::Nothing) };
    if found.length <= BYTES_MAX {
        return Ok(checked(pair, found));
    }
    let Some(found) = directory.read(&name, SEARCH_BYTES_MAX)? else { return Ok(Look::Nothing) };
    Ok(match id_of(&found.bytes) {
        Some(request_id) => Look::TooLarge { request_id, length: found.length },
        None => Look::Malformed(malformed(found)),
    })
}

/// Removes the request if it has this id. Another request stays.
pub fn remove(directory: &Directory, pair: Pair, request_id: &str) -> Result<Removed, Fault> {
    directory.remove(&pair.request(), |found| is_of(found, request_id), SEARCH_BYTES_MAX)
}

/// Removes the request if it has this id and this digest. Any other request stays, even one of the same id.
pub fn remove_same(directory: &Directory, pair: Pair, request_id: &str, digest: &str) -> Result<Removed, Fault> {
    let is_same = |found: &Found| is_of(found, request_id) && digest_of(&found.bytes).is_some_and(|of| of == digest);
    directory.remove(&pair.request(), is_same, SEARCH_BYTES_MAX)
}

fn digest_of(document: &[u8]) -> Option<String> {
    let options = Options { kind: Some(Kind::BridgeRequest), ..Options::default() };
    match read(document, &options).document {
        Some(Document::BridgeRequest(request)) => Some(digest(&request.agent_name.decode(), document)),
        _ => None,
    }
}

/// Digests what is compared when an id comes again: the agent's name and the input, but neither times nor whitespace.
fn digest(agent_name: &str, document: &[u8]) -> String {
    let input = input(document).unwrap_or_default();
    let tape = Tape::scan(input.as_bytes()).ok();
    let input = tape.and_then(|tape| tape.root().map(compact)).unwrap_or_default();
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{agent_name}\0{input}").as_bytes()).to_string()
}

fn checked(pair: Pair, found: Found) -> Look {
    let options = Options { kind: Some(Kind::BridgeRequest), ..Options::default() };
    let reading = read(&found.bytes, &options);
    let Some(Document::BridgeRequest(request)) = &reading.document else { return Look::Malformed(malformed(found)) };
    // The response has to carry the id, and a repeat is recognised by it.
    if request.request_id.get().is_empty() {
        let mut report = reading.report;
        for finding in report.findings.iter_mut().filter(|finding| finding.pointer == "/request_id") {
            (finding.clause, finding.message) = (&BRIDGE_105, "`request_id` is empty".into());
        }
        return Look::Malformed(Malformed { report, request_id: None, written: found.modified, document: found.bytes });
    }
    let request = Request {
        pair,
        request_id: request.request_id.get().into_owned(),
        agent_name: request.agent_name.decode().into_owned(),
        digest: digest(&request.agent_name.decode(), &found.bytes),
        phase: request.phase.or(pair.phase().map(i64::from)),
        phase_name: request.phase_name.as_ref().map(|name| name.decode().into_owned()),
        timeout_seconds: request.timeout_seconds,
        created_at: request.created_at.map(|time| time.text().decode().into_owned()),
        report: reading.report.clone(),
        written: found.modified,
        document: Vec::new(),
    };
    Look::Request(Box::new(Request { document: found.bytes, ..request }))
}

fn malformed(found: Found) -> Malformed {
    let options = Options { kind: Some(Kind::BridgeRequest), ..Options::default() };
    let report = read(&found.bytes, &options).report;
    let request_id = id_of(&found.bytes);
    Malformed { report, request_id, written: found.modified, document: found.bytes }
}
