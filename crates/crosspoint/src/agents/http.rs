//! HTTP to one agent. It moves bytes, within limits, and to no address but the configured one.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt as Redirect, Policy};
use reqwest::{Client, Method, Response, StatusCode, Url};

use crate::config::Remote;
use crate::passage::trace::Trace;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// A connection that nobody needs is closed after this. Servers close idle ones too, some after five seconds; one that is closed just as a
/// request goes out over it leaves nobody knowing whether the work began.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// So often an agent may say that what it has is elsewhere on the same host.
const REDIRECTS_MAX: usize = 3;

/// A body that nobody wants is read for so long, and up to so many bytes; after that a new connection is cheaper.
const DISMISS_TIME_MAX: Duration = Duration::from_millis(100);
const DISMISS_BYTES_MAX: usize = 64 << 10;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The way to one agent. Its connections are its own, and are used again.
pub(super) struct Http {
    /// Without one nothing is ever sent: any other client would go where this one may not.
    client: Option<Client>,
    base: Url,
    bearer: Option<HeaderValue>,
}

/// An answer whose body is still to come.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) media: Media,
    response: Response,
}

/// What an answer is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Events,
    Other,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// There is no connection: the agent has heard nothing.
    Unconnected,
    /// The connection was lost after something was sent.
    Lost,
    /// What came is no HTTP that can be read.
    Garbled,
}

/// Why a body is not there whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than it may be.
    TooLong,
    /// The connection was lost.
    Lost,
    /// The framing is wrong.
    Garbled,
}

impl Http {
    pub(super) fn new(remote: &Remote) -> Http {
        // Installing it twice is no harm: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = client(&remote.url);
        let bearer = remote.token.as_ref().and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.reveal())).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Http { client, base: remote.url.clone(), bearer }
    }

    /// A place below the agent's address. Paths are ours; what of them is no part of a path is escaped.
    pub(super) fn place(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&[self.base.path(), path].concat());
        url
    }

    /// Posts a JSON document. `accept` is what the answer may be.
    pub(super) async fn post(
        &self,
        place: Url,
        document: impl Into<Bytes>,
        trace: &Trace,
        accept: Media,
    ) -> Result<Answer, Unanswered> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, accept.header());
        headers.extend(HeaderValue::try_from(trace.header()).ok().map(|value| (TRACEPARENT, value)));
        self.send(Method::POST, place, headers, document.into()).await
    }

    /// Gets the JSON that is at a place.
    pub(super) async fn get(&self, place: Url) -> Result<Answer, Unanswered> {
        let headers = HeaderMap::from_iter([(ACCEPT, Media::Json.header())]);
        self.send(Method::GET, place, headers, Bytes::new()).await
    }

    async fn send(&self, method: Method, place: Url, headers: HeaderMap, body: Bytes) -> Result<Answer, Unanswered> {
        let client = self.client.as_ref().ok_or(Unanswered::Unconnected)?;
        let mut request = client.request(method, place).headers(headers).body(body);
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer.clone());
        }
        match request.send().await {
            Ok(response) => Ok(Answer::of(response)),
            Err(error) if error.is_connect() => {
                let cause = cause(&error);
                tracing::warn!(
                    host = self.base.host_str(),
                    port = self.base.port_or_known_default(),
                    cause,
                    "an agent cannot be connected to"
                );
                Err(Unanswered::Unconnected)
            }
            Err(error) if is_garbled(&error) => Err(Unanswered::Garbled),
            Err(_) => Err(Unanswered::Lost),
        }
    }
}

/// A client for one address. Who is not asked over TLS needs none of the system's certificates, which a small container may not have.
fn client(url: &Url) -> Option<Client> {
    let builder = || {
        Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .pool_idle_timeout(IDLE_TIME_MAX)
            .redirect(Policy::custom(redirect))
            .referer(false)
            // Only configured addresses: the environment names none.
            .no_proxy()
    };
    let untrusting = || builder().tls_certs_only([]).build();
    let built = if url.scheme() == "https" {
        builder().build().or_else(|_| {
            tracing::error!("the system has no certificates that can be read; agents behind https cannot be reached");
            untrusting()
        })
    } else {
        untrusting()
    };
    built.inspect_err(|error| tracing::error!(%error, "there is no HTTP client; the agent cannot be reached")).ok()
}

