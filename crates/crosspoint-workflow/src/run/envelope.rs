//! The input envelope of a stage's agent.
//!
//! It is written member by member, so that the parameters and the answers go through as they were spelled. Nothing in
//! it names a stage or an agent (WF-6.2).

use crosspoint_contracts::json::quoted;

use super::Run;
use super::history::Answer;
use crate::definition::{Entry, Template};

/// Writes the envelope for the stage of this number.
pub(super) fn written(run: &Run, at: usize) -> String {
    let stage = run.stage(at);
    let feature = run.feature.as_ref().map_or_else(|| "null".to_owned(), |feature| quoted(feature.as_str()));
    let (workflow, action) = (quoted(run.definition.name()), quoted(&stage.action));
    let params = params(&stage.params, &run.histories[at].answers);
    let mut json = format!(
        "{{\"context\":{{\"feature_id\":{feature},\"workflow\":{workflow},\"iteration\":{}}},\"paths\":{},\
         \"task\":{{\"action\":{action},\"params\":{params}}}",
        run.iteration,
        paths(run),
    );
    if !run.prior.is_empty() {
        json.push_str(",\"prior_context\":");
        json.push_str(&array(run.prior.iter().map(|note| quoted(note))));
    }
    json.push('}');
    json
}

fn paths(run: &Run) -> String {
    let members: Vec<String> = run.definition.paths().iter().filter_map(|entry| path(run, entry)).collect();
    format!("{{{}}}", members.join(","))
}

/// Writes one member of `paths`. Paths of a feature are left out while it is unknown.
fn path(run: &Run, entry: &Entry) -> Option<String> {
    let filled = |template: &Template| template.filled(run.feature.as_ref()).map(|path| quoted(&path));
    let value = match entry {
        Entry::One { path, .. } => filled(path)?,
        Entry::Many { paths, .. } => {
            let filled: Vec<String> = paths.iter().filter_map(filled).collect();
            // A list of which nothing is known is left out like a path. An empty list stays what it is.
            (!filled.is_empty() || paths.is_empty()).then(|| array(filled))?
        }
    };
    Some(format!("{}:{value}", quoted(entry.name())))
}

/// Adds the answers that the stage was given (WF-7.4). The definition has no member of this name.
fn params(params: &str, answers: &[Answer]) -> String {
    let Some(open) = params.strip_suffix('}').filter(|_| !answers.is_empty()) else { return params.to_owned() };
    let comma = if open.ends_with('{') { "" } else { "," };
    let answer = |answer: &Answer| format!("{{\"question\":{},\"answer\":{}}}", quoted(&answer.question), answer.json);
    format!("{open}{comma}\"answers\":{}}}", array(answers.iter().map(answer)))
}

fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}
