//! The lines of the log. Names are shown so that they can do nothing to a terminal; content is never shown.

use std::collections::BTreeMap;
use std::time::Duration;

use crosspoint_bridge::request::Request;
use crosspoint_bridge::{Fault, Pair};
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::document::Document;
use crosspoint_contracts::{Finding, Kind, Options, Report, read};
use tracing::field::display;
use tracing::{info, warn};

use super::place::WatchedDirectory;
use crate::bridge::request_notes;
use crate::client::{Client, Failed};
use crate::terminal::render::{shortened, visible};

/// Most bytes of a name that are shown: it may be as long as a request.
const NAME_BYTES_MAX: usize = 80;

/// Most lines about what is wrong with one file: the first ones say enough.
const FINDINGS_MAX: usize = 5;

/// What a line is about.
pub(super) struct About<'a> {
    pub(super) directory: &'a WatchedDirectory,
    pub(super) pair: Pair,
    pub(super) agent: &'a str,
    pub(super) job: Option<&'a str>,
}

/// How a request ended.
pub(super) struct Ended {
    status: &'static str,
    /// Why, if the request was refused: then there is no job that says it.
    error_type: Option<String>,
}

impl Ended {
    pub(super) fn of(document: &str) -> Ended {
        let options = Options { kind: Some(Kind::BridgeResponse), ..Options::default() };
        let Some(Document::BridgeResponse(response)) = read(document.as_bytes(), &options).document else {
            return Ended { status: "unknown", error_type: None };
        };
        let error_type = response.error_type.0.map(|text| name(&text.decode()));
        Ended { status: response.status.word(), error_type }
    }
}

fn name(text: &str) -> String {
    visible(&shortened(text, NAME_BYTES_MAX))
}

pub(super) fn watching(directories: usize, polled: &BTreeMap<&'static str, usize>, pause: Duration) {
    info!(directories, "watching; Ctrl-C stops it");
    for (why, directories) in polled {
        info!(directories, "looked at every {} ms: {why}", pause.as_millis());
    }
}

pub(super) fn server(client: &Client) {
    if client.is_embedded() {
        info!("no server runs here: the work is done by this process");
    } else {
        info!(server = %client.shown_address(), "requests go to this server");
    }
}

pub(super) fn stopped(visits: usize) {
    match visits {
        0 => info!("stopped"),
        _ => info!(directories = visits, "stopped; what is under way is written at the next start"),
    }
}

pub(super) fn away(failed: &Failed) {
    warn!("{}; it is tried until it is back", visible(&failed.to_string()));
}

pub(super) fn back(client: &Client) {
    info!(server = %client.shown_address(), "the server is back");
}

pub(super) fn gone(directory: &WatchedDirectory) {
    warn!(dir = %directory.name(), "the directory is gone; it is looked for until it is back");
}

pub(super) fn fine_again(directory: &WatchedDirectory) {
    info!(dir = %directory.name(), "the directory can be worked in again");
}

pub(super) fn in_use(directory: &WatchedDirectory) {
    info!(dir = %directory.name(), "something waits here, and another driver works here: it is left to that one");
}

pub(super) fn trouble(directory: &WatchedDirectory, message: &str, hint: &str) {
    let hint = if hint.is_empty() { String::new() } else { format!(" (hint: {})", visible(hint)) };
    warn!(dir = %directory.name(), "{}; it is tried again{hint}", visible(message));
}

pub(super) fn odd_record(directory: &WatchedDirectory, aside: &str) {
    warn!(dir = %directory.name(), "the record could not be understood, and was set aside as {}", visible(aside));
}

/// Logs what is odd about a request that is answered all the same.
pub(super) fn remarks(directory: &WatchedDirectory, request: &Request) {
    for (clause, what) in request_notes::remarks(request) {
        warn!(dir = %directory.name(), file = %request.pair, clause, "{}", visible(&what));
    }
}

pub(super) fn accepted(directory: &WatchedDirectory, request: &Request, job: &str) {
    info!(job = %name(job), dir = %directory.name(), file = %request.pair, agent = %name(&request.agent_name), "handed in");
}

pub(super) fn answered(about: &About<'_>, ended: &Ended, took: Duration, aside: Option<&str>) {
    let About { directory, pair: file, agent, job } = about;
    let dir = directory.name();
    if let Some(aside) = aside {
        warn!(%dir, %file, clause = "BRIDGE-4.2", "{} answered no request that is there, and was set aside as {}", file.response(), visible(aside));
    }
    let error_type = ended.error_type.as_ref().filter(|_| job.is_none());
    info!(
        job = job.map(|job| display(name(job))),
        %dir,
        %file,
        agent = %name(agent),
        ended = ended.status,
        error_type = error_type.map(display),
        seconds = %format_args!("{:.3}", took.as_secs_f64()),
        "answered"
    );
}

/// Logs that the response to an earlier request with the same id was set aside.
pub(super) fn set_aside(directory: &WatchedDirectory, aside: &str) {
    let dir = directory.name();
    warn!(%dir, clause = "BRIDGE-4.2", "a response answered another request than the one that is there, and was set aside as {}", visible(aside));
}

pub(super) fn unwanted(about: &About<'_>, ended: &Ended) {
    let job = about.job.map(|job| display(name(job)));
    let (dir, file) = (about.directory.name(), about.pair);
    warn!(job, %dir, %file, ended = ended.status, "the request is gone: no response is written");
}

pub(super) fn replaced(directory: &WatchedDirectory, file: Pair) {
    warn!(dir = %directory.name(), %file, "another request has taken the place of one that is under way; that one is not waited for any more");
}

pub(super) fn was_answered(directory: &WatchedDirectory, file: Pair) {
    info!(dir = %directory.name(), %file, "its response is there already: the request is removed");
}

pub(super) fn too_large(directory: &WatchedDirectory, file: Pair, length: u64, aside: Option<&str>) {
    let aside = aside.map(|aside| display(visible(aside)));
    warn!(dir = %directory.name(), %file, clause = "BRIDGE-8", bytes = length, set_aside = aside, "the request is too large, and was answered so");
}

pub(super) fn elsewhere(directory: &WatchedDirectory, file: Pair) {
    warn!(
        dir = %directory.name(),
        %file,
        "the request was handed in to a server with another store, and is left to that one; if it is no more, remove .agent-bridge.json"
    );
}

pub(super) fn unreadable(directory: &WatchedDirectory, file: Pair, fault: &Fault) {
    warn!(dir = %directory.name(), %file, "{}; it is left as it is ({})", visible(&fault.to_string()), fault.hint());
}

pub(super) fn malformed(directory: &WatchedDirectory, file: Pair, report: &Report) {
    let dir = directory.name();
    let errors = report.findings.iter().filter(|finding| finding.level == Level::Error);
    for finding in errors.take(FINDINGS_MAX) {
        warn!(%dir, %file, clause = finding.clause.id, "{}", sentence(finding));
    }
    let errors = report.count(Level::Error);
    warn!(%dir, %file, errors, "the request is malformed, and is left as it is until it is mended");
}

/// Findings never quote values.
fn sentence(finding: &Finding) -> String {
    let Finding { line, column, message, hint, .. } = finding;
    visible(&format!("line {line}, column {column}: {message} (hint: {hint})"))
}
