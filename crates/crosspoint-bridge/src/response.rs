//! What a response file holds, and how one is written.

use std::fmt;

pub use crosspoint_contracts::bridge::Status;
use crosspoint_contracts::content::{Nullable, Text};
use crosspoint_contracts::document::Document;
use crosspoint_contracts::json::{Levels, quoted};
use crosspoint_contracts::{Kind, Options, Report, read};

use crate::directory::{Directory, Removed};
use crate::document::{is_of, laid_out};
use crate::fault::Fault;
use crate::pair::Pair;

/// Longest text of a response that drivers write, in bytes of UTF-8. In place of a longer one they write an error
/// (BRIDGE-8.2).
pub const BYTES_MAX: usize = 10 << 20;

/// Most bytes of a response that are read: in a file, the longest text may take six times its length.
pub const READ_BYTES_MAX: u64 = 64 << 20;

/// Describes a file that this user may not read.
const CLOSED: &str = "closed to this user";

/// What was found under the name of a response.
pub enum Look {
    /// No file.
    Nothing,
    /// The answer to the request.
    Answer(Box<Answer>),
    /// The answer to another request, with the id of that request (BRIDGE-4).
    Foreign(String),
    /// A file that cannot be read as a response.
    Malformed {
        /// What is wrong with the file.
        report: Report,
        /// The bytes of the file, for callers that show where it is wrong.
        document: Vec<u8>,
    },
    /// An entry that is no file, or a file that this user may not read, with a description of it.
    NotAFile(&'static str),
}

/// An answer. `Debug` does not print its words, because they are content.
pub struct Answer {
    /// How the work ended.
    pub status: Status,
    /// What the agent said, if it succeeded: any text, often JSON.
    pub response: Option<String>,
    /// What went wrong, for people.
    pub error_message: Option<String>,
    /// What went wrong, for programs.
    pub error_type: Option<String>,
    /// How long the agent took, in seconds.
    pub duration_seconds: f64,
    /// Further facts, as a JSON object.
    pub metadata: String,
    /// The bytes of the file, unchanged.
    pub document: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({:?}, [{} bytes])", self.status, self.document.len())
    }
}

/// Reads the response of a pair as the answer to the request of this id.
pub fn look(directory: &Directory, pair: Pair, request_id: &str) -> Result<Look, Fault> {
    look_under(directory, &pair.response(), request_id)
}

/// Reads a response that may have been moved elsewhere.
pub(crate) fn look_under(directory: &Directory, name: &str, request_id: &str) -> Result<Look, Fault> {
    let found = match directory.read(name, READ_BYTES_MAX) {
        Ok(None) => return Ok(Look::Nothing),
        Ok(Some(found)) => found,
        Err(Fault::NotAFile { what, .. }) => return Ok(Look::NotAFile(what)),
        // The file can still be moved out of the way (BRIDGE-4.2). A directory that may not be read is a fault.
        Err(Fault::Denied { path, .. }) if path == directory.path().join(name) => return Ok(Look::NotAFile(CLOSED)),
        Err(fault) => return Err(fault),
    };
    // Drivers wrap the JSON of agents in the response, which adds levels.
    let options = Options { kind: Some(Kind::BridgeResponse), levels: Levels::Wrapped, ..Options::default() };
    let reading = read(&found.bytes, &options);
    let Some(Document::BridgeResponse(response)) = &reading.document else {
        let report = reading.report;
        return Ok(Look::Malformed { report, document: found.bytes });
    };
    let id = response.request_id.get();
    if id != request_id {
        return Ok(Look::Foreign(id.into_owned()));
    }
    let owned = |text: &Nullable<Text<'_>>| text.0.as_ref().map(|text| text.decode().into_owned());
    let answer = Answer {
        status: response.status,
        response: owned(&response.response),
        error_message: owned(&response.error_message),
        error_type: owned(&response.error_type),
        duration_seconds: response.duration_seconds,
        metadata: response.metadata.get().to_owned(),
        document: Vec::new(),
    };
    Ok(Look::Answer(Box::new(Answer { document: found.bytes, ..answer })))
}

/// Writes a response, indented for people. A file that has the name is set aside first, and its new name is returned
/// (BRIDGE-4.2).
pub fn write(directory: &Directory, pair: Pair, document: &str) -> Result<Option<String>, Fault> {
    let name = pair.response();
    let aside = directory.set_aside(&name)?;
    directory.write(&name, "response", &laid_out(document))?;
    Ok(aside)
}

/// Removes the response if it answers the request of this id. Another response stays.
pub fn remove(directory: &Directory, pair: Pair, request_id: &str) -> Result<Removed, Fault> {
    directory.remove(&pair.response(), |found| is_of(found, request_id), READ_BYTES_MAX)
}

/// Returns a response that says what went wrong. `now` is the time of the error, as it is to be written.
pub fn error(request_id: &str, error_type: &str, message: &str, now: &str, duration_seconds: f64) -> String {
    format!(
        r#"{{"request_id":{},"version":"1.0","status":"error","response":null,"error_message":{},"error_type":{},"created_at":{},"duration_seconds":{duration_seconds:?},"metadata":{{}}}}"#,
        quoted(request_id),
        quoted(message),
        quoted(error_type),
        quoted(now),
    )
}

/// Returns a response with the text of an agent.
pub fn success(request_id: &str, text: &str, now: &str, duration_seconds: f64) -> String {
    format!(
        r#"{{"request_id":{},"version":"1.0","status":"success","response":{},"error_message":null,"error_type":null,"created_at":{},"duration_seconds":{duration_seconds:?},"metadata":{{}}}}"#,
        quoted(request_id),
        quoted(text),
        quoted(now),
    )
}
