//! The address of a server: a port, or a socket file.

use std::path::PathBuf;

use anyhow::{Context, Result};
use reqwest::header::AUTHORIZATION;

use super::failed::Failed;
use super::token::Presented;
use super::{CONNECT_TIME_MAX, SILENCE_TIME_MAX};
use crate::local::{SCHEME, Way};

/// Host in requests over a socket file. Every server accepts it as its own name.
const LOCALHOST: &str = "http://localhost";

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Web(String),
    Socket(PathBuf),
}

/// An HTTP client for one address. Clones share connections.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) http: reqwest::Client,
    /// Prefix of every request's address.
    pub(super) base: String,
    /// The token that comes with every request.
    pub(super) token: Option<Presented>,
    /// Keeps the directory of a socket open if the path goes through it because it is long.
    _way: Option<Way>,
}

impl Address {
    /// Reads an address as people write it: `http://127.0.0.1:7420`, the same without the scheme, or `unix:PATH`.
    pub(super) fn read(text: &str) -> Address {
        match text.strip_prefix(SCHEME) {
            Some(path) => Address::Socket(PathBuf::from(path)),
            None if text.contains("://") => Address::Web(text.trim_end_matches('/').to_owned()),
            None => Address::Web(format!("http://{}", text.trim_end_matches('/'))),
        }
    }

    /// The address for error messages, as it was written but without a name and a password.
    pub(super) fn shown(&self) -> String {
        match self {
            Address::Web(url) => without_login(url),
            Address::Socket(path) => format!("{SCHEME}{}", path.display()),
        }
    }

    /// The address for people, without a password.
    pub(super) fn without_password(&self) -> String {
        match self {
            Address::Socket(_) => self.shown(),
            Address::Web(url) => match reqwest::Url::parse(url) {
                Ok(url) => {
                    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0))
                }
                Err(_) => String::new(),
            },
        }
    }

    /// Makes a client for this address. It does not connect yet.
    pub(super) fn line(&self, token: Option<Presented>) -> Result<Line> {
        // Installing it twice does no harm: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().connect_timeout(CONNECT_TIME_MAX).read_timeout(SILENCE_TIME_MAX);
        let http = http.default_headers(token.iter().map(|token| (AUTHORIZATION, token.header.clone())).collect());
        let (http, base, way) = match self {
            Address::Web(url) => (of_web(http, url)?, url.clone(), None),
            Address::Socket(path) => {
                // A missing directory is reported by the first request.
                let way = Way::to(path).ok();
                let http = http.unix_socket(way.as_ref().map_or(path.as_path(), Way::path));
                // Reading all certificates of the system takes longer than most requests, and none is needed.
                (http.no_proxy().tls_certs_only([]), LOCALHOST.to_owned(), way)
            }
        };
        Ok(Line { http: http.build().context("cannot make a client")?, base, token, _way: way })
    }
}

/// Leaves out what stands before the host: `http://user:secret@host` is `http://host`.
fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn of_web(http: reqwest::ClientBuilder, url: &str) -> Result<reqwest::ClientBuilder> {
    let parsed = reqwest::Url::parse(url).ok();
    let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(parsed) = parsed else {
        let hint = "write it as http://127.0.0.1:7420, or as unix:PATH";
        return Err(Failed::other("this is not the address of a server", hint).into());
    };
    // There is no proxy between a process and its own machine.
    if !matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        return Ok(http);
    }
    let http = http.no_proxy();
    // As above, no certificate is needed.
    Ok(if parsed.scheme() == "http" { http.tls_certs_only([]) } else { http })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_shows_a_login() {
        for (written, shown) in [
            ("http://user:secret@127.0.0.1:7420", "http://127.0.0.1:7420"),
            ("user:se@cret@host:1/below", "http://host:1/below"),
            ("https://host/a@b", "https://host/a@b"),
            ("http://127.0.0.1:7420/", "http://127.0.0.1:7420"),
            ("unix:/run/a@b.sock", "unix:/run/a@b.sock"),
        ] {
            assert_eq!(Address::read(written).shown(), shown);
        }
    }
}
