//! Follows a run until it has ended, or waits for a person whom this command cannot ask.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use tokio::signal::unix::Signal;

use super::ask::{Choice, Typed};
use super::file::WorkflowFile;
use super::shown::Shown;
use crate::Exit;
use crate::client::{Client, Event, Follow, Heard, Job, Outcome, plain};
use crate::command::jobs::{event_line, post_action};
use crate::terminal::{fold, render};
use crate::workflow::WAITS;

/// How long nothing comes of a run before it is looked why, and how long after a question that the job did not show
/// yet: an event can be read as soon as it is on disk, and the job shows it a moment later.
const LOOK_AFTER: Duration = Duration::from_secs(3);
const LOOK_SOON: Duration = Duration::from_millis(100);

/// Spaces before the rest of a line of a question that is broken.
const INDENT: usize = 4;

/// Why a run rests whose question is shown anyway.
const WAITING: &str = "waiting for a person's answer";

/// A run that is followed.
pub(super) struct Followed<'r> {
    pub(super) id: &'r str,
    pub(super) file: &'r WorkflowFile,
    /// The repository.
    pub(super) root: &'r Path,
    /// Whether it works in a copy of it.
    pub(super) is_dry: bool,
}

impl Followed<'_> {
    /// Says which run it is, and where it writes.
    pub(super) fn say_begun(&self) {
        let place = if self.is_dry { "a copy of " } else { "" };
        render::note(&render::visible(&format!("run {} in {place}{}", self.id, self.root.display())));
    }
}

/// Returns how the run rests, and its job. Where there is a terminal, the person there is asked what the run asks.
pub(super) async fn until(
    client: &Client,
    run: &Followed<'_>,
    may_ask: bool,
    mut interrupts: Signal,
) -> Result<(Exit, Job)> {
    let id = run.id;
    run.say_begun();
    let mut shown = Shown::new(&run.file.definition);
    let mut follow = client.follow(id, 0);
    let may_ask = may_ask && io::stdin().is_terminal() && io::stderr().is_terminal();
    let mut typed = Typed::new();
    let mut job = tokio::select! {
        job = next_rest(client, id, &mut follow, &mut shown) => job?,
        _ = interrupts.recv() => return interrupted(client, id, &mut shown).await,
    };
    loop {
        shown.clear();
        if job.outcome().is_some() {
            return Ok((ended(client, run, &job), job));
        }
        if !may_ask || job.is.question.is_none() {
            say_parked(client, &job, &shown);
            return Ok((Exit::Waiting, job));
        }
        typed.show(&job.is.question.as_ref().map(|question| plain(&question.prompt)).unwrap_or_default());
        let choice = tokio::select! {
            choice = typed.choice() => choice,
            // Another person answered, by the API or another command.
            event = moved_on(&mut follow, &mut shown) => {
                if let Some(event) = event? {
                    say_moved(event.name == CANCELLED);
                    shown.event(&event);
                }
                Choice::Elsewhere
            }
            _ = interrupts.recv() => {
                // Below the line on which the person may have begun to type.
                render::note("");
                return interrupted(client, id, &mut shown).await;
            }
        };
        match choice {
            Choice::Answer(text) => {
                // Another person may have answered meanwhile, and the run may ask something else.
                let answer = serde_json::json!({"input": text, "question_id": job.is.question_id}).to_string();
                if let Err(why) = post_action(client, id, "answer", answer).await {
                    let now = client.job_patiently(id).await?;
                    if now.is.is_asking() || now.is.is_held_by_stage() {
                        return Err(why);
                    }
                    // Another person was a moment quicker.
                    say_moved(now.outcome().is_some_and(|outcome| outcome.status == CANCELLED));
                }
            }
            Choice::Cancel => {
                post_action(client, id, "cancel", String::new()).await?;
            }
            Choice::Later => {
                say_how_to_go_on(client, &job);
                return Ok((Exit::Waiting, job));
            }
            Choice::Elsewhere => {}
        }
        shown.resume();
        job = tokio::select! {
            job = next_rest(client, id, &mut follow, &mut shown) => job?,
            _ = interrupts.recv() => return interrupted(client, id, &mut shown).await,
        };
    }
}

