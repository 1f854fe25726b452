//! From the text of a file to a definition, with the place of every mistake.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::agent::{self, Agent};
use super::mistake::{Mistake, Mistakes, quoted};
use super::paths;
use super::stage::{self, Written};
use super::table::{Table, described};
use super::{Definition, FILE_BYTES_MAX, STAGES_MAX, graph};

const STAGE_HINT: &str = "write [[stage]] on a line of its own, and its keys below";

pub(super) fn definition(text: &str) -> Result<Definition, Vec<Mistake>> {
    let mut mistakes = Mistakes::default();
    let definition = within_size(text, &mut mistakes).and_then(|()| parsed(text, &mut mistakes));
    match definition {
        Some(definition) if !mistakes.any_error() => Ok(Definition { warnings: mistakes.sorted(), ..definition }),
        Some(_) | None => Err(mistakes.sorted()),
    }
}

fn within_size(text: &str, mistakes: &mut Mistakes) -> Option<()> {
    if text.len() <= FILE_BYTES_MAX {
        return Some(());
    }
    let what = format!("the file has {} bytes, and may have {FILE_BYTES_MAX}", text.len());
    mistakes.error(0..0, what, "move long parameters into files, and name the files in [paths]");
    None
}

fn parsed(text: &str, mistakes: &mut Mistakes) -> Option<Definition> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let hint = "mend this first: the rest is looked at when the file is TOML";
        mistakes.error(error.span().unwrap_or(0..0), format!("this is not TOML: {}", error.message()), hint);
    }
    errors.is_empty().then(|| whole(text, table.get_ref(), mistakes)).flatten()
}

/// Reads all parts before any of them ends the reading, so that all mistakes are named in one go.
fn whole(text: &str, keys: &DeTable<'_>, mistakes: &mut Mistakes) -> Option<Definition> {
    let file = Table::new(keys, 0..0, "the workflow", &["name", "paths", "stage", "agent"], mistakes);
    let name = file.name("name", mistakes);
    let written = stages(&list(&file, "stage", text, STAGE_HINT, mistakes), mistakes);
    if file.get("stage").is_none_or(is_empty_list) {
        mistakes.error(file.span_of("stage"), "the workflow has no stage", STAGE_HINT);
    }
    let allows_git = written.iter().any(|stage| stage.allow_git);
    let paths = paths::read(&file, allows_git, mistakes);
    let agents = agents(&list(&file, "agent", text, "write [[agent]] on a line of its own", mistakes), mistakes);
    unused(&agents, &written, mistakes);
    let stages = graph::resolved(written, mistakes);
    let agents = agents.into_iter().map(|(agent, _)| agent).collect();
    Some(Definition { name: name?, paths, stages: stages?, agents, warnings: Vec::new() })
}

fn is_empty_list(value: &toml::Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_array().is_some_and(|list| list.is_empty())
}

/// Returns the tables of a list, each with the place of its first line.
fn list<'t>(
    file: &Table<'t>,
    key: &str,
    text: &str,
    hint: &str,
    mistakes: &mut Mistakes,
) -> Vec<(&'t DeTable<'t>, Range<usize>)> {
    let Some(value) = file.get(key) else { return Vec::new() };
    let Some(items) = value.get_ref().as_array() else {
        file.wrong_type(key, value, "a list of tables", hint, mistakes);
        return Vec::new();
    };
    let mut tables = Vec::new();
    for item in items {
        match item.get_ref().as_table() {
            Some(table) => tables.push((table, first_line(text, item.span()))),
            None => {
                mistakes.error(item.span(), format!("this {key} is {}, not a table", described(item.get_ref())), hint);
            }
        }
    }
    tables
}

fn first_line(text: &str, span: Range<usize>) -> Range<usize> {
    let whole = text.get(span.clone()).unwrap_or_default();
    span.start..span.start + whole.find('\n').unwrap_or(whole.len())
}

fn stages(tables: &[(&DeTable<'_>, Range<usize>)], mistakes: &mut Mistakes) -> Vec<Written> {
    if let Some((_, span)) = tables.get(STAGES_MAX) {
        let what = format!("the workflow has {} stages, and may have {STAGES_MAX}", tables.len());
        mistakes.error(span.clone(), what, "split the workflow into several");
        return Vec::new();
    }
    let stages: Vec<Written> = tables.iter().map(|(keys, span)| stage::read(keys, span.clone(), mistakes)).collect();
    let mut seen = BTreeSet::new();
    for stage in &stages {
        if let Some(id) = stage.id.get().filter(|id| !seen.insert(*id)) {
            mistakes.error(
                stage.id.span.clone(),
                format!("two stages have the id {}", quoted(id)),
                "rename one of them",
            );
        }
    }
    stages
}

fn agents(tables: &[(&DeTable<'_>, Range<usize>)], mistakes: &mut Mistakes) -> Vec<(Agent, Range<usize>)> {
    let mut seen = BTreeSet::new();
    let mut agents = Vec::new();
    for (keys, span) in tables {
        let Some((agent, at)) = agent::read(keys, span.clone(), mistakes) else { continue };
        if !seen.insert(agent.name.clone()) {
            mistakes.error(
                at.clone(),
                format!("two agents have the name {}", quoted(&agent.name)),
                "rename one of them",
            );
        }
        agents.push((agent, at));
    }
    agents
}

fn unused(agents: &[(Agent, Range<usize>)], stages: &[Written], mistakes: &mut Mistakes) {
    // The agent of a stage that could not be read may be any of them.
    let used = |name: &str| stages.iter().any(|stage| stage.agent.get().is_none_or(|agent| agent == name));
    for (agent, span) in agents.iter().filter(|(agent, _)| !used(&agent.name)) {
        let what = format!("no stage uses the agent {}", quoted(&agent.name));
        mistakes.warning(span.clone(), what, "remove it, or name it in a stage");
    }
}
