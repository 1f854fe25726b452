//! Why a server did not do what it was asked, and what to do about it.

use std::fmt;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;

use crate::config::SERVER_FILE;

/// A failure between this client and the server.
#[derive(Debug)]
pub(crate) struct Failed {
    kind: Kind,
    message: String,
    hint: Option<String>,
    /// The server took too long.
    slow: bool,
    /// The part of the request that the server refused, as a JSON pointer.
    at: Option<String>,
    /// How the message names that part, and the code of the refusal.
    place: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No server answers at the address.
    Unreachable,
    /// The connection broke; whether the request was carried out is not known.
    Broken,
    /// The server ended a stream before its end, because it is stopping.
    Ended,
    /// The server refused the request.
    Refused(StatusCode),
    /// There is no server, or the address belongs to something else.
    Other,
}

/// The shape of every error of the API.
#[derive(Deserialize)]
struct Shape {
    error: RefusalBody,
}

/// The shape of errors at the bridge door, which are responses of that contract.
#[derive(Deserialize)]
struct Bridged {
    error_message: String,
    error_type: String,
    #[serde(default)]
    metadata: serde_json::Value,
}

impl From<Bridged> for Shape {
    fn from(bridged: Bridged) -> Shape {
        let details = &bridged.metadata["x_crosspoint"]["details"];
        let text = |name: &str| details[name].as_str().map(str::to_owned);
        let (hint, repeat) = (text("hint").unwrap_or_default(), text("repeat").unwrap_or_default());
        let at = text("at");
        Shape { error: RefusalBody { code: bridged.error_type, message: bridged.error_message, hint, repeat, at } }
    }
}

#[derive(Deserialize)]
struct RefusalBody {
    code: String,
    message: String,
    #[serde(default)]
    hint: String,
    #[serde(default)]
    repeat: String,
    at: Option<String>,
}

impl Failed {
    pub(crate) fn other(message: impl Into<String>, hint: impl Into<String>) -> Failed {
        Failed {
            kind: Kind::Other,
            message: message.into(),
            hint: Some(hint.into()),
            slow: false,
            at: None,
            place: None,
        }
    }

    pub(super) fn ended() -> Failed {
        let message = "the server ended the stream".to_owned();
        Failed { kind: Kind::Ended, message, hint: None, slow: false, at: None, place: None }
    }

