//! Requests that are no documents: headers, queries, addresses, tokens and bytes of every sort, at every endpoint.

use std::io::{Read, Write};

use serde_json::{Value, json};

use super::corpus;
use super::site::Site;
use crate::support::conformity;

/// Every endpoint of the description, with canaries wherever a request has room for them.
pub(crate) fn endpoints(site: &Site) {
    let paths = conformity::kept()["paths"].as_object().expect("there are paths");
    for (template, methods) in paths {
        for method in methods.as_object().expect("there are methods").keys().map(|name| name.to_uppercase()) {
            endpoint(site, &method, template);
        }
    }
}

fn endpoint(site: &Site, method: &str, template: &str) {
    let text = |what: &str| site.ledger.text("a request", &format!("{method} {template}: {what}"));
    // An id or a name in a path may be logged, as paths are.
    let path = template.replace("{id}", "01a1e2d0-641e-7000-8000-0005a7fde28e").replace("{name}", "nobody");
    let path = path.replace("{file}", "run.request.json");
    let query = format!("{path}?{}={}&wait={}", text("name in the query"), text("query"), text("wait"));
    let bodies = [
        text("a body that is not JSON"),
        format!("{{\"{}\": \"{}", text("a name in half a body"), text("half a body")),
        format!("[\"{}\"]", text("a list")),
        json!({text("a member"): text("a value")}).to_string(),
    ];
    let [cookie, agent, key, note] = ["cookie", "user-agent", "idempotency-key", "x-note"].map(text);
    let [trace, state, prefer, last] = ["traceparent", "tracestate", "prefer", "last-event-id"].map(text);
    let headers = [
        ("cookie", cookie.as_str()),
        ("user-agent", &agent),
        ("idempotency-key", &key),
        ("x-note", &note),
        ("traceparent", &trace),
        ("tracestate", &state),
        ("prefer", &prefer),
        ("last-event-id", &last),
        ("content-type", &note),
        ("accept", &note),
        ("referer", &note),
        ("x-forwarded-for", &note),
    ];
    for body in &bodies {
        site.ask_with(method, &path, &headers, body.as_bytes());
        site.ask(method, &query, body);
    }
    let traced = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("tracestate", &*state)];
    site.ask_with(method, &path, &traced, bodies[3].as_bytes());
    let bearers = [format!("Bearer {}", text("a wrong token")), text("no bearer"), format!("Basic {}", text("basic"))];
    for bearer in &bearers {
        site.ask_with(method, &path, &[("authorization", bearer)], bodies[3].as_bytes());
    }
    for header in ["host", "origin", "sec-fetch-site"] {
        site.ask_with(method, &path, &[(header, &text(header))], bodies[3].as_bytes());
    }
    site.by_admin(method, &query, &bodies[3]);
}

/// What is too large, and what is no request at all.
pub(crate) fn bytes(site: &Site) {
    let text = |what: &str| site.ledger.text("bytes", what);
    let large = text("a large body").repeat(30_000);
    for (_, path, _) in super::doors::DOORS {
        site.ask("POST", path, &large);
        site.ask("POST", path, &json!({"work": "echo", "input": large}).to_string());
        site.ask(
            "POST",
            &format!("{}?{}", path.split('?').next().unwrap_or(path), text("a long query").repeat(1_000)),
            "{}",
        );
        site.ask_with("POST", path, &[("x-note", &text("a long header").repeat(4_000))], b"{}");
    }
    let canary = text("no request");
    for bytes in [
        format!("{canary}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{canary}\r\n\r\n"),
        format!("GET /health HTTP/1.1\r\nhost: {canary}\r\n\r\n"),
        format!("GET http://{canary}/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
        format!("POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: {canary}\r\n\r\n{canary}"),
        format!("POST /tasks HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{canary}\r\n"),
    ] {
        let mut stream = site.server.connect();
        stream.write_all(bytes.as_bytes()).expect("it can be sent");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// What those who administer send.
pub(crate) fn operators(site: &Site) {
    let token = corpus::full("native.token");
    for spoiled in site.ledger.spoiled("native.token", &token) {
        site.by_admin("POST", "/api/v1/tokens", &spoiled.to_string());
    }
    let made = site.by_admin("POST", "/api/v1/tokens", &site.ledger.plant("native.token", &token).to_string());
    let noted = |answer: &Value, what: &str| {
        let made = answer["token"].as_str().unwrap_or_else(|| panic!("{answer}"));
        site.ledger.secret(what, made);
    };
    noted(&made.json(), "a new token");
    noted(&site.by_admin("POST", "/api/v1/tokens/planned/rotate", "{}").json(), "a newer token");
    site.by_admin("POST", "/api/v1/tokens/planned/revoke", "");
    for what in ["drain", "breaker", "join"] {
        let body =
            json!({"state": site.ledger.text("an operator", what), "drained": site.ledger.text("an operator", what)});
        site.by_admin("POST", &format!("/api/v1/agents/echo/{what}"), &body.to_string());
    }
}
