//! All work on the files of a visited directory: on a thread that may wait for a disk.

use std::collections::BTreeMap;

use crosspoint_bridge::document::is_of;
use crosspoint_bridge::request::{self, Malformed, Request};
use crosspoint_bridge::{Fault, Mark, Pair};

use crate::bridge::driver::{DrivenDirectory, Stage, Waiting};
use crate::bridge::record::{self, Known, Record};
use crate::bridge::work;

/// What was found at one look.
pub(super) struct Scan {
    pub(super) found: Vec<Seen>,
    /// There are more requests than there was room for.
    pub(super) more: bool,
    /// Responses to earlier requests with the same ids, by the names under which they were set aside.
    pub(super) aside: Vec<String>,
}

/// What was found under one request's name.
pub(super) struct Seen {
    pub(super) pair: Pair,
    /// From before it was read: if the file has changed since, it is looked at again.
    pub(super) mark: Mark,
    pub(super) what: What,
}

pub(super) enum What {
    /// It is noted in the record, and is to be handed in.
    Request(Box<Request>),
    /// Its response was there; the request is removed.
    WasAnswered,
    /// A server with another store has it, according to the record with this mark.
    Elsewhere(Option<Mark>),
    /// It was answered as too large, and this response was set aside for that.
    TooLarge {
        length: u64,
        aside: Option<String>,
    },
    Malformed(Box<Malformed>),
    Unreadable(Fault),
}

/// The mark of a response that was written, and the digest of the request that it answers.
pub(super) type Wrote = (Mark, String);

/// What came of writing an answer.
pub(super) enum Put {
    /// It was written and has this mark; another response was set aside for it under this name.
    Written(Option<Mark>, Option<String>),
    /// Its request is gone, or is another one: no requester waits for it.
    Unwanted,
}

/// Looks at the requests that have changed since they were `seen`, but at no more than there is room for, and notes
/// those that are to be handed in.
pub(super) fn scan(
    attended: &mut DrivenDirectory,
    (seen, wrote): (&BTreeMap<Pair, Mark>, &BTreeMap<Pair, Wrote>),
    room: usize,
    store: &str,
) -> Result<Scan, Fault> {
    let mut scan = Scan { found: Vec::new(), more: false, aside: Vec::new() };
    for pair in Pair::all() {
        let Some(mark) = attended.directory.mark(&pair.request())? else { continue };
        if seen.get(&pair) == Some(&mark) {
            continue;
        }
        if scan.found.len() == room {
            scan.more = true;
            break;
        }
        let Some(waiting) = attended.waiting_as(pair)? else { continue };
        if let (Waiting::Request(request), Some(wrote)) = (&waiting, wrote.get(&pair)) {
            scan.aside.extend(without_another(attended, request, wrote)?);
        }
        scan.found.push(Seen { pair, mark, what: what_of(attended, waiting, store)? });
    }
    let requests = scan.found.iter().filter_map(|seen| match &seen.what {
        What::Request(request) => Some(&**request),
        What::WasAnswered | What::Elsewhere(_) | What::TooLarge { .. } | What::Malformed(_) | What::Unreadable(_) => {
            None
        }
    });
    let requests: Vec<&Request> = requests.collect();
    if !requests.is_empty() {
        scan.aside.extend(attended.claim(&requests, store)?);
    }
    Ok(scan)
}

/// Sets aside a response that this driver wrote to other words under the same id, if it was not taken. Its note is gone
/// with the request that it answers.
fn without_another(attended: &DrivenDirectory, request: &Request, wrote: &Wrote) -> Result<Option<String>, Fault> {
    let (name, (mark, digest)) = (request.pair.response(), wrote);
    let is_ours = *digest != request.digest && attended.directory.mark(&name)? == Some(*mark);
    if is_ours && attended.is_answered(request.into())? { attended.directory.set_aside(&name) } else { Ok(None) }
}

fn what_of(attended: &mut DrivenDirectory, waiting: Waiting, store: &str) -> Result<What, Fault> {
    Ok(match waiting {
        Waiting::Request(request) => match attended.stage(&request, store)? {
            Stage::Ours => What::Request(request),
            Stage::Elsewhere => What::Elsewhere(attended.directory.mark(record::NAME)?),
            Stage::Answered => {
                attended.finish(Known::from(&*request))?;
                What::WasAnswered
            }
        },
        Waiting::TooLarge(pair, request_id, length) => {
            let known = Known { pair, request_id: &request_id, digest: None };
            if attended.is_answered(known)? {
                attended.finish(known)?;
                return Ok(What::WasAnswered);
            }
            let aside = attended.put(known, &work::request_too_large(&request_id, length))?;
            What::TooLarge { length, aside }
        }
        Waiting::Malformed(_, malformed) => What::Malformed(malformed),
        Waiting::Unreadable(_, fault) => What::Unreadable(fault),
    })
}

/// Writes an answer, if its request is still there: the very one that was handed in.
pub(super) fn put(attended: &DrivenDirectory, known: Known<'_>, document: &str) -> Result<Put, Fault> {
    let is_it = |found: &Request| found.request_id == known.request_id && Some(&*found.digest) == known.digest;
    match attended.waiting_as(known.pair)? {
        Some(Waiting::Request(found)) if is_it(&found) => {
            let aside = attended.put(known, document)?;
            Ok(Put::Written(attended.directory.mark(&known.pair.response())?, aside))
        }
        Some(Waiting::Request(_) | Waiting::TooLarge(..) | Waiting::Malformed(..) | Waiting::Unreadable(..)) | None => {
            Ok(Put::Unwanted)
        }
    }
}

/// Cleans up before the lock is given back. A request stays noted for as long as it is there, so that no other driver
/// takes it meanwhile.
pub(super) fn tidy(attended: &mut DrivenDirectory) -> Result<(), Fault> {
    // What a program's own driver remembers is for that driver, when it is started again.
    if attended.record.command.is_some() || attended.record == Record::default() {
        return Ok(());
    }
    let mut kept = Vec::new();
    for noted in &attended.record.requests {
        if is_there(attended, &noted.file, &noted.request_id)? {
            kept.push(noted.clone());
        }
    }
    if kept.is_empty() {
        return attended.record.forget(&attended.directory);
    }
    if kept != attended.record.requests {
        attended.record.requests = kept;
        attended.record.save(&attended.directory)?;
    }
    Ok(())
}

fn is_there(attended: &DrivenDirectory, file: &str, request_id: &str) -> Result<bool, Fault> {
    match attended.directory.read(file, request::BYTES_MAX + 1) {
        Ok(found) => Ok(found.is_some_and(|found| is_of(&found, request_id))),
        Err(Fault::NotAFile { .. }) => Ok(false),
        // It may be there: a file that cannot be read stays noted for as long as it is there.
        Err(Fault::Denied { path, .. }) if path == attended.directory.path().join(file) => Ok(true),
        Err(fault) => Err(fault),
    }
}
