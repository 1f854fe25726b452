//! What a run of a workflow is asked for with: the input of its job.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::Body;
use crosspoint_workflow::definition::{Definition, Mistake};
use crosspoint_workflow::repository::Fault;
use crosspoint_workflow::run::Feature;
use serde::{Deserialize, Deserializer, Serialize};

use super::began;
use super::places::{NotAllowed, Places};
use super::recovery::explained;

/// What a run is asked for with. It holds content, so it has no `Debug`.
#[derive(Clone, Deserialize)]
pub(crate) struct Order {
    /// The text of the workflow file.
    pub(crate) definition: String,
    /// The repository: an absolute path.
    pub(crate) root: PathBuf,
    /// The feature that the workflow works on, if it is known at the start.
    #[serde(default)]
    pub(crate) feature: Option<String>,
    /// Whether the run works in a copy of the repository.
    #[serde(default, deserialize_with = "false_if_null")]
    pub(crate) dry_run: bool,
    /// The workflow file, and the directory from which its programs are found. Only commands say them.
    #[serde(default, deserialize_with = "path_if_any")]
    pub(crate) file: Option<PathBuf>,
    #[serde(default, deserialize_with = "path_if_any")]
    pub(crate) home: Option<PathBuf>,
}

/// A member that a caller cannot know means nothing, whatever it is.
fn path_if_any<'d, D: Deserializer<'d>>(value: D) -> Result<Option<PathBuf>, D::Error> {
    Ok(serde_json::Value::deserialize(value)?.as_str().map(PathBuf::from))
}

/// An optional member that is null reads as absent (ALL-11).
fn false_if_null<'d, D: Deserializer<'d>>(value: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(value)?.unwrap_or_default())
}

/// What is shown of a run beside its job.
#[derive(Serialize)]
struct About<'o> {
    name: &'o str,
    feature: Option<&'o str>,
    root: &'o str,
    dry_run: bool,
}

/// Returns what is shown of a run beside its job, from the document that it came as and from its record.
pub(crate) fn about(document: &[u8], record: &Path) -> Option<Body> {
    let order = Order::read(document)?;
    let definition = Definition::read(&order.definition).ok()?;
    let feature = order.feature.or_else(|| began::feature(record));
    let (feature, root) = (feature.as_deref(), order.root.to_str()?);
    Some(Body::of(&About { name: definition.name(), feature, root, dry_run: order.dry_run }))
}

/// Whether the workflow of the run that came as this document brings programs of its own.
pub(crate) fn brings_programs(document: &[u8]) -> bool {
    let definition = Order::read(document).and_then(|order| Definition::read(&order.definition).ok());
    definition.is_some_and(|definition| !definition.agents().is_empty())
}

/// An order that was checked.
pub(crate) struct Checked {
    pub(crate) definition: Arc<Definition>,
    pub(crate) feature: Option<Feature>,
    /// The repository, without links on its way.
    pub(crate) root: PathBuf,
    pub(crate) dry_run: bool,
    /// The workflow file, which no artifact may touch: the next run starts the programs that it names.
    pub(crate) file: Option<PathBuf>,
}

/// Why an order cannot be carried out.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The definition has mistakes.
    Definition(Vec<Mistake>),
    /// The feature is no name for a directory.
    Feature(String),
    /// The root is not there, or is not allowed.
    Root(NotAllowed),
    /// The path of the root leads to another directory than when the run began.
    Elsewhere(PathBuf),
    /// The definition brings programs of its own, which a server does not start for a caller.
    Programs,
}

