//! Question and answer as shapes.

use crate::job::{Canonical, Holds, Home, State};
use crate::json::Value;
use crate::kind::Kind;
use crate::map::{Codec, Fill, Map, Member, Shape, fixed, home, input, output_object, own};

pub(crate) static MAP: Map = Map { key: &[Home::RequestId], shapes: &[&ASK, &GOOD, &BAD], reading, writing };

const ID: Member = home("id", Home::RequestId, Codec::Named("\"unnamed\"")).required(Fill::Id);

static ASK: Shape = Shape {
    kind: Kind::DemoAsk,
    when: "",
    state: None,
    members: &[ID, home("work", Home::Work, Codec::Named("\"work\"")).required(Fill::Raw("\"work\"")), input("input")],
    carrier: None,
    closed: false,
    loose: false,
};

static GOOD: Shape = Shape {
    kind: Kind::DemoAnswer,
    when: "ok",
    state: Some(State::Completed),
    members: &[ID, fixed("ok", "true"), output_object("output")],
    carrier: None,
    closed: false,
    loose: false,
};

/// The contract has no codes: why it failed is carried, and what it says of that is its own.
static BAD: Shape = Shape {
    when: "not ok",
    state: Some(State::Failed),
    members: &[ID, fixed("ok", "false"), own("output", Holds::Object).required(Fill::Raw("{}"))],
    ..GOOD
};

fn reading(kind: Kind, root: Value<'_, '_>) -> Option<&'static Shape> {
    if kind == Kind::DemoAsk {
        return Some(&ASK);
    }
    Some(if root.get("ok").and_then(Value::boolean) == Some(true) { &GOOD } else { &BAD })
}

fn writing(job: &Canonical<'_>) -> Option<&'static Shape> {
    match job.state() {
        None => Some(&ASK),
        Some(State::Completed) => Some(&GOOD),
        Some(State::Failed | State::Cancelled) => Some(&BAD),
        // There is one answer, at the end.
        Some(State::Queued | State::Running | State::Waiting) => None,
    }
}
