//! What can be typed about the store: check, export.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};
use crosspoint_engine::job::Phase;

use crate::command::flags::StoreFlags;

/// Look after the store: check it for damage, take everything out of it
///
/// These read the database itself, and only read: whether a server runs does not matter. Its log grows while check
/// looks at the pages of the file, and is taken in afterwards. A copy is named with --store sqlite:PATH.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint store check                                     is everything there, and does it hang together?
  crosspoint store check --store sqlite:/backup/jobs.db      is this backup good?
  crosspoint store export --output jobs.jsonl                everything, one JSON object a line
  crosspoint store export --state failed --since 7d | jq -r 'select(.kind == \"job\") | .job.id'

How long jobs are kept is settled by [store] retention_days and retention_jobs: crosspoint config show.")]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    pub(crate) action: StoreAction,
}

#[derive(Subcommand)]
pub(crate) enum StoreAction {
    Check(StoreCheck),
    Export(StoreExport),
}

/// Check that the store is whole: its pages, and everything that jobs rely on
///
/// Every page of the file is read; every job must have its document, its events without a gap, all of its output, and
/// exactly one outcome if it has ended. Nothing is changed. On a store of a million jobs this takes a minute or so, and
/// may be done while a server runs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint store check
  crosspoint store check --data /var/lib/crosspoint
  crosspoint store check --store sqlite:/backup/jobs.db --json | jq -r 'select(.flaw) | [.id, .what] | @tsv'

Findings go to stdout, each with its job and what to do; how far it is goes to stderr. Content is never shown.

Exit codes: 0 whole, 1 something was found, 2 it could not be checked.")]
pub(crate) struct StoreCheck {
    /// One JSON object a finding, on one line, and one for the sum
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

/// Write everything in the store as JSON Lines: jobs, the documents they came as, events, outcomes
///
/// The oldest job comes first, and however long its output, nothing is held in memory. What is written holds content:
/// treat it like the store itself. docs/operations.md says what is on each line.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint store export > jobs.jsonl
  crosspoint store export --output jobs.jsonl                the file is there whole, or not at all
  crosspoint store export --state failed,cancelled --since 2026-11-01
  crosspoint store export --audit --since 7d                 who did what this week
  crosspoint store export --since 24h | jq -c 'select(.kind == \"job\") | [.job.id, .job.state]'

Exit codes: 0 exported, 1 some jobs could not be read whole, 2 it could not be exported.")]
pub(crate) struct StoreExport {
    /// Write to this file, whole or not at all, instead of stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Only jobs in these states
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(Phase::ALL.map(Phase::name)))]
    pub(crate) state: Vec<String>,

    /// Only jobs accepted, or acts done, since then: a time, a date, or how long ago, as 90m, 24h or 7d
    #[arg(long, value_name = "TIME", value_hint = ValueHint::Other, value_parser = since)]
    pub(crate) since: Option<Since>,

    /// Write who did what instead: ids and names, no content
    #[arg(long, conflicts_with = "state")]
    pub(crate) audit: bool,

    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

/// A point in time, as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    At(jiff::Timestamp),
    Ago(jiff::SignedDuration),
}

fn since(text: &str) -> Result<Since, &'static str> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Since::At(at));
    }
    if let Ok(midnight) = format!("{text}T00:00:00Z").parse::<jiff::Timestamp>() {
        return Ok(Since::At(midnight));
    }
    let seconds = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let ago = seconds
        .into_iter()
        .find_map(|(unit, seconds)| text.strip_suffix(unit)?.parse::<i64>().ok()?.checked_mul(seconds));
    match ago.filter(|ago| *ago >= 0) {
        Some(ago) => Ok(Since::Ago(jiff::SignedDuration::from_secs(ago))),
        None => Err("it must be a time as 2026-11-01T12:00:00Z, a date as 2026-11-01, or how long ago as 24h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_dates_and_durations_are_understood_and_other_things_are_not() {
        let at = |text: &str| Since::At(text.parse().expect("a time"));
        assert_eq!(since("2026-11-01T12:00:00+01:00"), Ok(at("2026-11-01T11:00:00Z")));
        assert_eq!(since("2026-11-01"), Ok(at("2026-11-01T00:00:00Z")));
        assert_eq!(since("90m"), Ok(Since::Ago(jiff::SignedDuration::from_secs(5_400))));
        assert_eq!(since("7d"), Ok(Since::Ago(jiff::SignedDuration::from_secs(604_800))));
        for wrong in ["", "d", "-1d", "yesterday", "7", "9999999999999999d", "2026-13-01"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
