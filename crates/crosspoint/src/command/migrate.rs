//! `crosspoint migrate`: rewrites a document of an older agent as a workflow envelope.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use crosspoint_contracts::workflow::migrate::{Envelope, Migrated, Options, Refused, migrate};
use crosspoint_contracts::{Contract, Kind};

use crate::Exit;
use crate::input::Source;
use crate::terminal::{render, shell};

/// Rewrite a document of an older agent as the workflow envelope it would be today
///
/// By the patterns of the workflow contract: flat members of an input become parameters of the task, those that name
/// files become paths, a mode becomes the action, members of an output are said in notes, a next_recommendation becomes
/// the recommendation, and state updates become an artifact, the index file. Nothing is
/// lost and nothing is written over. A document that is a valid envelope already is printed as it came. At most 256 MiB
/// are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint migrate old-input.json                          input or output is told by its members
  crosspoint migrate --workflow plan --action discover bounds.json
  crosspoint migrate --index .workflow/index.md old-output.json > output.json
  crosspoint migrate --success true --summary 'Sorted the gaps.' old-output.json
  my-agent | crosspoint migrate --as workflow.output - | crosspoint validate

The envelope goes to stdout; what was moved, summarised or made up goes to stderr, one line each.

Exit codes: 0 rewritten or valid already, 1 it cannot be rewritten as it is, 2 the file could not be read or its kind not be told.")]
pub(crate) struct Migrate {
    /// The document; - reads standard input [default: - unless that is a terminal]
    #[arg(value_name = "FILE|-")]
    pub(crate) path: Option<PathBuf>,

    /// What the document is to become, instead of telling it by its members
    #[arg(long = "as", value_name = "KIND", value_parser = envelope_parser())]
    pub(crate) envelope: Option<Envelope>,

    /// The index file that state updates become, from the repository's root; where the document has no `paths.index`
    #[arg(long, value_name = "PATH", value_hint = ValueHint::Other)]
    pub(crate) index: Option<String>,

    /// The workflow's name, where the document does not say it
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workflow: Option<String>,

    /// The action, where the document has no action and no mode
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) action: Option<String>,

    /// What happened, in one sentence, where the output does not say it
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) summary: Option<String>,

    /// Whether the work succeeded, where the output does not say it
    #[arg(long, value_name = "BOOL")]
    pub(crate) success: Option<bool>,
}

fn envelope_parser() -> impl TypedValueParser<Value = Envelope> {
    let envelopes = [Envelope::Input, Envelope::Output];
    let find = move |name: String| envelopes.into_iter().find(|envelope| envelope.kind().name() == name);
    PossibleValuesParser::new(envelopes.map(|envelope| envelope.kind().name()))
        .try_map(move |name| find(name).ok_or("no such envelope"))
}

pub(crate) fn run(arguments: &Migrate) -> Result<Exit> {
    let source = Source::one(arguments.path.as_deref(), "migrate")?;
    let bytes = match source.read() {
        Ok(bytes) => bytes,
        Err(error) => {
            render::cannot_read(&source.name(), &error);
            return Ok(Exit::CouldNot);
        }
    };
    let options = Options {
        envelope: arguments.envelope,
        index: arguments.index.as_deref(),
        workflow: arguments.workflow.as_deref(),
        action: arguments.action.as_deref(),
        summary: arguments.summary.as_deref(),
        success: arguments.success,
    };
    if arguments.envelope.is_none()
        && let Some(kind) = other_contract(&bytes)
    {
        let hint = format!(
            "crosspoint translate --to {} writes it as an envelope; --as KIND migrates it all the same",
            WORKFLOW.name()
        );
        render::refused(
            &format!("{}: it is a valid {kind} and needs no migration", render::shown_name(&source)),
            &hint,
        );
        return Ok(Exit::NotFine);
    }
    match migrate(&bytes, &options) {
        Ok(migrated) => show(&migrated),
        Err(refused) => Ok(refuse(&render::shown_name(&source), &bytes, &refused)),
    }
}

const WORKFLOW: Contract = Contract::Workflow;