/// Elsewhere on the same host, and as the same request, it may be; nowhere else.
fn redirect(attempt: Redirect<'_>) -> reqwest::redirect::Action {
    let keeps = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&attempt.status());
    let same = attempt.previous().first().is_some_and(|first| host(first) == host(attempt.url()));
    if keeps && same && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
}

fn host(url: &Url) -> (&str, Option<&str>, Option<u16>) {
    (url.scheme(), url.host_str(), url.port_or_known_default())
}

impl Media {
    /// Reads a `Content-Type`; parameters and case count for nothing.
    fn of(header: &str) -> Media {
        let named = header.split(';').next().unwrap_or_default().trim().as_bytes();
        let ends = |end: &[u8]| {
            named.len().checked_sub(end.len()).is_some_and(|start| named[start..].eq_ignore_ascii_case(end))
        };
        if named.eq_ignore_ascii_case(JSON.as_bytes()) || ends(b"+json") {
            Media::Json
        } else if named.eq_ignore_ascii_case(EVENTS.as_bytes()) {
            Media::Events
        } else {
            Media::Other
        }
    }

    /// As it is asked for.
    fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Media::Json => JSON,
            Media::Events => EVENTS,
            Media::Other => "*/*",
        })
    }
}

impl Answer {
    fn of(response: Response) -> Answer {
        let named = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Answer { status: response.status(), media: Media::of(named.unwrap_or_default()), response }
    }

    /// The next bytes of the body, as they come; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Unread> {
        let lost = |error: reqwest::Error| if is_garbled(&error) { Unread::Garbled } else { Unread::Lost };
        self.response.chunk().await.map_err(lost)
    }

    /// Takes a body that nobody wants, where it is short and there, so that the connection can be used again.
    pub(super) async fn dismiss(self) {
        let _ = tokio::time::timeout(DISMISS_TIME_MAX, self.whole(DISMISS_BYTES_MAX)).await;
    }

    /// The whole body.
    pub(super) async fn whole(mut self, bytes_max: usize) -> Result<Bytes, Unread> {
        if self.response.content_length().is_some_and(|length| length > bytes_max as u64) {
            return Err(Unread::TooLong);
        }
        // Nearly always all of it arrives at once, and is used where it arrived.
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else {
            return if first.len() > bytes_max { Err(Unread::TooLong) } else { Ok(first) };
        };
        let mut gathered = BytesMut::from(&first[..]);
        gathered.extend_from_slice(&second);
        while gathered.len() <= bytes_max {
            match self.chunk().await? {
                Some(chunk) => gathered.extend_from_slice(&chunk),
                None => return Ok(gathered.freeze()),
            }
        }
        Err(Unread::TooLong)
    }
}

/// What lies at the bottom of an error: of a connection that is what the system says, which holds no content.
fn cause(error: &(dyn Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.last().map(ToString::to_string).unwrap_or_default()
}

/// Whether there were bytes, and they could not be read. Who is there and speaks another language is not away, and will speak it the next
/// time too: that is another failure, and no matter for a breaker.
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

    #[test]
    fn without_a_client_nothing_is_sent() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be asked");
        let address = listener.local_addr().expect("it has an address");
        let base = Url::parse(&format!("http://{address}/below/")).expect("an address");
        let http = Http { client: None, base, bearer: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let unanswered = runtime.block_on(http.get(http.place("health"))).err();
        assert_eq!(unanswered, Some(Unanswered::Unconnected));
        assert!(listener.accept().is_err(), "somebody came");
    }

    #[test]
    fn places_are_below_the_address() {
        let base = Url::parse("https://example.com:8443/below/").expect("an address");
        let http = Http { client: None, base, bearer: None };
        assert_eq!(http.place("tasks/1/cancel").as_str(), "https://example.com:8443/below/tasks/1/cancel");
        assert_eq!(http.place("a?b#c").as_str(), "https://example.com:8443/below/a%3Fb%23c");
    }

    #[test]
    fn media_types_are_known_by_their_names_alone() {
        for (header, media) in [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/event-stream;charset=utf-8", Media::Events),
            ("TEXT/Event-Stream", Media::Events),
            ("json", Media::Other),
            ("text/plain", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(Media::of(header), media, "{header}");
        }
    }
}
