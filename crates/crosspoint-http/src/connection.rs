//! Connections: which are served, which are turned away, and how a connection ends.

mod pace;
mod places;

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::http::Method;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::{IntoResponse, Response};
use crosspoint_exchange::refusal::{Limit, Refusal};
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::Service;

pub(crate) use self::pace::Pace;
use self::pace::{Alarm, Late};
pub use self::places::Places;
use self::places::TurnedAway;
use super::event_stream::Streamed;
use super::held::held;
use super::limit::shares::Share;
use super::limit::{Peer, head};
use super::reach::{self, Arrival};
use super::refusal::to_http;
use super::request_log::Record;
use super::slow_reader::Unstalled;
use super::socket::{Listener, Stream};
use super::{Refused, Site, refusal_document};

/// Pause before the next connection is accepted after accepting failed, mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Most bytes that are buffered for each connection: of a request's head, and of an answer apart from its body.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Longest time, and most bytes, for which a caller that is still sending after its answer is read from. Closing a
/// socket with unread bytes would discard the answer.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 4 << 20;

/// Accepts connections as long as it is polled.
pub async fn accept(listener: &Listener, site: &Site, router: &Router, places: &Places) -> Infallible {
    let mut turned_away = TurnedAway::default();
    loop {
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            () = turned_away.is_due() => {
                turned_away.say(places);
                continue;
            }
        };
        match taken {
            Ok(stream) => admit(stream, site, router, places, &mut turned_away).await,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn admit(stream: Stream, site: &Site, router: &Router, places: &Places, turned_away: &mut TurnedAway) {
    let peer = stream.peer();
    let share = match site.limits().connections_per_address.of(peer) {
        Some((key, most)) => match site.connections().take(key, most) {
            Some(share) => Some(share),
            None => {
                turned_away.of_address += 1;
                return places.refuse_address(stream, site, most);
            }
        },
        None => None,
    };
    // The semaphores are never closed.
    tokio::select! {
        biased;
        Ok(permit) = places.served.clone().acquire_owned() => {
            tokio::spawn(serve(stream, site.clone(), router.clone(), Place { peer, _share: share, _permit: permit }));
        }
        Ok(permit) = places.turned_away.clone().acquire_owned() => {
            turned_away.count += 1;
            site.tally().refused(Limit::Connections);
            tokio::spawn(turn_away(stream, places.none_left(), permit));
        }
        else => {}
    }
}

/// The place of one connection, until this value is dropped.
struct Place {
    peer: Peer,
    _share: Option<Share>,
    _permit: OwnedSemaphorePermit,
}

/// What happened on a connection so far.
struct Past {
    /// What the connection waits for.
    pace: Arc<Pace>,
    /// A request has arrived on it.
    used: AtomicBool,
    /// A request was answered that may not have been read to its end.
    hasty: AtomicBool,
    /// An answer that is written directly to the socket, once everything before it was written. Its request is under
    /// way until then.
    streamed: Mutex<Option<(Streamed, UnderWay)>>,
    /// Cancelled when too many long answers are not taken, and this connection has to go.
    cut: CancellationToken,
}

impl Past {
    fn new() -> Past {
        Past {
            pace: Arc::new(Pace::new(Instant::now().into_std())),
            used: AtomicBool::new(false),
            hasty: AtomicBool::new(false),
            streamed: Mutex::new(None),
            cut: CancellationToken::new(),
        }
    }

    /// Whether a streamed answer is all that is left to be written.
    fn is_handed_over(&self) -> bool {
        !self.pace.is_behind() && self.streamed().is_some()
    }

    fn streamed(&self) -> MutexGuard<'_, Option<(Streamed, UnderWay)>> {
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(stream: Stream, site: Site, router: Router, place: Place) {
    let past = Arc::new(Past::new());
    let from = Ends { peer: place.peer, arrival: stream.arrival() };
    let service = service_fn(|request: Request<Incoming>| {
        let (site, router, past) = (site.clone(), router.clone(), past.clone());
        Box::pin(async move {
            let under_way = UnderWay::begin(&site);
            let _asked = past.pace.asked();
            let version = request.version();
            let only_head = request.method() == Method::HEAD;
            let mut response = answer(&site, router, (&past, from), request).await;
            let streamed = if only_head { None } else { Streamed::taken_from(&mut response, version) };
            let Some(streamed) = streamed else {
                let bytes = response.body().size_hint().exact().unwrap_or(0);
                let unsent = site.unsent().add(from.peer, usize::try_from(bytes).unwrap_or(usize::MAX), &past.cut);
                return Ok::<Response, Infallible>(held(response, unsent));
            };
            *past.streamed() = Some((streamed, under_way));
            // Never completes: the connection is about to be taken from the HTTP library, which waits for an answer
            // here.
            pending().await
        })
    });
    let socket = Unstalled::new(stream, site.clone(), past.pace.clone());
    // The library has one time for an idle connection and for a slow head, so both are watched here.
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service);
    let late = {
        let mut closing = pin!(to_be_closed(&site, &past).fuse());
        let mut alarm = pin!(Alarm::new(&past.pace, site.limits()));
        let mut cut = pin!(past.cut.cancelled());
        poll_fn(|cx| {
            let mut polled = connection.poll_without_shutdown(cx);
            if polled.is_pending() && closing.as_mut().poll(cx).is_ready() {
                Pin::new(&mut connection).graceful_shutdown();
                polled = connection.poll_without_shutdown(cx);
            }
            if polled.is_ready() || past.is_handed_over() {
                return Poll::Ready(None);
            }
            if cut.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Some(Late::Reader));
            }
            alarm.as_mut().poll_late(cx).map(Some)
        })
        .await
    };
    let parts = connection.into_parts();
    let half_a_request = !parts.read_buf.is_empty();
    let mut socket = parts.io.into_inner();
    drop(parts.read_buf);
    let streamed = past.streamed().take();
    // A stopping server waits until the stream has written its last events.
    if let Some((streamed, _under_way)) = streamed {
        let _ = streamed.write(&mut socket).await;
    } else if late == Some(Late::Reader) {
        site.tally().refused(Limit::UnsentBytes);
        tracing::debug!("a connection was closed: there are too many long answers that are not taken");
        socket.forget_unsent();
    } else if late.is_some() && half_a_request {
        // An idle connection is closed without a word; half a request gets an answer.
        let refusal = Refusal::too_slow("request's head", Limit::HeaderSeconds, site.limits().header_time_max);
        site.tally().refused(Limit::HeaderSeconds);
        let _ = socket.write_all(&to_http(&refusal)).await;
    } else if late == Some(Late::Idle) {
        site.tally().refused(Limit::IdleSeconds);
    }
    close(socket.into_inner(), past.hasty.load(Ordering::Relaxed)).await;
}

