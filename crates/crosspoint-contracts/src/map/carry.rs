//! What travels along because the other contract has no field for it.
//!
//! It stands under one key in the open object of a contract, or beside the top-level members where there is no such
//! object:
//!
//! ```json
//! {"from": "run.request", "mode": "LIVE", "fields": {"run": {"/tenant": 7}}, "filled": {"task": {"/id": "..."}}}
//! ```
//!
//! `from` is the kind that the job came as. Homes stand by their names. `fields` are members without a home, by their
//! places. `form` marks texts that are objects and objects that are texts. `filled` names the contracts on the way, and
//! the values that their documents have only because the contract demands them. When the document comes back, such a
//! value is ignored unless it was changed.
//!
//! All this comes from outside, so it is believed only as far as it fits: a value for a home must be of the type
//! that the home holds. Anything else that stands there is kept and passed on.

use crate::artifact;
use crate::content::Json;
use crate::job::{Canonical, Filled, Home, Own};
use crate::json::{Type, Value, push_name, push_quoted};
use crate::kind::{Contract, Kind};

use super::outcome::Mark;

/// The key that everything is carried under.
pub(crate) const KEY: &str = "x_crosspoint";

/// Holds values that stood under a name of ours and did not fit it.
const MISFITS: &str = "misfits";

/// Whether a name among the carried members is one of ours.
fn is_ours(name: &str) -> bool {
    let known = ["from", "form", "fields", "filled", MISFITS, artifact::CARRIED];
    known.contains(&name) || Home::ALL.iter().any(|home| home.name() == name)
}

/// Appends members that are not ours: under their names, or apart where a name is one of ours.
pub(super) fn push_strange(out: &mut String, strange: &[(String, Json<'_>)]) {
    let (misfits, others): (Vec<_>, Vec<_>) = strange.iter().partition(|(name, _)| is_ours(name));
    for (name, value) in others {
        push_name(out, name);
        out.push_str(value.get());
    }
    if misfits.is_empty() {
        return;
    }
    push_name(out, MISFITS);
    out.push('{');
    for (name, value) in misfits {
        push_name(out, name);
        out.push_str(value.get());
    }
    out.push('}');
}

/// In which forms input and output stand in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) input: Option<Mark>,
    pub(crate) output: Option<Mark>,
    /// Whether artifacts were carried, if only to say that there are none.
    pub(crate) artifacts: bool,
}

/// What was carried in a document.
pub(crate) struct Carry<'s> {
    pub(crate) job: Canonical<'s>,
    pub(crate) marks: Marks,
    pub(crate) artifacts: Vec<artifact::Carried<'s>>,
}

impl<'s> Carry<'s> {
    pub(crate) fn nothing(kind: Kind) -> Carry<'s> {
        Carry { job: Canonical::new(kind), marks: Marks::default(), artifacts: Vec::new() }
    }

    /// Reads the value under the key, or returns `None` where we did not write it.
    pub(crate) fn read(value: Value<'_, 's>, kind: Kind) -> Option<Carry<'s>> {
        let from = Kind::from_name(&value.get("from")?.text()?.decode())?;
        let mut carry = Carry { job: Canonical::new(from), ..Carry::nothing(kind) };
        for (name, value) in value.members() {
            let name = name.decode();
            let known = match &*name {
                "from" => true,
                MISFITS => carry.read_misfits(value),
                "form" => carry.read_marks(value),
                "fields" => carry.read_fields(value),
                "filled" => carry.read_filled(value),
                artifact::CARRIED => carry.read_artifacts(value),
                other => carry.read_home(other, value),
            };
            if !known {
                carry.job.strange.push((name.into_owned(), Json::new(value.source())));
            }
        }
        Some(carry)
    }

    fn read_misfits(&mut self, value: Value<'_, 's>) -> bool {
        let misfits = value.members().map(|(name, value)| (name.decode().into_owned(), Json::new(value.source())));
        self.job.strange.extend(misfits);
        value.kind() == Type::Object
    }

    fn read_marks(&mut self, value: Value<'_, 's>) -> bool {
        let mark = |name: &str| value.get(name).and_then(Value::text).and_then(Mark::of);
        (self.marks.input, self.marks.output) = (mark("input"), mark("output"));
        value.kind() == Type::Object
    }

    fn read_fields(&mut self, value: Value<'_, 's>) -> bool {
        for_each_place(value, |contract, pointer, value| {
            self.job.own.push(Own { contract, pointer, value: Json::new(value.source()) });
        })
    }

    fn read_filled(&mut self, value: Value<'_, 's>) -> bool {
        let via = value.members().filter_map(|(name, _)| Contract::from_name(&name.decode())).collect();
        let known = for_each_place(value, |contract, pointer, value| {
            self.job.filled.push(Filled { contract, pointer, value: Json::new(value.source()) });
        });
        if known {
            self.job.via = via;
        }
        known
    }

    fn read_artifacts(&mut self, value: Value<'_, 's>) -> bool {
        let read: Option<Vec<_>> = value.items().map(artifact::Carried::read).collect();
        self.marks.artifacts = value.kind() == Type::Array && read.is_some();
        self.artifacts = read.unwrap_or_default();
        self.marks.artifacts
    }

    fn read_home(&mut self, name: &str, value: Value<'_, 's>) -> bool {
        let home = Home::ALL.iter().find(|home| home.name() == name).filter(|home| home.holds().accepts(value));
        home.inspect(|home| self.job.set(**home, Json::new(value.source()))).is_some()
    }
}