impl Order {
    /// Reads an order that was accepted, from the document that it came as.
    pub(crate) fn read(document: &[u8]) -> Option<Order> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        serde_json::from_slice(document.strip_prefix(MARK).unwrap_or(document)).ok()
    }

    /// Checks an order, except for the agents that its stages name.
    pub(crate) fn check(&self, places: &Places) -> Result<Checked, Unusable> {
        let definition = Definition::read(&self.definition).map_err(Unusable::Definition)?;
        if !definition.agents().is_empty() && !places.starts_programs_of_definitions() {
            return Err(Unusable::Programs);
        }
        let feature = self.feature.as_deref().map(Feature::new).transpose();
        let feature = feature.map_err(|misnamed| Unusable::Feature(misnamed.to_string()))?;
        let root = places.allow(&self.root).map_err(Unusable::Root)?;
        // Of a caller it means nothing.
        let file = self.file.clone().filter(|_| places.starts_programs_of_definitions());
        Ok(Checked { definition: Arc::new(definition), feature, root, dry_run: self.dry_run, file })
    }
}

impl Unusable {
    /// Returns why a run that has begun is held, where the reason may pass.
    pub(super) fn held(&self) -> Option<String> {
        match self {
            // It was accepted, so it is this program that is stricter than the one that accepted it.
            Unusable::Definition(_) | Unusable::Feature(_) => Some(
                "this version of crosspoint does not read its workflow any more; go back to the version that it began \
                 with, or cancel the run"
                    .to_owned(),
            ),
            Unusable::Root(why @ NotAllowed::Missing(_)) => Some(format!("{why}; put it back, or cancel the run")),
            Unusable::Root(why) => Some(format!("{why}; {}", why.hint())),
            Unusable::Elsewhere(root) => Some(explained(&Fault::AnotherRoot { root: root.clone() })),
            Unusable::Programs => Some(
                "the workflow brings programs of its own ([[agent]]), which a server does not start; when no server runs \
                 here, it goes on with crosspoint workflow resume"
                    .to_owned(),
            ),
        }
    }

    /// Returns what is wrong, what to do about it, and which member of the order it is about. Mistakes in a definition
    /// are told with their lines.
    pub(crate) fn told(&self, definition: &str) -> Vec<(String, String, &'static str)> {
        match self {
            Unusable::Definition(mistakes) => mistakes
                .iter()
                .map(|mistake| {
                    let line = line_of(definition, mistake.span.start);
                    (format!("line {line} of the workflow: {}", mistake.what), mistake.hint.clone(), "/definition")
                })
                .collect(),
            Unusable::Feature(why) => {
                let hint = "name it as its directory is to be called, such as 005-user-auth";
                vec![(format!("the feature cannot have this name: {why}"), hint.to_owned(), "/feature")]
            }
            Unusable::Root(why) => vec![(why.to_string(), why.hint(), "/root")],
            Unusable::Elsewhere(root) => {
                let fault = Fault::AnotherRoot { root: root.clone() };
                vec![(fault.to_string(), fault.hint().to_owned(), "/root")]
            }
            Unusable::Programs => {
                let what = "the workflow brings programs of its own ([[agent]]), and a server starts only programs of its configuration";
                let hint = "put them into the server's configuration, or run it in the command: crosspoint workflow run --embedded";
                vec![(what.to_owned(), hint.to_owned(), "/definition")]
            }
        }
    }
}

impl Checked {
    /// Checks that the path of the root still leads to where the run with this record began.
    pub(super) fn where_it_began(self, record: &Path) -> Result<Checked, Unusable> {
        match began::root(record) {
            Some((began, _)) if began != self.root => Err(Unusable::Elsewhere(self.root)),
            Some(_) | None => Ok(self),
        }
    }

    /// Checks that the agents of all stages are known and take their actions. `works_of` says what an agent takes.
    pub(crate) fn check_agents(&self, works_of: &dyn Fn(&str) -> Option<Vec<String>>) -> Result<(), Unusable> {
        let mut wrong = self.definition.check(works_of);
        wrong.retain(|mistake| mistake.level == Level::Error);
        if wrong.is_empty() { Ok(()) } else { Err(Unusable::Definition(wrong)) }
    }
}

/// Returns the number of the line in which this byte stands, from 1.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count() + 1
}
