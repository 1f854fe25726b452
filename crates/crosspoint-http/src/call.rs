//! HTTP to one agent. It moves bytes, within limits, and to no address but the configured one.
//!
//! There is one host, spoken to in HTTP/1.1, so that a request is a path and a few headers, and idle connections are a
//! list (`connections`). A general client looks the host up by its address again with every request.

mod connections;
mod gathered;
mod media;
mod retry_after;
mod room;
mod shown;
mod tls;

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use crosspoint_exchange::trace::Trace;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};

use self::connections::{Connection, Connections, Whose};
use self::gathered::Gathered;
pub use self::media::Media;
pub use self::room::AnswerRoom;
use self::room::Taken;
use url::Url;

/// Most redirects within the same host that are followed for one request.
const REDIRECTS_MAX: usize = 3;

/// Longest time, and most bytes, for reading a body that is not wanted. Beyond that a new connection is cheaper.
const DISMISS_TIME_MAX: Duration = Duration::from_millis(100);
const DISMISS_BYTES_MAX: usize = 64 << 10;

/// Most bytes that are read of a body that says in advance that it is too long.
const BEGINNING_BYTES: usize = 64 << 10;

/// Bytes of one answer after which other tasks get their turn: an agent that sends without end would otherwise keep a
/// thread to itself.
const TURN_BYTES: usize = 64 << 10;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The way to one agent. Its connections are its own, and are used again.
pub struct Http {
    connections: Connections,
    base: Url,
    host: Option<HeaderValue>,
    bearer: Option<HeaderValue>,
    redirects_max: usize,
    room: AnswerRoom,
}

/// A path below the agent's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(PathAndQuery);

/// A request, before its place and the agent's own headers are known.
struct Call<'c> {
    /// The document of a POST.
    posted: Option<Bytes>,
    /// The span that the request belongs to (TASK-8).
    trace: &'c Trace,
    accept: Media,
    /// What makes a repeat the same request (ALL-1).
    key: Option<HeaderValue>,
}

/// An answer whose body is still to come.
pub struct Answer {
    /// The status of the answer.
    pub status: StatusCode,
    /// The media type that the answer is marked as.
    pub media: Media,
    /// How long the agent wants to be left alone, if it says so.
    pub retry_after: Option<Duration>,
    location: Option<HeaderValue>,
    body: Incoming,
    /// The connection that the answer comes by, for the next request.
    connection: Option<Connection>,
    /// How many bytes were read since other tasks had their turn.
    bytes_in_turn: usize,
    /// The room that what was read takes.
    room: Taken,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// No connection was made: the agent has received nothing.
    Unconnected,
    /// The connection was lost after something was sent.
    Lost,
    /// What came is not HTTP that can be read.
    Garbled,
}

/// Why a body is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is longer than it may be.
    TooLong,
    /// The connection was lost.
    Lost,
    /// The framing is wrong.
    Garbled,
}

impl Http {
    /// Makes the way to the agent of this name at this address. The token, if there is one, is presented with every
    /// request. Long answers take room.
    pub fn new(name: &str, base: &Url, token: Option<&str>, room: &AnswerRoom) -> Http {
        Http::to(base, token, Whose::Agent(name.into()), room.clone())
    }

    /// Makes the way of an agent to its orchestrator.
    pub fn to_orchestrator(base: &Url, token: Option<&str>, room: &AnswerRoom) -> Http {
        Http::to(base, token, Whose::Orchestrator, room.clone())
    }

    /// Makes the way to a caller that is told at this address. No redirects are followed, not even within the host: an
    /// answer is that of the path that was asked for.
    pub fn to_caller(base: &Url, token: Option<&str>) -> Http {
        // Of a caller's answer only the status is wanted, and no more is read than takes no room.
        Http { redirects_max: 0, ..Http::to(base, token, Whose::Callers, AnswerRoom::new(0)) }
    }

    fn to(base: &Url, token: Option<&str>, whose: Whose, room: AnswerRoom) -> Http {
        let bearer = token.and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        let base = base.clone();
        let port = base.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = base.host_str().and_then(|host| HeaderValue::try_from(format!("{host}{port}")).ok());
        Http { connections: Connections::to(&base, whose), base, host, bearer, redirects_max: REDIRECTS_MAX, room }
    }

    /// Returns a path below the agent's address. `path` comes from Crosspoint; characters that cannot be part of a path
    /// are escaped.
    pub fn endpoint(&self, path: &str) -> Endpoint {
        let mut url = self.base.clone();
        url.set_path(&[self.base.path(), path].concat());
        Endpoint::of(&url)
    }