/// Calls `act` for each entry of `{contract: {pointer: value}}`. Returns false where the value has another form.
fn for_each_place<'t, 's>(value: Value<'t, 's>, mut act: impl FnMut(Contract, String, Value<'t, 's>)) -> bool {
    let all_known = value
        .members()
        .all(|(name, places)| Contract::from_name(&name.decode()).is_some() && places.kind() == Type::Object);
    if value.kind() != Type::Object || !all_known {
        return false;
    }
    for (name, places) in value.members() {
        let Some(contract) = Contract::from_name(&name.decode()) else { continue };
        places.members().for_each(|(pointer, value)| act(contract, pointer.decode().into_owned(), value));
    }
    true
}

/// Returns the pointer to a member, or to a member inside it.
pub(super) fn pointer(path: &[&str], inside: Option<&str>) -> String {
    let mut pointer = String::with_capacity(64);
    path.iter().copied().chain(inside).for_each(|name| push_token(&mut pointer, name));
    pointer
}

/// Returns what follows the path to a member in a pointer; `None` if the pointer leads elsewhere. No pointer is made
/// for the comparison, which is made for every member of a document. Names of shapes have nothing that a pointer
/// escapes.
pub(super) fn below<'p>(pointer: &'p str, path: &[&'static str]) -> Option<&'p str> {
    let rest = path.iter().try_fold(pointer, |rest, name| rest.strip_prefix('/')?.strip_prefix(name))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Appends one token of a JSON pointer.
pub(crate) fn push_token(pointer: &mut String, name: &str) {
    pointer.push('/');
    // Hardly any name has one of these.
    if !name.bytes().any(|byte| matches!(byte, b'~' | b'/')) {
        return pointer.push_str(name);
    }
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Appends `{contract: {pointer: value}}` for these contracts.
pub(super) fn push_places(out: &mut String, contracts: &[Contract], places: &[(Contract, &str, &str)]) {
    out.push('{');
    for wanted in contracts {
        push_name(out, wanted.name());
        out.push('{');
        for (_, pointer, value) in places.iter().filter(|(contract, ..)| contract == wanted) {
            push_name(out, pointer);
            out.push_str(value);
        }
        out.push('}');
    }
    out.push('}');
}

/// Appends the marks, where there are any.
pub(super) fn push_marks(out: &mut String, marks: Marks) {
    if marks.input.is_none() && marks.output.is_none() {
        return;
    }
    push_name(out, "form");
    out.push('{');
    for (name, mark) in [("input", marks.input), ("output", marks.output)] {
        if let Some(mark) = mark {
            push_name(out, name);
            push_quoted(out, mark.name());
        }
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::table;

    #[test]
    fn a_pointer_is_below_the_path_that_it_begins_with() {
        let path = ["payload", "step"];
        assert_eq!(below("/payload/step", &path), Some(""));
        assert_eq!(below("/payload/step/a~1b/c", &path), Some("/a~1b/c"));
        assert_eq!(below("/anything", &[]), Some("/anything"));
        for elsewhere in ["", "event", "/payload", "/payload/steps", "/payload/stepsister/x", "/payloads/step", "/step"]
        {
            assert_eq!(below(elsewhere, &path), None, "{elsewhere}");
        }
    }

    #[test]
    fn names_of_shapes_have_nothing_that_a_pointer_escapes() {
        let rows = Contract::ALL.iter().flat_map(|contract| table::table(*contract));
        let pointers: Vec<String> = rows.map(|row| row.pointer).collect();
        assert!(pointers.len() > 100);
        assert!(pointers.iter().all(|pointer| !pointer.contains('~')), "{pointers:?}");
    }
}
