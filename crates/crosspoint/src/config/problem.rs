//! The mistakes in a configuration: each with its place, a description and a remedy. All are reported at once.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::nearest::nearest;

use crate::terminal::render::{self, Spot};

/// A mistake in the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(super) position: Position,
    /// The key that it is about, as `[server] listen`. Empty if it is about no key.
    pub(super) key: String,
    pub(super) what: String,
    pub(super) hint: String,
}

#[derive(Clone, Debug)]
pub(super) enum Position {
    /// These bytes of the file.
    File(Arc<Source>, Range<usize>),
    /// A variable.
    Environment(String),
    /// An option of the command line.
    Flag(&'static str),
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A configuration that cannot be used.
#[derive(Debug)]
pub(crate) struct Invalid(pub(crate) Vec<Problem>);

impl std::error::Error for Invalid {}

/// One line per problem, for logs. People get `print`.
impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> =
            self.0.iter().map(|problem| format!("{}: {}", problem.where_is(), problem.title())).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Invalid {
    /// Prints all problems for people.
    pub(crate) fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        self.0.iter().try_for_each(|problem| problem.print(out, Level::Error))
    }
}

impl Problem {
    /// Prints it for people, as something of this level.
    pub(crate) fn print(&self, out: &mut impl std::io::Write, level: Level) -> std::io::Result<()> {
        render::placed(out, level, &self.title(), &self.where_is(), self.spot(), &self.hint)
    }

    /// Describes it in one line, for logs.
    pub(crate) fn line(&self) -> String {
        format!("{}: {}; {}", self.where_is(), self.title(), self.hint)
    }

    /// Where it is in the file, for sorting. What is not in the file comes last.
    pub(super) fn offset(&self) -> usize {
        match &self.position {
            Position::File(_, span) => span.start,
            Position::Environment(_) | Position::Flag(_) => usize::MAX,
        }
    }

    fn title(&self) -> String {
        let what = render::visible(&self.what);
        if self.key.is_empty() { what } else { format!("{}: {what}", render::shown_pointer(&self.key)) }
    }

    fn where_is(&self) -> String {
        match (&self.position, self.line_and_column()) {
            (Position::File(source, _), Some((line, column))) => {
                format!("{}:{line}:{column}", render::visible(&source.path.display().to_string()))
            }
            (Position::Environment(name), _) => format!("the environment, {}", render::visible(name)),
            (Position::Flag(name), _) => format!("the command line, {name}"),
            (Position::File(source, _), None) => render::visible(&source.path.display().to_string()),
        }
    }

    fn spot(&self) -> Option<Spot<'_>> {
        let Position::File(source, span) = &self.position else { return None };
        let line = line_and_column(&source.text, span.start).0;
        if may_hold_a_secret(source.text.lines().nth(line - 1).unwrap_or_default()) {
            return None;
        }
        Some(Spot { line, text: source.text.as_bytes(), span: (span.start, span.end) })
    }

    fn line_and_column(&self) -> Option<(usize, usize)> {
        let Position::File(source, span) = &self.position else { return None };
        Some(line_and_column(&source.text, span.start))
    }
}

/// Whether a line of the file may hold a secret and must not be repeated: logs have more readers than files.
fn may_hold_a_secret(line: &str) -> bool {
    let key = line.split('=').next().unwrap_or_default().trim().to_lowercase();
    let named = ["token", "password", "secret", "key"].iter().any(|end| key.ends_with(end));
    // Secrets of a program are in its environment.
    let named = named || key == "env" || key.starts_with("env.");
    named || (line.contains("://") && line.contains('@'))
}

/// Returns line and column, both from 1. Columns count characters.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Returns the nearest word as a question for a hint.
pub(super) fn suggestion(word: &str, known: &[&str]) -> Option<String> {
    nearest(word, known).map(|nearest| format!("did you mean {nearest}?"))
}
