//! Why a server did not do what it was asked, and what to do about it.

use std::fmt;

use reqwest::StatusCode;
use serde::Deserialize;

use crate::config::SERVER_FILE;

/// What went wrong between us and the server.
#[derive(Debug)]
pub(crate) struct Failed {
    kind: Kind,
    message: String,
    hint: Option<String>,
    /// It took too long.
    slow: bool,
    /// Which part of the request the server did not like.
    at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nobody answers there.
    Unreachable,
    /// The connection broke; whether the request was carried out is not known.
    Broken,
    /// The server ended a stream that was not at its end; it is on its way out.
    Ended,
    /// The server said no.
    Refused(StatusCode),
    /// There is no server, or it is something else.
    Other,
}

/// The shape of every error of the API.
#[derive(Deserialize)]
struct Shape {
    error: Said,
}

/// That of errors at the bridge's door, which are responses of that contract.
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
        Shape { error: Said { code: bridged.error_type, message: bridged.error_message, hint, repeat, at } }
    }
}

#[derive(Deserialize)]
struct Said {
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
        Failed { kind: Kind::Other, message: message.into(), hint: Some(hint.into()), slow: false, at: None }
    }

    pub(super) fn ended() -> Failed {
        let message = "the server ended the stream".to_owned();
        Failed { kind: Kind::Ended, message, hint: None, slow: false, at: None }
    }

    /// What the library says, without the address, which may hold a password.
    pub(super) fn of(url: &str, error: reqwest::Error) -> Failed {
        let (unreachable, slow) = (error.is_connect(), error.is_timeout());
        let error = error.without_url();
        let mut causes = vec![error.to_string()];
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            causes.push(inner.to_string());
            cause = inner.source();
        }
        // The last cause is the system's own word; those before it name layers of the library.
        let detail = causes.pop().unwrap_or_default();
        if unreachable {
            let message = format!("no server answers at {url} ({detail})");
            let hint = "start one with crosspoint serve, or name another with --server URL";
            return Failed { kind: Kind::Unreachable, message, hint: Some(hint.to_owned()), slow, at: None };
        }
        let message = format!("the connection to {url} broke ({detail})");
        Failed { kind: Kind::Broken, message, hint: None, slow, at: None }
    }

    /// What the server said.
    pub(super) fn refused(url: &str, status: StatusCode, body: &[u8]) -> Failed {
        let kind = Kind::Refused(status);
        let shape =
            serde_json::from_slice::<Shape>(body).or_else(|_| serde_json::from_slice::<Bridged>(body).map(Shape::from));
        let Ok(Shape { error }) = shape else {
            let message = format!("{url} answered with {status}, and not as a crosspoint server does");
            return Failed { kind, message, hint: Some(check_the_address()), slow: false, at: None };
        };
        let at = error.at.as_ref().map(|at| format!(" (at {at})")).unwrap_or_default();
        let mut message = format!("{}{at} [{}]", error.message, error.code);
        if let Some(advice) = advice(&error.repeat).filter(|_| error.repeat != "never") {
            message = format!("{message}\n  {advice}");
        }
        Failed { kind, message, hint: (!error.hint.is_empty()).then_some(error.hint), slow: false, at: error.at }
    }

    /// The same, where the hint of the API is for those who speak HTTP.
    pub(crate) fn hinted(mut self, status: StatusCode, hint: &str) -> Failed {
        if self.kind == Kind::Refused(status) {
            self.hint = Some(hint.to_owned());
        }
        self
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The connection broke after it was made: nobody knows what became of the request.
    pub(super) fn is_broken(&self) -> bool {
        self.kind == Kind::Broken
    }

    /// What the server said no with.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self.kind {
            Kind::Refused(status) => Some(status),
            Kind::Unreachable | Kind::Broken | Kind::Ended | Kind::Other => None,
        }
    }

    /// Whether this part of the request is what the server did not like.
    pub(crate) fn is_at(&self, pointer: &str) -> bool {
        self.at.as_deref() == Some(pointer)
    }

    pub(super) fn is_away(&self) -> bool {
        self.kind == Kind::Unreachable || self.kind == Kind::Refused(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Somebody is there and does not answer.
    pub(super) fn is_slow(&self) -> bool {
        self.slow
    }

    /// Whether it may go better in a moment: the server may be on its way back.
    pub(crate) fn passes(&self) -> bool {
        match self.kind {
            Kind::Unreachable | Kind::Broken | Kind::Ended => true,
            Kind::Refused(status) => status.is_server_error(),
            Kind::Other => false,
        }
    }
}

/// What to do about something that answers and is no server.
pub(super) fn check_the_address() -> String {
    format!("check the address: --server URL, CROSSPOINT_SERVER, or {SERVER_FILE} in the data directory")
}

/// Whether to send it again, in words.
pub(crate) fn advice(repeat: &str) -> Option<&'static str> {
    match repeat {
        "safe" => Some("sending it again is safe: the work was surely not done"),
        "unknown" => Some("the work may have been done: look before you send it again"),
        "never" => Some("the same again would not help; submit new work if it is still wanted"),
        _ => None,
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}