/// Returns the job when the run has ended or waits for a person.
async fn next_rest(client: &Client, id: &str, follow: &mut Follow, shown: &mut Shown) -> Result<Job> {
    let mut look_after = LOOK_AFTER;
    loop {
        let heard = match next(client, id, follow, shown, look_after).await? {
            Next::Heard(heard) => heard,
            Next::Rests(job) => return Ok(*job),
        };
        look_after = LOOK_AFTER;
        match heard {
            Heard::Event(event) => {
                shown.event(&event);
                if is_rest(&event) {
                    let job = client.job_patiently(id).await?;
                    let rests = job.is.is_asking() || job.is.is_held_by_stage();
                    // A question of the past was answered, also where the run asks another one by now: what came after
                    // it is shown too. The job is looked at first, so that a new question is not taken for this one.
                    if event.is_end() || rests && is_last(client, id, event.n).await? {
                        return Ok(job);
                    }
                    look_after = LOOK_SOON;
                }
            }
            Heard::Lost => shown.note("the connection broke; the run goes on, and the server is looked for"),
            Heard::End => return Ok(client.job_patiently(id).await?),
        }
    }
}

/// Waits until the question that is on the screen is no longer one. Returns what happened; `None` at the end.
async fn moved_on(follow: &mut Follow, shown: &mut Shown) -> Result<Option<Event>> {
    loop {
        match follow.next().await? {
            Heard::Event(event) if event.is_end() || matches!(event.name.as_str(), "answer" | "step") => {
                return Ok(Some(event));
            }
            // A run that is taken up asks again.
            Heard::Event(event) => shown.pass(&event),
            Heard::Lost => {}
            Heard::End => return Ok(None),
        }
    }
}

/// The event, and the status, of a run that was cancelled.
const CANCELLED: &str = "cancelled";

/// Says that the question, which is on the screen, is no longer one.
fn say_moved(is_cancelled: bool) {
    render::note(if is_cancelled { "\ncancelled elsewhere" } else { "\nanswered elsewhere" });
}

/// What comes next of a run.
enum Next {
    Heard(Heard),
    /// Nothing comes before its stage was answered.
    Rests(Box<Job>),
}

/// Returns what comes next. While nothing comes, it is looked why.
async fn next(
    client: &Client,
    id: &str,
    follow: &mut Follow,
    shown: &mut Shown,
    mut look_after: Duration,
) -> Result<Next> {
    let coming = follow.next();
    tokio::pin!(coming);
    loop {
        tokio::select! {
            heard = &mut coming => return Ok(Next::Heard(heard?)),
            () = tokio::time::sleep(look_after) => look_after = LOOK_AFTER,
        }
        // A server that does not answer now is reported by the stream of events.
        let job = tokio::select! {
            heard = &mut coming => return Ok(Next::Heard(heard?)),
            job = client.job(id) => job.ok(),
        };
        let Some(job) = job else { continue };
        // What is still on its way is shown first.
        if (job.is.is_asking() || job.is.is_held_by_stage()) && is_last(client, id, shown.last()).await? {
            return Ok(Next::Rests(Box::new(job)));
        }
        if let Some(stuck) = job.is.stuck.filter(|stuck| stuck.reason != WAITING) {
            shown.stuck(&stuck.reason);
        }
    }
}

fn is_rest(event: &Event) -> bool {
    let waits = |event| matches!(event_line::progress_of(event), Some((_, Some(said))) if said.starts_with(WAITS));
    event.name == "question" || event.is_end() || waits(event)
}

