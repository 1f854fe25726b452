//! Agents that a workflow brings along: programs that are started for its stages.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::RUNNER_AGENT;
use super::mistake::{Mistakes, quoted};
use super::table::{Table, Value, described};

const KEYS: [&str; 7] = ["name", "exec", "contract", "env", "total_seconds", "repeatable", "ask"];

/// A year: the same as for the agents of a server.
const TOTAL_SECONDS_MAX: u32 = 365 * 24 * 60 * 60;

const EXEC_HINT: &str = "write exec = [\"./agents/spec-writer\"]: the program and its arguments";
const ENV_HINT: &str = "write env = { NAME = \"value\" }";

/// A program that the workflow brings along.
#[derive(Clone, PartialEq, Eq)]
pub struct Agent {
    /// The agent's name, unique in its workflow.
    pub name: String,
    /// The program and its arguments. There is at least the program.
    pub exec: Vec<String>,
    /// What the program is given, and what it gives back.
    pub contract: Contract,
    /// Variables of its environment besides those that it inherits.
    pub env: BTreeMap<String, String>,
    /// Longest time that a run of the program may take, in seconds.
    pub total_seconds: Option<u32>,
    /// Whether work that may have begun may be begun again.
    pub repeatable: Option<bool>,
    /// Whether the program may ask people by itself.
    pub ask: bool,
}

/// The contracts that a program of a workflow may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// Envelopes on stdin and stdout (WF-8).
    Workflow,
    /// Any program: its input on stdin, its output on stdout.
    Exec,
}

/// Arguments and environments may hold secrets, so they are left out.
impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("contract", &self.contract)
            .field("total_seconds", &self.total_seconds)
            .field("repeatable", &self.repeatable)
            .field("ask", &self.ask)
            .finish_non_exhaustive()
    }
}

/// Reads an agent, and returns it with the place of its name.
pub(super) fn read(keys: &DeTable<'_>, span: Range<usize>, mistakes: &mut Mistakes) -> Option<(Agent, Range<usize>)> {
    let shown = match keys.get("name").map(toml::Spanned::get_ref) {
        Some(DeValue::String(name)) => format!("the agent {}", quoted(name)),
        Some(_) | None => "this agent".to_owned(),
    };
    let table = Table::new(keys, span, shown, &KEYS, mistakes);
    let name = table.name("name", mistakes);
    if name.as_deref() == Some(RUNNER_AGENT) {
        let what = format!("no agent of a workflow can have the name {}", quoted(RUNNER_AGENT));
        mistakes.error(table.span_of("name"), what, "the server runs workflows under this name: rename the agent");
    }
    let exec = exec(&table, mistakes);
    let contract = contract(&table, mistakes);
    let env = env(&table, mistakes);
    let total_seconds = table.whole("total_seconds", 1..=TOTAL_SECONDS_MAX, mistakes);
    let repeatable = table.truth("repeatable", mistakes);
    let ask = table.truth("ask", mistakes).unwrap_or_default();
    if ask && contract == Some(Contract::Workflow) {
        let what = format!("{} speaks envelopes, and cannot ask otherwise", table.shown);
        mistakes.error(table.span_of("ask"), what, "have it recommend \"escalate\", or write contract = \"exec\"");
    }
    let agent = Agent { name: name?, exec: exec?, contract: contract?, env, total_seconds, repeatable, ask };
    Some((agent, table.span_of("name")))
}

fn exec(table: &Table<'_>, mistakes: &mut Mistakes) -> Option<Vec<String>> {
    let Some(value) = table.get("exec") else {
        mistakes.error(table.span.clone(), format!("{} has no exec", table.shown), EXEC_HINT);
        return None;
    };
    let Some(items) = value.get_ref().as_array() else {
        let words = value.get_ref().as_str().map(|text| text.split_whitespace().map(quoted).collect::<Vec<_>>());
        let hint = words.map_or(EXEC_HINT.to_owned(), |words| format!("write exec = [{}]", words.join(", ")));
        table.wrong_type("exec", value, "a list", &hint, mistakes);
        return None;
    };
    let words: Option<Vec<String>> =
        items.iter().map(|item| text(item, "a part of exec", EXEC_HINT, mistakes)).collect();
    let words = words?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        mistakes.error(value.span(), format!("exec of {} names no program", table.shown), EXEC_HINT);
        return None;
    }
    Some(words)
}

fn contract(table: &Table<'_>, mistakes: &mut Mistakes) -> Option<Contract> {
    if table.get("contract").is_none() {
        return Some(Contract::Workflow);
    }
    match table.text("contract", mistakes)? {
        "workflow" => Some(Contract::Workflow),
        "exec" => Some(Contract::Exec),
        other => {
            let what = format!("programs of a workflow do not speak the contract {}", quoted(other));
            let hint =
                mistakes.suggestion(other, &["workflow", "exec"], || "write \"workflow\" or \"exec\"".to_owned());
            mistakes.error(table.span_of("contract"), what, hint);
            None
        }
    }
}

fn env(table: &Table<'_>, mistakes: &mut Mistakes) -> BTreeMap<String, String> {
    let Some(value) = table.get("env") else { return BTreeMap::new() };
    let Some(members) = value.get_ref().as_table() else {
        table.wrong_type("env", value, "a table", ENV_HINT, mistakes);
        return BTreeMap::new();
    };
    let mut env = BTreeMap::new();
    for (name, value) in members {
        if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
            let what = format!("{} cannot be the name of a variable", quoted(name.get_ref()));
            mistakes.error(name.span(), what, ENV_HINT);
        } else if let Some(value) = text(value, "a variable", ENV_HINT, mistakes) {
            env.insert(name.get_ref().to_string(), value);
        }
    }
    env
}

/// Reads a text that is handed to a program: the system's calls end it at a NUL character.
fn text(value: &Value<'_>, what: &str, hint: &str, mistakes: &mut Mistakes) -> Option<String> {
    match value.get_ref().as_str() {
        Some(text) if !text.contains('\0') => Some(text.to_owned()),
        Some(_) => {
            mistakes.error(value.span(), format!("{what} has a NUL character in it"), "remove it");
            None
        }
        None => {
            mistakes.error(value.span(), format!("{what} is {}, not a text", described(value.get_ref())), hint);
            None
        }
    }
}
