//! What the caller of a job knows it by.

use crosspoint_contracts::request::Key;

use super::Request;
use crate::keys::Name;

impl Request {
    /// Returns the caller's own id for the job. It holds at the door of the request.
    pub fn own_id(&self) -> Name {
        Name { door: Some(self.door), text: self.request_id.clone() }
    }

    /// Whether the request came with this name: it is its key, or the id of a task. No two tasks of a caller have one
    /// id, whatever headers came with them (TASK-5).
    pub fn has_name(&self, name: &Name) -> bool {
        let is_id = name.door == Some(self.door) && *name.text == *self.request_id;
        match &self.key {
            Key::Other(key) if name.door.is_none() => *key == name.text,
            Key::RequestId => is_id,
            Key::Other(_) | Key::None => is_id && self.door.has_unique_ids(),
        }
    }
}
