//! `crosspoint validate`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::{Inner, Kind, Options, Reading, Report};
use serde_json::json;

use crate::Outcome;
use crate::cli::{self, Format, Validate};
use crate::input::{self, Source};
use crate::render;

pub(crate) fn run(arguments: &Validate) -> Result<Outcome> {
    let mut run = Run { arguments, tally: Tally::default() };
    for path in paths(arguments)? {
        match input::expand(&path) {
            Ok(sources) => {
                for source in sources {
                    run.document(&source)?;
                }
            }
            Err(error) => run.unreadable(&path.display().to_string(), &error)?,
        }
    }
    if arguments.format == Format::Text {
        run.tally.say();
    }
    Ok(run.tally.outcome())
}

fn paths(arguments: &Validate) -> Result<Vec<PathBuf>> {
    if !arguments.paths.is_empty() {
        return Ok(arguments.paths.clone());
    }
    if io::stdin().is_terminal() {
        bail!(
            "nothing to validate: name a file or a directory, or pipe a document in (crosspoint validate --help shows how)"
        );
    }
    Ok(vec![PathBuf::from("-")])
}

/// How many documents were how.
#[derive(Default)]
struct Tally {
    valid: usize,
    invalid: usize,
    not_understood: usize,
}

impl Tally {
    fn outcome(&self) -> Outcome {
        match (self.not_understood, self.invalid) {
            (0, 0) => Outcome::Fine,
            (0, _) => Outcome::NotFine,
            _ => Outcome::CouldNot,
        }
    }

    /// The sum, on stderr, where there was more than one document.
    fn say(&self) {
        let all = self.valid + self.invalid + self.not_understood;
        if all < 2 {
            return;
        }
        let mut sum = format!("{all} documents: {} valid", self.valid);
        if self.invalid > 0 {
            sum += &format!(", {} invalid", self.invalid);
        }
        if self.not_understood > 0 {
            sum += &format!(", {} not understood", self.not_understood);
        }
        render::note(&sum);
    }
}

struct Run<'a> {
    arguments: &'a Validate,
    tally: Tally,
}

impl Run<'_> {
    fn document(&mut self, source: &Source) -> Result<()> {
        let bytes = match source.read() {
            Ok(bytes) => bytes,
            Err(error) => return self.unreadable(&source.name(), &error),
        };
        let agent_types: Vec<&str> = self.arguments.agent_type.iter().map(String::as_str).collect();
        let options = Options {
            kind: self.arguments.kind,
            file_kind: source.file_name().and_then(Kind::of_file_name),
            inner: match self.arguments.inner {
                Some(cli::Inner::Json) => Inner::Json,
                None => Inner::Any,
            },
            agent_types: &agent_types,
        };
        let reading = crosspoint_contracts::read(&bytes, &options);
        let good = self.is_good(&reading);
        match (good, &reading.undetected) {
            (true, _) => self.tally.valid += 1,
            (false, None) => self.tally.invalid += 1,
            (false, Some(_)) => self.tally.not_understood += 1,
        }
        self.print(&source.name(), &bytes, &reading, good)
    }

    fn is_good(&self, reading: &Reading<'_>) -> bool {
        let report = &reading.report;
        let strict_enough = !self.arguments.strict || report.findings.is_empty();
        report.is_valid() && reading.undetected.is_none() && strict_enough
    }

    fn print(&self, name: &str, bytes: &[u8], reading: &Reading<'_>, good: bool) -> Result<()> {
        match self.arguments.format {
            Format::Text => {
                let mut out = anstream::AutoStream::auto(io::stdout().lock());
                render::report(&mut out, name, bytes, &reading.report, good)?;
                if let Some(undetected) = &reading.undetected {
                    render::undetected(name, undetected);
                }
            }
            Format::Json => {
                let mut line = as_json(name, &reading.report, good);
                if let Some(undetected) = &reading.undetected {
                    line["error"] = json!(render::undetected_sentence(undetected));
                }
                writeln!(io::stdout().lock(), "{line}")?;
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, name: &str, error: &anyhow::Error) -> Result<()> {
        self.tally.not_understood += 1;
        render::cannot_read(name, error);
        if self.arguments.format == Format::Json {
            let mut line = as_json(name, &Report::default(), false);
            line["error"] = json!(format!("cannot read it: {error:#}"));
            writeln!(io::stdout().lock(), "{line}").context("cannot write")?;
        }
        Ok(())
    }
}

fn as_json(name: &str, report: &Report, good: bool) -> serde_json::Value {
    let findings: Vec<serde_json::Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "clause": finding.clause.id,
                "level": match finding.clause.level { Level::Error => "error", Level::Warning => "warning" },
                "pointer": finding.pointer,
                "line": finding.line,
                "column": finding.column,
                "message": finding.message,
                "hint": finding.hint,
            })
        })
        .collect();
    let mut line = json!({ "file": name, "kind": report.kind.map(Kind::name), "valid": good, "findings": findings });
    if report.unlisted > 0 {
        line["unlisted"] = json!(report.unlisted);
    }
    line
}
