//! Puts the parts of an outcome into the homes that a document is written from.

use crosspoint_contracts::Contract;
use crosspoint_contracts::artifact::Artifact;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::Place;
use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::json::{Tape, Type, Value};
use crosspoint_contracts::outcome::{Outcome, Status, Text};
use crosspoint_contracts::printed::Partial;
use crosspoint_contracts::translate::has_member;

/// Puts an outcome without an agent's document, for a caller of this contract.
pub(super) fn put<'o>(canonical: &mut Canonical<'o>, outcome: &'o Outcome, to: Contract) {
    match &outcome.reason {
        Some(reason) if outcome.status != Status::Completed => {
            canonical.fail(reason.failure);
            let sentence = || Json::string(reason.failure.sentence());
            canonical
                .put(Home::Message, reason.message.as_ref().map_or_else(sentence, |message| Json::new(message.get())));
            if let Some(code) = &reason.code {
                canonical.put(Home::Code, Json::new(code.get()));
            }
            if let Some(details) = &reason.details {
                canonical.put(Home::Details, Json::new(details.get()));
                put_exit_code(canonical, details.get(), to);
            }
            if outcome.outputs.is_some() || outcome.text.is_some() {
                put_outputs(canonical, outcome, to);
            }
        }
        Some(_) | None => put_outputs(canonical, outcome, to),
    }
    let artifacts = outcome.artifacts.as_ref().map(|list| artifacts(list.get())).unwrap_or_default();
    if !artifacts.is_empty() {
        canonical.artifacts = Some(artifacts);
    }
    put_usage(canonical, outcome);
}

/// Puts the exit code of a program, where the contract has a place for it.
fn put_exit_code(canonical: &mut Canonical<'_>, details: &str, to: Contract) {
    if !has_member(canonical, to, Home::ExitCode) {
        return;
    }
    let tape = Tape::scan(details.as_bytes()).ok();
    let code = tape.as_ref().and_then(Tape::root).and_then(|root| root.get("exit_code")).and_then(Value::integer);
    if let Some(code) = code.filter(|code| *code > 0) {
        canonical.put(Home::ExitCode, Json::new(code.to_string()));
    }
}

/// ALL-8: an object stays an object, a text stays a text, and any other value is put into an object. The output of a
/// program is a text within an object: callers whose contract wants a text get that text.
fn put_outputs<'o>(canonical: &mut Canonical<'o>, outcome: &'o Outcome, to: Contract) {
    if let Some(Text::Partial(partial)) = &outcome.text {
        return put_partial(canonical, outcome, partial, to);
    }
    let outputs = outcome.outputs.as_ref().map_or("null", |outputs| outputs.get());
    let text = outcome.text.as_ref().and_then(|text| match text {
        Text::Within(range) => outputs.get(range.clone()),
        Text::Beside(text) => Some(text.get()),
        Text::Partial(_) | Text::Printed(_) => None,
    });
    let is_within = matches!(outcome.text, Some(Text::Within(_)));
    match outputs.as_bytes().first() {
        // A failure that comes with a text, and with no outputs.
        Some(_) if outcome.outputs.is_none() && text.is_some() => {}
        Some(b'{') if is_within && to.exchange().gives_text => {}
        Some(b'{') => drop(canonical.put(Home::Outputs, Json::new(outputs))),
        Some(b'"') => {}
        Some(_) | None => drop(canonical.put(Home::Outputs, Json::new(format!("{{\"output\":{outputs}}}")))),
    }
    let is_object = canonical.get(Home::Outputs).is_some() && is_within;
    if let Some(text) = text.filter(|_| !is_object) {
        canonical.put(Home::Text, Json::new(text));
    }
}

/// ALL-12: puts a text that is not all that was printed, and says so beside it: in the object that a mere text becomes,
/// or else among what is carried. An output that was there before is replaced.
pub(super) fn put_partial<'o>(canonical: &mut Canonical<'o>, outcome: &'o Outcome, partial: &'o Partial, to: Contract) {
    if outcome.outputs.is_none() && !to.exchange().gives_text {
        return canonical.give(Some(Json::new(partial.outputs())), None);
    }
    let object = outcome.outputs.as_ref().filter(|_| outcome.outputs_are_object());
    canonical.give(object.map(|object| Json::new(object.get())), Some(Json::new(partial.text.get())));
    for (name, value) in partial.remarks() {
        canonical.place(to, Place::Carried(name), Json::new(value));
    }
}

/// Puts what the work used, unless the document itself says it.
pub(super) fn put_usage<'o>(canonical: &mut Canonical<'o>, outcome: &'o Outcome) {
    let Some(usage) = &outcome.usage else { return };
    let Ok(tape) = Tape::scan(usage.bytes()) else { return };
    for (name, value) in tape.root().into_iter().flat_map(Value::members) {
        let home = Home::ALL.iter().find(|home| *home.name() == *name.decode());
        if let Some(home) = home.filter(|home| canonical.get(**home).is_none()) {
            canonical.put(*home, Json::new(value.source().to_owned()));
        }
    }
}

fn artifacts(list: &str) -> Vec<Artifact<'static>> {
    let Ok(tape) = Tape::scan(list.as_bytes()) else { return Vec::new() };
    let items = tape.root().into_iter().flat_map(Value::items);
    items.filter_map(artifact).collect()
}

fn artifact(item: Value<'_, '_>) -> Option<Artifact<'static>> {
    let text = |name: &str| item.get(name).filter(|value| value.text().is_some());
    let owned = |value: Value<'_, '_>| Json::new(value.source().to_owned());
    Some(Artifact {
        name: owned(text("name")?),
        media_type: text("type").map(owned),
        // Every other artifact is a new file (ALL-10).
        operation: text("operation").filter(|value| value.text().is_some_and(|word| word == *"update")).map(owned),
        // Contracts have texts there, so any other content is its JSON text (ALL-8).
        content: item.get("content").map(|content| {
            if content.kind() == Type::String { owned(content) } else { Json::string(content.source()) }
        }),
        own: Vec::new(),
    })
}
