//! `crosspoint jobs`: lists, shows, follows, cancels, answers and retries jobs.

pub(crate) mod arguments;
pub(crate) mod card;
pub(crate) mod event_line;
pub(crate) mod list;
mod output;

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use crosspoint_exchange::listed::listed;
use reqwest::StatusCode;
use uuid::Uuid;

use crate::client::{self, Client, Failed, Heard, Job, Need, Page, segment};
use crate::command::jobs::arguments::{Jobs, JobsAction, JobsAnswer, JobsDocument, JobsEvents, JobsRetry};
use crate::command::submit::wait::{self, Wanted};
use crate::terminal::{json, shell};
use crate::{Exit, json_input};

pub(crate) fn run(arguments: &Jobs) -> Result<Exit> {
    match &arguments.action {
        JobsAction::List(list) => {
            client::with(&list.reach, Need::Look, async |client| list::list(client, list, &list::JOBS).await)
        }
        JobsAction::Show(show) => client::with(&show.reach, Need::Look, async |client| {
            print_job(client, &job_or_request(client, &show.id.id).await?, show.json)
        }),
        JobsAction::Events(events) => {
            client::with(&events.reach, Need::Look, async |client| print_events(client, events).await)
        }
        JobsAction::Output(output) => {
            client::with(&output.reach, Need::Look, async |client| output::print(client, output).await)
        }
        JobsAction::Document(document) => {
            client::with(&document.reach, Need::Look, async |client| print_document(client, document).await)
        }
        JobsAction::Cancel(cancel) => client::with(&cancel.reach, Need::Look, async |client| {
            let job = post_action(client, &cancel.id.id, "cancel", String::new()).await?;
            print_job(client, &job, cancel.json)
        }),
        JobsAction::Answer(answer) => answer_job(answer),
        JobsAction::Retry(retry) => {
            let need = if retry.detach { Need::Kept } else { Need::Existing };
            client::with(&retry.reach, need, async |client| retry_job(client, retry).await)
        }
    }
}

/// Most jobs among which a request is looked for.
const LOOKED_AT_MAX: u32 = 500;

/// Returns the job of this id. Callers of some contracts only know the id of their request: if there is one job of
/// such a request among the newest, it is that job.
async fn job_or_request(client: &Client, id: &str) -> Result<Job> {
    let failed = match client.job(id).await {
        Ok(job) => return Ok(job),
        Err(failed) => failed,
    };
    if failed.status() != Some(StatusCode::NOT_FOUND) {
        return Err(failed.into());
    }
    let newest: Page = client.read(&client.get(&format!("/api/v1/jobs?limit={LOOKED_AT_MAX}")).await?)?;
    let newest: Vec<Job> =
        newest.jobs.iter().map(|raw| Job::read(raw.get().to_owned())).collect::<serde_json::Result<_>>()?;
    let found: Vec<&Job> = newest.iter().filter(|job| job.is.request_id == id).collect();
    match found[..] {
        [] => Err(client.no_such_job(&format!("jobs show {id}"), no_such_job(failed)).into()),
        [job] => Ok(client.job(&job.is.id).await?),
        [_, ..] => {
            let ids: Vec<&str> = found.iter().map(|job| job.is.id.as_str()).collect();
            let hint = format!("these jobs have it as their request id: {}", listed(&ids, "jobs list shows all"));
            Err(failed.hinted(StatusCode::NOT_FOUND, &hint).into())
        }
    }
}

/// Replaces the API's hint, which is written for callers over HTTP.
pub(crate) fn no_such_job(failed: Failed) -> Failed {
    let hint = "an id of a job is wanted; crosspoint jobs list shows the jobs there are, and with --json their request ids. Those that have ended are kept for [store] retention_days";
    failed.hinted(StatusCode::NOT_FOUND, hint)
}

