//! `crosspoint bridge answer`: a person acts as the agent.
//!
//! It holds the lock of the directory like any driver, from before the request is looked at until it is answered, so
//! that no other driver answers it meanwhile. It takes the same steps in the same order.

mod editor;

use std::path::Path;

use anyhow::{Context, Result};
use crosspoint_bridge::document::laid_out;
use crosspoint_bridge::request::{self, Request};
use crosspoint_bridge::{Fault, Pair, response};
use crosspoint_contracts::json::{Tape, compact};

use crate::bridge::driver::{DrivenDirectory, Waiting};
use crate::bridge::record::Known;
use crate::bridge::request_notes::{asked_at, described, said_in};
use crate::bridge::work::now;
use crate::command::bridge::arguments::BridgeAnswer;
use crate::input::Source;
use crate::terminal::render;
use crate::{Exit, json_input};

/// A request that a person is about to answer.
struct PendingRequest {
    pair: Pair,
    request_id: String,
    /// The request itself, unless it is too large to be read.
    request: Option<Box<Request>>,
}

impl PendingRequest {
    fn known(&self) -> Known<'_> {
        let digest = self.request.as_ref().map(|request| request.digest.as_str());
        Known { pair: self.pair, request_id: &self.request_id, digest }
    }
}

/// What is answered.
enum Answering {
    Text(String),
    Error(String),
}

pub(crate) fn run(arguments: &BridgeAnswer) -> Result<Exit> {
    let attended = match DrivenDirectory::open(&arguments.directory) {
        Ok(attended) => attended,
        Err(fault) => return Ok(could_not(&fault)),
    };
    let waiting = match attended.waiting() {
        Ok(waiting) => waiting,
        Err(fault) => return Ok(could_not(&fault)),
    };
    let Some(asked) = picked(waiting, arguments) else { return Ok(Exit::NotFine) };
    match attended.is_answered(asked.known()) {
        Ok(true) => {
            let message = format!("{} is answered already", asked.pair);
            render::refused(&message, "its response waits to be taken; remove that first to answer anew");
            return Ok(Exit::NotFine);
        }
        Ok(false) => {}
        Err(fault) => return Ok(could_not(&fault)),
    }
    let Some(answering) = answering(arguments, &asked)? else { return Ok(Exit::NotFine) };
    write(&attended, &asked, &answering, arguments)
}

/// Picks the request that is meant. If there is none, or several, or it cannot be answered, that is printed.
fn picked(waiting: Vec<Waiting>, arguments: &BridgeAnswer) -> Option<PendingRequest> {
    let directory = render::visible(&arguments.directory.display().to_string());
    let wanted = arguments.phase.and_then(Pair::of_phase);
    let mut found: Vec<Waiting> =
        waiting.into_iter().filter(|one| wanted.is_none_or(|wanted| pair_of(one) == wanted)).collect();
    // Without a phase the plain pair is meant, which is the first.
    let plain = found.first().is_some_and(|first| pair_of(first) == Pair::PLAIN);
    if found.len() > 1 && !plain {
        let files: Vec<String> = found.iter().map(|one| pair_of(one).to_string()).collect();
        render::refused(
            &format!("several requests wait in {directory}: {}", files.join(", ")),
            "say which, with --phase N",
        );
        return None;
    }
    if found.is_empty() {
        let message = match wanted {
            None => format!("no request waits in {directory}"),
            Some(pair) => format!("there is no {pair} in {directory}"),
        };
        render::refused(&message, "crosspoint bridge status says what there is");
        return None;
    }
    answerable(found.swap_remove(0), &arguments.directory)
}

fn pair_of(waiting: &Waiting) -> Pair {
    match waiting {
        Waiting::Request(request) => request.pair,
        Waiting::TooLarge(pair, ..) | Waiting::Malformed(pair, _) | Waiting::Unreadable(pair, _) => *pair,
    }
}

fn answerable(waiting: Waiting, directory: &Path) -> Option<PendingRequest> {
    match waiting {
        Waiting::Request(request) => {
            Some(PendingRequest { pair: request.pair, request_id: request.request_id.clone(), request: Some(request) })
        }
        Waiting::TooLarge(pair, request_id, _) => Some(PendingRequest { pair, request_id, request: None }),
        Waiting::Malformed(pair, malformed) => {
            let name = render::visible(&directory.join(pair.request()).display().to_string());
            let mut stderr = anstream::stderr().lock();
            for finding in &malformed.report.findings {
                // If stderr cannot be written, there is nowhere to report that.
                let _ = render::finding(&mut stderr, &name, finding);
            }
            drop(stderr);
            render::refused("the request cannot be answered as it is", "have it mended, or remove it");
            None
        }
        Waiting::Unreadable(_, fault) => {
            render::refused(&fault.to_string(), fault.hint());
            None
        }
    }
}

