//! Texts and objects (ALL-8).
//!
//! Some contracts have input and outcome as text, others as objects. For a contract of the other sort a text is wrapped
//! in an object, and an object is written as compact JSON. A mark says what it was, so that it comes back in its first
//! form, with any changes that were made meanwhile.

use std::borrow::Cow;

use crate::content::Json;
use crate::json::{self, FlawKind, Tape, Text, Type, Value, push_name, push_quoted};

/// The form of a value, where that is not the form in which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A text that was wrapped in an object.
    Text,
    /// An object that was written as JSON text.
    Json,
    /// An object that looked like a wrapped text, and was unwrapped.
    Object,
}

impl Mark {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mark::Text => "text",
            Mark::Json => "json",
            Mark::Object => "object",
        }
    }

    pub(crate) fn of(text: Text<'_>) -> Option<Mark> {
        [Mark::Text, Mark::Json, Mark::Object].into_iter().find(|mark| text == *mark.name())
    }
}

/// Returns JSON as a JSON string with compact text: non-ASCII characters unescaped, the order of keys kept.
pub(crate) fn encoded(object: &str) -> String {
    let mut out = String::new();
    match Tape::scan(object.as_bytes()) {
        Ok(tape) => push_quoted(&mut out, &tape.root().map(json::plain).unwrap_or_default()),
        // Never happens: values of a job were scanned.
        Err(_) => push_quoted(&mut out, object),
    }
    out
}

/// Returns the object inside a JSON string, where there is one.
pub(crate) fn decoded(value: Value<'_, '_>) -> Option<String> {
    let text = value.text()?.decode().into_owned();
    let tape = Tape::scan(text.as_bytes()).ok()?;
    // A number that other readers would round is passed on like any other.
    let readable = tape.flaws().iter().all(|flaw| flaw.kind == FlawKind::NumberRange);
    let is_object = tape.root()?.kind() == Type::Object && readable;
    is_object.then_some(text)
}

/// Returns `{"output": ...}`, with this name for the member.
pub(crate) fn wrapped(member: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + member.len() + 8);
    out.push('{');
    push_name(&mut out, member);
    out.push_str(text);
    out.push('}');
    out
}

/// Returns the text inside `{"output": ...}`, if the object has no other member.
pub(crate) fn unwrapped<'t, 's>(value: Value<'t, 's>, member: &str) -> Option<Value<'t, 's>> {
    let text = value.get(member).filter(|text| text.kind() == Type::String)?;
    (value.members().count() == 1).then_some(text)
}

/// Returns a prompt and its context as one object.
pub(crate) fn prompt_object(prompt: &Json<'_>, context: Option<&Json<'_>>) -> String {
    let mut out = wrapped("prompt", prompt.get());
    if let Some(context) = context {
        out.pop();
        push_name(&mut out, "context");
        out.push_str(context.get());
        out.push('}');
    }
    out
}

/// Returns the prompt and the context of an object that has no other members.
pub(crate) fn prompt_parts<'t, 's>(value: Value<'t, 's>) -> Option<(Value<'t, 's>, Option<Value<'t, 's>>)> {
    let prompt = value.get("prompt").filter(|prompt| prompt.kind() == Type::String)?;
    let context = value.get("context");
    let others = value.members().count() > 1 + usize::from(context.is_some());
    let fits = context.is_none_or(|context| context.kind() == Type::Object);
    (fits && !others).then_some((prompt, context))
}

/// Whether two values are the same.
pub(crate) fn same(one: &str, other: Value<'_, '_>) -> bool {
    one == other.source()
        || Tape::scan(one.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|root| json::equal(root, other)))
}

/// Returns an object without one of its members.
pub(crate) fn without<'s>(object: Value<'_, 's>, name: &str) -> Cow<'s, str> {
    if object.get(name).is_none() {
        return Cow::Borrowed(object.source());
    }
    let mut out = String::from("{");
    for (key, value) in object.members().filter(|(key, _)| *key != *name) {
        push_name(&mut out, &key.decode());
        out.push_str(value.source());
    }
    out.push('}');
    Cow::Owned(out)
}
