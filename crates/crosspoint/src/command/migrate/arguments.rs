//! The arguments of `crosspoint migrate`.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use crosspoint_contracts::workflow::migrate::Envelope;

/// Rewrite a document of an older agent as the workflow envelope it would be today
///
/// By the patterns of the workflow contract: flat members of an input become parameters of the task, a mode becomes its action, members
/// of an output are said in notes, and state updates become an artifact, the index file. Nothing is lost and nothing is
/// written over. A document that is a valid envelope already is printed as it came. At most 256 MiB are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint migrate old-input.json                          input or output is told by its members
  crosspoint migrate --workflow plan --action discover bounds.json
  crosspoint migrate --index .workflow/index.md old-output.json > output.json
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
}

fn envelope_parser() -> impl TypedValueParser<Value = Envelope> {
    let envelopes = [Envelope::Input, Envelope::Output];
    let find = move |name: String| envelopes.into_iter().find(|envelope| envelope.kind().name() == name);
    PossibleValuesParser::new(envelopes.map(|envelope| envelope.kind().name()))
        .try_map(move |name| find(name).ok_or("no such envelope"))
}
