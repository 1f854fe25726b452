//! Documents that are read and not kept: `/api/v1/validate`, `/api/v1/translate`, `/schemas`.
//!
//! A document of many megabytes keeps a processor busy for a while. So documents are read apart from the threads that
//! answer other requests, and only some at a time: the rest of the machine is for jobs.

use std::sync::OnceLock;
use std::thread;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::map::Carrying;
use crosspoint_contracts::translate::{Refused, Translation};
use crosspoint_contracts::{AGENT_TYPES, Inner, Kind, Options, Report, schema};
use crosspoint_exchange::refusal::{Limit, Refusal, found};
use crosspoint_http::body::Received;
use crosspoint_http::json::{Object, push_array, push_text, response};
use tokio::sync::Semaphore;

use super::App;
use super::query::{self, Judging, Translating};
use crate::terminal::undetected;
use crate::translation::{TranslateOptions, Translated, mend};
use crate::verdict::{self, DocumentReport};

/// Most documents that wait to be read. The memory that they take is bounded by the limit on all bodies.
const WAITING_MAX: usize = 64;

/// Longest document that is read beside others, in bytes. Longer ones are read one at a time: the worst of them take
/// thirty times their size while they are read.
const LARGE_BYTES: usize = 1 << 20;

/// Limits which requests may read a document now, and which wait for that.
pub(super) struct ReadingRoom {
    seats: std::sync::Arc<Semaphore>,
    /// A request with a large document needs this permit too.
    large: std::sync::Arc<Semaphore>,
    /// Permits for requests that wait and for requests that read.
    visitors: std::sync::Arc<Semaphore>,
}

impl Default for ReadingRoom {
    /// Uses half of the processors, so that jobs have the other half.
    fn default() -> ReadingRoom {
        let seats = thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1));
        let visitors = Semaphore::new(seats + WAITING_MAX);
        ReadingRoom { seats: Semaphore::new(seats).into(), large: Semaphore::new(1).into(), visitors: visitors.into() }
    }
}

impl ReadingRoom {
    /// Does work that takes a processor for long. The permits belong to the work and not to the request that waits for
    /// it, because its caller may leave and come again.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        bytes: usize,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(visitor) = self.visitors.clone().try_acquire_owned() else {
            let hint = "nothing was done; send it again later";
            return Err(Refusal::unavailable("too many documents wait to be looked at", hint).over(Limit::Documents));
        };
        // This permit first: a request that waits for it must not keep a seat from requests with small documents.
        let large = if bytes > LARGE_BYTES { self.large.clone().acquire_owned().await.ok() } else { None };
        let seat = self.seats.clone().acquire_owned().await;
        let looking = tokio::task::spawn_blocking(move || {
            let _held = (visitor, large, seat);
            look()
        });
        // The work panicked, which the panic hook has reported, or the runtime ends.
        looking.await.map_err(|_| Refusal::internal())
    }
}

pub(super) async fn show_schema(Path(file): Path<String>) -> Result<Response, crosspoint_http::Refused> {
    static TEXTS: OnceLock<Vec<(Kind, Bytes)>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| Kind::ALL.into_iter().map(|kind| (kind, schema::text(kind).into())).collect());
    let kind = file.strip_suffix(".json").and_then(Kind::from_name);
    let text = texts.iter().find(|(known, _)| Some(*known) == kind).map(|(_, text)| text.clone());
    let refusal = || {
        let files: Vec<String> = Kind::ALL.iter().map(|kind| format!("{kind}.json")).collect();
        Refusal::not_found("no schema has this name", format!("there are {}", files.join(", ")))
    };
    Ok(response(StatusCode::OK, text.ok_or_else(refusal)?))
}

pub(super) async fn validate_document(
    State(app): State<App>,
    uri: Uri,
    received: Received,
) -> Result<Response, crosspoint_http::Refused> {
    let wanted = query::judging(&uri)?;
    let body = app.0.reading_room.look(received.bytes.len(), move || judge(&received, &wanted)).await??;
    Ok(response(StatusCode::OK, body))
}

pub(super) async fn translate_document(
    State(app): State<App>,
    uri: Uri,
    received: Received,
) -> Result<Response, crosspoint_http::Refused> {
    let wanted = query::translating(&uri)?;
    let body = app.0.reading_room.look(received.bytes.len(), move || translate(&received, &wanted)).await??;
    Ok(response(StatusCode::OK, body))
}

fn judge(received: &Received, wanted: &Judging) -> Result<Vec<u8>, Refusal> {
    let agent_types: Vec<&str> = wanted.agent_types.iter().map(String::as_str).collect();
    let options = Options {
        kind: wanted.kind,
        inner: if wanted.inner_json { Inner::Json } else { Inner::Any },
        agent_types: &agent_types,
        ..Options::default()
    };
    not_empty(received)?;
    let reading = crosspoint_contracts::read(&received.bytes, &options);
    if let Some(undetected) = &reading.undetected {
        return Err(undetectable(undetected, reading.report));
    }
    let strict_enough = !wanted.strict || reading.report.findings.is_empty();
    let good = reading.report.is_valid() && strict_enough;
    serde_json::to_vec(&DocumentReport::of(&reading, good)).map_err(|_| Refusal::internal())
}

fn not_empty(received: &Received) -> Result<(), Refusal> {
    if received.bytes.is_empty() {
        return Err(Refusal::invalid("the body is empty", "send the document as the body"));
    }
    Ok(())
}

