//! `crosspoint translate`

use std::io::{self, Write};

use anyhow::Result;
use crosspoint_contracts::json::{self, Tape};
use crosspoint_contracts::map::{Carrying, Fresh};
use crosspoint_contracts::message::AGENT_TYPES;
use crosspoint_contracts::translate::{Refused, Translation, Written};
use crosspoint_contracts::{Contract, Extent, Kind, Options, Report};
use uuid::Uuid;

use crate::Outcome;
use crate::cli::Translate;
use crate::input::Source;
use crate::render;

/// Names listed of what was carried or lost. Past that the list is no longer read.
const NAMES_MAX: usize = 20;

pub(crate) fn run(arguments: &Translate) -> Result<Outcome> {
    let agent_types: Vec<&str> = arguments.agent_type.iter().map(String::as_str).collect();
    if agent_types.iter().any(|name| name.trim().is_empty()) {
        render::refused("--agent-type: an agent type has a name", "--agent-type NAME");
        return Ok(Outcome::CouldNot);
    }
    if !AGENT_TYPES.iter().chain(&agent_types).any(|known| *known == arguments.agent) {
        return Ok(unknown_agent(&arguments.agent));
    }
    let source = Source::one(arguments.path.as_deref(), "translate")?;
    let bytes = match source.read() {
        Ok(bytes) => bytes,
        Err(error) => {
            render::cannot_read(&source.name(), &error);
            return Ok(Outcome::CouldNot);
        }
    };
    let work = Work {
        arguments,
        name: render::shown_name(&source),
        bytes: &bytes,
        options: Options {
            kind: arguments.from.or_else(|| source.file_name().and_then(Kind::of_file_name)),
            agent_types: &agent_types,
            // What has not ended is an event, and one event is worth translating.
            extent: Extent::Part,
            ..Options::default()
        },
    };
    work.run()
}

fn unknown_agent(agent: &str) -> Outcome {
    let hint = format!("known are {}; --agent-type NAME adds one", AGENT_TYPES.join(", "));
    render::refused(&format!("--agent: no agent type is called {agent:?}"), &hint);
    Outcome::CouldNot
}

/// One document, and what is wanted of it.
struct Work<'a> {
    arguments: &'a Translate,
    name: String,
    bytes: &'a [u8],
    options: Options<'a>,
}

impl Work<'_> {
    fn run(&self) -> Result<Outcome> {
        let Translation { report, undetected, written } = self.translate(self.arguments.to);
        if undetected.is_some() || !report.is_valid() {
            render::findings(&self.name, self.bytes, &report);
            let Some(undetected) = undetected else { return Ok(Outcome::NotFine) };
            render::undetected(&self.name, &undetected, "--from");
            return Ok(Outcome::CouldNot);
        }
        match Translated::of(written) {
            Ok(translated) if translated.documents.is_empty() => Ok(self.no_counterpart(&translated)),
            Ok(translated) => self.show(&report, &translated),
            Err(refused) => Ok(self.broken(&refused)),
        }
    }

    fn translate(&self, to: Contract) -> Translation {
        // Seconds are as fine as any contract's own examples.
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let fresh = Fresh {
            now: &now,
            id: Uuid::new_v4(),
            agent_types: self.options.agent_types,
            agent_type: &self.arguments.agent,
            carrying: if self.arguments.no_carry { Carrying::Off } else { Carrying::On },
        };
        crosspoint_contracts::translate(self.bytes, &self.options, to, &fresh)
    }

    /// The documents on stdout, all that is to be said about them on stderr.
    fn show(&self, report: &Report, translated: &Translated) -> Result<Outcome> {
        let homeless = translated.homeless();
        let loses = translated.without > 0 || (self.arguments.no_carry && !homeless.is_empty());
        let refuses = self.arguments.strict && loses;
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
            return Ok(Outcome::NotFine);
        }
        Ok(Outcome::Fine)
    }

    fn is_whole(&self) -> bool {
        crosspoint_contracts::read(self.bytes, &Options { extent: Extent::Whole, ..self.options }).report.is_valid()
    }

    /// A stream becomes a document a line, even where it becomes only one.
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

    /// How to get a document all the same.
    fn allow(&self) -> &'static str {
        if self.arguments.no_carry {
            "leave out --no-carry, so that what has no field is carried, or --strict, to do without what is lost"
        } else {
            "leave out --strict, to do without what is lost"
        }
    }

    fn no_counterpart(&self, translated: &Translated) -> Outcome {
        let goes_to = |to: &Contract| self.translate(*to).written.iter().any(Result::is_ok);
        let others: Vec<&str> = Contract::ALL.into_iter().filter(goes_to).map(Contract::name).collect();
        let hint = match others.split_last() {
            None => "no contract has one".to_owned(),
            Some((last, [])) => format!("it goes to {last}"),
            Some((last, others)) => format!("it goes to {} and {last}", others.join(", ")),
        };
        let why = translated.refused.as_ref().map(Refused::to_string).unwrap_or_default();
        render::refused(&format!("{}: {why}", self.name), &hint);
        Outcome::NotFine
    }

    fn broken(&self, refused: &Refused) -> Outcome {
        let mut hint = "it nests too deep; flatten what is in it";
        if let Refused::Broken { report, .. } = refused {
            render::findings_by_pointer("<translated>", report);
            let too_deep = |finding: &crosspoint_contracts::Finding| finding.clause.id == TOO_DEEP;
            if !report.findings.is_empty() && !report.findings.iter().any(too_deep) {
                hint = "something carried does not fit: mend or remove `x_crosspoint` in the document";
            }
        }
        render::refused(&format!("{}: {refused}", self.name), hint);
        Outcome::NotFine
    }
}

/// The clause on how deep JSON may nest.
const TOO_DEEP: &str = "ALL-107";

/// What came of a document.
struct Translated {
    documents: Vec<Written>,
    /// How many have no counterpart, and why the last of them has none.
    without: usize,
    refused: Option<Refused>,
}

impl Translated {
    /// One that breaks its contract spoils the rest: half a stream is worse than none.
    fn of(results: Vec<Result<Written, Refused>>) -> Result<Translated, Refused> {
        let mut translated = Translated { documents: Vec::with_capacity(results.len()), without: 0, refused: None };
        for result in results {
            match result {
                Ok(written) => translated.documents.push(written),
                Err(none @ Refused::NoCounterpart { .. }) => {
                    translated.without += 1;
                    translated.refused = Some(none);
                }
                Err(broken @ Refused::Broken { .. }) => return Err(broken),
            }
        }
        Ok(translated)
    }

    /// Where something was filled in, of all documents, each once.
    fn filled(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        self.documents.iter().flat_map(Written::filled).filter(|place| seen.insert(*place)).collect()
    }

    /// What has no field, of all documents, each once.
    fn homeless(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        let all = self.documents.iter().flat_map(|written| &written.homeless).map(AsRef::as_ref);
        all.filter(|name| seen.insert(*name)).collect()
    }
}

/// Payloads keep the line breaks they came with, so one line has to be made too.
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