/// Whether a run has not moved on since this event.
async fn is_last(client: &Client, id: &str, n: u32) -> Result<bool> {
    let mut since = client.past(id, n);
    loop {
        match since.next().await? {
            Heard::Event(event) if is_rest(&event) || matches!(event.name.as_str(), "answer" | "step") => {
                return Ok(false);
            }
            Heard::Event(_) | Heard::Lost => {}
            Heard::End => return Ok(true),
        }
    }
}

fn ended(client: &Client, run: &Followed<'_>, job: &Job) -> Exit {
    let Some(outcome) = job.outcome() else { return Exit::Fine };
    if outcome.status == "completed" {
        say_completed(outcome, run.is_dry);
        return Exit::Fine;
    }
    let id = render::visible(&job.is.id);
    match &outcome.failure {
        Some(failure) if outcome.status != "cancelled" => {
            let message = format!("run {id} {}: {}", outcome.status, failure.sentence());
            let show = client.command(&format!("workflow show {id}"));
            render::refused(&message, &format!("{show} shows what it did"));
        }
        // A person wanted it so.
        Some(_) | None => {
            render::note(&render::visible(&format!("run {id} was {}; files that it wrote stay", outcome.status)));
            if !run.is_dry {
                let undo = client.command(&format!("workflow show {id} --diff"));
                render::command("to take them back, in the root:", &format!("{undo} | git apply -R"));
            }
        }
    }
    Exit::NotFine
}

/// What a run says at its end, as far as it is told.
#[derive(Deserialize)]
struct Done {
    stages: u32,
    iterations: u32,
    #[serde(default)]
    files: Vec<serde::de::IgnoredAny>,
    /// There if not all files are named.
    files_left_out: Option<u32>,
}

fn say_completed(outcome: &Outcome, is_dry: bool) {
    let outputs = outcome.outputs.as_ref().map(|outputs| serde_json::from_str(outputs.get()));
    let Some(Ok(Done { stages, iterations, files, files_left_out })) = outputs else { return };
    let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let (stages, iterations) = (counted(stages as usize, "stage run"), counted(iterations as usize, "iteration"));
    let written = if is_dry { "would be written" } else { "written" };
    let more = if files_left_out.is_some() { "more than " } else { "" };
    render::note(&format!("completed: {stages}, {iterations}, {more}{} {written}", counted(files.len(), "file")));
}

fn say_parked(client: &Client, job: &Job, shown: &Shown) {
    let id = &job.is.id;
    let prompt = job.is.question.as_ref().map(|question| plain(&question.prompt)).unwrap_or_default();
    if job.is.question.is_none() {
        let reason = job.is.stuck.as_ref().map(|stuck| stuck.reason.as_str()).unwrap_or_default();
        render::note(&render::visible(&format!("run {id} waits for an operator: {reason}")));
        render::command("begin it again:", &client.command(&format!("jobs retry {id}")));
        return;
    }
    let stage = shown.asking().map(|stage| format!(" at the stage {stage}")).unwrap_or_default();
    render::note(&render::visible(&format!("run {id} waits for a person{stage}:")));
    prompt.lines().for_each(|line| fold::say(&format!("  {}", render::visible(line)), INDENT));
    say_how_to_go_on(client, job);
}

fn say_how_to_go_on(client: &Client, job: &Job) {
    let id = &job.is.id;
    render::command("answer it:", &client.command(&format!("jobs answer {id} --text TEXT")));
    let then = if client.is_server() { "it goes on by itself; to watch it" } else { "then go on" };
    render::command(&format!("{then}:"), &client.command(&format!("workflow resume {id}")));
}

async fn interrupted(client: &Client, id: &str, shown: &mut Shown) -> Result<(Exit, Job)> {
    shown.clear();
    let goes_on = if client.is_embedded() { "the run is kept; it goes on with" } else { "the run goes on; see" };
    render::command(goes_on, &client.command(&format!("workflow resume {id}")));
    Ok((Exit::Interrupted, client.job_patiently(id).await?))
}