    /// Returns a path below the root of the agent's host, whatever its address.
    pub fn at_root(&self, path: &str) -> Endpoint {
        let mut url = self.base.clone();
        url.set_path(&["/", path].concat());
        Endpoint::of(&url)
    }

    /// Like `endpoint`, with a query, which comes from Crosspoint too.
    pub fn endpoint_with(&self, path: &str, query: &str) -> Endpoint {
        let mut url = self.base.clone();
        url.set_path(&[self.base.path(), path].concat());
        url.set_query(Some(query));
        Endpoint::of(&url)
    }

    /// Posts a JSON document. `accept` is what the answer may be.
    pub async fn post(
        &self,
        endpoint: &Endpoint,
        document: impl Into<Bytes>,
        trace: &Trace,
        accept: Media,
    ) -> Result<Answer, Unanswered> {
        self.send(endpoint, &Call { posted: Some(document.into()), trace, accept, key: None }).await
    }

    /// Posts a JSON document that has no id of its own: by the key an agent tells a repeat from another request.
    pub async fn post_with_key(
        &self,
        endpoint: &Endpoint,
        document: impl Into<Bytes>,
        trace: &Trace,
        key: &str,
    ) -> Result<Answer, Unanswered> {
        let (posted, key) = (Some(document.into()), HeaderValue::try_from(key).ok());
        self.send(endpoint, &Call { posted, trace, accept: Media::Json, key }).await
    }

    /// Gets the JSON that is at a path.
    pub async fn get(&self, endpoint: &Endpoint, trace: &Trace) -> Result<Answer, Unanswered> {
        self.send(endpoint, &Call { posted: None, trace, accept: Media::Json, key: None }).await
    }

    /// Sends a request, and sends it again if the agent redirects to another path on the same host.
    async fn send(&self, endpoint: &Endpoint, call: &Call<'_>) -> Result<Answer, Unanswered> {
        let mut answer = self.exchange(endpoint, call).await?;
        let mut endpoint = Cow::Borrowed(endpoint);
        for _ in 0..self.redirects_max {
            let Some(to) = self.redirected(&endpoint, &answer) else { break };
            answer.dismiss().await;
            endpoint = Cow::Owned(Endpoint::of(&to));
            answer = self.exchange(&endpoint, call).await?;
        }
        Ok(answer)
    }

    /// Returns where an answer redirects to, if that is the same host and keeps the request the same. Other redirects
    /// are not followed.
    fn redirected(&self, from: &Endpoint, answer: &Answer) -> Option<Url> {
        let keeps = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&answer.status);
        let location = answer.location.as_ref().filter(|_| keeps)?;
        let from = self.base.join(from.0.as_str()).ok()?;
        let to = from.join(std::str::from_utf8(location.as_bytes()).ok()?).ok()?;
        let host =
            |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
        (host(&self.base) == host(&to)).then_some(to)
    }

    async fn exchange(&self, endpoint: &Endpoint, call: &Call<'_>) -> Result<Answer, Unanswered> {
        let mut request = Request::new(Full::new(call.body()));
        *request.method_mut() = call.method();
        *request.uri_mut() = Uri::from(endpoint.0.clone());
        *request.headers_mut() = call.headers();
        request.headers_mut().extend(self.bearer.clone().map(|bearer| (AUTHORIZATION, bearer)));
        request.headers_mut().extend(self.host.clone().map(|host| (HOST, host)));
        let (response, connection) = self.connections.send(request).await?;
        Ok(Answer::of(response, connection, self.room.begin()))
    }
}

impl Endpoint {
    fn of(url: &Url) -> Endpoint {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        // A URL's path and query are those of a request.
        let path = PathAndQuery::try_from(format!("{}{query}", url.path()));
        Endpoint(path.unwrap_or_else(|_| PathAndQuery::from_static("/")))
    }
}

impl Call<'_> {
    fn method(&self) -> Method {
        if self.posted.is_some() { Method::POST } else { Method::GET }
    }

    fn body(&self) -> Bytes {
        self.posted.clone().unwrap_or_default()
    }

    /// Made for each exchange: a redirect is rare, and a map of headers that is kept for it would be copied for every
    /// request.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(8);
        if self.posted.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        headers.insert(ACCEPT, self.accept.header());
        headers.extend(HeaderValue::try_from(self.trace.header()).ok().map(|value| (TRACEPARENT, value)));
        headers.extend(self.trace.state().and_then(|state| Some((TRACESTATE, HeaderValue::try_from(state).ok()?))));
        headers.extend(self.key.clone().map(|key| (IDEMPOTENCY_KEY, key)));
        headers
    }
}

