//! Which requests are meant for this server, and come from a program or from a page of its own.
//!
//! Every web page in a browser of this machine reaches a server of the loopback. Two ways lead in. A page sends a
//! request to 127.0.0.1 by itself: a form, or a `fetch` of plain text, needs no permission. And a page of a host whose name suddenly means
//! 127.0.0.1 (DNS rebinding) is of the same origin as this server, and reads all that it answers.
//!
//! Browsers say who asks, and pages cannot change that: `Host` has the name that the page used, `Origin` the page's own, and
//! `Sec-Fetch-Site` how the two belong together. So a request whose `Host` is no name of ours is refused, and so is one of another
//! origin. A program that is no browser sends the host that it was given, and none of the others; it notices nothing. Neither the
//! content type nor the method says anything about who asks.
//!
//! Pure: headers in, a verdict out.

use std::net::IpAddr;

use axum::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use axum::http::uri::Uri;

use super::refusal::Refusal;
use crate::config;
use crate::host::{Authority, Host};

const SITE: &str = "sec-fetch-site";

/// What the server is called besides the loopback, which is always its own.
pub(super) struct Ours {
    /// The host of the address that it was told to listen on.
    listen: Option<Host>,
    names: Vec<Host>,
}

/// What is wrong with where a request goes or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// The `Host` header is that of another server.
    Host,
    /// It is there twice, or is none.
    HostUnreadable,
    /// The request line names another server.
    Target,
    /// A page of another origin asks.
    Origin,
    /// A page of another site asks.
    Site,
}

/// Where a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// At this address of the machine.
    Address(IpAddr),
    /// At a socket that is a file, or where the system cannot tell.
    Local,
}

impl Ours {
    pub(super) fn of(server: &config::Server) -> Ours {
        Ours {
            listen: server.listen.rsplit_once(':').and_then(|(host, _)| Host::read(host)),
            names: server.names.iter().filter_map(|name| Host::read(name)).collect(),
        }
    }

    /// An address that this very connection arrived at means this server, whatever a name server says.
    fn has(&self, host: &Host, arrival: Arrival) -> bool {
        let is_where_it_arrived = match arrival {
            Arrival::Address(address) => self.listen.as_ref() == Some(host) || *host == Host::of(address),
            Arrival::Local => false,
        };
        host.is_loopback() || is_where_it_arrived || self.names.contains(host)
    }
}

/// Why a request is none for this server or from none of its own pages; `None` where it is fine.
pub(super) fn foreign(uri: &Uri, headers: &HeaderMap, arrival: Arrival, ours: &Ours) -> Option<Foreign> {
    judge(uri, headers, arrival, ours).err()
}

fn judge(uri: &Uri, headers: &HeaderMap, arrival: Arrival, ours: &Ours) -> Result<(), Foreign> {
    let called = called(headers)?;
    let is_strange = |authority: &Authority| !ours.has(&authority.host, arrival);
    if called.as_ref().is_some_and(is_strange) {
        return Err(Foreign::Host);
    }
    // A whole address in the request line wins over `Host` (RFC 9112, 3.2.2), so that one is held against our names too.
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

/// What the `Host` header says. A caller that speaks HTTP/1.0 may send none; browsers always send one.
fn called(headers: &HeaderMap) -> Result<Option<Authority>, Foreign> {
    let mut all = headers.get_all(HOST).iter();
    let Some(first) = all.next() else { return Ok(None) };
    let read = first.to_str().ok().and_then(Authority::read).filter(|_| all.next().is_none());
    read.map(Some).ok_or(Foreign::HostUnreadable)
}

/// Whether an `Origin` is the server as the request calls it, or has one of its names. `null` is the origin of a page that has none of
/// its own, such as a file or a frame that is locked in.
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
    pub(super) fn refusal(self) -> Refusal {
        let call = "call the server by localhost or by the address that it listens on, or add the name to names below [server]";
        let (message, hint) = match self {
            Foreign::Host => ("the Host header names a host that is not this server", call),
            Foreign::HostUnreadable => {
                ("the Host header cannot be read, or is there twice", "send one Host header, as localhost:7420")
            }
            Foreign::Target => ("the request line names a host that is not this server", call),
            Foreign::Origin => (
                "the Origin header is that of another site, and web pages of other sites may not use this server",
                "ask from a program, or from a page of this server; where it is the server's own host, add that to names below [server]",
            ),
            Foreign::Site => (
                "the Sec-Fetch-Site header says that a page of another site asks, and such pages may not use this server",
                "ask from a program, or type the address; a page must have the server's own host and port",
            ),
        };
        Refusal::foreign(message, hint)
    }
}

#[cfg(test)]
mod tests;
