//! The configuration file: from TOML text to settings, with the place of every mistake.
//!
//! The table is walked by hand rather than deserialised, because a deserialiser stops at the first mistake. This reader
//! names all of them, each at its place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::agent::read_agents;
use super::caller::{CALLER_TABLE, read_callers};
use super::key::{SECTIONS, Section};
use super::kind::described;
use super::problem::{Position, Problem, Source, line_and_column, suggestion};
use super::work::{self, WORK_TABLE, read_works};
use super::{Agent, Caller, Config};
use crate::schemas::Schemas;

/// Tables of later versions.
const LATER: [&str; 1] = ["broker"];
pub(super) const AGENT_TABLE: &str = "agent";

/// What a file says.
pub(super) struct File {
    pub(super) source: Arc<Source>,
    /// The line of every key that it sets, by `section.key`.
    pub(super) lines: BTreeMap<String, usize>,
    /// Its agents, with the line of every key that they set. `None` if it has no agents.
    pub(super) agents: Option<Vec<(Agent, BTreeMap<String, usize>)>>,
    /// Whether a table of an agent could not be used.
    pub(super) lost_agents: bool,
    /// The lines of the keys of its works.
    pub(super) work_lines: work::Lines,
    /// Its callers, with the line of every key that they set.
    pub(super) callers: Vec<(Caller, BTreeMap<String, usize>)>,
    pub(super) problems: Vec<Problem>,
    /// What can be used, and should be mended.
    pub(super) warnings: Vec<Problem>,
}

/// Reads a file into the configuration. A wrong value leaves its setting unchanged.
pub(super) fn read(path: &Path, text: String, config: &mut Config) -> File {
    let source = Arc::new(Source { path: path.to_owned(), text });
    let mut file = File {
        source: source.clone(),
        lines: BTreeMap::new(),
        agents: None,
        lost_agents: false,
        work_lines: BTreeMap::new(),
        callers: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    for error in &errors {
        let hint = "mend this first: the rest is looked at when the file is TOML";
        file.wrong(error.span().unwrap_or(0..0), "", &format!("this is not TOML: {}", error.message()), hint);
    }
    if errors.is_empty() {
        file.tables(table.get_ref(), config);
    }
    file.problems.sort_by_key(Problem::offset);
    file
}

impl File {
    pub(super) fn wrong(&mut self, span: Range<usize>, key: &str, what: &str, hint: &str) {
        let position = Position::File(self.source.clone(), span);
        self.problems.push(Problem { position, key: key.to_owned(), what: what.to_owned(), hint: hint.to_owned() });
    }

    pub(super) fn warn(&mut self, span: Range<usize>, key: &str, what: &str, hint: &str) {
        let position = Position::File(self.source.clone(), span);
        self.warnings.push(Problem { position, key: key.to_owned(), what: what.to_owned(), hint: hint.to_owned() });
    }

    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        line_and_column(&self.source.text, span.start).0
    }

    fn tables(&mut self, table: &DeTable<'_>, config: &mut Config) {
        for (name, value) in table {
            let section = SECTIONS.iter().find(|section| section.name == name.get_ref());
            match (section, name.get_ref().as_ref(), value.get_ref()) {
                (Some(section), _, DeValue::Table(keys)) => self.section(section, keys, config),
                (Some(section), _, other) => {
                    let what = format!("it is a table, and this is {}", described(other));
                    self.wrong(
                        value.span(),
                        section.name,
                        &what,
                        &format!("write [{}] on a line of its own", section.name),
                    );
                }
                (None, AGENT_TABLE, agents) => self.agents = Some(read_agents(self, agents, value.span())),
                (None, WORK_TABLE, works) => {
                    let (schemas, lines) = read_works(self, works, value.span());
                    (config.schemas, self.work_lines) = (Arc::new(Schemas::new(schemas)), lines);
                }
                (None, CALLER_TABLE, callers) => self.callers = read_callers(self, callers, value.span()),
                (None, later, _) if LATER.contains(&later) => {
                    let what = format!("[{later}] comes with a later version");
                    self.wrong(name.span(), "", &what, "remove it, or use a version that knows it");
                }
                (None, unknown, _) => self.unknown_table(unknown, name.span()),
            }
        }
    }

    fn unknown_table(&mut self, name: &str, span: Range<usize>) {
        // The usual slip is a key before the first table.
        let home = SECTIONS.iter().find(|section| section.keys.iter().any(|key| key.name == name));
        let mut known: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        known.extend([AGENT_TABLE, WORK_TABLE, CALLER_TABLE]);
        let hint = match home {
            Some(section) => format!("put it below [{}]", section.name),
            None => suggestion(name, &known).unwrap_or_else(|| {
                "the tables are [server], [store], [limits], [[agent]], [[work]] and [[caller]]".to_owned()
            }),
        };
        self.wrong(span, name, "there is no such table or key here", &hint);
    }

    fn section(&mut self, section: &Section, keys: &DeTable<'_>, config: &mut Config) {
        for (name, value) in keys {
            let shown = format!("[{}] {}", section.name, name.get_ref());
            let Some(key) = section.keys.iter().find(|key| key.name == name.get_ref()) else {
                let known: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
                self.unknown_key(name, &shown, &known);
                continue;
            };
            match key.kind.of_toml(value.get_ref()) {
                Ok(value) => {
                    (key.set)(config, value);
                    self.lines.insert(format!("{}.{}", section.name, key.name), self.line(&name.span()));
                }
                Err(wrong) => self.wrong(value.span(), &shown, &wrong.what, &wrong.hint),
            }
        }
    }

    pub(super) fn unknown_key(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, shown: &str, known: &[&str]) {
        let hint =
            suggestion(name.get_ref(), known).unwrap_or_else(|| format!("the keys here are {}", known.join(", ")));
        self.wrong(name.span(), shown, "there is no such key", &hint);
    }
}