impl Answer {
    fn of(response: Response<Incoming>, connection: Connection, room: Taken) -> Answer {
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        let media = Media::of(text(CONTENT_TYPE).unwrap_or_default());
        let retry_after =
            text(RETRY_AFTER).and_then(|value| retry_after::read(value, text(DATE), jiff::Timestamp::now()));
        let location = response.headers().get(LOCATION).cloned();
        Answer {
            status: response.status(),
            media,
            retry_after,
            location,
            body: response.into_body(),
            connection: Some(connection),
            bytes_in_turn: 0,
            room,
        }
    }

    /// Returns the next bytes of the body, as they come; `None` at its end. The future may be dropped and called again,
    /// and loses nothing. Beyond the beginning it waits for room; everything that came takes room until the answer is
    /// dropped, unless [`keeps`](Answer::keeps) says otherwise.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Unread> {
        if self.bytes_in_turn > TURN_BYTES {
            self.bytes_in_turn = 0;
            tokio::task::yield_now().await;
        }
        self.room.settle().await;
        loop {
            let Some(connection) = &mut self.connection else { return Ok(None) };
            let Some(frame) = connection.drive(self.body.frame()).await else {
                // The connection can be used again. A connection whose answer is not read to its end is closed.
                self.connection.take().into_iter().for_each(Connection::rest);
                return Ok(None);
            };
            let lost = |error: hyper::Error| if is_garbled(&error) { Unread::Garbled } else { Unread::Lost };
            // Frames that are no data are trailers, which mean nothing here.
            let Ok(data) = frame.map_err(lost)?.into_data() else { continue };
            self.bytes_in_turn += data.len();
            self.room.add(data.len());
            return Ok(Some(data));
        }
    }

    /// Says how many bytes of those that came are still in memory.
    pub fn keeps(&mut self, bytes: usize) {
        self.room.keep(bytes);
    }

    /// Reads a body that is not wanted, if it is short and there already, so that the connection can be used again.
    pub async fn dismiss(self) {
        let _ = tokio::time::timeout(DISMISS_TIME_MAX, self.whole(DISMISS_BYTES_MAX)).await;
    }

    /// Reads the whole body.
    pub async fn whole(self, bytes_max: usize) -> Result<Bytes, Unread> {
        let (body, cut) = self.beginning(bytes_max).await;
        cut.map_or(Ok(body), Err)
    }

    /// Reads the body as far as it comes. If it is incomplete, its beginning is returned with the reason: what an error
    /// says is worth having even if it breaks off.
    pub async fn beginning(mut self, bytes_max: usize) -> (Bytes, Option<Unread>) {
        let is_too_long = self.body.size_hint().exact().is_some_and(|length| length > bytes_max as u64);
        let wanted = if is_too_long { bytes_max.min(BEGINNING_BYTES) } else { bytes_max };
        // Nearly always all of it arrives at once, and is used without copying.
        let mut gathered = Gathered::default();
        loop {
            match self.chunk().await {
                Ok(Some(chunk)) => gathered.add(chunk),
                Ok(None) => return (gathered.bytes(), None),
                Err(unread) => return (gathered.bytes(), Some(unread)),
            }
            if gathered.length() > wanted {
                return (gathered.bytes().slice(..wanted), Some(Unread::TooLong));
            }
        }
    }
}

/// Whether bytes came that could not be read. An agent that is there and speaks another protocol is not away, and will
/// speak it the next time too: that is another failure, and no matter for a breaker.
fn is_garbled(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source()).any(|error| {
        let unparsed = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
        let invalid = |error: &io::Error| matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput);
        unparsed || error.downcast_ref::<io::Error>().is_some_and(invalid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(base: &str) -> Http {
        let base = Url::parse(base).expect("an address");
        Http::new("agent", &base, None, &AnswerRoom::new(0))
    }

    #[test]
    fn places_are_below_the_address() {
        let http = http("https://example.com:8443/below/");
        assert_eq!(http.endpoint("tasks/1/cancel").0, "/below/tasks/1/cancel");
        assert_eq!(http.endpoint("a?b#c").0, "/below/a%3Fb%23c");
        assert_eq!(http.endpoint_with("tasks/1", "wait=3").0, "/below/tasks/1?wait=3");
    }
}