fn undetectable(undetected: &crosspoint_contracts::kind::Undetected, report: Report) -> Refusal {
    let candidates = verdict::candidates(undetected);
    let kinds = if candidates.is_empty() { Kind::ALL.map(Kind::name).to_vec() } else { candidates };
    let hint = format!("say what it is: ?kind= with one of {}", kinds.join(", "));
    Refusal::invalid(undetected::sentence(undetected), hint).because(report)
}

fn translate(received: &Received, wanted: &Translating) -> Result<Vec<u8>, Refusal> {
    not_empty(received)?;
    let agent_types: Vec<&str> = wanted.agent_types.iter().map(String::as_str).collect();
    let options = TranslateOptions {
        to: wanted.to,
        kind: wanted.kind,
        agent: &wanted.agent,
        agent_types: &agent_types,
        carrying: if wanted.carry { Carrying::On } else { Carrying::Off },
    };
    if !options.knows_its_agent() {
        let hint = format!("known are {}; agent_type=NAME adds one", AGENT_TYPES.join(", "));
        return Err(Refusal::invalid("the query's `agent` is no agent type", hint));
    }
    let Translation { report, undetected, written } = options.translate(&received.bytes);
    if let Some(undetected) = &undetected {
        return Err(undetectable(undetected, report));
    }
    if !report.is_valid() {
        return Err(Refusal::invalid("the document is not valid", "mend what `findings` lists").because(report));
    }
    let translated = Translated::of(written).map_err(|refused| broken(&refused))?;
    if translated.documents.is_empty() {
        let why = translated.refused.as_ref().map(Refused::to_string).unwrap_or_default();
        return Err(Refusal::unsupported(why, options.goes_to(&received.bytes)));
    }
    if wanted.strict && translated.loses(options.carrying) {
        let hint = "leave out `strict`, to do without what is lost, or `carry=false`, so that it is carried";
        return Err(Refusal::invalid("not all of it can be said in the other contract", hint));
    }
    Ok(shown(&report, &translated, options.carrying))
}

fn broken(refused: &Refused) -> Refusal {
    let refusal = Refusal::invalid(refused.to_string(), mend(refused));
    match refused {
        Refused::Broken { report, .. } => refusal.because((**report).clone()),
        Refused::NoCounterpart { .. } => refusal,
    }
}

/// Writes the answer. Documents are inserted as they were written: JSON within JSON, and a stream as a string.
fn shown(report: &Report, translated: &Translated, carrying: Carrying) -> Vec<u8> {
    let bytes: usize = translated.documents.iter().map(|written| written.text().len()).sum();
    let mut out = Vec::with_capacity(bytes + 1024);
    let mut object = Object::open(&mut out);
    object.text_or_null("kind", report.kind.map(Kind::name));
    object.raw("findings", &serde_json::to_vec(&found(report)).unwrap_or_else(|_| b"[]".to_vec()));
    push_array(object.name("documents"), &translated.documents, |out, written| {
        let mut document = Object::open(out);
        document.text("kind", written.kind.name());
        if written.kind.is_framed() {
            document.text("text", written.text());
        } else {
            document.raw("document", written.text().as_bytes());
        }
        document.close();
    });
    let homeless = translated.homeless();
    let (carried, lost) = if carrying == Carrying::On { (homeless, Vec::new()) } else { (Vec::new(), homeless) };
    push_array(object.name("carried"), carried, push_text);
    push_array(object.name("lost"), lost, push_text);
    push_array(object.name("filled"), translated.filled(), push_text);
    object.plain("without", translated.without);
    object.close();
    out
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn no_more_wait_than_may_and_whoever_leaves_keeps_the_seat_until_the_work_is_done() {
        let reading_room = ReadingRoom {
            seats: Semaphore::new(1).into(),
            large: Semaphore::new(1).into(),
            visitors: Semaphore::new(2).into(),
        };
        let (release, released) = mpsc::channel::<()>();
        let first = reading_room.look(1, move || released.recv().is_ok());
        let mut first = Box::pin(first);
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        let mut second = Box::pin(reading_room.look(1, || 2));
        assert!((&mut second).now_or_never().is_none(), "the seat is taken, though nobody waits for it");
        assert!(reading_room.look(1, || 3).await.is_err(), "and no more may wait");
        release.send(()).expect("it is still at work");
        assert_eq!(second.await.expect("it is looked at"), 2);
        assert_eq!(reading_room.look(1, || 4).await.expect("there is room again"), 4);
    }

    #[tokio::test]
    async fn of_large_documents_one_is_looked_at_at_a_time() {
        let reading_room = ReadingRoom {
            seats: Semaphore::new(2).into(),
            large: Semaphore::new(1).into(),
            visitors: Semaphore::new(4).into(),
        };
        let (release, released) = mpsc::channel::<()>();
        let mut first = Box::pin(reading_room.look(LARGE_BYTES + 1, move || released.recv().is_ok()));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(reading_room.look(LARGE_BYTES + 1, || 2));
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(
            reading_room.look(LARGE_BYTES, || 3).await.expect("it is looked at"),
            3,
            "there is a seat for others"
        );
        assert!((&mut second).now_or_never().is_none(), "the large one still waits");
        release.send(()).expect("it is still at work");
        assert_eq!(second.await.expect("it is looked at"), 2);
    }
}
