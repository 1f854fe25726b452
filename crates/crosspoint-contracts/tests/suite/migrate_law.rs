//! The law of migration, for any old document: the result is valid, has every scalar, and is migrated already.

use crosspoint_contracts::Document;
use crosspoint_contracts::json::{Tape, Type};
use crosspoint_contracts::workflow::migrate;
use crosspoint_contracts::workflow::migrate::{Options, Refused};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::migrate::{as_input, as_output};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        "[a-z0-9 ,:\"\\\\\n{é`_-]{0,12}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_é\"]{0,8}", inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

/// Members of the domain, under names that the envelopes do not have.
fn domain() -> impl Strategy<Value = Vec<(String, Value)>> {
    let name = "(report|queue|risks|error|mode|x y|é|a_b|a_path|b_paths|c_file)_?[0-9]?";
    prop::collection::btree_map(name, value(), 0..5).prop_map(|map| map.into_iter().collect())
}

fn maybe(name: &'static str, value: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::option::of(value).prop_map(move |value| value.map(|value| (name.to_owned(), value)).into_iter().collect())
}

fn object(members: impl IntoIterator<Item = Vec<(String, Value)>>) -> Value {
    Value::from_iter(members.into_iter().flatten())
}

fn text() -> impl Strategy<Value = Value> {
    "[a-zé\" ]{1,8}".prop_map(Value::from)
}

fn ids() -> impl Strategy<Value = Value> {
    (maybe("feature_id", text()), maybe("workflow", text()), maybe("iteration", (1..9).prop_map(Value::from)))
        .prop_map(|(feature, workflow, iteration)| object([feature, workflow, iteration]))
}

/// Members at the top level, without those that are in their proper place.
fn flat(members: &Value, placed: &Value) -> Vec<(String, Value)> {
    let members = members.as_object().into_iter().flatten().filter(|(name, _)| placed.get(name).is_none());
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn old_input() -> impl Strategy<Value = Value> {
    let params = || domain().prop_map(|members| object([members]));
    let task =
        || (maybe("action", text()), maybe("params", params())).prop_map(|(action, params)| object([action, params]));
    (ids(), ids(), task(), task(), maybe("mode", text()), domain()).prop_map(
        |(context, flat_ids, task, flat_task, mode, domain)| {
            let flat_params = flat_task.get("params").map(|params| ("params".to_owned(), params.clone()));
            let members = [domain, flat(&flat_ids, &context), flat(&flat_task, &task), mode];
            let envelope = vec![("context".to_owned(), context), ("task".to_owned(), task)];
            object(members.into_iter().chain([flat_params.into_iter().collect(), envelope]))
        },
    )
}

fn old_output() -> impl Strategy<Value = Value> {
    let artifact = || Just(json!([{"path": "a.md", "operation": "create", "content": "c"}]));
    let members = (maybe("summary", text()), maybe("artifacts", artifact()), maybe("notes", Just(json!(["n"]))));
    (any::<bool>(), members, maybe("state_updates", value()), maybe("error", value()), domain()).prop_map(
        |(success, (summary, artifacts, notes), state, error, domain)| {
            let success = vec![("success".to_owned(), json!(success))];
            object([domain, success, summary, artifacts, notes, state, error])
        },
    )
}

/// All text of a document: its spelling, and its strings decoded.
fn all_text(json: &str) -> String {
    let tape = Tape::scan(json.as_bytes()).expect("it is JSON");
    let strings = (0..tape.len()).filter_map(|at| tape.node(at)?.text());
    strings.fold(json.to_owned(), |all, text| all + "\n" + &text.decode())
}

/// Gives every string and every integer a unique part, so that none can be found by chance.
fn tell_apart(value: &mut Value, count: &mut u32) {
    *count += 1;
    match value {
        Value::String(text) => text.push_str(&format!("#{count}#")),
        Value::Number(number) => *number = (1_000_000 + *count).into(),
        Value::Array(items) => items.iter_mut().for_each(|item| tell_apart(item, count)),
        Value::Object(members) => {
            // The contract fixes the members of an artifact.
            let others = members.iter_mut().filter(|(name, _)| *name != "artifacts");
            others.for_each(|(_, value)| tell_apart(value, count));
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// Checks that the result is valid, has every scalar of the source, and does not change when it is migrated again.
fn assert_law(mut old: Value, options: &Options<'_>) {
    tell_apart(&mut old, &mut 0);
    let source = old.to_string();
    let migrated = match migrate(source.as_bytes(), options) {
        Ok(migrated) => migrated,
        Err(Refused::Taken { .. } | Refused::Missing(_)) => return,
        Err(other) => panic!("{other:?}: {source}"),
    };
    let envelope = migrated.document.get();
    let reading = crosspoint_contracts::read(envelope.as_bytes(), &crosspoint_contracts::Options::default());
    assert_eq!((reading.report.kind, reading.report.findings), (Some(migrated.kind), vec![]), "{envelope}");
    assert!(matches!(reading.document, Some(Document::WorkflowInput(_) | Document::WorkflowOutput(_))));
    let again = migrate(envelope.as_bytes(), &Options::default()).expect("it is valid already");
    assert_eq!((again.document.get(), again.changes.len(), again.left.len()), (envelope, 0, 0));
    let kept = all_text(envelope);
    let tape = Tape::scan(source.as_bytes()).expect("it is JSON");
    for value in (0..tape.len()).filter_map(|at| tape.node(at)) {
        let lost = match value.kind() {
            Type::Object | Type::Array | Type::Key | Type::Null => false,
            Type::Number | Type::Boolean => !kept.contains(value.source()),
            Type::String => {
                let text = value.text().unwrap_or_default();
                !kept.contains(&*text.decode()) && !kept.contains(value.source())
            }
        };
        assert!(!lost, "{} is lost from {source} in {envelope}", value.source());
    }
}

proptest! {
    #[test]
    fn old_inputs_lose_nothing(old in old_input()) {
        assert_law(old, &as_input());
    }

    #[test]
    fn old_outputs_lose_nothing(old in old_output()) {
        assert_law(old, &as_output());
    }
}
