//! The arguments of `crosspoint jobs`.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Args, Subcommand, ValueHint};
use crosspoint_contracts::request::Door;
use crosspoint_engine::job::Phase;

use crate::command::flags::Reach;

/// Look at jobs, answer their questions, cancel or repeat them
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs list --state running
  crosspoint jobs show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs events 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --follow
  crosspoint jobs answer 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --text yes")]
pub(crate) struct Jobs {
    #[command(subcommand)]
    pub(crate) action: JobsAction,
}

#[derive(Subcommand)]
pub(crate) enum JobsAction {
    List(JobsList),
    Show(JobsShow),
    Events(JobsEvents),
    Output(JobsOutput),
    Document(JobsDocument),
    Cancel(JobsCancel),
    Answer(JobsAnswer),
    Retry(JobsRetry),
}

/// List jobs, the newest first
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs list
  crosspoint jobs list --state failed --work report --limit 200
  crosspoint jobs list --json | jq -r 'select(.stuck) | [.id, .stuck.reason] | @tsv'")]
pub(crate) struct JobsList {
    /// Only jobs in this state
    #[arg(long, value_parser = PossibleValuesParser::new(Phase::ALL.map(Phase::name)))]
    pub(crate) state: Option<String>,

    /// Only this work
    #[arg(long, value_hint = ValueHint::Other)]
    pub(crate) work: Option<String>,

    /// Only jobs that this agent has or had
    #[arg(long, value_hint = ValueHint::Other)]
    pub(crate) agent: Option<String>,

    /// Only jobs that came in here
    #[arg(long, value_parser = PossibleValuesParser::new(Door::all().map(Door::name)))]
    pub(crate) door: Option<String>,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,

    /// The id of the job where the last list ended: it says so where there is more
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    pub(crate) before: Option<String>,

    /// One JSON object a job, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Show one job: where it is, why it does not move, what it asks, how it ended
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --json | jq .outcome.outputs")]
pub(crate) struct JobsShow {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// The job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Print what happened to a job, one line an event
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs events 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs events 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --follow --json | jq -r 'select(.event == \"output\") | .text'

Exit codes: 0 printed, 2 it could not be done; with --follow as of submit, 1 if the job failed or was cancelled.")]
pub(crate) struct JobsEvents {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// Go on until the job has ended
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Only events after the one with this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u32,

    /// One JSON object an event, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Print all that a job's agents printed, byte for byte
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs output 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 > printed.txt
  crosspoint jobs output 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --follow | grep ERROR

The output of each attempt follows that of the one before; --attempt prints one of them. On a terminal, characters that
could control the terminal are replaced.

Exit codes: 0 printed, also if the job failed; 2 it could not be done.")]
pub(crate) struct JobsOutput {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// Go on until the job has ended
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Only what this attempt printed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempt: Option<u32>,

    /// Only from this byte on, counted from 0
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) from: u64,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Print the document a job came as, byte for byte
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs document 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 > request.json")]
pub(crate) struct JobsDocument {
    #[command(flatten)]
    pub(crate) id: JobId,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Stop a job
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs cancel 0199d3a2-8b1e-7000-8000-0004b2c6d8e1")]
pub(crate) struct JobsCancel {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// The job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Answer the question of a job that waits for a person
#[derive(Args)]
#[command(
    override_usage = "crosspoint jobs answer <ID> <--text <TEXT>|--input <JSON|@FILE|->>",
    after_help = "\
Examples:
  crosspoint jobs answer 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --text 'the second one'
  crosspoint jobs answer 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --input '{\"approved\": true}'"
)]
pub(crate) struct JobsAnswer {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// The answer, as plain text
    #[arg(long, short, value_name = "TEXT", value_hint = ValueHint::Other, allow_hyphen_values = true)]
    pub(crate) text: Option<String>,

    /// The answer: JSON, @FILE, or - for standard input
    #[arg(long, short, value_name = "JSON|@FILE|-", value_hint = ValueHint::Other, allow_hyphen_values = true,
          conflicts_with = "text")]
    pub(crate) input: Option<String>,

    /// Answer this question alone: the job's question_id, as jobs show --json has it
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    pub(crate) question: Option<String>,

    /// An answer without its option, which is refused with a hint
    #[arg(value_name = "TEXT", hide = true, num_args = 1..)]
    pub(crate) words: Vec<String>,

    /// The job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Do the work of a job that has ended once more, as a new job, and wait for it
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs retry 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs retry 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --detach

Exit codes: as of submit.")]
pub(crate) struct JobsRetry {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// Print the new job's id and do not wait
    #[arg(long)]
    pub(crate) detach: bool,

    /// Print the whole new job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct JobId {
    /// The job's id, as submit --detach and jobs list print it
    #[arg(value_name = "ID", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
}