    /// Describes an error of the HTTP library. The library's text is used without its address, which may hold a
    /// password.
    pub(super) fn of(url: &str, error: reqwest::Error) -> Failed {
        let (unreachable, slow) = (error.is_connect(), error.is_timeout());
        let error = error.without_url();
        let mut causes = vec![error.to_string()];
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            causes.push(inner.to_string());
            cause = inner.source();
        }
        // The last cause is the system's own message. Those before it name layers of the library.
        let detail = causes.pop().unwrap_or_default();
        if unreachable && url.starts_with("https:") && detail.contains("InvalidContentType") {
            let message = format!("{url} does not speak TLS ({detail})");
            let hint =
                "a server speaks plain http itself: write http://, or the address of the TLS proxy in front of it";
            return Failed { kind: Kind::Other, message, hint: Some(hint.to_owned()), slow, at: None, place: None };
        }
        if unreachable {
            let message = format!("no server answers at {url} ({detail})");
            let hint = "start one with crosspoint serve, or name another with --server URL";
            return Failed {
                kind: Kind::Unreachable,
                message,
                hint: Some(hint.to_owned()),
                slow,
                at: None,
                place: None,
            };
        }
        let message = format!("the connection to {url} broke ({detail})");
        Failed { kind: Kind::Broken, message, hint: None, slow, at: None, place: None }
    }

    /// Describes an error answer of the server.
    pub(super) fn refused(url: &str, status: StatusCode, body: &[u8]) -> Failed {
        let kind = Kind::Refused(status);
        let shape =
            serde_json::from_slice::<Shape>(body).or_else(|_| serde_json::from_slice::<Bridged>(body).map(Shape::from));
        let Ok(Shape { error }) = shape else {
            let message = format!("{url} answered with {status}, and not as a crosspoint server does");
            return Failed { kind, message, hint: Some(check_the_address()), slow: false, at: None, place: None };
        };
        let at = error.at.as_ref().map(|at| format!(" (at {at})")).unwrap_or_default();
        let place = format!("{at} [{}]", error.code);
        let mut message = format!("{}{place}", error.message);
        if let Some(advice) = advice(&error.repeat).filter(|_| error.repeat != "never") {
            message = format!("{message}\n  {advice}");
        }
        let hint = (!error.hint.is_empty()).then(|| as_commands(&error.hint));
        Failed { kind, message, hint, slow: false, at: error.at, place: Some(place) }
    }

    /// Says which token was refused, if it was the token.
    pub(super) fn with_token_of(mut self, place: &str) -> Failed {
        if self.kind == Kind::Refused(StatusCode::UNAUTHORIZED) {
            let hint = self.hint.map_or_else(String::new, |hint| format!("{hint}; "));
            self.hint = Some(format!("{hint}the token was taken from {place}"));
        }
        self
    }

    /// Says after how many seconds the request may be sent again, if the server said so.
    pub(super) fn after(mut self, seconds: Option<u64>) -> Failed {
        if let (Kind::Refused(StatusCode::TOO_MANY_REQUESTS), Some(seconds)) = (self.kind, seconds) {
            self.message = format!("{}\n  it may be sent again in {seconds} s", self.message);
        }
        self
    }

    /// Replaces the hint of the API for this status, because that hint is written for callers over HTTP.
    pub(crate) fn hinted(mut self, status: StatusCode, hint: &str) -> Failed {
        if self.kind == Kind::Refused(status) {
            self.hint = Some(hint.to_owned());
        }
        self
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Leaves out which part of the request was refused, and the code: the user did not write that request.
    pub(crate) fn without_place(mut self) -> Failed {
        if let Some(place) = &self.place {
            self.message = self.message.replacen(place, "", 1);
        }
        self
    }

    /// Whether the connection broke after it was made, so that the fate of the request is not known.
    pub(super) fn is_broken(&self) -> bool {
        self.kind == Kind::Broken
    }

    /// The status with which the server refused the request.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self.kind {
            Kind::Refused(status) => Some(status),
            Kind::Unreachable | Kind::Broken | Kind::Ended | Kind::Other => None,
        }
    }

    /// Whether the server refused this part of the request.
    pub(crate) fn is_at(&self, pointer: &str) -> bool {
        self.at.as_deref() == Some(pointer)
    }

    pub(super) fn is_away(&self) -> bool {
        self.kind == Kind::Unreachable || self.kind == Kind::Refused(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Whether a server is there and did not answer in time.
    pub(super) fn is_slow(&self) -> bool {
        self.slow
    }

    /// Whether trying again may help: the server may be restarting.
    pub(crate) fn passes(&self) -> bool {
        match self.kind {
            Kind::Unreachable | Kind::Broken | Kind::Ended => true,
            Kind::Refused(status) => status.is_server_error(),
            Kind::Other => false,
        }
    }
}

/// Returns a hint of the API, which is written for callers over HTTP, with the commands that do the same.
fn as_commands(hint: &str) -> String {
    const COMMANDS: [(&str, &str); 4] = [
        ("DELETE /api/v1/agents/{name}", "crosspoint agents forget NAME"),
        ("GET /api/v1/agents lists", "crosspoint agents list shows"),
        ("GET /api/v1/agents", "crosspoint agents list"),
        ("GET /api/v1/jobs lists", "crosspoint jobs list shows"),
    ];
    COMMANDS.iter().fold(hint.to_owned(), |hint, (asked, command)| hint.replace(asked, command))
}

/// Returns the seconds that the server wants a client to wait.
pub(super) fn pause(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

/// Hint for an address at which something other than a server answers.
pub(super) fn check_the_address() -> String {
    format!("check the address: --server URL, CROSSPOINT_SERVER, or {SERVER_FILE} in the data directory")
}

/// Says in words whether to send the request again.
fn advice(repeat: &str) -> Option<&'static str> {
    match repeat {
        "safe" => Some("sending it again is safe: the work was surely not done"),
        "unknown" => Some("the work may have been done: look before you send it again"),
        "never" => Some("the same again would not help; submit new work if it is still wanted"),
        _ => None,
    }
}

/// Says the same of work that has its outcome, which the same request would only get again.
pub(crate) fn advice_on_outcome(repeat: &str) -> Option<&'static str> {
    match repeat {
        "safe" => Some("sending it again, with a new request id or key, is safe: the work was surely not done"),
        _ => advice(repeat),
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}
