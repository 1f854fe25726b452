//! The media types that matter of an answer.

use hyper::header::HeaderValue;

use super::{EVENTS, JSON};

/// The media type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// JSON.
    Json,
    /// Server-sent events.
    Events,
    /// Anything else, or no mark.
    Other,
}

impl Media {
    /// Reads a `Content-Type`; parameters and case do not matter.
    pub(super) fn of(header: &str) -> Media {
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

    /// The value of the `Accept` header.
    pub(super) fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Media::Json => JSON,
            Media::Events => EVENTS,
            Media::Other => "*/*",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
