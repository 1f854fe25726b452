//! An object that is put together from pieces of JSON text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::clause::Clause;
use crate::json::{self, Type, Value};
use crate::report::pointer;

use super::Refused;

/// Members as they were spelled, and members that were made up. No name occurs twice.
#[derive(Default)]
pub(super) struct Object<'s> {
    members: String,
    names: BTreeSet<Cow<'s, str>>,
}

impl<'s> Object<'s> {
    /// Appends a member of another object. Returns whether its name was free.
    pub(super) fn keep(&mut self, member: Value<'_, 's>) -> bool {
        let Some(key) = member.key() else { return false };
        let name = member.member_name().unwrap_or_default().decode();
        self.push(name, key.source(), member.source())
    }

    /// Appends a member with new JSON text. Returns whether its name was free.
    pub(super) fn add(&mut self, name: &'static str, value: &str) -> bool {
        self.push(Cow::Borrowed(name), &json::quoted(name), value)
    }

    fn push(&mut self, name: Cow<'s, str>, key: &str, value: &str) -> bool {
        if !self.names.insert(name) {
            return false;
        }
        if !self.members.is_empty() {
            self.members.push(',');
        }
        self.members.push_str(key);
        self.members.push(':');
        self.members.push_str(value);
        true
    }

    /// The JSON text.
    pub(super) fn finish(self) -> String {
        format!("{{{}}}", self.members)
    }
}

/// Returns a member of the document. It must have that type if it is there.
pub(super) fn typed<'t, 's>(
    owner: Option<Value<'t, 's>>,
    path: &[&str],
    wanted: Type,
    clause: &'static Clause,
) -> Result<Option<Value<'t, 's>>, Refused> {
    let name = path.last().copied().unwrap_or_default();
    let Some(value) = owner.and_then(|owner| owner.get(name)) else { return Ok(None) };
    if value.kind() == wanted {
        return Ok(Some(value));
    }
    let (found, wanted) = (value.kind(), wanted.described());
    Err(Refused::WrongType { pointer: pointer(path), found, wanted, clause })
}
