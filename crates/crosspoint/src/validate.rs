//! `crosspoint validate`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use crosspoint_contracts::kind::Undetected;
use crosspoint_contracts::{Finding, Inner, Kind, Options, Reading, Report};
use serde::Serialize;

use crate::Outcome;
use crate::cli::{self, Format, Validate};
use crate::input::{self, Source};
use crate::render;

pub(crate) fn run(arguments: &Validate) -> Result<Outcome> {
    let mut run = Run { arguments, tally: Tally::default(), closed: false };
    for path in paths(arguments)? {
        for found in input::expand(&path) {
            match found {
                Ok(source) => run.document(&source)?,
                Err((path, error)) => run.unreadable(&path.display().to_string(), &error)?,
            }
        }
    }
    if arguments.format == Format::Text {
        run.tally.say();
    }
    Ok(run.tally.outcome())
}

fn paths(arguments: &Validate) -> Result<Vec<PathBuf>> {
    if arguments.paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        bail!("standard input (-) can be read only once");
    }
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
    unknown: usize,
    unreadable: usize,
}

impl Tally {
    fn outcome(&self) -> Outcome {
        match (self.unknown + self.unreadable, self.invalid) {
            (0, 0) => Outcome::Fine,
            (0, _) => Outcome::NotFine,
            _ => Outcome::CouldNot,
        }
    }

    /// The sum, on stderr, where there was more than one document.
    fn say(&self) {
        let all = self.valid + self.invalid + self.unknown + self.unreadable;
        if all < 2 {
            return;
        }
        let parts = [
            (self.valid, "valid"),
            (self.invalid, "invalid"),
            (self.unknown, "of no known kind"),
            (self.unreadable, "not readable"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        render::note(&format!("{all} documents: {}", parts.join(", ")));
    }
}

struct Run<'a> {
    arguments: &'a Validate,
    tally: Tally,
    /// Whoever read our output has left; the verdict is still owed.
    closed: bool,
}

impl Run<'_> {
    fn document(&mut self, source: &Source) -> Result<()> {
        let bytes = match source.read() {
            Ok(bytes) => bytes,
            Err(error) => return self.unreadable(&source.name(), &error),
        };
        let agent_types: Vec<&str> = self.arguments.agent_type.iter().map(String::as_str).collect();
        let options = Options {
            kind: self.arguments.kind.or_else(|| source.file_name().and_then(Kind::of_file_name)),
            inner: match self.arguments.inner {
                Some(cli::Inner::Json) => Inner::Json,
                None => Inner::Any,
            },
            agent_types: &agent_types,
            ..Options::default()
        };
        let reading = crosspoint_contracts::read(&bytes, &options);
        let good = self.is_good(&reading);
        match (good, &reading.undetected) {
            (true, _) => self.tally.valid += 1,
            (false, None) => self.tally.invalid += 1,
            (false, Some(_)) => self.tally.unknown += 1,
        }
        if good && self.arguments.quiet {
            return Ok(());
        }
        let printed = self.print(source, &bytes, &reading, good);
        self.unless_closed(printed)
    }

    fn is_good(&self, reading: &Reading<'_>) -> bool {
        let report = &reading.report;
        let strict_enough = !self.arguments.strict || report.findings.is_empty();
        report.is_valid() && reading.undetected.is_none() && strict_enough
    }

    fn print(&self, source: &Source, bytes: &[u8], reading: &Reading<'_>, good: bool) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.arguments.format {
            Format::Text => {
                let mut out = anstream::AutoStream::auto(io::stdout().lock());
                let verdict = render::Verdict { good, strict: self.arguments.strict };
                render::report(&mut out, &render::shown_name(source), bytes, &reading.report, verdict)?;
                if let Some(undetected) = &reading.undetected {
                    render::undetected(&render::shown_name(source), undetected, "--as");
                }
            }
            Format::Json => {
                let mut line = Line::new(source.name(), &reading.report, good);
                if let Some(undetected) = &reading.undetected {
                    line.error = Some(render::undetected_sentence(undetected));
                    line.candidates = candidates(undetected);
                }
                line.print()?;
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, name: &str, error: &anyhow::Error) -> Result<()> {
        self.tally.unreadable += 1;
        if self.arguments.format == Format::Text {
            render::cannot_read(name, error);
            return Ok(());
        }
        let nothing = Report::default();
        let line = Line { error: Some(format!("{error:#}")), ..Line::new(name.to_owned(), &nothing, false) };
        let printed = if self.closed { Ok(()) } else { line.print() };
        self.unless_closed(printed)
    }

    fn unless_closed(&mut self, printed: io::Result<()>) -> Result<()> {
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            other => other?,
        }
        Ok(())
    }
}

/// One document's report as JSON. The order of the members is the order they are printed in.
#[derive(Serialize)]
struct Line<'r> {
    file: String,
    kind: Option<&'static str>,
    valid: bool,
    findings: Vec<FindingLine<'r>>,
    #[serde(skip_serializing_if = "is_zero")]
    unlisted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<&'static str>,
}

#[derive(Serialize)]
struct FindingLine<'r> {
    clause: &'static str,
    level: &'static str,
    pointer: &'r str,
    line: usize,
    column: usize,
    message: &'r str,
    hint: &'r str,
}

impl<'r> Line<'r> {
    fn new(file: String, report: &'r Report, good: bool) -> Line<'r> {
        Line {
            file,
            kind: report.kind.map(Kind::name),
            valid: good,
            findings: report.findings.iter().map(FindingLine::new).collect(),
            unlisted: report.unlisted,
            error: None,
            candidates: Vec::new(),
        }
    }

    fn print(&self) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{}", serde_json::to_string(self)?)
    }
}

impl<'r> FindingLine<'r> {
    fn new(finding: &'r Finding) -> FindingLine<'r> {
        FindingLine {
            clause: finding.clause.id,
            level: finding.clause.level.name(),
            pointer: &finding.pointer,
            line: finding.line,
            column: finding.column,
            message: &finding.message,
            hint: &finding.hint,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn candidates(undetected: &Undetected) -> Vec<&'static str> {
    match undetected {
        Undetected::Unknown => Vec::new(),
        Undetected::Ambiguous(candidates) => candidates.iter().map(|candidate| candidate.kind.name()).collect(),
    }
}
