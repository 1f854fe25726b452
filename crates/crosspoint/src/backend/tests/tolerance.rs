//! ALL-11 from an agent's answer to a caller's document: whatever is wrong with an answer beside what its outcome
//! needs, the job ends the same way, and every caller gets a document in which its contract finds no error.

use proptest::prelude::*;
use proptest::sample::Index;

use super::law::{kind_of, minimal, request_of, responses};
use super::*;

const CONTRACTS: [Contract; 4] = [Contract::Run, Contract::Task, Contract::Bridge, Contract::Message];

fn replacements() -> Vec<Option<Value>> {
    let values =
        [json!(null), json!(true), json!(-1), json!(1.5), json!(""), json!("x"), json!([]), json!({}), json!([{}])];
    values.into_iter().map(Some).chain([None]).collect()
}

/// The places of an answer that its outcome does not need. Only its code says that an error is a cancellation.
fn free_places(agent: Contract, document: &Value) -> Vec<String> {
    let needs = &agent.exchange().needs;
    let marks = needs.marks.iter().map(|mark| mark.path);
    let code = (document["payload"]["error_code"] == 5901).then_some("payload/error_code");
    let needed = marks.chain(needs.outputs.iter().copied()).chain(code);
    let needed: Vec<String> = needed.map(|path| format!("/{path}")).collect();
    let mut found = Vec::new();
    push_places(document, "", &mut found);
    let is_within = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    found.retain(|place| needed.iter().all(|needed| !is_within(place, needed) && !is_within(needed, place)));
    found
}

fn push_places(value: &Value, above: &str, found: &mut Vec<String>) {
    for (name, child) in value.as_object().into_iter().flatten() {
        let place = format!("{above}/{}", name.replace('~', "~0").replace('/', "~1"));
        found.push(place.clone());
        push_places(child, &place, found);
    }
}

fn change(document: &mut Value, place: &str, replacement: Option<Value>) {
    let (above, name) = place.rsplit_once('/').expect("a place has a name");
    let name = name.replace("~1", "/").replace("~0", "~");
    let Some(parent) = document.pointer_mut(above).and_then(Value::as_object_mut) else { return };
    match replacement {
        Some(value) => drop(parent.insert(name, value)),
        None => drop(parent.remove(&name)),
    }
}

/// The outcome of a job whose agent answers with this document.
fn outcome(door: Contract, kind: Kind, answer: &Value) -> Option<Job> {
    let (job, _) = came(request_of(door), &minimal(door));
    super::law::ended(&job, kind, &answer.to_string())
}

/// Whether the work is named at a place of an answer.
fn is_id(agent: Contract, place: &str) -> bool {
    agent.exchange().needs.ids.iter().any(|path| place.strip_prefix('/') == Some(path))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_that_an_outcome_does_not_need_costs_it(
        which in any::<(Index, Index, Index)>(),
        changes in proptest::collection::vec(any::<(Index, Index)>(), 1..6),
    ) {
        let (door, agent) = (*which.0.get(&CONTRACTS), *which.1.get(&CONTRACTS));
        let answers = responses(agent);
        let (name, kind, answer) = which.2.get(&answers);
        let mut changed = answer.clone();
        for (place, replacement) in changes {
            let places = free_places(agent, &changed);
            if places.is_empty() {
                break;
            }
            // Another id is another job's answer.
            let replacement = replacement.get(&replacements()).clone();
            let place = place.get(&places);
            change(&mut changed, place, replacement.filter(|value| !is_id(agent, place) || !value.is_string()));
        }
        let (Some(wanted), found) = (outcome(door, *kind, answer), outcome(door, *kind, &changed)) else {
            return Ok(());
        };
        let found = found.unwrap_or_else(|| panic!("{name} has not ended as {changed}"));
        let (wanted, shown_now) = (shown(&wanted), shown(&found));
        prop_assert_eq!(&wanted["status"], &shown_now["status"], "{} {}", name, &changed);
        if wanted["status"] == "completed" {
            prop_assert_eq!(&wanted["outputs"], &shown_now["outputs"], "{} {}", name, &changed);
        }
        let told = told(&found, door);
        let options = Options { kind: Some(kind_of(door, &told)), ..Options::default() };
        let report = read(told.as_bytes(), &options).report;
        prop_assert!(report.is_valid(), "{} to {:?}: {:?} in {}", name, door, report.findings, told);
    }
}
