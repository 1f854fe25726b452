//! `crosspoint jobs list`: prints a table of jobs.

use std::io::{self, Write};

use anyhow::Result;

use super::event_line::progress;
use crate::Exit;
use crate::client::{Client, Job, JobFields, Page, segment};
use crate::command::jobs::arguments::JobsList;
use crate::terminal::table::{self, Column, Fit};
use crate::terminal::{json, render};

/// Most jobs that the server returns at once.
const PAGE_MAX: u32 = 500;

/// What is shown of each job.
pub(crate) struct Layout {
    pub(crate) columns: &'static [Column],
    pub(crate) row: fn(&JobFields, jiff::Timestamp) -> Vec<String>,
    /// What is said where there is none.
    pub(crate) none: &'static str,
}

pub(crate) const JOBS: Layout = Layout { columns: &COLUMNS, row, none: "no jobs" };

const COLUMNS: [Column; 6] = [
    Column { head: "ID", fit: Fit::Whole },
    Column { head: "STATE", fit: Fit::Whole },
    Column { head: "AGE", fit: Fit::Whole },
    Column { head: "WORK", fit: Fit::Cut },
    Column { head: "AGENT", fit: Fit::Spare },
    Column { head: "NOTE", fit: Fit::Cut },
];

pub(crate) async fn list(client: &Client, arguments: &JobsList, layout: &Layout) -> Result<Exit> {
    let (mut jobs, mut next) = (Vec::new(), arguments.before.clone());
    loop {
        let missing = arguments.limit - u32::try_from(jobs.len()).unwrap_or(u32::MAX).min(arguments.limit);
        let page: Page = client.read(&client.get(&path(arguments, next.as_deref(), missing.min(PAGE_MAX))).await?)?;
        jobs.extend(page.jobs);
        next = page.next;
        if next.is_none() || jobs.len() >= arguments.limit as usize {
            break;
        }
    }
    let jobs: Vec<Job> = jobs.iter().map(|raw| Job::read(raw.get().to_owned())).collect::<serde_json::Result<_>>()?;
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    if arguments.json {
        jobs.iter().try_for_each(|job| writeln!(out, "{}", json::one_line(&job.text)))?;
    } else if jobs.is_empty() {
        render::note(layout.none);
    } else {
        let now = jiff::Timestamp::now();
        let rows: Vec<Vec<String>> = jobs.iter().map(|job| (layout.row)(&job.is, now)).collect();
        table::print(&mut out, layout.columns, &rows)?;
    }
    if let Some(next) = next.filter(|_| !arguments.json) {
        render::note(&render::visible(&format!("there are more: --before {next}")));
    }
    Ok(Exit::Fine)
}

fn path(arguments: &JobsList, before: Option<&str>, limit: u32) -> String {
    let filters = [
        ("state", arguments.state.as_deref()),
        ("work", arguments.work.as_deref()),
        ("agent", arguments.agent.as_deref()),
        ("door", arguments.door.as_deref()),
        ("before", before),
    ];
    let given = filters.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", segment(value?))));
    format!("/api/v1/jobs?limit={limit}{}", given.collect::<String>())
}

fn row(job: &JobFields, now: jiff::Timestamp) -> Vec<String> {
    let agent = job.agent.clone().unwrap_or_else(|| "-".to_owned());
    vec![job.id.clone(), job.state.clone(), age(&job.created_at, now), job.work.clone(), agent, note(job)]
}

/// Returns the most important fact about a job.
pub(crate) fn note(job: &JobFields) -> String {
    if let Some(outcome) = &job.outcome {
        return outcome.failure.as_ref().map(|failure| failure.code.clone()).unwrap_or_default();
    }
    match &job.stuck {
        Some(stuck) => stuck.reason.clone(),
        None => progress(job.progress.percent, job.progress.step.as_deref()),
    }
}

pub(crate) fn age(at: &str, now: jiff::Timestamp) -> String {
    at.parse().map_or_else(|_| "?".to_owned(), |at| table::age(at, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_of_80_columns_is_wide_enough() {
        let id = uuid::Uuid::nil().to_string();
        let row = [&*id, "cancelled", "365d", "configure_every_host", "the-agent-of-the-lab", "unavailable"];
        let rows = [row.map(str::to_owned).to_vec()];
        assert_eq!(table::width_in(&COLUMNS, &rows, 200), 110, "there is room for all of it");
        assert!(table::width_in(&COLUMNS, &rows, 80) <= 80);
    }
}