pub(crate) async fn post_action(client: &Client, id: &str, what: &str, body: String) -> Result<Job> {
    let path = format!("/api/v1/jobs/{}/{what}", segment(id));
    let text = client.post(&path, body).await;
    let text = text.map_err(|failed| {
        let shows = format!("{} shows how it is", client.command(&format!("jobs show {id}")));
        client.no_such_job(&format!("jobs show {id}"), no_such_job(failed)).hinted(StatusCode::CONFLICT, &shows)
    })?;
    Ok(Job::read(text)?)
}

pub(crate) fn print_job(client: &Client, job: &Job, json: bool) -> Result<Exit> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    if json {
        writeln!(out, "{}", json::one_line(&job.text))?;
    } else {
        card::print(&mut out, client, &job.is)?;
    }
    Ok(Exit::Fine)
}

async fn print_events(client: &Client, arguments: &JobsEvents) -> Result<Exit> {
    if arguments.follow {
        let wanted = Wanted { json: arguments.json, follow: true, after: arguments.after };
        return wait::follow(client, &arguments.id.id, wanted, wait::interrupts()?).await.map_err(|error| match error
            .downcast::<Failed>(
        ) {
            Ok(failed) => no_such_job(failed).into(),
            Err(error) => error,
        });
    }
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    let mut follow = client.past(&arguments.id.id, arguments.after);
    loop {
        match follow.next().await.map_err(no_such_job)? {
            Heard::Event(event) => event_line::print(&mut out, &event, arguments.json)?,
            Heard::Lost => {}
            Heard::End => return Ok(Exit::Fine),
        }
    }
}

/// Prints the document as it came. On a terminal, characters that could control the terminal are escaped.
async fn print_document(client: &Client, arguments: &JobsDocument) -> Result<Exit> {
    let path = format!("/api/v1/jobs/{}/document", segment(&arguments.id.id));
    let text = client.get(&path).await.map_err(no_such_job)?;
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        writeln!(out, "{}", json::harmless(&text))?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    Ok(Exit::Fine)
}

fn answer_job(arguments: &JobsAnswer) -> Result<Exit> {
    if !arguments.words.is_empty() {
        let words = shell::word(arguments.words.join(" ").as_ref());
        let hint = format!("crosspoint jobs answer {} --text {words}", arguments.id.id);
        return Err(Failed::other("an answer is given with --text, or with --input if it is JSON", hint).into());
    }
    let input = match (&arguments.input, &arguments.text) {
        (Some(input), _) => json_input::read_hinted(input, "plain text is given with --text")?,
        // A variable of a script that is not set, most likely.
        (None, Some(text)) if text.trim().is_empty() => {
            return Err(Failed::other("the answer is empty", "if it is meant so, give it with --input '\"\"'").into());
        }
        (None, Some(text)) => Some(serde_json::to_string(text)?),
        (None, None) => {
            return Err(Failed::other("there is no answer", "give one with --text TEXT, or with --input JSON").into());
        }
    };
    let Some(input) = input else { return Ok(Exit::CouldNot) };
    client::with(&arguments.reach, Need::Look, async |client| {
        let to = arguments.question.as_ref().map(serde_json::to_string).transpose()?;
        let to = to.map(|id| format!(",\"question_id\":{id}")).unwrap_or_default();
        let job = post_action(client, &arguments.id.id, "answer", format!("{{\"input\":{input}{to}}}")).await?;
        print_job(client, &job, arguments.json)
    })
}

async fn retry_job(client: &Client, arguments: &JobsRetry) -> Result<Exit> {
    let interrupts = wait::interrupts()?;
    let id = &arguments.id.id;
    let path = format!("/api/v1/jobs/{}/retry", segment(id));
    let job = client.post_once(&path, Some(&Uuid::new_v4().to_string()), "").await;
    let job = job.map_err(|failed| {
        no_such_job(failed).hinted(StatusCode::CONFLICT, &format!("crosspoint jobs show {id} shows how it is"))
    })?;
    if arguments.detach {
        return wait::print_id(client, &job, arguments.json);
    }
    let wanted = Wanted { json: arguments.json, follow: false, after: 0 };
    wait::wait(client, &job.is.id, wanted, interrupts).await
}
