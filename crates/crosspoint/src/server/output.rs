//! `/api/v1/jobs/{id}/output`: all that the agents of a job printed, byte for byte.
//!
//! The bytes are read from the store as the caller takes them, so an output of any length costs little memory, however
//! slow the caller is. If they cannot be read to their end, the connection breaks: a caller never takes a part for the
//! whole.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::header::{HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use crosspoint_engine::runtime::{More, Output, Unread};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::query::{parameters, truth, unknown, wrong};
use crosspoint_http::range::{self, Wanted};
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use super::App;
use super::access::Who;
use super::query::Id;
use crate::backend::fault;

/// How often a follower looks whether there is more. It is woken when there is, so this is only a precaution.
const LOOK_PERIOD: Duration = Duration::from_secs(15);

/// The number of the last byte of a range whose end is not known yet (RFC 8673). It is the largest whole number that
/// all readers of JSON agree on.
const UNKNOWN_END: u64 = (1 << 53) - 1;

/// What a query says about the output.
#[derive(Default)]
struct Asked {
    follow: bool,
    from: Option<u64>,
    attempt: Option<u32>,
}

/// The bytes that an answer consists of.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    status: StatusCode,
    bytes: Range<u64>,
    /// The number of bytes, if it is known.
    length: Option<u64>,
    content_range: Option<String>,
}

pub(super) async fn show_output(
    State(app): State<App>,
    who: Who,
    Id(id): Id,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let asked = asked(&uri)?;
    let wanted = wanted(&asked, range::wanted(&headers))?;
    app.read_job(&who, id, "output").await?;
    let output = app.engine().output(id, asked.attempt).await.map_err(|error| fault(&error))?;
    let mut output = output.ok_or_else(Refusal::no_such_job)?;
    let Some(plan) = plan(wanted, &asked, output.total(), output.is_over()) else {
        return Ok(unsatisfiable(output.total()));
    };
    output.skip(plan.bytes.start);
    let left = plan.bytes.end - plan.bytes.start;
    let sending = Sending { output, left, follow: asked.follow, stopping: app.stopping().clone() };
    Ok(answer(&plan, Body::from_stream(stream::try_unfold(sending, Sending::next))))
}

fn asked(uri: &Uri) -> Result<Asked, Refusal> {
    let mut asked = Asked::default();
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "follow" => asked.follow = truth("follow", &value)?,
            "from" => asked.from = Some(value.parse().map_err(|_| wrong("from", "the number of a byte, from 0"))?),
            "attempt" => {
                asked.attempt = Some(value.parse().map_err(|_| wrong("attempt", "the number of an attempt"))?);
            }
            _ => return Err(unknown("follow, from, attempt")),
        }
    }
    Ok(asked)
}

fn wanted(asked: &Asked, wanted: Wanted) -> Result<Wanted, Refusal> {
    match (asked.from, wanted) {
        (Some(_), Wanted::From(_) | Wanted::Between(..) | Wanted::Last(_)) => {
            let message = "the query's `from` and the Range header both say which bytes are wanted";
            Err(Refusal::invalid(message, "give one of them"))
        }
        (_, wanted) => Ok(wanted),
    }
}

/// Decides which bytes are sent of an output that has `total` bytes so far; `None` if there are no such bytes and never
/// will be.
fn plan(wanted: Wanted, asked: &Asked, total: u64, is_over: bool) -> Option<Plan> {
    let whole = |bytes: Range<u64>, length| Plan { status: StatusCode::OK, bytes, length, content_range: None };
    if wanted == Wanted::All {
        let start = asked.from.unwrap_or(0);
        return Some(match asked.follow && !is_over {
            true => whole(start..u64::MAX, None),
            // A caller that asks for what has come since has had all that there is.
            false => whole(start..total.max(start), Some(total.saturating_sub(start))),
        });
    }
    let part = |bytes: Range<u64>, length: Option<u64>, range: String| {
        Some(Plan { status: StatusCode::PARTIAL_CONTENT, bytes, length, content_range: Some(range) })
    };
    if asked.follow && !is_over {
        let bytes = match wanted {
            Wanted::All => 0..u64::MAX,
            Wanted::From(first) => first..u64::MAX,
            Wanted::Between(first, last) => first..last.saturating_add(1),
            Wanted::Last(count) => total.saturating_sub(count)..u64::MAX,
        };
        let last = (bytes.end - 1).min(UNKNOWN_END);
        let range = format!("bytes {}-{last}/*", bytes.start);
        return part(bytes, None, range);
    }
    let bytes = wanted.of(total)?;
    let of = if is_over { total.to_string() } else { "*".to_owned() };
    let range = format!("bytes {}-{}/{of}", bytes.start, bytes.end - 1);
    let length = bytes.end - bytes.start;
    part(bytes, Some(length), range)
}

