//! The events of a stream as jobs, and jobs as events.

use super::event::StreamEvent;
use super::life::{PROGRESS, Role};
use super::map::{EVENT, MAP, event_shape};
use crate::content::Json;
use crate::document::Document;
use crate::job::{Canonical, Home, Own};
use crate::json::Tape;
use crate::kind::{Contract, Kind};
use crate::map;
use crate::sse;
use crate::translate::nests_deep;

/// Returns one job for each event.
pub(super) fn of_stream(document: &Document<'_>) -> Vec<Canonical<'static>> {
    let Document::RunStream(stream) = document else { return Vec::new() };
    let mut jobs: Vec<Canonical<'static>> = stream.events.iter().filter_map(of_event).collect();
    let shared = jobs.iter().find_map(|job| job.get(Home::RequestId)).cloned();
    for job in jobs.iter_mut().filter(|job| job.get(Home::RequestId).is_none()) {
        job.stream_id.clone_from(&shared);
    }
    jobs
}

/// Reads an event as a document of a job, like any other. Its name is kept beside it.
pub(super) fn of_event(event: &StreamEvent) -> Option<Canonical<'static>> {
    let tape = Tape::scan(event.data.as_bytes()).ok()?;
    let root = tape.root()?;
    let role = event.role();
    let shape = match role {
        Role::Terminal => (MAP.reading)(Kind::RunResponse, root)?,
        Role::Started | Role::Progress | Role::Other => event_shape(&event.name),
    };
    let mut job = map::read::document(shape, root).into_owned();
    job.origin = if job.wary { job.origin } else { Kind::RunStream };
    job.wary |= nests_deep(&tape);
    let mut keep = |pointer: &str, value: Json<'static>| {
        job.own.push(Own { contract: Contract::Run, pointer: pointer.to_owned(), value });
    };
    if event.name != usual_name(role) {
        keep(EVENT, Json::string(&event.name));
    }
    // Data that is no object, or an empty one, is kept whole: the event says nothing else.
    if root.members().next().is_none() {
        keep("", Json::new(root.source().to_owned()));
    }
    Some(job)
}

/// Returns the job in the data of a `progress` event.
pub(super) fn of_progress(data: &str) -> Option<Canonical<'static>> {
    of_event(&StreamEvent { name: PROGRESS.to_owned(), data: data.to_owned() })
}

fn usual_name(role: Role) -> &'static str {
    match role {
        Role::Terminal => "final",
        Role::Started | Role::Progress | Role::Other => "progress",
    }
}

/// Puts the data of an event into its frame. Returns `None` for a job without a state, and for an ended one without its
/// work, which a terminal event must name.
pub(super) fn frame(job: &Canonical<'_>, data: &str) -> Option<String> {
    let ended = job.state()?.is_ended();
    if ended && job.get(Home::Work).is_none() {
        return None;
    }
    let role = if ended { Role::Terminal } else { Role::Progress };
    let name = job.own_at(Contract::Run, EVENT).and_then(|(_, own)| own.value.text());
    // The name may have been carried by any program, so it must agree with the state of the job.
    let name = name.filter(|name| (Role::of(name) == Role::Terminal) == ended);
    let mut event = Vec::with_capacity(data.len() + 32);
    if sse::event(&mut event, name.as_deref().unwrap_or(usual_name(role)), None, data).is_err() {
        let _ = sse::event(&mut event, usual_name(role), None, data);
    }
    String::from_utf8(event).ok()
}
