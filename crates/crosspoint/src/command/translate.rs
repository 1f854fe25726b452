//! `crosspoint translate`: writes a document in another contract.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};
use crosspoint_contracts::json::{self, Tape};
use crosspoint_contracts::map::Carrying;
use crosspoint_contracts::translate::{Refused, Translation};
use crosspoint_contracts::{AGENT_TYPES, Contract, Extent, Kind, Options, Report};

use crate::Exit;
use crate::command::flags::{contract_parser, kind_parser};
use crate::input::Source;
use crate::terminal::{render, undetected};
use crate::translation::{AGENT_DEFAULT, TranslateOptions, Translated, mend};

/// Write a document of one contract as the same document of another
///
/// What the other contract has no field for travels along under the key x_crosspoint, so that translating back gives
/// the document as it was. The kind is detected as by validate. A stream of a run is read to its end and becomes one
/// document a line, an event each; work that has not ended becomes an event of a stream. At most 256 MiB are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint translate run.json --to task
  crosspoint translate .agent-request.json --to message --agent research
  crosspoint translate run.json --to task | crosspoint translate --to run     # gives run.json again
  curl -sN localhost:8000/agents/run/stream -d @run.json | crosspoint translate --to message

The document goes to stdout; what was carried, lost or loose goes to stderr.

Exit codes: 0 translated, 1 it is not valid, has no counterpart, or would lose something under --strict, 2 the file could not be \
read or its kind not be told.")]
pub(crate) struct Translate {
    /// The document; - reads standard input [default: - unless that is a terminal]
    #[arg(value_name = "FILE|-")]
    pub(crate) path: Option<PathBuf>,

    /// The contract it is to be written in
    #[arg(long, value_name = "CONTRACT", value_parser = contract_parser())]
    pub(crate) to: Contract,

    /// Read it as this kind instead of detecting it
    #[arg(long, alias = "as", value_name = "KIND", value_parser = kind_parser())]
    pub(crate) from: Option<Kind>,

    /// The type of the agent in messages, where the document names none, or none that is known
    #[arg(long, value_name = "TYPE", default_value = AGENT_DEFAULT, value_hint = ValueHint::Other)]
    pub(crate) agent: String,

    /// A further agent type that messages may name, besides the five of the contract; may be repeated
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) agent_type: Vec<String>,

    /// Carry nothing, for agents that refuse members they do not know; what would be carried is lost, and listed
    #[arg(long)]
    pub(crate) no_carry: bool,

    /// Print nothing and exit with 1 if anything would be lost
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print it on one line
    #[arg(long)]
    pub(crate) compact: bool,
}

/// Most names that are listed of what was carried or lost. Longer lists are not read.
const NAMES_MAX: usize = 20;

pub(crate) fn run(arguments: &Translate) -> Result<Exit> {
    let agent_types: Vec<&str> = arguments.agent_type.iter().map(String::as_str).collect();
    if agent_types.iter().any(|name| name.trim().is_empty()) {
        render::refused("--agent-type: an agent type has a name", "--agent-type NAME");
        return Ok(Exit::CouldNot);
    }
    let source = Source::one(arguments.path.as_deref(), "translate")?;
    let options = TranslateOptions {
        to: arguments.to,
        kind: arguments.from.or_else(|| source.file_name().and_then(Kind::of_file_name)),
        agent: &arguments.agent,
        agent_types: &agent_types,
        carrying: if arguments.no_carry { Carrying::Off } else { Carrying::On },
    };
    if !options.knows_its_agent() {
        return Ok(unknown_agent(&arguments.agent));
    }
    let bytes = match source.read() {
        Ok(bytes) => bytes,
        Err(error) => {
            render::cannot_read(&source.name(), &error);
            return Ok(Exit::CouldNot);
        }
    };
    let work = Work { arguments, name: render::shown_name(&source), bytes: &bytes, options };
    work.run()
}

fn unknown_agent(agent: &str) -> Exit {
    let hint = format!("known are {}; --agent-type NAME adds one", AGENT_TYPES.join(", "));
    render::refused(&format!("--agent: no agent type is called {agent:?}"), &hint);
    Exit::CouldNot
}

/// One document, and the request for its translation.
struct Work<'a> {
    arguments: &'a Translate,
    name: String,
    bytes: &'a [u8],
    options: TranslateOptions<'a>,
}

