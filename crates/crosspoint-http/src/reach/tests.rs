//! Verdicts on requests by their headers and the address at which they arrived.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::HeaderName;

use super::*;

/// The address at which connections from other machines arrive.
const ARRIVED: Arrival = Arrival::Address(IpAddr::V4(Ipv4Addr::new(192, 168, 1, 5)));
const LOOPBACK: Arrival = Arrival::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));

fn ours() -> Ours {
    Ours::new("box.lan:7420", &["Jobs.Example.org".to_owned(), "10.0.0.9".to_owned()])
}

/// Returns the verdict on a request for `target` with these headers.
fn judged(arrival: Arrival, target: &str, headers: &[(&'static str, &[u8])]) -> Option<Foreign> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value).expect("it can be sent");
        map.append(HeaderName::from_static(name), value);
    }
    foreign(&target.parse().expect("it is a target"), &map, arrival, &ours())
}

#[test]
fn a_host_is_ours_by_loopback_listening_arrival_or_name() {
    let ok = None;
    let no = Some(Foreign::Host);
    let odd = Some(Foreign::HostUnreadable);
    let cases: [(&[u8], Option<Foreign>); 32] = [
        (b"localhost", ok),
        (b"localhost:7420", ok),
        (b"LOCALHOST.:1", ok),
        (b"127.0.0.1", ok),
        (b"127.255.1.2:80", ok),
        (b"[::1]", ok),
        (b"[::1]:7420", ok),
        (b"[::ffff:127.0.0.1]", ok),
        (b"box.lan", ok),
        (b"Box.Lan.:99", ok),
        (b"192.168.1.5:7420", ok),
        (b"[::ffff:192.168.1.5]", ok),
        (b"jobs.example.org", ok),
        (b"10.0.0.9", ok),
        (b"evil.example", no),
        (b"evil.example:7420", no),
        (b"localhost.evil.example", no),
        (b"notlocalhost", no),
        (b"127.0.0.1.evil.example", no),
        (b"a.jobs.example.org", no),
        (b"192.168.1.6", no),
        (b"0.0.0.0", no),
        (b"127.1", no),
        (b"2130706433", no),
        (b"", odd),
        (b"localhost, evil.example", odd),
        (b"localhost:seven", odd),
        (b"evil@localhost", odd),
        (b"localhost/evil", odd),
        (b"::1", odd),
        (b"local\xffhost", odd),
        (b"http://localhost", odd),
    ];
    for (host, expected) in cases {
        let shown = String::from_utf8_lossy(host);
        assert_eq!(judged(ARRIVED, "/health", &[("host", host)]), expected, "{shown}");
    }
}

#[test]
fn what_arrives_at_a_file_has_no_address() {
    for (host, expected) in [
        ("localhost", None),
        ("127.0.0.1:7420", None),
        ("jobs.example.org", None),
        ("box.lan", Some(Foreign::Host)),
        ("192.168.1.5", Some(Foreign::Host)),
    ] {
        assert_eq!(judged(Arrival::Local, "/", &[("host", host.as_bytes())]), expected, "{host}");
    }
    let v6 = Arrival::Address(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 5).into());
    assert_eq!(judged(v6, "/", &[("host", b"[fd00::5]:7420")]), None);
    assert_eq!(judged(v6, "/", &[("host", b"[fd00::6]:7420")]), Some(Foreign::Host));
}

#[test]
fn the_request_line_counts_as_well_and_one_host_is_enough() {
    let cases: [(&str, &[&str], Option<Foreign>); 9] = [
        ("/", &[], None),
        ("*", &["localhost"], None),
        ("http://localhost:7420/", &["localhost:7420"], None),
        ("http://localhost/", &[], None),
        ("http://evil.example/", &["localhost"], Some(Foreign::Target)),
        ("http://localhost@evil.example/", &["localhost"], Some(Foreign::Target)),
        ("evil.example:443", &[], Some(Foreign::Target)),
        ("http://localhost/", &["evil.example"], Some(Foreign::Host)),
        ("/", &["localhost", "localhost"], Some(Foreign::HostUnreadable)),
    ];
    for (target, hosts, expected) in cases {
        let headers: Vec<(&'static str, &[u8])> = hosts.iter().map(|host| ("host", host.as_bytes())).collect();
        assert_eq!(judged(LOOPBACK, target, &headers), expected, "{target}");
    }
}

#[test]
fn an_origin_is_ours_if_it_is_what_the_request_calls_us_or_has_our_name() {
    let cases: [(&str, &str, bool); 20] = [
        ("localhost:7420", "http://localhost:7420", true),
        ("localhost:7420", "http://LOCALHOST:7420", true),
        ("localhost", "http://localhost", true),
        ("localhost", "http://localhost:80", true),
        ("localhost:80", "http://localhost", true),
        ("jobs.example.org", "https://jobs.example.org", true),
        ("jobs.example.org:443", "https://jobs.example.org", true),
        ("localhost:7420", "https://jobs.example.org:8443", true),
        ("[::1]:7420", "http://[::1]:7420", true),
        ("localhost:7420", "http://localhost:3000", false),
        ("localhost:7420", "http://localhost", false),
        ("localhost:7420", "http://127.0.0.1:7420", false),
        ("localhost", "https://localhost:80", false),
        ("localhost:7420", "http://evil.example", false),
        ("localhost:7420", "http://evil.example:7420", false),
        ("localhost:7420", "null", false),
        ("localhost:7420", "", false),
        ("localhost:7420", "file://localhost:7420", false),
        ("localhost:7420", "http://localhost:7420/", false),
        ("localhost:7420", "http://a@localhost:7420", false),
    ];
    for (host, origin, expected) in cases {
        let said = judged(LOOPBACK, "/", &[("host", host.as_bytes()), ("origin", origin.as_bytes())]);
        assert_eq!(said, (!expected).then_some(Foreign::Origin), "{origin} at {host}");
    }
    let nameless = |origin: &'static [u8]| judged(LOOPBACK, "/", &[("origin", origin)]);
    assert_eq!(nameless(b"http://localhost"), Some(Foreign::Origin));
    assert_eq!(nameless(b"http://jobs.example.org"), None);
    let twice: [(&str, &[u8]); 3] =
        [("host", b"localhost"), ("origin", b"http://localhost"), ("origin", b"http://evil.example")];
    assert_eq!(judged(LOOPBACK, "/", &twice), Some(Foreign::Origin));
}

#[test]
fn a_site_must_be_ours_or_none() {
    for (site, expected) in [
        ("none", None),
        ("same-origin", None),
        ("same-site", Some(Foreign::Site)),
        ("cross-site", Some(Foreign::Site)),
        ("", Some(Foreign::Site)),
        ("anything", Some(Foreign::Site)),
    ] {
        let said = judged(LOOPBACK, "/", &[("host", b"localhost"), (SITE, site.as_bytes())]);
        assert_eq!(said, expected, "{site}");
    }
}
