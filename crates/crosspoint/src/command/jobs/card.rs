//! Prints one job for people.

use std::io::{self, Write};

use super::event_line::progress;
use crate::client::{Client, JobFields, Origin, Outcome, Owed, Question, RunOf, Violation, advice_on_outcome, plain};
use crate::terminal::json;
use crate::terminal::render;

/// The column in which values begin.
const COLUMN: usize = 12;

pub(crate) fn print(out: &mut impl Write, client: &Client, job: &JobFields) -> io::Result<()> {
    row(out, "job", &job.id)?;
    row(out, "state", &job.state)?;
    row(out, "work", &job.work)?;
    if let Some(run) = &job.workflow {
        print_run(out, run)?;
    }
    let no_agent = if job.outcome.is_some() { "none" } else { "none yet" };
    row(out, "agent", job.agent.as_deref().unwrap_or(no_agent))?;
    if job.request_id != job.id {
        row(out, "request id", &job.request_id)?;
    }
    if let Some(caller) = &job.caller {
        row(out, "caller", caller)?;
    }
    print_origin(out, job.origin.as_ref())?;
    row(out, "door", &job.door)?;
    row(out, "priority", &job.priority)?;
    row(out, "attempts", &job.attempts.to_string())?;
    let progress = progress(job.progress.percent, job.progress.step.as_deref());
    if !progress.is_empty() {
        row(out, "progress", &progress)?;
    }
    row(out, "created", &job.created_at)?;
    row(out, "updated", &job.updated_at)?;
    if let Some(stuck) = &job.stuck {
        // The server does not know by which options this command reached it.
        let resume = format!("workflow resume {}", job.id);
        let reason = stuck.reason.replace(&format!("crosspoint {resume}"), &client.command(&resume));
        row(out, "stuck", &reason)?;
        row(out, "", &format!("since {}", stuck.since))?;
    }
    if let Some(owed) = &job.owed {
        print_owed(out, owed)?;
    }
    if let Some(question) = &job.question {
        print_question(out, client, job, question)?;
    }
    print_violations(out, &job.violations)?;
    job.outcome.as_ref().map_or(Ok(()), |outcome| print_outcome(out, outcome))
}

/// Says what a run of a workflow is about.
fn print_run(out: &mut impl Write, run: &RunOf) -> io::Result<()> {
    let rows = [("workflow", &run.name), ("feature", &run.feature), ("root", &run.root)];
    rows.into_iter().try_for_each(|(name, value)| value.as_ref().map_or(Ok(()), |value| row(out, name, value)))?;
    if run.dry_run { row(out, "dry run", "in a copy of the root; nothing was written there") } else { Ok(()) }
}

fn print_origin(out: &mut impl Write, origin: Option<&Origin>) -> io::Result<()> {
    let Some(origin) = origin else { return Ok(()) };
    if let Some(job) = &origin.retry_of {
        row(out, "repeats", job)?;
    }
    if let Some(job) = &origin.child_of {
        row(out, "stage", &format!("{} of {job}", origin.stage.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

/// Lists the rules that were broken. What was broken alike in several attempts is one row, with how often.
fn print_violations(out: &mut impl Write, violations: &[Violation]) -> io::Result<()> {
    let is_same = |one: &Violation, other: &Violation| one.clause == other.clause && one.what == other.what;
    for (at, violation) in violations.iter().enumerate() {
        if violations[..at].iter().any(|before| is_same(before, violation)) {
            continue;
        }
        let name = if violation.level == "warning" { "warning" } else { "violation" };
        let often = match violations[at..].iter().filter(|other| is_same(other, violation)).count() {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        row(out, name, &format!("{}  {}  {}{often}", violation.at, violation.clause, violation.what))?;
    }
    Ok(())
}

/// Says who has not been told the outcome.
fn print_owed(out: &mut impl Write, owed: &Owed) -> io::Result<()> {
    row(out, "owed to", &format!("{}, since {}", owed.to, owed.since))?;
    let Some(failing) = &owed.failing else { return Ok(()) };
    let tries = if failing.tries == 1 { "try" } else { "tries" };
    row(out, "", &format!("{} {tries}: {}; next at {}", failing.tries, failing.last, failing.next_at))
}

fn print_question(out: &mut impl Write, client: &Client, job: &JobFields, question: &Question) -> io::Result<()> {
    lines(out, "question", &plain(&question.prompt))?;
    if let Some(schema) = &question.schema {
        row(out, "schema", &json::one_line(schema.get()))?;
    }
    let answer = format!("jobs answer {} --text TEXT", job.id);
    row(out, "answer it", &format!("{} (or --input JSON)", client.command(&answer)))
}

fn print_outcome(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    if let Some(failure) = &outcome.failure {
        lines(out, "failure", &format!("{}: {}", failure.code, failure.sentence()))?;
        let stderr = failure.stderr();
        if !stderr.is_empty() {
            lines(out, "stderr", &stderr.join("\n"))?;
        }
        if let Some(advice) = advice_on_outcome(&failure.repeat) {
            row(out, "repeat", &format!("{}: {advice}", failure.repeat))?;
        }
        row(out, "page", &page(&failure.code))?;
    }
    for artifact in &outcome.artifacts {
        row(out, "artifact", &format!("{}  {}", artifact.name, artifact.media_type))?;
    }
    match &outcome.outputs {
        Some(outputs) if outputs.get() != "null" => writeln!(out, "outputs\n{}", json::pretty(outputs.get())),
        Some(_) | None => Ok(()),
    }
}

/// Returns the page of the documentation about a failure.
pub(crate) fn page(code: &str) -> String {
    format!("docs/failures/{code}.md")
}

fn row(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    let dim = render::dim();
    writeln!(out, "{dim}{name:<COLUMN$}{dim:#}{}", render::visible(value))
}

/// Prints a text of several lines below each other.
pub(crate) fn lines(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    let mut rest = text.lines();
    row(out, name, rest.next().unwrap_or_default())?;
    rest.try_for_each(|line| row(out, "", line))
}
