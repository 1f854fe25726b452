//! Texts and objects (ALL-8).
//!
//! Some contracts know input and outcome as text, others as objects. Towards the other sort a text is wrapped in an object and
//! an object is written as compact JSON; a mark says what it was, so that it comes back in its first form, with whatever
//! was changed in it meanwhile.

use std::borrow::Cow;

use crate::content::Json;
use crate::json::{self, FlawKind, Tape, Text, Type, Value, push_name, push_quoted};

/// In which form something stands, where that is not its own.
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

/// A JSON text as the compact text of a JSON string: non-ASCII unescaped, key order kept.
pub(crate) fn encoded(object: &str) -> String {
    let mut out = String::new();
    match Tape::scan(object.as_bytes()) {
        Ok(tape) => push_quoted(&mut out, &tape.root().map(json::plain).unwrap_or_default()),
        // Never: what a job holds was scanned.
        Err(_) => push_quoted(&mut out, object),
    }
    out
}

/// The object inside a JSON string, where there is one.
pub(crate) fn decoded(value: Value<'_, '_>) -> Option<String> {
    let text = value.text()?.decode().into_owned();
    let tape = Tape::scan(text.as_bytes()).ok()?;
    // A number that others would round is passed on like any other.
    let readable = tape.flaws().iter().all(|flaw| flaw.kind == FlawKind::NumberRange);
    let is_object = tape.root()?.kind() == Type::Object && readable;
    is_object.then_some(text)
}

/// `{"output": ...}`
pub(crate) fn wrapped(member: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + member.len() + 8);
    out.push('{');
    push_name(&mut out, member);
    out.push_str(text);
    out.push('}');
    out
}

/// The text inside `{"output": ...}`, where that is all there is.
pub(crate) fn unwrapped<'t, 's>(value: Value<'t, 's>, member: &str) -> Option<Value<'t, 's>> {
    let text = value.get(member).filter(|text| text.kind() == Type::String)?;
    (value.members().count() == 1).then_some(text)
}

/// A prompt and its context as one object.
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

/// Prompt and context of an object that has nothing else.
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

/// An object without one of its members.
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
