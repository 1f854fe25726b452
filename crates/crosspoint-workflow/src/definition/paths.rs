//! The paths that agents are told of, in which `{feature}` stands for the feature that is worked on.

use crosspoint_contracts::workflow::{clause, misplaced};

use super::mistake::{Mistakes, quoted};
use super::table::{NAME_HINT, Table, Value, described, in_order, misnamed};
use crate::run::Feature;

/// What stands for the feature.
const FEATURE: &str = "{feature}";

const HINT: &str = "write a path in double quotes, or a list of paths";

/// One name in `paths`, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A path.
    One {
        /// The name of the path.
        name: String,
        /// The path.
        path: Template,
    },
    /// Several paths.
    Many {
        /// The name of the paths.
        name: String,
        /// The paths.
        paths: Vec<Template>,
    },
}

impl Entry {
    /// Returns the name under which agents find the paths.
    pub fn name(&self) -> &str {
        match self {
            Entry::One { name, .. } | Entry::Many { name, .. } => name,
        }
    }

    /// Returns the paths.
    pub fn templates(&self) -> &[Template] {
        match self {
            Entry::One { path, .. } => std::slice::from_ref(path),
            Entry::Many { paths, .. } => paths,
        }
    }
}

/// A path from the repository's root, perhaps with `{feature}` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Returns the path as the file has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of this feature. While the feature is unknown, there is none if the path depends on it.
    pub fn filled(&self, feature: Option<&Feature>) -> Option<String> {
        match feature {
            Some(feature) => Some(self.0.replace(FEATURE, feature.as_str())),
            None => (!self.0.contains(FEATURE)).then(|| self.0.clone()),
        }
    }

    /// Returns the feature for which this is the path of the file, or of a directory that the file is in (WF-10).
    pub fn feature_of(&self, file: &str) -> Option<Feature> {
        let (wanted, found) = parts(&self.0).zip(parts(file)).find(|(wanted, _)| wanted.contains(FEATURE))?;
        let feature = Feature::new(feature_in(wanted, found)?).ok()?;
        let path = self.filled(Some(&feature))?;
        let mut rest = parts(file);
        let begins = parts(&path).all(|part| rest.next() == Some(part));
        (begins && rest.next().is_some() == path.ends_with('/')).then_some(feature)
    }
}

/// Returns what `{feature}` stands for, if this part of a path is to match. Where it stands several times, it has the
/// same length each time; whether the whole part matches then is for the caller to see.
fn feature_in<'p>(wanted: &str, found: &'p str) -> Option<&'p str> {
    let times = wanted.matches(FEATURE).count();
    let start = wanted.find(FEATURE)?;
    let letters = found.len().checked_sub(wanted.len() - times * FEATURE.len())?;
    found.get(start..start + letters.checked_div(times)?)
}

/// Returns the parts of a path. The same file has the same parts, however its path is spelled.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// Reads the table of paths. `allows_git` says whether any stage may write under `.git`.
pub(super) fn read(file: &Table<'_>, allows_git: bool, mistakes: &mut Mistakes) -> Vec<Entry> {
    let Some(value) = file.get("paths") else { return Vec::new() };
    let Some(keys) = value.get_ref().as_table() else {
        file.wrong_type("paths", value, "a table", "write [paths] on a line of its own", mistakes);
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (name, value) in in_order(keys) {
        if let Some(wrong) = misnamed(name.get_ref()) {
            mistakes.error(name.span(), format!("the name of a path {wrong}"), NAME_HINT);
        }
        entries.extend(entry(name.get_ref(), value, allows_git, mistakes));
    }
    entries
}

fn entry(name: &str, value: &Value<'_>, allows_git: bool, mistakes: &mut Mistakes) -> Option<Entry> {
    let name = name.to_owned();
    if let Some(items) = value.get_ref().as_array() {
        let paths = items.iter().filter_map(|item| template(item, allows_git, mistakes)).collect();
        return Some(Entry::Many { name, paths });
    }
    Some(Entry::One { name, path: template(value, allows_git, mistakes)? })
}

fn template(value: &Value<'_>, allows_git: bool, mistakes: &mut Mistakes) -> Option<Template> {
    let Some(path) = value.get_ref().as_str() else {
        mistakes.error(value.span(), format!("a path is {}, not a text", described(value.get_ref())), HINT);
        return None;
    };
    if path.replace(FEATURE, "").contains('{') {
        let what = format!("the path {} has a brace in it that is not {FEATURE}", quoted(path));
        mistakes.error(value.span(), what, format!("{FEATURE} is the only name that stands for something else"));
    }
    outside(path, value, allows_git, mistakes);
    Some(Template(path.to_owned()))
}

/// Names what the rules of artifacts find wrong with a path. Agents may be told of directories, so that is no mistake.
fn outside(path: &str, value: &Value<'_>, allows_git: bool, mistakes: &mut Mistakes) {
    if path.is_empty() {
        return mistakes.error(value.span(), "a path is empty", HINT);
    }
    // What stands for the feature is a name like any other.
    for wrong in misplaced(&path.replace(FEATURE, "feature")) {
        let what = format!("the path {} {}", quoted(path), wrong.complaint);
        if wrong.clause.id == clause::WF_4_8.id {
            // Agents may read there, and the workflow can run.
            if !allows_git {
                mistakes.warning(value.span(), what, "agents cannot write there unless a stage has allow_git = true");
            }
        } else if wrong.clause.id != clause::WF_4_6.id {
            mistakes.error(value.span(), what, "write the path from the repository's root, with / between its parts");
        }
    }
}
