//! The stages of a workflow.

use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::mistake::{Mistakes, quoted};
use super::table::Table;
use super::{DONE, LIMIT_MAX, RUN_ACTION, params};

/// How often a stage may retry if its file does not say (WF-7).
const LIMIT_DEFAULT: u32 = 3;

const KEYS: [&str; 8] = ["id", "agent", "action", "params", "proceed", "retry", "escalate", "allow_git"];

/// One stage: what is asked of which agent, and where a run goes from there.
#[derive(Clone, PartialEq, Eq)]
pub struct Stage {
    /// The stage's id, unique in its workflow.
    pub id: String,
    /// The agent's name.
    pub agent: String,
    /// What the agent is asked to do.
    pub action: String,
    /// The parameters of the action: the text of a JSON object without a member `answers`.
    pub params: String,
    /// Where `proceed` leads.
    pub proceed: Target,
    /// Where `retry` leads, and how often.
    pub retry: Retry,
    /// The stage that gets the person's answer after `escalate`.
    pub then: usize,
    /// Whether artifacts may be written under `.git`.
    pub allow_git: bool,
    pub(super) spans: Spans,
}

/// Where a stage names what only the server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) agent: Range<usize>,
    pub(super) action: Range<usize>,
}

/// Where a run goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To the stage of this number, from 0.
    Stage(usize),
    /// The workflow ends.
    Done,
}

/// The route of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The stage that runs, by its number from 0.
    pub goto: usize,
    /// How often, until a person is asked.
    pub limit: u32,
}

/// Parameters are content, so their size is shown.
impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("id", &self.id)
            .field("agent", &self.agent)
            .field("action", &self.action)
            .field("params", &format_args!("[{} bytes]", self.params.len()))
            .field("proceed", &self.proceed)
            .field("retry", &self.retry)
            .field("then", &self.then)
            .field("allow_git", &self.allow_git)
            .finish_non_exhaustive()
    }
}

/// A stage as it was written, before its routes are known to lead anywhere. What could not be read is missing.
pub(super) struct Written {
    pub(super) id: Word,
    pub(super) agent: Word,
    pub(super) action: Word,
    pub(super) params: Option<String>,
    pub(super) proceed: Word,
    pub(super) goto: Word,
    pub(super) limit: u32,
    pub(super) then: Word,
    pub(super) allow_git: bool,
}

/// A text of the file with its place.
pub(super) struct Word {
    pub(super) text: Option<String>,
    pub(super) span: Range<usize>,
}

impl Word {
    pub(super) fn get(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

pub(super) fn read(keys: &DeTable<'_>, span: Range<usize>, mistakes: &mut Mistakes) -> Written {
    let shown = match keys.get("id").map(toml::Spanned::get_ref) {
        Some(DeValue::String(id)) => format!("the stage {}", quoted(id)),
        Some(_) | None => "this stage".to_owned(),
    };
    let stage = Table::new(keys, span, shown, &KEYS, mistakes);
    let id = name(&stage, "id", mistakes);
    if id.get() == Some(DONE) {
        mistakes.error(
            id.span.clone(),
            "no stage can have the id \"done\"",
            "done is where the workflow ends: rename the stage",
        );
    }
    let action = name(&stage, "action", mistakes);
    if action.get() == Some(RUN_ACTION) {
        let what = format!("no stage can have the action {}", quoted(RUN_ACTION));
        mistakes.error(action.span.clone(), what, "a workflow cannot start a workflow: name what its agent is to do");
    }
    let retry = stage.table("retry", &["goto", "limit"], &retry_hint(&stage), mistakes);
    let escalate = stage.table("escalate", &["then"], &escalate_hint(&stage), mistakes);
    let limit = retry.as_ref().and_then(|retry| retry.whole("limit", 0..=LIMIT_MAX, mistakes));
    Written {
        id,
        agent: name(&stage, "agent", mistakes),
        action,
        params: params::read(&stage, mistakes),
        proceed: route(Some(&stage), "proceed", mistakes),
        goto: route(retry.as_ref(), "goto", mistakes),
        limit: limit.unwrap_or(LIMIT_DEFAULT),
        then: route(escalate.as_ref(), "then", mistakes),
        allow_git: stage.truth("allow_git", mistakes).unwrap_or(false),
    }
}

/// Says how the value is written that was written without its table.
fn retry_hint(stage: &Table<'_>) -> String {
    match stage.get("retry").map(toml::Spanned::get_ref) {
        Some(DeValue::Integer(limit)) => format!("write retry = {{ limit = {} }}", limit.as_str()),
        Some(DeValue::String(goto)) => format!("write retry = {{ goto = {} }}", quoted(goto)),
        Some(_) | None => "write retry = { goto = \"ID\", limit = 3 }, with the id of a stage".to_owned(),
    }
}

fn escalate_hint(stage: &Table<'_>) -> String {
    match stage.get("escalate").map(toml::Spanned::get_ref) {
        Some(DeValue::String(then)) => format!("write escalate = {{ then = {} }}", quoted(then)),
        Some(_) | None => "write escalate = { then = \"ID\" }, with the id of a stage".to_owned(),
    }
}

fn name(stage: &Table<'_>, key: &str, mistakes: &mut Mistakes) -> Word {
    Word { text: stage.name(key, mistakes), span: stage.span_of(key) }
}

fn route(table: Option<&Table<'_>>, key: &str, mistakes: &mut Mistakes) -> Word {
    let text = table.and_then(|table| table.text(key, mistakes)).map(str::to_owned);
    Word { text, span: table.map_or(0..0, |table| table.span_of(key)) }
}
