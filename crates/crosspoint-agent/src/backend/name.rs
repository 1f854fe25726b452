//! The names of a request: what makes another request the same, and by what its caller asks for it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crosspoint_contracts::request::{Door, Key, NewJob};
use uuid::Uuid;

/// What makes two requests the same, for one caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    /// First, because names are compared in this order: those of a map are nearly always told apart by it, without a
    /// look at their texts, which are all over the memory.
    digest: u64,
    key: Arc<str>,
    caller: Arc<str>,
    /// The door whose ids are meant; `None` for a key that all doors share.
    door: Option<&'static str>,
}

impl Name {
    fn new(caller: Arc<str>, door: Option<&'static str>, key: &str) -> Name {
        let mut digest = DefaultHasher::new();
        (key, &*caller, door).hash(&mut digest);
        Name { digest: digest.finish(), key: key.into(), caller, door }
    }

    /// Returns the names of a request.
    pub(crate) fn of(new: &NewJob) -> Vec<Name> {
        let id = new.request_id.as_deref().filter(|id| !id.is_empty());
        let by_id = |id: &str| Name::by_id(&new.caller, new.door, id);
        let by_key = |key: &str| Name::new(new.caller.clone(), None, key);
        match (&new.key, id) {
            (Key::RequestId, Some(id)) => vec![by_id(id)],
            // Where ids are unique, callers ask by them, whatever header came with the request.
            (Key::Other(key), Some(id)) if new.door.has_unique_ids() => vec![by_key(key), by_id(id)],
            (Key::Other(key), _) => vec![by_key(key)],
            (Key::None | Key::RequestId, _) => Vec::new(),
        }
    }

    pub(super) fn by_id(caller: &Arc<str>, door: Door, id: &str) -> Name {
        Name::new(caller.clone(), Some(door.name()), id)
    }

    /// Returns the name of a job by its own id, under which the store of answers has it too.
    pub(crate) fn of_job(id: Uuid) -> Name {
        Name::new("".into(), Some("job"), &id.to_string())
    }

    /// Returns the name by which the store notes that the outcome of this job was told.
    pub(crate) fn told(id: Uuid) -> Name {
        Name::new("".into(), Some("told"), &id.to_string())
    }

    /// Reads what [`Name::text`] wrote; `None` if it is the name of a job by its own id.
    pub(crate) fn read(text: &str) -> Option<Name> {
        let mut parts = text.splitn(3, '\n');
        let (caller, door, key) = (parts.next()?, parts.next()?, parts.next()?);
        let door = match door {
            "" => None,
            door => Some(Door::from_name(door)?.name()),
        };
        Some(Name::new(caller.into(), door, key))
    }

    /// Returns the name as one text, for the store of answers.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}\n{}", self.caller, self.door.unwrap_or_default(), self.key)
    }
}
