//! `crosspoint validate`: checks documents and prints their findings.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueHint};
use crosspoint_contracts::{Inner, Kind, Options, Reading, Report};

use crate::Exit;
use crate::command::flags::{self, Format, kind_parser};
use crate::input::{self, Source};
use crate::terminal::{render, undetected};
use crate::verdict::DocumentReport;

/// Say what is wrong with documents of the five contracts, where, and how to mend it
///
/// The kind of each document is detected, or follows from names that the contracts give to files: .agent-request*.json,
/// .agent-response*.json, *.sse. --as says it. Directories are searched for files that end in .json or .sse, hidden
/// ones included; .git, node_modules and links to directories are passed over. At most 256 MiB of a document are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint validate .agent-response.json
  crosspoint validate --inner json .agent-response.json      the text in `response` must be JSON too
  curl -sN localhost:8000/agents/run/stream -d @run.json | crosspoint validate --as run.stream -
  crosspoint validate --format json specs/ | jq 'select(.valid | not)'

Reports go to stdout, errors and the sum to stderr. NO_COLOR=1 turns colour off.

Exit codes: 0 all valid, 1 a document breaks a clause, 2 a file could not be read or its kind not be told.")]
pub(crate) struct Validate {
    /// Files or directories; - reads standard input [default: - unless that is a terminal]
    #[arg(value_name = "FILE|DIR|-")]
    pub(crate) paths: Vec<PathBuf>,

    /// Read every document as this kind instead of detecting it
    #[arg(long = "as", value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Option<Kind>,

    /// What the text inside a bridge response must be
    #[arg(long, value_name = "FORMAT")]
    pub(crate) inner: Option<flags::Inner>,

    /// A further agent type that messages may name, besides the five of the contract; may be repeated
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) agent_type: Vec<String>,

    /// Warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print nothing about valid documents, not even their warnings
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// For people, or one JSON object a document on one line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

pub(crate) fn run(arguments: &Validate) -> Result<Exit> {
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

/// Numbers of documents by verdict.
#[derive(Default)]
struct Tally {
    valid: usize,
    invalid: usize,
    unknown: usize,
    unreadable: usize,
}

impl Tally {
    fn outcome(&self) -> Exit {
        match (self.unknown + self.unreadable, self.invalid) {
            (0, 0) => Exit::Fine,
            (0, _) => Exit::NotFine,
            _ => Exit::CouldNot,
        }
    }

    /// Prints the sums on stderr if there was more than one document.
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
    /// The reader of our output has closed it. The exit code must still say the verdict.
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
                Some(flags::Inner::Json) => Inner::Json,
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
                    undetected::report(&render::shown_name(source), undetected, "--as");
                }
            }
            Format::Json => {
                let mut report = DocumentReport::of(reading, good);
                report.file = Some(source.name());
                print(&report)?;
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
        let mut report = DocumentReport::new(&nothing, false);
        report.file = Some(name.to_owned());
        report.error = Some(format!("{error:#}"));
        let printed = if self.closed { Ok(()) } else { print(&report) };
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

/// Prints the verdict on a line of its own.
fn print(report: &DocumentReport<'_>) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string(report)?)
}
