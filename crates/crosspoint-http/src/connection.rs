//! Connections: which are served, which are turned away, and how a connection ends.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower::Service;

use super::event_stream::Streamed;
use super::reach::{self, Arrival};
use super::refusal::to_http;
use super::request_log::Record;
use super::slow_reader::Unstalled;
use super::socket::{Listener, Stream};
use super::{Refused, Site, refusal_document};

/// Pause before the next connection is accepted after accepting failed, mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Most callers that are told at a time that there are too many connections. Further callers wait for their turn to be
/// told. It always comes, since telling takes no longer than [`LINGER_TIME_MAX`].
const TURNED_AWAY_MAX: usize = 64;

/// Shortest interval between log lines that say that callers are turned away.
const TURNED_AWAY_PERIOD: Duration = Duration::from_secs(1);

/// Most bytes that are buffered for each connection: of a request's head, and of an answer apart from its body.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Longest time, and most bytes, for which a caller that is still sending after its answer is read from. Closing a
/// socket with unread bytes would discard the answer.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 4 << 20;

/// The places for connections.
pub struct Places {
    served: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
    max: u32,
}

impl Places {
    /// Makes places for this many connections.
    pub fn new(connections_max: usize) -> Places {
        let max = u32::try_from(connections_max.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Places {
            served: Arc::new(Semaphore::new(max as usize)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
            max,
        }
    }

    /// Completes when no connection is left.
    pub async fn all_free(&self) {
        let _ = self.served.acquire_many(self.max).await;
    }
}

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
    // The semaphores are never closed.
    tokio::select! {
        biased;
        Ok(permit) = places.served.clone().acquire_owned() => {
            tokio::spawn(serve(stream, site.clone(), router.clone(), permit));
        }
        Ok(permit) = places.turned_away.clone().acquire_owned() => {
            turned_away.count += 1;
            site.tally().refused(Limit::Connections);
            let refusal = Refusal::unavailable(
                format!("there are {} connections, and no more may be", places.max),
                "nothing was done; send it again later, or raise [limits] connections",
            );
            tokio::spawn(turn_away(stream, refusal, permit));
        }
        else => {}
    }
}

/// Callers that were turned away and are not in the log yet.
#[derive(Default)]
struct TurnedAway {
    count: u64,
    said_at: Option<Instant>,
}

impl TurnedAway {
    /// Completes when there is something to log and the interval has passed.
    async fn is_due(&self) {
        if self.count == 0 {
            return pending().await;
        }
        if let Some(said_at) = self.said_at {
            tokio::time::sleep_until(said_at + TURNED_AWAY_PERIOD).await;
        }
    }

    fn say(&mut self, places: &Places) {
        tracing::warn!(count = self.count, connections = places.max, "callers were turned away: too many connections");
        *self = TurnedAway { count: 0, said_at: Some(Instant::now()) };
    }
}

/// What happened on a connection so far.
#[derive(Default)]
struct Past {
    /// A request has arrived on it.
    used: AtomicBool,
    /// A request was answered that may not have been read to its end.
    hasty: AtomicBool,
    /// A part of an answer has not been taken by the caller yet.
    behind: Arc<AtomicBool>,
    /// An answer that is written directly to the socket, once everything before it was written. Its request is under
    /// way until then.
    streamed: Mutex<Option<(Streamed, UnderWay)>>,
}

impl Past {
    /// Whether a streamed answer is all that is left to be written.
    fn is_handed_over(&self) -> bool {
        !self.behind.load(Ordering::Relaxed) && self.streamed().is_some()
    }

    fn streamed(&self) -> MutexGuard<'_, Option<(Streamed, UnderWay)>> {
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(stream: Stream, site: Site, router: Router, _permit: OwnedSemaphorePermit) {
    let past = Arc::new(Past::default());
    let arrival = stream.arrival();
    let service = service_fn(|request: Request<Incoming>| {
        let (site, router, past) = (site.clone(), router.clone(), past.clone());
        Box::pin(async move {
            let under_way = UnderWay::begin(&site);
            let version = request.version();
            let only_head = request.method() == Method::HEAD;
            let mut response = answer(&site, router, (&past, arrival), request).await;
            let streamed = if only_head { None } else { Streamed::taken_from(&mut response, version) };
            let Some(streamed) = streamed else {
                return Ok::<Response, Infallible>(response);
            };
            *past.streamed() = Some((streamed, under_way));
            // Never completes: the connection is about to be taken from the HTTP library, which waits for an answer
            // here.
            pending().await
        })
    });
    let header_time_max = site.limits().header_time_max;
    let socket = Unstalled::new(stream, site.clone(), past.behind.clone());
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time_max)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service);
    let ended = {
        let mut closing = pin!(to_be_closed(&site, &past).fuse());
        poll_fn(|cx| {
            let mut polled = connection.poll_without_shutdown(cx);
            if polled.is_pending() && closing.as_mut().poll(cx).is_ready() {
                Pin::new(&mut connection).graceful_shutdown();
                polled = connection.poll_without_shutdown(cx);
            }
            if polled.is_pending() && past.is_handed_over() { Poll::Ready(Ok(())) } else { polled }
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
    } else if ended.is_err_and(|error| error.is_timeout()) && half_a_request {
        // An idle connection is closed without a word; half a request gets an answer.
        let refusal = Refusal::too_slow("request's head", Limit::HeaderSeconds, header_time_max);
        site.tally().refused(Limit::HeaderSeconds);
        let _ = socket.write_all(&to_http(&refusal)).await;
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

/// Answers one request, even if its handler panics.
async fn answer(
    site: &Site,
    mut router: Router,
    (past, arrival): (&Past, Arrival),
    request: Request<Incoming>,
) -> Response {
    past.used.store(true, Ordering::Relaxed);
    let record = Record::begin(request.method(), request.uri());
    let route = site.tally().route(request.method(), request.uri().path());
    let door = site.contract_at(request.uri().path());
    let has_body = !request.body().is_end_stream();
    let response = match reach::foreign(request.uri(), request.headers(), arrival, site.ours()) {
        Some(foreign) => Refused::from(foreign.refusal()).into_response(),
        None => match AssertUnwindSafe(router.call(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            // The panic hook has already reported the place.
            Err(_) => Refused::from(Refusal::internal()).into_response(),
        },
    };
    let mut response = refusal_document::filled(response, door);
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