fn answer(plan: &Plan, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = plan.status;
    let headers = response.headers_mut();
    // A browser must not take what a program printed for a page of this server.
    for (name, value) in [
        (CONTENT_TYPE, "application/octet-stream"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
        (ACCEPT_RANGES, "bytes"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut say = |name: HeaderName, value: Option<String>| {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    };
    say(CONTENT_LENGTH, plan.length.map(|length| length.to_string()));
    say(CONTENT_RANGE, plan.content_range.clone());
    response
}

/// There are no bytes in the range.
fn unsatisfiable(total: u64) -> Response {
    let message = format!("the range begins after the last of the {total} bytes, or is empty");
    let refusal = Refusal::invalid(message, "ask for a range within them, or add ?follow=true to wait for more");
    let mut response = Refused::from(refusal).into_response();
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{total}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    response
}

/// An output on its way to a caller.
struct Sending {
    output: Output,
    /// How many bytes are left to be sent.
    left: u64,
    follow: bool,
    stopping: CancellationToken,
}

impl Sending {
    /// Returns the next bytes, or `None` at the end.
    async fn next(mut self) -> io::Result<Option<(Bytes, Sending)>> {
        while self.left > 0 {
            let next = tokio::select! {
                next = self.output.next() => next.map_err(|why| broken(&why))?,
                () = self.stopping.cancelled() => return Err(stopping()),
            };
            if let Some(mut block) = next {
                block.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= block.len() as u64;
                return Ok(Some((block, self)));
            }
            if !self.follow {
                // Fewer bytes than were announced.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let more = tokio::select! {
                more = self.output.more(Instant::now() + LOOK_PERIOD) => more.map_err(|why| broken(&why))?,
                () = self.stopping.cancelled() => return Err(stopping()),
            };
            if more == More::Never {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

fn broken(why: &Unread) -> io::Error {
    if let Unread::Fault(error) = why {
        tracing::error!(%error, "a stream of output ends early");
    }
    io::ErrorKind::Other.into()
}

/// The follower of a job that goes on comes again when the server is back.
fn stopping() -> io::Error {
    io::ErrorKind::Interrupted.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(wanted: Wanted, follow: bool, total: u64, is_over: bool) -> (Range<u64>, Option<u64>, Option<String>) {
        let asked = Asked { follow, ..Asked::default() };
        let plan = plan(wanted, &asked, total, is_over).expect("there are bytes");
        (plan.bytes, plan.length, plan.content_range)
    }

    #[test]
    fn a_range_says_how_much_there_is_once_that_is_known() {
        assert_eq!(planned(Wanted::All, false, 9, false), (0..9, Some(9), None));
        assert_eq!(planned(Wanted::From(4), false, 9, true), (4..9, Some(5), Some("bytes 4-8/9".to_owned())));
        assert_eq!(planned(Wanted::Last(4), false, 9, false), (5..9, Some(4), Some("bytes 5-8/*".to_owned())));
        let asked = Asked::default();
        assert_eq!(plan(Wanted::From(9), &asked, 9, true), None);
        assert_eq!(plan(Wanted::From(9), &asked, 9, false), None, "without following there is no more to come");
    }

    #[test]
    fn what_is_followed_has_an_end_only_once_the_job_has_ended() {
        assert_eq!(planned(Wanted::All, true, 9, false), (0..u64::MAX, None, None));
        assert_eq!(planned(Wanted::All, true, 9, true), (0..9, Some(9), None));
        let (bytes, length, range) = planned(Wanted::From(20), true, 9, false);
        assert_eq!((bytes, length), (20..u64::MAX, None));
        assert_eq!(range.as_deref(), Some("bytes 20-9007199254740991/*"));
        assert_eq!(planned(Wanted::Between(3, 4), true, 0, false).2.as_deref(), Some("bytes 3-4/*"));
        assert_eq!(planned(Wanted::Last(4), true, 9, false).0, 5..u64::MAX);
    }

    #[test]
    fn a_query_gives_the_first_byte_and_does_not_go_with_a_range() {
        let asked = Asked { from: Some(12), ..Asked::default() };
        let plan = plan(Wanted::All, &asked, 9, true).expect("it is no range");
        assert_eq!((plan.status, plan.bytes, plan.length), (StatusCode::OK, 12..12, Some(0)));
        assert!(wanted(&asked, Wanted::Last(1)).is_err());
        assert!(wanted(&asked, Wanted::All).is_ok());
    }
}
