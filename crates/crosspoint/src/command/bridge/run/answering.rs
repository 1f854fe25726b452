//! Has everything answered that a program asked for at once.

use std::time::Duration;

use anyhow::Result;
use crosspoint_bridge::request::Request;
use crosspoint_bridge::{Fault, Pair};
use crosspoint_engine::store;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::time::Instant;

use super::line::{self, Line, Shown};
use crate::bridge::driver::DrivenDirectory;
use crate::bridge::record::Known;
use crate::bridge::{request_notes, work};
use crate::client::{Client, Failed, Job, Need, Session};
use crate::command::bridge::arguments::Routes;
use crate::command::flags::Reach;
use crate::signals::Signals;
use crate::terminal::render;

/// Longest time that a known server may be away: as long as a restart takes, and some more.
const AWAY_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest search for a server that was not reached yet.
const FIRST_TIME_MAX: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// What is answered, for which command and by which server.
pub(super) struct Asked<'a> {
    pub(super) requests: Vec<Request>,
    /// Requests that are too large to be handed in, and their lengths.
    pub(super) too_large: Vec<(Pair, String, u64)>,
    /// The digest by which the command is known.
    pub(super) command: &'a str,
    pub(super) routes: &'a Routes,
    pub(super) reach: &'a Reach,
}

/// How the answering went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    All,
    /// The driver was asked to stop before all was answered.
    Interrupted,
}

/// Has all requests answered: each response is written as soon as it has come.
pub(super) async fn answer(
    attended: &mut DrivenDirectory,
    asked: Asked<'_>,
    session: &mut Option<Session>,
    signals: &mut Signals,
) -> Result<Done> {
    let mut open = Vec::new();
    for request in &asked.requests {
        if !attended.is_answered(request.into()).map_err(|fault| fault_error(&fault))? {
            open.push(request);
        }
    }
    let too_large = asked.too_large.iter().map(|(pair, id, _)| Known { pair: *pair, request_id: id, digest: None });
    let all: Vec<Known<'_>> = asked.requests.iter().map(Known::from).chain(too_large).collect();
    let command = Some(asked.command.to_owned());
    if session.is_none() {
        // A person or driver that answers during the search for a server answers this command.
        note(attended, command.clone(), &all, None)?;
    }
    let mut store = None;
    if !open.is_empty() {
        let begun = tokio::select! {
            begun = begin(session, asked.reach) => begun?,
            _ = signals.which() => return Ok(Done::Interrupted),
        };
        if let Some(request) = open.iter().find(|request| attended.is_elsewhere(&request.request_id, &begun)) {
            return Err(elsewhere(request).into());
        }
        store = Some(begun);
    }
    note(attended, command, &all, store.as_deref())?;
    without_a_server(attended, &asked, &open)?;
    match session {
        Some(session) if !open.is_empty() => by_server(attended, &session.client, &open, asked.routes, signals).await,
        Some(_) | None => Ok(Done::All),
    }
}

