//! Who may ask: the token of an agent, and how often an address may be wrong about it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use crosspoint_exchange::refusal::{Refusal, TokenStatus};
use crosspoint_http::limit::Peer;
use crosspoint_http::token::{Token, Unusable};
use crosspoint_http::{Refused, Site};

/// The number by which requests with the token are counted: there is one token.
const TOKEN_KEY: u64 = 0;

/// Reads the token of an agent from its file. What makes it less of a secret is logged.
pub(crate) fn read(path: &Path) -> io::Result<Token> {
    let shown = path.display();
    let (token, about) = Token::of_file(path).map_err(|why| match why {
        Unusable::Unread(kind @ io::ErrorKind::NotFound) => {
            io::Error::new(kind, format!("the token cannot be read from {shown}: there is no such file"))
        }
        Unusable::Unread(kind) => io::Error::new(kind, format!("the token cannot be read from {shown}: {kind}")),
        Unusable::Other(what) => io::Error::new(io::ErrorKind::InvalidData, format!("{shown}: {what}")),
    })?;
    for (what, hint) in token.weaknesses(&about) {
        tracing::warn!(file = %shown, hint, "{what}");
    }
    Ok(token)
}

/// What a request has to pass.
pub(crate) struct Gate {
    pub(crate) token: Token,
    pub(crate) site: Site,
}

impl Gate {
    /// Decides about a request.
    fn admit(&self, headers: &HeaderMap, peer: Peer, now: Instant) -> Result<(), Refusal> {
        let Err(status) = shows(&self.token, headers) else { return self.site.take_request_with(TOKEN_KEY, peer, now) };
        // The right token never comes here, however often others at its address fail.
        match status == TokenStatus::Missing {
            true => self.site.may_fail_to_authenticate(peer, now)?,
            false => self.site.failed_to_authenticate(peer, now)?,
        }
        Err(Refusal::unauthenticated("", status))
    }
}

/// Lets a request through, or refuses it before anything of it is looked up.
pub(crate) async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Local);
    match gate.admit(request.headers(), peer, Instant::now()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => Refused::from(refusal).into_response(),
    }
}

/// Whether a request presents the token.
fn shows(token: &Token, headers: &HeaderMap) -> Result<(), TokenStatus> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(TokenStatus::Missing)?;
    let presented = value.to_str().ok().and_then(|value| value.split_once(' '));
    let presented = presented.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer") && values.next().is_none());
    let (_, presented) = presented.ok_or(TokenStatus::Malformed)?;
    if token.is(presented.trim()) { Ok(()) } else { Err(TokenStatus::Unknown) }
}

#[cfg(test)]
mod tests {
    use crosspoint_exchange::refusal::Limit;
    use crosspoint_http::reach::Ours;
    use crosspoint_http::site::{Limits, Plan};

    use super::*;

    const OTHER: Peer = Peer::Address(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));

    fn read_from(text: &str) -> io::Result<Token> {
        let path = std::env::temp_dir().join(format!("crosspoint-gate-{}", uuid::Uuid::new_v4()));
        std::fs::write(&path, text).expect("it can be written");
        let token = read(&path);
        std::fs::remove_file(path).expect("it is there");
        token
    }

    fn gate() -> Gate {
        let token = read_from("abcdefghijklmnopqrstuvwxyz012345\n").expect("it is a token");
        let ours = Ours::new("127.0.0.1:0", &[]);
        let plan = Plan { limits: Limits::default(), routes: Vec::new(), ours, doors: Vec::new() };
        Gate { token, site: Site::of_agent(plan) }
    }

    fn with(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, value.parse().expect("it is a value"))])
    }

    #[test]
    fn a_file_that_is_not_there_is_said_to_be_missing() {
        let error = read(Path::new("/no/such/file")).expect_err("there is none");
        assert_eq!(error.to_string(), "the token cannot be read from /no/such/file: there is no such file");
    }

    #[test]
    fn a_file_that_holds_something_else_gives_no_token() {
        for text in ["", "\n", "two words", "two\nlines", "t\u{f6}ken", &"a".repeat(5_000)] {
            assert_eq!(read_from(text).map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData), "{text}");
        }
    }

    #[test]
    fn an_address_that_presents_wrong_tokens_has_to_wait() {
        let (gate, now) = (gate(), Instant::now());
        let limit = |headers: HeaderMap| gate.admit(&headers, OTHER, now).map_err(|refusal| refusal.limit());
        assert!((0..10).all(|_| limit(with("Bearer wrong")) == Err(None)));
        assert_eq!(limit(with("Bearer wrong")), Err(Some(Limit::FailuresPerAddress)));
        assert_eq!(limit(HeaderMap::new()), Err(Some(Limit::FailuresPerAddress)));
        assert_eq!(limit(with("bearer abcdefghijklmnopqrstuvwxyz012345")), Ok(()));
    }

    #[test]
    fn the_token_is_good_for_as_many_requests_as_that_of_a_server() {
        let (gate, now) = (gate(), Instant::now());
        let good = with("Bearer abcdefghijklmnopqrstuvwxyz012345");
        assert_eq!((0..5_000).filter(|_| gate.admit(&good, OTHER, now).is_ok()).count(), 2_000);
    }
}