/// Completes when this connection is to be closed. A stopping server closes connections that were kept open for more
/// requests. A connection on which no request has arrived yet has time to send one, and is told that the server stops.
async fn to_be_closed(site: &Site, past: &Past) {
    site.stopping().cancelled().await;
    if !past.used.load(Ordering::Relaxed) {
        site.closing().cancelled().await;
    }
}

/// Both ends of a connection.
#[derive(Clone, Copy)]
struct Ends {
    peer: Peer,
    arrival: Arrival,
}

/// Answers one request, even if its handler panics.
async fn answer(
    site: &Site,
    mut router: Router,
    (past, from): (&Past, Ends),
    mut request: Request<Incoming>,
) -> Response {
    past.used.store(true, Ordering::Relaxed);
    let record = Record::begin(request.method(), request.uri(), from.peer);
    let route = site.tally().route(request.method(), request.uri().path());
    let uri = request.uri().clone();
    let has_body = !request.body().is_end_stream();
    request.extensions_mut().insert(from.peer);
    let response = match unwelcome(site, from, &request) {
        Some(refusal) => Refused::from(refusal).into_response(),
        None => match AssertUnwindSafe(router.call(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            // The panic hook has already reported the place.
            Err(_) => Refused::from(Refusal::internal()).into_response(),
        },
    };
    let mut response = refusal_document::filled(response, || site.contract_at(uri.path()), site.is_agent());
    if has_body && !response.status().is_success() {
        past.hasty.store(true, Ordering::Relaxed);
    }
    if site.stopping().is_cancelled() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    site.tally().answered(route, response.status());
    if let Some(limit) = response.extensions().get::<Limit>() {
        site.tally().refused(*limit);
    }
    if let Some(record) = record {
        record.end(&response);
    }
    response
}

/// Returns why a request is refused before it is known what it asks for, and before its body is read.
fn unwelcome(site: &Site, from: Ends, request: &Request<Incoming>) -> Option<Refusal> {
    let limits = site.limits();
    let (uri, headers) = (request.uri(), request.headers());
    site.take_request_of(from.peer, Instant::now().into_std())
        .err()
        .or_else(|| head::too_long(uri, headers, limits.url_bytes_max, limits.header_bytes_max))
        .or_else(|| Some(reach::foreign(uri, headers, from.arrival, site.ours())?.refusal(site.ours())))
}

async fn turn_away(mut stream: Stream, refusal: Refusal, _permit: OwnedSemaphorePermit) {
    let _ = stream.write_all(&to_http(&refusal)).await;
    close(stream, true).await;
}

async fn close(mut stream: Stream, linger: bool) {
    let _ = stream.shutdown().await;
    if linger {
        let _ = tokio::time::timeout(LINGER_TIME_MAX, read_away(&mut stream)).await;
    }
}

async fn read_away(stream: &mut Stream) {
    // On the heap, so that ten thousand connections do not each reserve room for it.
    let mut scratch = vec![0; 8 << 10];
    let mut left = LINGER_BYTES_MAX;
    while left > 0 {
        match stream.read(&mut scratch).await {
            Ok(0) | Err(_) => return,
            Ok(read) => left = left.saturating_sub(read),
        }
    }
}

/// A request that has not been answered.
struct UnderWay(Site);

impl UnderWay {
    fn begin(site: &Site) -> UnderWay {
        site.begin_request();
        UnderWay(site.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.end_request();
    }
}
