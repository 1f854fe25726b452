//! Cancelling work by a message (MSG-19): an error 5901 that names the request and the task.

use super::code;
use crate::json::{Tape, Value};

/// The work that is to be cancelled, by the sender's ids for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The id of the request, from the context, or else from the envelope.
    pub request_id: Option<String>,
    /// The id of the task, from the context or the payload.
    pub task_id: Option<String>,
}

impl Cancel {
    /// Returns which work a message cancels. `None` if it is no message that cancels, or names no work.
    pub fn read(message: &[u8]) -> Option<Cancel> {
        let tape = Tape::scan(message).ok()?;
        let root = tape.root()?;
        let at = |path: &str| path.split('/').try_fold(root, Value::get);
        let is_error = at("type")?.text()? == *"error";
        let is_cancel = at("payload/error_code")?.integer() == Some(code::CANCELLED);
        let text = |path: &str| Some(at(path)?.text()?.decode().into_owned()).filter(|id| !id.is_empty());
        let request_id = REQUEST_IDS.iter().find_map(|path| text(path));
        let task_id = TASK_IDS.iter().find_map(|path| text(path));
        let is_named = request_id.is_some() || task_id.is_some();
        (is_error && is_cancel && is_named).then_some(Cancel { request_id, task_id })
    }
}

/// Where the request of an error stands. A sender that gives every message an id of its own says it in the context.
const REQUEST_IDS: [&str; 3] = ["payload/error_context/request_id", "payload/context/request_id", "request_id"];

/// Where the task of an error stands, the contract's own place first.
const TASK_IDS: [&str; 3] = ["payload/error_context/task_id", "payload/context/task_id", "payload/task_id"];