/// Returns the kind of a valid document of another contract, which cannot come from an older workflow agent.
fn other_contract(bytes: &[u8]) -> Option<Kind> {
    let reading = crosspoint_contracts::read(bytes, &crosspoint_contracts::Options::default());
    reading.report.kind.filter(|kind| reading.document.is_some() && kind.contract() != WORKFLOW)
}

/// Prints the envelope on stdout and the changes on stderr.
fn show(migrated: &Migrated) -> Result<Exit> {
    writeln!(io::stdout().lock(), "{}", migrated.document.get())?;
    for change in &migrated.changes {
        render::note(&render::visible(&change.to_string()));
    }
    if migrated.changes.is_empty() {
        render::note(&format!("nothing was changed: it is a valid {} already", migrated.kind));
    }
    for pointer in &migrated.left {
        render::note(&render::visible(&format!("left {pointer} where it is: members of other names are allowed")));
    }
    Ok(Exit::Fine)
}

fn refuse(name: &str, bytes: &[u8], refused: &Refused) -> Exit {
    let (hint, outcome) = advice(refused);
    match refused {
        Refused::Unreadable(report) => render::findings(name, bytes, report),
        Refused::Invalid { document, report } => render::findings("<rewritten>", document.get().as_bytes(), report),
        Refused::Undecided { .. }
        | Refused::Unnamed { .. }
        | Refused::Missing(_)
        | Refused::WrongType { .. }
        | Refused::Taken { .. }
        | Refused::NoIndex
        | Refused::Misplaced { .. }
        | Refused::IndexWritten { .. } => {}
    }
    render::refused(&format!("{name}: {refused}"), &hint);
    outcome
}

/// Returns a hint on what to do about the refusal, and how the command ends.
fn advice(refused: &Refused) -> (String, Exit) {
    let hint = match refused {
        Refused::Unreadable(_) => "mend it first; crosspoint validate reads it the same way".to_owned(),
        Refused::Undecided { .. } => {
            let hint = "say what it is: --as workflow.input or --as workflow.output";
            return (hint.to_owned(), Exit::CouldNot);
        }
        Refused::Unnamed { workflow: true, action: true } => "add --workflow NAME and --action NAME".to_owned(),
        Refused::Unnamed { workflow: true, action: false } => "add --workflow NAME".to_owned(),
        Refused::Unnamed { workflow: false, .. } => "add --action NAME".to_owned(),
        Refused::Missing(missing) => telling(missing, env::args_os().skip(1)),
        Refused::Taken { .. } => "rename or remove one of the two in the document".to_owned(),
        Refused::NoIndex => "add --index PATH, the path of the index file from the repository's root".to_owned(),
        Refused::IndexWritten { .. } => {
            "put the updates into the content of that artifact, and remove `state_updates`".to_owned()
        }
        Refused::WrongType { clause, .. } | Refused::Misplaced { clause, .. } => clause.hint.to_owned(),
        Refused::Invalid { .. } => "mend these values in the document, then migrate it".to_owned(),
    };
    (hint, Exit::NotFine)
}

/// Says how to give what only the user knows: with the user's own command and the options that it lacks.
fn telling(missing: &[&str], words: impl Iterator<Item = OsString>) -> String {
    let mut words: Vec<OsString> = words.collect();
    let after_command = words.iter().position(|word| word == "migrate").map_or(0, |at| at + 1);
    let options = missing.iter().flat_map(|member| match *member {
        "success" => ["--success", "true"],
        _ => ["--summary", "What happened, in one sentence."],
    });
    drop(words.splice(after_command..after_command, options.map(OsString::from)));
    let command = shell::line(words.iter().map(OsString::as_os_str));
    let or_false = if missing.contains(&"success") { " (or --success false)" } else { "" };
    format!("say it yourself{or_false}: crosspoint {command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_is_the_users_own_command_with_what_it_lacks() {
        let told = |missing: &[&str], words: &[&str]| telling(missing, words.iter().map(OsString::from));
        assert_eq!(
            told(&["summary"], &["migrate", "--index", "i.md", "my file.json"]),
            "say it yourself: crosspoint migrate --summary 'What happened, in one sentence.' --index i.md 'my file.json'"
        );
        let both = told(&["success", "summary"], &["migrate"]);
        assert!(both.starts_with("say it yourself (or --success false): crosspoint migrate --success true --summary "));
    }
}
