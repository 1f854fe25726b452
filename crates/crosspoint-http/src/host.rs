//! Hosts as they are written in headers, addresses and the configuration.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Longest host name, in bytes (RFC 1035).
const NAME_BYTES_MAX: usize = 253;

/// A host, in a form that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// In lower case, without a dot at the end.
    Name(String),
}

/// A host and an optional port, as in a `Host` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, where one is given.
    pub port: Option<u16>,
}

impl Host {
    /// Reads a host. An IPv6 address may be in brackets.
    pub fn read(text: &str) -> Option<Host> {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(address) = inner.or(Some(text)).and_then(|text| text.parse::<Ipv6Addr>().ok()) {
            return Some(Host::of(address.into()));
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Host::of(address));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_name = text.split('.').all(|label| !label.is_empty() && label.bytes().all(plain));
        (is_name && text.len() <= NAME_BYTES_MAX).then(|| Host::Name(text.to_ascii_lowercase()))
    }

    /// An IPv4 address that is mapped into an IPv6 address is the same host.
    pub fn of(address: IpAddr) -> Host {
        Host::Address(address.to_canonical())
    }

    /// Whether this host always means the machine on which it is used.
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Address(address) => write!(f, "{address}"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl Authority {
    /// Reads a host with or without a port. IPv6 addresses need brackets, as in URLs.
    pub fn read(text: &str) -> Option<Authority> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            Some(_) | None => (text, ""),
        };
        if host.contains(':') && !host.starts_with('[') {
            return None;
        }
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = if port.is_empty() { None } else { Some(port.parse().ok().filter(|_| digits)?) };
        Some(Authority { host: Host::read(host)?, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_in_every_spelling_and_nothing_else_is() {
        let same = [
            ("LocalHost.", "localhost"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::0:1]", "::1"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("a_b.Example.ORG", "a_b.example.org"),
        ];
        for (one, other) in same {
            assert!(Host::read(one).is_some() && Host::read(one) == Host::read(other), "{one} is {other}");
        }
        let long = "a".repeat(254);
        for wrong in
            ["", ".", "a..b", "a b", "a/b", "a@b", "*.a", "[a]", "[::1", "::1]", "[127.0.0.1]", "\u{e4}.de", &long]
        {
            assert_eq!(Host::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_port_may_follow() {
        let read = |text| Authority::read(text).map(|read| (read.host.to_string(), read.port));
        let cases = [
            ("localhost", Some(("localhost", None))),
            ("localhost:", Some(("localhost", None))),
            ("localhost:7420", Some(("localhost", Some(7420)))),
            ("[::1]", Some(("[::1]", None))),
            ("[::1]:80", Some(("[::1]", Some(80)))),
            ("127.0.0.1:0", Some(("127.0.0.1", Some(0)))),
            ("::1", None),
            ("::1:80", None),
            ("localhost:65536", None),
            ("localhost:+80", None),
            ("localhost:80:80", None),
            ("me@localhost", None),
            ("http://localhost", None),
            (":80", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected.map(|(host, port)| (host.to_owned(), port)), "{text}");
        }
    }
}