impl Work<'_> {
    fn run(&self) -> Result<Exit> {
        let Translation { report, undetected, written } = self.options.translate(self.bytes);
        if undetected.is_some() || !report.is_valid() {
            render::findings(&self.name, self.bytes, &report);
            let Some(undetected) = undetected else { return Ok(Exit::NotFine) };
            undetected::report(&self.name, &undetected, "--from");
            return Ok(Exit::CouldNot);
        }
        match Translated::of(written) {
            Ok(translated) if translated.documents.is_empty() => Ok(self.no_counterpart(&translated)),
            Ok(translated) => self.show(&report, &translated),
            Err(refused) => Ok(self.broken(&refused)),
        }
    }

    /// Prints the documents on stdout, and everything about them on stderr.
    fn show(&self, report: &Report, translated: &Translated) -> Result<Exit> {
        let homeless = translated.homeless();
        let refuses = self.arguments.strict && translated.loses(self.options.carrying);
        if !refuses {
            self.print(report, translated)?;
        }
        self.say_warnings(report);
        let became = match (self.arguments.no_carry, refuses) {
            (true, false) => Some("lost"),
            (true, true) => Some("would be lost"),
            (false, false) => Some("carried under x_crosspoint"),
            (false, true) => None,
        };
        if let Some(became) = became.filter(|_| !homeless.is_empty()) {
            render::note(&format!("{became}: {}", listed(&homeless)));
        }
        let filled = translated.filled();
        if !refuses && !filled.is_empty() {
            render::note(&format!("filled in, because {} demands it: {}", self.arguments.to.name(), listed(&filled)));
        }
        if report.kind.is_some_and(Kind::is_framed) && !self.is_whole() {
            render::note("this is part of a stream: events are missing from its beginning or its end");
        }
        if translated.without > 0 {
            render::note(&self.events_without(translated));
        }
        if refuses {
            render::refused(&format!("{}: not all of it can be said, so nothing was printed", self.name), self.allow());
            return Ok(Exit::NotFine);
        }
        Ok(Exit::Fine)
    }

    fn is_whole(&self) -> bool {
        crosspoint_contracts::read(self.bytes, &Options { extent: Extent::Whole, ..self.options.options() })
            .report
            .is_valid()
    }

    /// Prints the documents. A stream becomes one document per line, even if there is only one.
    fn print(&self, report: &Report, translated: &Translated) -> io::Result<()> {
        let on_one_line = self.arguments.compact || report.kind.is_some_and(Kind::is_framed);
        let mut stdout = io::stdout().lock();
        for written in &translated.documents {
            if written.kind.is_framed() {
                stdout.write_all(written.text().as_bytes())?;
            } else {
                writeln!(stdout, "{}", laid_out(written.text(), on_one_line))?;
            }
        }
        Ok(())
    }

    fn say_warnings(&self, report: &Report) {
        if let Some(counts) = render::counts(report) {
            render::note(&format!("{} has {counts}: crosspoint validate shows what and where", self.name));
        }
    }

    fn events_without(&self, translated: &Translated) -> String {
        let (without, all) = (translated.without, translated.without + translated.documents.len());
        let has = if without == 1 { "has" } else { "have" };
        let to = self.arguments.to.name();
        format!("{without} of {all} events {has} no counterpart in the {to} contract: it knows only how work ended")
    }

    /// Says how to get a document in spite of the refusal.
    fn allow(&self) -> &'static str {
        if self.arguments.no_carry {
            "leave out --no-carry, so that what has no field is carried, or --strict, to do without what is lost"
        } else {
            "leave out --strict, to do without what is lost"
        }
    }

    fn no_counterpart(&self, translated: &Translated) -> Exit {
        let hint = self.options.goes_to(self.bytes);
        let why = translated.refused.as_ref().map(Refused::to_string).unwrap_or_default();
        render::refused(&format!("{}: {why}", self.name), &hint);
        Exit::NotFine
    }

    fn broken(&self, refused: &Refused) -> Exit {
        if let Refused::Broken { report, .. } = refused {
            render::findings_by_pointer("<translated>", report);
        }
        render::refused(&format!("{}: {refused}", self.name), mend(refused));
        Exit::NotFine
    }
}

/// Formats a document. Payloads keep the line breaks that they came with, so one line has to be made too.
fn laid_out(document: &str, on_one_line: bool) -> String {
    let lay_out = if on_one_line { json::compact } else { json::pretty };
    let tape = Tape::scan(document.as_bytes());
    tape.ok().and_then(|tape| tape.root().map(lay_out)).unwrap_or_else(|| document.to_owned())
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMES_MAX).map(|name| render::shown_pointer(name)).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
