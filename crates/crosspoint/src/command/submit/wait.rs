//! Waiting for a job's outcome, and the output when it has come or does not come.

use std::io::{self, Write};

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::bar::Shown;
use crate::Exit;
use crate::client::{self, Client, Heard, Job, advice_on_outcome, plain};
use crate::command::jobs::card::page;
use crate::terminal::json;
use crate::terminal::render;

/// What is wanted on stdout.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// JSON on one line.
    pub(crate) json: bool,
    /// Every event, instead of the outputs.
    pub(crate) follow: bool,
    /// Only events after this number.
    pub(crate) after: u32,
}

/// Takes over Ctrl-C.
pub(crate) fn interrupts() -> Result<Signal> {
    signal(SignalKind::interrupt()).context("cannot watch for Ctrl-C")
}

/// Prints only the id, for a user that does not wait.
pub(crate) fn print_id(client: &Client, job: &Job, json: bool) -> Result<Exit> {
    let text = if json { json::one_line(&job.text) } else { render::visible(&job.is.id) };
    writeln!(io::stdout().lock(), "{text}")?;
    if client.is_embedded() && job.outcome().is_none() {
        render::note("no server runs: the job is kept, and goes on when crosspoint serve does");
    }
    Ok(Exit::Fine)
}

pub(crate) fn interrupted_early() -> Exit {
    render::note(
        "interrupted before it was known whether the work was accepted; crosspoint jobs list shows it if it was",
    );
    Exit::Interrupted
}

/// Shows the course of a job that was submitted earlier. Without a server it may be a job that no process drives.
pub(crate) async fn follow(client: &Client, id: &str, wanted: Wanted, interrupts: Signal) -> Result<Exit> {
    if client.is_embedded() {
        let job = client.job(id).await?;
        if client.is_held(&job) {
            return held(client, &job, wanted).await;
        }
    }
    wait(client, id, wanted, interrupts).await
}

/// Shows the course of a job that was just submitted, until it has ended, waits for a person, or the user interrupts. A
/// job that existed already is driven too: submitting it again has it taken up.
pub(crate) async fn wait(client: &Client, id: &str, wanted: Wanted, mut interrupts: Signal) -> Result<Exit> {
    let mut shown = Shown::new(wanted, id);
    let ended = tokio::select! {
        ended = until_it_rests(client, id, wanted.after, &mut shown) => ended,
        _ = interrupts.recv() => {
            shown.clear();
            return Ok(interrupted(client, id));
        }
    };
    shown.clear();
    let job = ended.inspect_err(|_| {
        render::note(&format!("the job goes on; {} shows it", client.command(&format!("jobs show {id}"))));
    });
    finish(client, &job?, wanted)
}

/// Shows what there is of a job that no process drives, because following it would never end.
async fn held(client: &Client, job: &Job, wanted: Wanted) -> Result<Exit> {
    if wanted.follow {
        let mut shown = Shown::new(wanted, &job.is.id);
        let mut past = client.past(&job.is.id, wanted.after);
        while let Heard::Event(event) = past.next().await? {
            shown.event(&event)?;
        }
    }
    let message = format!("job {} is {}, and no server runs that would go on with it", job.is.id, job.is.state);
    render::refused(&message, "start crosspoint serve");
    Ok(Exit::CouldNot)
}

/// Returns the job once it has ended or waits for a person.
async fn until_it_rests(client: &Client, id: &str, after: u32, shown: &mut Shown) -> Result<Job> {
    let mut follow = client.follow(id, after);
    loop {
        match follow.next().await? {
            Heard::Event(event) => {
                shown.event(&event)?;
                // A past question may have been answered already.
                if matches!(event.name.as_str(), "question" | "interrupted") {
                    let job = client.job_patiently(id).await?;
                    if job.is.is_asking() || job.is.is_poisoned() {
                        return Ok(job);
                    }
                }
            }
            Heard::Lost => {
                shown.note("the connection broke; the job goes on, and the server is looked for");
            }
            Heard::End => return Ok(client.job_patiently(id).await?),
        }
    }
}

fn interrupted(client: &Client, id: &str) -> Exit {
    let [show, cancel] = ["show", "cancel"].map(|verb| client.command(&format!("jobs {verb} {id}")));
    if client.is_embedded() {
        render::note(&format!("the job is kept and goes on when crosspoint serve runs; {show} shows it"));
    } else {
        render::note(&format!("the job goes on; {show} shows it, {cancel} stops it"));
    }
    Exit::Interrupted
}

fn finish(client: &Client, job: &Job, wanted: Wanted) -> Result<Exit> {
    let mut out = io::stdout().lock();
    if wanted.json && !wanted.follow {
        writeln!(out, "{}", json::one_line(&job.text))?;
    }
    let Some(outcome) = job.outcome() else { return Ok(waiting(client, job)) };
    let outputs = outcome.outputs.as_ref().map(|outputs| outputs.get()).filter(|outputs| *outputs != "null");
    if let Some(outputs) = outputs.filter(|_| !wanted.json && !wanted.follow) {
        writeln!(out, "{}", json::pretty(outputs))?;
    }
    out.flush()?;
    if let Some(bytes) = outcome.printed_bytes() {
        let output = client.command(&format!("jobs output {}", job.is.id));
        render::note(&format!("this is not all of {bytes} bytes; {output} has all that was printed"));
    }
    if outcome.status == "completed" {
        return Ok(Exit::Fine);
    }
    say_failed(client, job, outcome);
    Ok(Exit::NotFine)
}

fn say_failed(client: &Client, job: &Job, outcome: &client::Outcome) {
    let id = &job.is.id;
    let Some(failure) = &outcome.failure else {
        let show = client.command(&format!("jobs show {id}"));
        render::refused(&format!("job {id} was {}", outcome.status), &format!("{show} shows it"));
        return;
    };
    let attempts = if job.is.attempts > 1 { format!(" after {} attempts", job.is.attempts) } else { String::new() };
    let message =
        render::visible(&format!("job {id} {}{attempts}: {} [{}]", outcome.status, failure.sentence(), failure.code));
    for line in failure.stderr() {
        render::note(&render::visible(&format!("stderr: {line}")));
    }
    let advice = advice_on_outcome(&failure.repeat).map(|advice| format!("\n  {advice}")).unwrap_or_default();
    render::problem(&format!("{message}{advice}"), &format!("{} says more", render::visible(&page(&failure.code))));
}

fn waiting(client: &Client, job: &Job) -> Exit {
    let id = &job.is.id;
    if job.is.is_poisoned() {
        let reason = job.is.stuck.as_ref().map(|stuck| stuck.reason.as_str()).unwrap_or_default();
        render::note(&render::visible(&format!("job {id} waits for an operator: {reason}")));
        return Exit::Waiting;
    }
    let prompt = job.is.question.as_ref().map(|question| plain(&question.prompt)).unwrap_or_default();
    render::note(&render::visible(&format!("job {id} waits for a person:")));
    prompt.lines().for_each(|line| render::note(&format!("  {}", render::visible(line))));
    let answer = format!("{} (or --input JSON)", client.command(&format!("jobs answer {id} --text TEXT")));
    let hint = if client.is_embedded() { format!("start crosspoint serve, then {answer}") } else { answer };
    render::note(&render::visible(&format!("hint: {hint}")));
    Exit::Waiting
}
