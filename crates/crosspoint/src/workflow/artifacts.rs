//! The files that a stage gave: artifacts of any contract, as changes of a repository (ALL-10).

use std::borrow::Cow;

use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::AgentDocument;
use crosspoint_contracts::workflow::clause::{WF_108, WF_109, WF_110, WF_111, WF_112};
use crosspoint_workflow::repository::{Change, Operation};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// An artifact that is no file, and the clause that says so.
#[derive(Debug)]
pub(super) struct NoFile {
    pub(super) clause: &'static Clause,
    pub(super) what: &'static str,
}

#[derive(Deserialize)]
struct Artifact<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    operation: Option<Value>,
    #[serde(default)]
    content: Option<Value>,
}

/// Reads the artifacts of an outcome. Those that are mere names, as agents of the run contract give them, have no
/// content that could be written, and are passed over. An envelope has no such artifacts: one that lacks a part is
/// missing from the outcome, and the others would be written without it (WF-5.3).
pub(super) fn read(artifacts: Option<&Body>, document: Option<&AgentDocument>) -> Result<Vec<Change>, NoFile> {
    if let Some(document) = document.filter(|document| document.kind == Kind::WorkflowOutput) {
        whole(document.document.get())?;
    }
    let Some(artifacts) = artifacts else { return Ok(Vec::new()) };
    let no_list = NoFile { clause: &WF_110, what: "an artifact has no path" };
    let list: Vec<Artifact<'_>> = serde_json::from_str(artifacts.get()).map_err(|_| no_list)?;
    list.into_iter().filter_map(|artifact| change(artifact).transpose()).collect()
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    artifacts: Option<Vec<Parts>>,
}

/// The parts of an artifact without which there is no file.
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    path: Option<Value>,
    #[serde(default)]
    content: Option<IgnoredAny>,
}

/// Checks that every artifact of an envelope has what a file needs.
fn whole(envelope: &str) -> Result<(), NoFile> {
    let no_list = NoFile { clause: &WF_108, what: "the artifacts are no list of objects" };
    let Envelope { artifacts } = serde_json::from_str(envelope).map_err(|_| no_list)?;
    for Parts { path, content } in artifacts.unwrap_or_default() {
        match path {
            None => return Err(NoFile { clause: &WF_109, what: "an artifact has no path" }),
            Some(path) if !path.is_string() => {
                return Err(NoFile { clause: &WF_110, what: "an artifact's path is no text" });
            }
            Some(_) if content.is_none() => {
                return Err(NoFile { clause: &WF_109, what: "an artifact has no content" });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn change(artifact: Artifact<'_>) -> Result<Option<Change>, NoFile> {
    let Some(path) = artifact.name else {
        return Err(NoFile { clause: &WF_109, what: "an artifact has no path" });
    };
    let operation = match artifact.operation.as_ref().map(|operation| operation.as_str()) {
        None | Some(Some("create")) => Operation::Create,
        Some(Some("update")) => Operation::Update,
        Some(Some(_) | None) => {
            return Err(NoFile { clause: &WF_111, what: "an artifact's operation is neither create nor update" });
        }
    };
    match artifact.content {
        None => Ok(None),
        Some(Value::String(content)) => {
            Ok(Some(Change { path: path.into_owned(), operation, content: content.into() }))
        }
        Some(_) => Err(NoFile { clause: &WF_112, what: "an artifact's content is no text" }),
    }
}
