//! The environment: `CROSSPOINT_SECTION_KEY` for every key of one value.

use std::ffi::OsString;

use super::Config;
use super::key::SECTIONS;
use super::problem::{Position, Problem, suggestion};

const PREFIX: &str = "CROSSPOINT_";

/// What the environment says.
pub(super) struct Overlay {
    /// The keys that it sets, as `section.key`.
    pub(super) settled: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// Returns the variable of a key.
pub(super) fn variable(section: &str, key: &str) -> String {
    format!("{PREFIX}{section}_{key}").to_uppercase()
}

/// Applies the environment to the configuration.
pub(super) fn overlay(variables: impl Iterator<Item = (OsString, OsString)>, config: &mut Config) -> Overlay {
    let mut overlay = Overlay { settled: Vec::new(), problems: Vec::new() };
    let mut ours: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| SECTIONS.iter().any(|section| name.starts_with(&variable(section.name, ""))))
        .collect();
    ours.sort();
    for (name, value) in ours {
        let found = SECTIONS.iter().flat_map(|section| section.keys.iter().map(move |key| (section, key)));
        let Some((section, key)) = found.into_iter().find(|(section, key)| variable(section.name, key.name) == name)
        else {
            overlay.problems.push(unknown(&name));
            continue;
        };
        let shown = format!("[{}] {}", section.name, key.name);
        let wrong = |what: String, hint: String| Problem {
            position: Position::Environment(name.clone()),
            key: shown,
            what,
            hint,
        };
        let Some(text) = value.to_str() else {
            overlay.problems.push(wrong("it is not UTF-8".to_owned(), "set it to a text".to_owned()));
            continue;
        };
        match key.kind.of_text(text) {
            Ok(value) => {
                (key.set)(config, value);
                overlay.settled.push(format!("{}.{}", section.name, key.name));
            }
            Err(problem) => overlay.problems.push(wrong(problem.what, problem.hint)),
        }
    }
    overlay
}

fn unknown(name: &str) -> Problem {
    let known: Vec<String> = SECTIONS
        .iter()
        .flat_map(|section| section.keys.iter().map(|key| variable(section.name, key.name).to_lowercase()))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = suggestion(name, &known).map(|hint| hint.replace("crosspoint", "CROSSPOINT"));
    let hint = hint.map_or_else(|| "unset it; crosspoint config show lists the keys".to_owned(), |hint| shout(&hint));
    Problem {
        position: Position::Environment(name.to_owned()),
        key: String::new(),
        what: format!("{name} is no key"),
        hint,
    }
}

/// Converts words that begin with the prefix to upper case, as variables are spelled.
fn shout(text: &str) -> String {
    let word = |word: &str| if word.starts_with(PREFIX) { word.to_uppercase() } else { word.to_owned() };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
