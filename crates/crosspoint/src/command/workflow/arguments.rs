//! The arguments of `crosspoint workflow`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueHint};

use crate::command::flags::Reach;

/// Run workflows: stages of agents that write files to a repository
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint workflow check specify.toml
  crosspoint workflow run specify.toml --feature 005-user-auth
  crosspoint workflow run specify.toml --dry-run > change.diff
  crosspoint workflow list
  crosspoint workflow resume 0199d3a2-8b1e-7000-8000-0004b2c6d8e1

Exit codes: 0 done, 1 the run failed or the file has mistakes, 2 it could not be done, 3 it waits for a person, 130 interrupted.")]
pub(crate) struct Workflow {
    #[command(subcommand)]
    pub(crate) action: WorkflowAction,
}

#[derive(Subcommand)]
pub(crate) enum WorkflowAction {
    Run(WorkflowRun),
    Resume(WorkflowResume),
    List(WorkflowList),
    Show(WorkflowShow),
    Check(WorkflowCheck),
    Cancel(WorkflowCancel),
}

/// Run a workflow, and show how it goes
///
/// With a server the run is the server's: this command may be interrupted, and `workflow resume` shows the run again.
/// Where no server runs, and for workflows that bring programs of their own, this command does the work.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint workflow run specify.toml
  crosspoint workflow run specify.toml --feature 005-user-auth --root ~/src/shop
  crosspoint workflow run specify.toml --dry-run > change.diff")]
pub(crate) struct WorkflowRun {
    /// The workflow file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The feature that it works on; without it, the first file that fits the paths of the workflow names it
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new(), value_hint = ValueHint::Other)]
    pub(crate) feature: Option<String>,

    /// The repository [default: the working directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,

    /// Work in a copy of the repository, and print on stdout what would change there
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do the work in this command, with the store here, also where a server runs elsewhere
    #[arg(long, conflicts_with = "server")]
    pub(crate) embedded: bool,

    /// Start the run and print its id
    #[arg(long, conflicts_with_all = ["embedded", "dry_run"])]
    pub(crate) detach: bool,

    /// The run's job as one line of JSON, when it rests
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Show a run again, ask what it asks, and go on with it
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint workflow resume 0199d3a2-8b1e-7000-8000-0004b2c6d8e1")]
pub(crate) struct WorkflowResume {
    #[command(flatten)]
    pub(crate) id: RunId,

    /// The run's job as one line of JSON, when it rests
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// List runs, the newest first
#[derive(Args)]
pub(crate) struct WorkflowList {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) limit: u32,

    /// The id of the run where the last list ended: it says so where there is more
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    pub(crate) before: Option<String>,

    /// One JSON object a run, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Draw a workflow file, or show a run: its stages, what they said, and what changed
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint workflow show specify.toml
  crosspoint workflow show specify.toml --mermaid > specify.mmd
  crosspoint workflow show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1

What a dry run would have written, written now:
  crosspoint workflow show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --diff | git apply")]
pub(crate) struct WorkflowShow {
    /// A workflow file, or else the id of a run
    #[arg(value_name = "FILE|ID", value_hint = ValueHint::FilePath)]
    pub(crate) what: String,

    /// Draw the file as a Mermaid flowchart
    #[arg(long)]
    pub(crate) mermaid: bool,

    /// Only what the run changed, as a unified diff
    #[arg(long, conflicts_with = "mermaid")]
    pub(crate) diff: bool,

    /// The run's job as one line of JSON
    #[arg(long, conflicts_with_all = ["mermaid", "diff"])]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Find mistakes in a workflow file: unknown stages and agents, loops without a limit, stages that are never reached
#[derive(Args)]
pub(crate) struct WorkflowCheck {
    /// The workflow file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Cancel a run, and the stage that is under way
#[derive(Args)]
pub(crate) struct WorkflowCancel {
    #[command(flatten)]
    pub(crate) id: RunId,

    /// The run's job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct RunId {
    /// The id of the run
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), value_hint = ValueHint::Other)]
    pub(crate) id: String,
}
