//! `crosspoint workflow list`: prints a table of runs.

use anyhow::Result;

use super::arguments::WorkflowList;
use crate::Exit;
use crate::client::{Client, JobFields};
use crate::command::jobs::arguments::JobsList;
use crate::command::jobs::list::{self, Layout, age, note};
use crate::terminal::render;
use crate::terminal::table::{Column, Fit};
use crate::workflow::{NOT_DRIVEN, WORK};

const RUNS: Layout = Layout { columns: &COLUMNS, row, none: "no runs" };

const COLUMNS: [Column; 6] = [
    Column { head: "ID", fit: Fit::Whole },
    Column { head: "STATE", fit: Fit::Whole },
    Column { head: "WORKFLOW", fit: Fit::Cut },
    Column { head: "FEATURE", fit: Fit::Spare },
    Column { head: "AGE", fit: Fit::Whole },
    Column { head: "NOTE", fit: Fit::Cut },
];

pub(super) async fn print(client: &Client, arguments: &WorkflowList) -> Result<Exit> {
    let jobs = JobsList {
        state: None,
        work: Some(WORK.to_owned()),
        agent: None,
        door: None,
        limit: arguments.limit,
        before: arguments.before.clone(),
        json: arguments.json,
        reach: arguments.reach.clone(),
    };
    let exit = list::list(client, &jobs, &RUNS).await?;
    if let Some(command) = client.command_beside("workflow list").filter(|_| !arguments.json) {
        render::note(&format!("runs of commands beside the server: {command}"));
    }
    Ok(exit)
}

fn row(job: &JobFields, now: jiff::Timestamp) -> Vec<String> {
    let about = job.workflow.as_ref();
    let said = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".to_owned());
    let name = said(about.and_then(|run| run.name.as_ref()));
    let feature = said(about.and_then(|run| run.feature.as_ref()));
    let is_dry = about.is_some_and(|run| run.dry_run);
    let note = note(job);
    // In the row of a run its id need not be said again, and is what a narrow terminal has no room for.
    let note = if note.starts_with(NOT_DRIVEN) { "not driven: resume it" } else { &note };
    let note = [if is_dry { "dry run" } else { "" }, note].join(" ").trim().to_owned();
    vec![job.id.clone(), job.state.clone(), name, feature, age(&job.created_at, now), note]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::client::Job;
    use crate::terminal::table;

    fn cells(workflow: &Value) -> Vec<String> {
        let mut job = json!({
            "id": uuid::Uuid::nil().to_string(), "request_id": "r", "door": "native", "work": WORK,
            "state": "cancelled", "attempts": 1, "created_at": "2026-01-05T10:00:00.000Z",
            "updated_at": "2026-01-05T10:00:00.000Z",
            "outcome": {"status": "cancelled", "failure": {"code": "cancelled", "message": "m"}},
        });
        job["workflow"] = workflow.clone();
        let now = "2026-12-31T10:00:00Z".parse().expect("a time");
        row(&Job::read(job.to_string()).expect("a job").is, now)
    }

    #[test]
    fn a_run_is_a_row_of_what_it_is_about() {
        let about = json!({"name": "specify", "feature": "005-auth", "root": "/srv/repo", "dry_run": true});
        assert_eq!(cells(&about)[1..], ["cancelled", "specify", "005-auth", "360d", "dry run cancelled"]);
        let bare = json!({"name": "specify", "feature": null, "root": "/srv/repo"});
        assert_eq!(cells(&bare)[1..], ["cancelled", "specify", "-", "360d", "cancelled"]);
        assert_eq!(cells(&Value::Null)[2..4], ["-", "-"], "an earlier server does not say it");
    }

    #[test]
    fn a_run_that_waits_for_a_command_says_so_in_few_words() {
        let reason = format!("{NOT_DRIVEN}; it goes on with crosspoint workflow resume {}", uuid::Uuid::nil());
        let job = json!({
            "id": uuid::Uuid::nil().to_string(), "request_id": "r", "door": "native", "work": WORK,
            "state": "running", "attempts": 1, "created_at": "2026-01-05T10:00:00.000Z",
            "updated_at": "2026-01-05T10:00:00.000Z", "stuck": {"reason": reason, "since": "2026-01-05T10:00:00.000Z"},
        });
        let now = "2026-01-06T10:00:00Z".parse().expect("a time");
        let cells = row(&Job::read(job.to_string()).expect("a job").is, now);
        assert_eq!(cells[5], "not driven: resume it");
    }

    #[test]
    fn a_terminal_of_80_columns_is_wide_enough() {
        let about = json!({"name": "configure_every_host", "feature": "a-long-name-of-a-feature", "dry_run": true});
        let rows = [cells(&about)];
        assert!(table::width_in(&COLUMNS, &rows, 80) <= 80);
    }
}
