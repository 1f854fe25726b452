//! The two envelopes as shapes.

use std::borrow::Cow;

use super::{failure, path};
use crate::artifact::{Form, Names};
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Home, State};
use crate::json::Value;
use crate::kind::{Contract, Kind};
use crate::map::{Codec, Fill, Map, Member, Shape, artifacts, block, fixed, home, input, summary};

pub(crate) static MAP: Map = Map {
    // Each envelope is a new job.
    key: &[],
    shapes: &[&INPUT, &SUCCESS, &FAILURE],
    reading,
    writing,
};

static INPUT: Shape = Shape {
    kind: Kind::WorkflowInput,
    when: "",
    state: None,
    members: &[
        block(
            "context",
            &[
                home("feature_id", Home::Feature, Codec::Same).required(Fill::Raw("null")),
                home("workflow", Home::Workflow, Codec::Same).required(Fill::Raw("\"crosspoint\"")),
                home("iteration", Home::Iteration, Codec::Same).required(Fill::Raw("1")),
            ],
        )
        .required(Fill::Raw("{}")),
        home("paths", Home::Paths, Codec::Same).required(Fill::Raw("{}")),
        block(
            "task",
            &[
                home("action", Home::Work, Codec::Same).required(Fill::Raw("\"work\"")),
                input("params").required(Fill::Raw("{}")),
            ],
        )
        .required(Fill::Raw("{}")),
        home("prior_context", Home::Notes, Codec::Same),
    ],
    carrier: None,
    closed: false,
    loose: false,
};

const ARTIFACTS: Member = artifacts(
    "artifacts",
    Form::Objects(Names {
        contract: Contract::Workflow,
        name: "path",
        media_type: None,
        operation: Some("operation"),
        fits: Some(fits),
    }),
)
.required(Fill::Raw("[]"));
const NOTES: Member = home("notes", Home::Notes, Codec::Same);

static SUCCESS: Shape = Shape {
    kind: Kind::WorkflowOutput,
    when: "success",
    state: Some(State::Completed),
    members: &[
        fixed("success", "true"),
        summary("summary"),
        ARTIFACTS,
        NOTES,
        home("recommendation", Home::Recommendation, Codec::Same).follows(|_| Json::string("proceed")),
    ],
    carrier: None,
    closed: false,
    loose: false,
};

static FAILURE: Shape = Shape {
    when: "no success",
    state: Some(State::Failed),
    members: &[
        fixed("success", "false"),
        home("summary", Home::Message, Codec::Named("\"The work failed.\"")).required(Fill::Sentence),
        ARTIFACTS,
        NOTES,
        home("recommendation", Home::Recommendation, Codec::Own(|held, _| not_proceed(held))).follows(recommended),
    ],
    ..SUCCESS
};

/// After a failure, the recommendation to proceed would be a contradiction (WF-3.2).
fn not_proceed(held: &str) -> Cow<'_, str> {
    if held == "\"proceed\"" { "\"escalate\"".into() } else { held.into() }
}

fn recommended(job: &Canonical<'_>) -> Json<'static> {
    Json::string(failure::write(job.failure().unwrap_or(Failure::AgentFailed)).word())
}

/// Returns which paths may be written, judged together (WF-4). Of two that are the same file the first may be written;
/// of a file and one inside it the file.
fn fits(names: &[Cow<'_, str>]) -> Vec<bool> {
    let mut fit: Vec<bool> = names.iter().map(|name| path::misplaced(name).is_empty()).collect();
    // No path holds a NUL, so in this order everything inside a directory follows it.
    let key = |at: usize| path::parts(&names[at]).collect::<Vec<_>>().join("\0");
    let mut keys: Vec<(String, usize)> = (0..names.len()).filter(|at| fit[*at]).map(|at| (key(at), at)).collect();
    keys.sort_unstable();
    let mut kept: Option<&str> = None;
    for (key, at) in &keys {
        let rest = kept.and_then(|kept| key.strip_prefix(kept));
        fit[*at] = !key.is_empty() && rest.is_none_or(|rest| !rest.is_empty() && !rest.starts_with('\0'));
        kept = if fit[*at] { Some(key) } else { kept };
    }
    fit
}

fn reading(kind: Kind, root: Value<'_, '_>) -> Option<&'static Shape> {
    if kind == Kind::WorkflowInput {
        return Some(&INPUT);
    }
    Some(if root.get("success").and_then(Value::boolean) == Some(true) { &SUCCESS } else { &FAILURE })
}

fn writing(job: &Canonical<'_>) -> Option<&'static Shape> {
    match job.state() {
        None => Some(&INPUT),
        Some(State::Completed) => Some(&SUCCESS),
        Some(State::Failed | State::Cancelled) => Some(&FAILURE),
        // An envelope comes back only when the work has ended.
        Some(State::Queued | State::Running | State::Waiting) => None,
    }
}
