//! Decides which requests are meant for this server, and come from a program or from a page of its own.
//!
//! Every web page in a browser of this machine reaches a server of the loopback, in two ways. A page can send a request
//! to 127.0.0.1 by itself: a form, or a `fetch` of plain text, needs no permission. And a page of a host whose name
//! suddenly resolves to 127.0.0.1 (DNS rebinding) has the same origin as this server, and can read everything that it
//! answers.
//!
//! Browsers say where a request comes from, and pages cannot change that: `Host` has the name that the page used,
//! `Origin` the page's own, and `Sec-Fetch-Site` the relation of the two. So a request whose `Host` is not a name of
//! this server is refused, and so is a request of another origin. A program that is no browser sends the host that it
//! was given and neither of the other headers, so it notices nothing. Neither the content type nor the method says
//! where a request comes from.
//!
//! Pure: headers in, a verdict out.

use std::net::IpAddr;

use axum::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use axum::http::uri::Uri;
use crosspoint_exchange::refusal::Refusal;

use crate::host::{Authority, Host};

const SITE: &str = "sec-fetch-site";

/// The names of the server besides the loopback, which is always its own.
pub struct Ours {
    /// The host of the configured listening address.
    listen: Option<Host>,
    names: Vec<Host>,
    /// How the operator adds a name.
    adding: &'static str,
}

/// What is wrong with the destination or the source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// The `Host` header names another server.
    Host,
    /// The `Host` header occurs twice, or cannot be read.
    HostUnreadable,
    /// The request line names another server.
    Target,
    /// The request comes from a page of another origin.
    Origin,
    /// The request comes from a page of another site.
    Site,
}

/// Where a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At this address of the machine.
    Address(IpAddr),
    /// At a socket file, or at an address that the system cannot tell.
    Local,
}

impl Ours {
    /// Makes the names of a server that listens here and is also called by these names.
    pub fn new(listen: &str, names: &[String]) -> Ours {
        Ours {
            listen: listen.rsplit_once(':').and_then(|(host, _)| Host::read(host)),
            names: names.iter().filter_map(|name| Host::read(name)).collect(),
            adding: "add the name to names below [server]",
        }
    }

    /// Says how the operator adds a name, where that is not done in the configuration of a server.
    #[must_use]
    pub fn added_by(self, adding: &'static str) -> Ours {
        Ours { adding, ..self }
    }

    /// Whether a host is this server. The address at which this very connection arrived is, whatever a name server
    /// says.
    fn has(&self, host: &Host, arrival: Arrival) -> bool {
        let is_where_it_arrived = match arrival {
            Arrival::Address(address) => self.listen.as_ref() == Some(host) || *host == Host::of(address),
            Arrival::Local => false,
        };
        host.is_loopback() || is_where_it_arrived || self.names.contains(host)
    }
}

/// Returns why a request is not for this server or comes from a foreign page, or `None` if it is fine.
pub(crate) fn foreign(uri: &Uri, headers: &HeaderMap, arrival: Arrival, ours: &Ours) -> Option<Foreign> {
    judge(uri, headers, arrival, ours).err()
}

fn judge(uri: &Uri, headers: &HeaderMap, arrival: Arrival, ours: &Ours) -> Result<(), Foreign> {
    let called = called(headers)?;
    let is_strange = |authority: &Authority| !ours.has(&authority.host, arrival);
    if called.as_ref().is_some_and(is_strange) {
        return Err(Foreign::Host);
    }
    // An absolute address in the request line overrides `Host` (RFC 9112, 3.2.2), so it is compared with our names too.
    let target = uri.authority().map(|target| Authority::read(target.as_str()).ok_or(Foreign::Target)).transpose()?;
    if target.as_ref().is_some_and(is_strange) {
        return Err(Foreign::Target);
    }
    let called = called.or(target);
    if !headers.get_all(ORIGIN).iter().all(|origin| is_of_ours(origin, called.as_ref(), ours)) {
        return Err(Foreign::Origin);
    }
    let is_near = |site: &HeaderValue| ["none", "same-origin"].iter().any(|near| site == near);
    if headers.get_all(SITE).iter().all(is_near) { Ok(()) } else { Err(Foreign::Site) }
}

/// Reads the `Host` header. A caller that speaks HTTP/1.0 may send none; browsers always send one.
fn called(headers: &HeaderMap) -> Result<Option<Authority>, Foreign> {
    let mut all = headers.get_all(HOST).iter();
    let Some(first) = all.next() else { return Ok(None) };
    let read = first.to_str().ok().and_then(Authority::read).filter(|_| all.next().is_none());
    read.map(Some).ok_or(Foreign::HostUnreadable)
}

/// Whether an `Origin` is the server as the request addresses it, or has one of its names. `null` is the origin of a
/// page without an origin of its own, such as a file or a sandboxed frame.
fn is_of_ours(origin: &HeaderValue, called: Option<&Authority>, ours: &Ours) -> bool {
    let Some((scheme, rest)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else { return false };
    let port_of_scheme = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Some(origin) = Authority::read(rest) else { return false };
    let port = |authority: &Authority| authority.port.unwrap_or(port_of_scheme);
    let is_same = |called: &Authority| called.host == origin.host && port(called) == port(&origin);
    called.is_some_and(is_same) || ours.names.contains(&origin.host)
}

impl Foreign {
    /// Returns the refusal of a request to the server that has these names.
    pub(crate) fn refusal(self, Ours { adding, .. }: &Ours) -> Refusal {
        let call = || format!("call the server by localhost or by the address that it listens on, or {adding}");
        let (message, hint) = match self {
            Foreign::Host => ("the Host header names a host that is not this server", call()),
            Foreign::HostUnreadable => (
                "the Host header cannot be read, or is there twice",
                "send one Host header, as localhost:7420".to_owned(),
            ),
            Foreign::Target => ("the request line names a host that is not this server", call()),
            Foreign::Origin => (
                "the Origin header is that of another site, and web pages of other sites may not use this server",
                format!(
                    "ask from a program, or from a page of this server; where it is the server's own host, {adding}"
                ),
            ),
            Foreign::Site => (
                "the Sec-Fetch-Site header says that a page of another site asks, and such pages may not use this server",
                "ask from a program, or type the address; a page must have the server's own host and port".to_owned(),
            ),
        };
        Refusal::foreign(message, hint)
    }
}

#[cfg(test)]
mod tests;