/// Returns what is to be answered; `None` if there is nothing, which was printed.
fn answering(arguments: &BridgeAnswer, asked: &PendingRequest) -> Result<Option<Answering>> {
    if let Some(message) = &arguments.error {
        return Ok(Some(Answering::Error(message.clone())));
    }
    if let Some(file) = &arguments.json {
        let argument = if file.as_os_str() == "-" { "-".to_owned() } else { format!("@{}", file.display()) };
        let Some(value) = json_input::read(&argument)? else { return Ok(None) };
        let tape = Tape::scan(value.as_bytes()).ok();
        return Ok(tape.and_then(|tape| tape.root().map(compact)).map(Answering::Text));
    }
    match arguments.text.as_deref() {
        Some("-") => {
            let bytes = Source::Stdin.read().context("cannot read standard input")?;
            Ok(Some(Answering::Text(String::from_utf8(bytes).context("standard input is not UTF-8")?)))
        }
        Some(text) => Ok(Some(Answering::Text(text.to_owned()))),
        None => Ok(editor::text(asked.request.as_deref())?.map(Answering::Text)),
    }
}

fn write(
    attended: &DrivenDirectory,
    asked: &PendingRequest,
    answering: &Answering,
    arguments: &BridgeAnswer,
) -> Result<Exit> {
    // An editor may have been open for hours.
    match still_there(attended, asked) {
        Ok(true) => {}
        Ok(false) => {
            let hint = "nothing was answered: the requester has taken its request back";
            render::refused(&format!("{} is not there any more", asked.pair), hint);
            editor::keep(answering.text());
            return Ok(Exit::NotFine);
        }
        Err(fault) => return Ok(could_not(&fault)),
    }
    let seconds = asked.request.as_ref().map_or(0.0, |request| {
        let took = jiff::Timestamp::now().duration_since(asked_at(request));
        // Milliseconds are enough, and clocks differ.
        (took.as_secs_f64().max(0.0) * 1_000.0).round() / 1_000.0
    });
    let (id, now) = (asked.request_id.as_str(), now());
    let document = match answering {
        Answering::Text(text) => response::success(id, text, &now, seconds),
        Answering::Error(message) => response::error(id, &arguments.error_type, message, &now, seconds),
    };
    if laid_out(&document).len() > response::BYTES_MAX {
        let message = format!("the response would be longer than the {} bytes that it may have", response::BYTES_MAX);
        render::refused(&message, "write large output to a file of its own, and answer with its path");
        return Ok(Exit::NotFine);
    }
    let aside = match attended.put(asked.known(), &document) {
        Ok(aside) => aside,
        Err(fault) => return Ok(could_not(&fault)),
    };
    let path = arguments.directory.join(asked.pair.response());
    render::note(&render::visible(&format!("{} answers {}", path.display(), asked.request_id)));
    if let Some(aside) = aside {
        render::note(&format!("another response was in its place: it is kept as {aside}"));
    }
    Ok(Exit::Fine)
}

impl Answering {
    fn text(&self) -> &str {
        match self {
            Answering::Text(text) | Answering::Error(text) => text,
        }
    }
}

fn still_there(attended: &DrivenDirectory, asked: &PendingRequest) -> Result<bool, Fault> {
    let (id, digest) = match request::look(&attended.directory, asked.pair)? {
        request::Look::Request(request) => (Some(request.request_id), Some(request.digest)),
        request::Look::TooLarge { request_id, .. } => (Some(request_id), None),
        request::Look::Nothing | request::Look::Malformed(_) => (None, None),
    };
    Ok(id.as_deref() == Some(&asked.request_id) && digest.as_deref() == asked.known().digest)
}

fn could_not(fault: &Fault) -> Exit {
    render::refused(&described(fault), fault.hint());
    Exit::CouldNot
}

/// What a request asks, to show it.
fn prompt_of(request: &Request) -> String {
    said_in(&request.document, "prompt").unwrap_or_default()
}