fn note(attended: &mut DrivenDirectory, command: Option<String>, all: &[Known<'_>], store: Option<&str>) -> Result<()> {
    let aside = attended.note(command, all, store).map_err(|fault| fault_error(&fault))?;
    aside.into_iter().for_each(|aside| say_aside(Some(aside), render::note));
    Ok(())
}

/// Handles what needs no server: responses that are there already, and requests that no server would take.
fn without_a_server(attended: &DrivenDirectory, asked: &Asked<'_>, open: &[&Request]) -> Result<()> {
    let is_open = |pair| open.iter().any(|request| request.pair == pair);
    for request in asked.requests.iter().filter(|request| !is_open(request.pair)) {
        attended.finish(request.into()).map_err(|fault| fault_error(&fault))?;
    }
    for (pair, request_id, length) in &asked.too_large {
        let known = Known { pair: *pair, request_id, digest: None };
        if attended.is_answered(known).map_err(|fault| fault_error(&fault))? {
            attended.finish(known).map_err(|fault| fault_error(&fault))?;
            continue;
        }
        render::note(&format!("{pair} is {length} bytes long, which is too much, and is answered so (BRIDGE-8)"));
        let document = work::request_too_large(request_id, *length);
        let aside = attended.put(known, &document).map_err(|fault| fault_error(&fault))?;
        say_aside(aside, render::note);
    }
    Ok(())
}

async fn by_server(
    attended: &DrivenDirectory,
    client: &Client,
    open: &[&Request],
    routes: &Routes,
    signals: &mut Signals,
) -> Result<Done> {
    let shown = Shown::new();
    let mut asked: FuturesUnordered<_> =
        open.iter().map(|request| ask(client, request, routes, shown.line(request))).collect();
    loop {
        let next = tokio::select! {
            next = asked.next() => next,
            _ = signals.which() => return Ok(Done::Interrupted),
        };
        let Some((request, line, answered)) = next else { return Ok(Done::All) };
        let document = answered?;
        let aside = attended.put(request.into(), &document).map_err(|fault| fault_error(&fault))?;
        line.answered(&document);
        say_aside(aside, |text| line.note(text));
    }
}

/// Has one request answered, and updates its line meanwhile.
async fn ask<'r>(
    client: &Client,
    request: &'r Request,
    routes: &Routes,
    line: Line,
) -> (&'r Request, Line, Result<String, Failed>) {
    let (tell, mut job_known) = watch::channel(None);
    let accepted = |job: &Job| {
        line.handed_in(job);
        tell.send_if_modified(|id| id.is_none().then(|| *id = Some(job.is.id.clone())).is_some());
    };
    let work = routes.work_for(&request.agent_name);
    let answered = work::answered(client, request, work, AWAY_TIME_MAX, accepted);
    let shown = async {
        let id = job_known.wait_for(Option::is_some).await.ok().and_then(|id| id.clone());
        if let Some(id) = id {
            line::follow(client, &id, &line).await;
        }
        // The answer comes from the other future.
        std::future::pending::<()>().await;
    };
    let answered = tokio::select! {
        answered = answered => answered,
        () = shown => Err(client.not_ours()),
    };
    (request, line, answered.map(|answered| answered.document))
}

/// Finds the server if none is known yet, and returns which store it has.
async fn begin(session: &mut Option<Session>, reach: &Reach) -> Result<String> {
    let session = match session {
        Some(session) => session,
        None => session.insert(found(reach).await?),
    };
    let until = Instant::now() + FIRST_TIME_MAX;
    loop {
        match work::store_of(&session.client).await {
            Err(failed) if failed.passes() && Instant::now() < until => {
                tokio::time::sleep(FIRST_PAUSE).await;
                session.client.look_again();
            }
            done => return Ok(done?),
        }
    }
}

/// Opens a session. If no server runs, several drivers of one working directory take turns with its store.
async fn found(reach: &Reach) -> Result<Session> {
    let until = Instant::now() + AWAY_TIME_MAX;
    let mut is_noted = false;
    loop {
        match Session::begin(reach, Need::Often).await {
            Err(error) if is_in_use(&error) && Instant::now() >= until => {
                let message = "another command works with the store, and does not end";
                let hint = "start crosspoint serve in its place: then all commands go through it; or name another store with --data DIR";
                return Err(Failed::other(message, hint).into());
            }
            Err(error) if is_in_use(&error) => {
                if !std::mem::replace(&mut is_noted, true) {
                    render::note(
                        "another command works with the store, and is waited for; with crosspoint serve both could",
                    );
                }
            }
            done => return done,
        }
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    error.downcast_ref::<store::Fault>().is_some_and(|fault| matches!(fault, store::Fault::InUse { .. }))
}

fn elsewhere(request: &Request) -> Failed {
    let message = format!("what {} asks was given to a server with another store", request.pair);
    let hint =
        "name that server with --server URL or --data DIR; to have it done once more here, remove .agent-bridge.json";
    Failed::other(message, hint)
}

/// BRIDGE-4.2
fn say_aside(aside: Option<String>, say: impl Fn(&str)) {
    if let Some(aside) = aside {
        say(&format!("another response was there; it is kept as {aside}"));
    }
}

/// What is wrong with the directory, and what to do about it.
pub(super) fn fault_error(fault: &Fault) -> anyhow::Error {
    Failed::other(request_notes::described(fault), fault.hint()).into()
}
