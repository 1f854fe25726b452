//! The files that a stage gave: artifacts of any contract, as changes of a repository (ALL-10).

use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::AgentDocument;
use crosspoint_contracts::workflow::clause::{WF_108, WF_109, WF_110, WF_111, WF_112};
use crosspoint_workflow::repository::{Change, Operation};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An artifact that is no file, and the clause that says so.
#[derive(Debug)]
pub(super) struct NoFile {
    pub(super) clause: &'static Clause,
    pub(super) what: &'static str,
}

/// An artifact of an outcome, or of an envelope.
#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    name: Option<Value>,
    #[serde(default)]
    path: Option<Value>,
    #[serde(default)]
    operation: Option<Value>,
    #[serde(default)]
    content: Option<Value>,
}

/// Reads the files that an agent gave. Those of an envelope are read from the envelope itself: one that lacks a part is
/// missing from the outcome, and the others would be written without it (WF-5.3).
///
/// Artifacts that are mere names, as agents of the run contract give them, have no content that could be written, and
/// are passed over. Agents of other contracts do not say whether a file is new.
pub(super) fn read(artifacts: Option<&Body>, document: Option<&AgentDocument>) -> Result<Vec<Change>, NoFile> {
    if let Some(document) = document.filter(|document| document.kind == Kind::WorkflowOutput) {
        return of_envelope(document.document.get());
    }
    let Some(artifacts) = artifacts else { return Ok(Vec::new()) };
    let no_list = || NoFile { clause: &WF_110, what: "an artifact has no path" };
    let list: Vec<&RawValue> = serde_json::from_str(artifacts.get()).map_err(|_| no_list())?;
    let list = list.into_iter().map(object).collect::<Option<Vec<Artifact>>>().ok_or_else(no_list)?;
    let with_content = list.into_iter().filter(|artifact| artifact.content.is_some());
    with_content
        .map(|artifact| change(artifact.name, artifact.operation.as_ref(), artifact.content, Operation::Write))
        .collect()
}

/// Reads an artifact. A list of its parts is none.
fn object(artifact: &RawValue) -> Option<Artifact> {
    artifact.get().starts_with('{').then(|| serde_json::from_str(artifact.get()).ok()).flatten()
}

#[derive(Deserialize)]
struct Envelope<'e> {
    #[serde(borrow, default)]
    artifacts: Option<Vec<&'e RawValue>>,
}

fn of_envelope(envelope: &str) -> Result<Vec<Change>, NoFile> {
    let no_list = || NoFile { clause: &WF_108, what: "the artifacts are no list of objects" };
    let Envelope { artifacts } = serde_json::from_str(envelope).map_err(|_| no_list())?;
    let artifacts = artifacts.unwrap_or_default().into_iter().map(object).collect::<Option<Vec<Artifact>>>();
    let artifacts = artifacts.ok_or_else(no_list)?.into_iter();
    // ALL-10: without an operation a file is a new one.
    artifacts
        .map(|artifact| change(artifact.path, artifact.operation.as_ref(), artifact.content, Operation::Create))
        .collect()
}

fn change(
    path: Option<Value>,
    operation: Option<&Value>,
    content: Option<Value>,
    unsaid: Operation,
) -> Result<Change, NoFile> {
    let path = match path {
        Some(Value::String(path)) => path,
        Some(_) => return Err(NoFile { clause: &WF_110, what: "an artifact's path is no text" }),
        None => return Err(NoFile { clause: &WF_109, what: "an artifact has no path" }),
    };
    let operation = match operation.map(Value::as_str) {
        None => unsaid,
        Some(Some("create")) => Operation::Create,
        Some(Some("update")) => Operation::Update,
        Some(Some(_) | None) => {
            return Err(NoFile { clause: &WF_111, what: "an artifact's operation is neither create nor update" });
        }
    };
    match content {
        Some(Value::String(content)) => Ok(Change { path, operation, content: content.into() }),
        Some(_) => Err(NoFile { clause: &WF_112, what: "an artifact's content is no text" }),
        None => Err(NoFile { clause: &WF_109, what: "an artifact has no content" }),
    }
}
