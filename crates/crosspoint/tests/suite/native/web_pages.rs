//! Web pages that reach the server: what a browser sends for them is refused at every endpoint, before anything is
//! done.
//!
//! Every request is bytes over a socket. The endpoints are those of the description, which another test compares with
//! the router.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::cli::config::Place;
use crate::cli::jobs::beside;
use crate::support::conformity::{self, kept};
use crate::support::program::transcript;
use crate::support::puller::Puller;
use crate::support::server::{Answer, PATIENCE, Server};

/// One method of one path, and a body that it accepts.
struct Endpoint {
    method: String,
    path: String,
    body: String,
}

/// Every endpoint, with names of things that exist, and paths and methods that do not exist.
fn endpoints(job: &str) -> Vec<Endpoint> {
    let mut all = Vec::new();
    for (template, operations) in kept()["paths"].as_object().expect("there are paths") {
        let path = template.replace("{id}", job).replace("{name}", "dig").replace("{file}", "run.request.json");
        assert!(!path.contains('{'), "{path}: say what stands there");
        for (method, operation) in operations.as_object().expect("there are operations") {
            let content = operation["requestBody"]["content"].as_object();
            let example = content.and_then(|content| content.values().next()).map(|content| content["example"].clone());
            let body = example.map(|example| example.to_string()).unwrap_or_default();
            all.push(Endpoint { method: method.to_uppercase(), path: path.clone(), body });
        }
        for method in ["OPTIONS", "HEAD"] {
            all.push(Endpoint { method: method.to_owned(), path: path.clone(), body: String::new() });
        }
    }
    for path in ["/", "/api/v1/nothing", "/tasks/a/b/c", "/agents/run/other", "/api/v1/bridge/more"] {
        all.push(Endpoint { method: "GET".to_owned(), path: path.to_owned(), body: String::new() });
    }
    all
}

impl Endpoint {
    /// Sends a request with these header lines.
    fn send(&self, server: &Server, target: &str, version: &str, lines: &[&str]) -> BufReader<TcpStream> {
        let Endpoint { method, body, .. } = self;
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let more = format!("content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        let mut stream = server.connect();
        // A server that refuses early may have stopped reading. Its answer is there all the same.
        let _ = stream.write_all(format!("{method} {target} {version}\r\n{lines}{more}").as_bytes());
        BufReader::new(stream)
    }

    /// Reads only the status, because some answers go on for ever.
    fn status(&self, server: &Server, target: &str, version: &str, lines: &[&str]) -> u16 {
        let mut line = String::new();
        self.send(server, target, version, lines).read_line(&mut line).expect("it answers");
        line.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    }

    fn named(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// Everything that requests could have changed.
fn state(server: &Server) -> [Value; 2] {
    [server.get("/api/v1/jobs?limit=100").json(), server.get("/api/v1/agents").json()]
}

/// A server with a job that waits for an answer, and an agent that could be forgotten.
fn furnished(toml: &str) -> (Server, String) {
    let server = Server::configured(toml);
    Puller::joined(&server, "dig", 1).leave(&server);
    let job = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("it has an id").to_owned();
    server.in_state(&job, "waiting");
    (server, job)
}

#[track_caller]
fn refused(endpoint: &Endpoint, answer: &Answer) {
    let named = endpoint.named();
    assert_eq!(answer.status, 403, "{named}: {answer:?}");
    conformity::check(&endpoint.method, &endpoint.path, answer);
    let said = answer.text();
    assert!(said.contains("header"), "{named} says which: {said}");
    assert!(said.contains("\"repeat\":\"never\""), "{named}: {said}");
    let failure = ["unauthenticated", "UNAUTHENTICATED", "authentication_failed", "\"error_code\":5004"];
    assert!(failure.iter().any(|code| said.contains(code)), "{named}: {said}");
    assert!(!said.contains("evil"), "{named} quotes nothing: {said}");
}

#[test]
fn what_a_page_of_another_site_sends_is_refused_everywhere_and_nothing_is_done() {
    let (server, job) = furnished("");
    let host = format!("Host: {}", server.address());
    let heads: [&[&str]; 8] = [
        &["Host: evil.example"],
        &["Host: localhost", "Host: evil.example"],
        &["Host: local host"],
        &[&host, "Origin: http://evil.example", "Content-Type: text/plain"],
        &[&host, "Origin: http://localhost:3000"],
        &[&host, "Origin: null"],
        &[&host, "Sec-Fetch-Site: cross-site"],
        &[&host, "Sec-Fetch-Site: same-site"],
    ];
    let before = state(&server);
    for endpoint in endpoints(&job) {
        for lines in heads {
            if endpoint.method == "HEAD" {
                let status = endpoint.status(&server, &endpoint.path, "HTTP/1.1", lines);
                assert_eq!(status, 403, "{} with {lines:?}", endpoint.named());
                continue;
            }
            let mut stream = endpoint.send(&server, &endpoint.path, "HTTP/1.1", lines);
            refused(&endpoint, &Answer::read(&mut stream).expect("it answers"));
        }
        let target = format!("http://evil.example{}", endpoint.path);
        assert_eq!(endpoint.status(&server, &target, "HTTP/1.1", &[&host]), 403, "{target}");
    }
    assert_eq!(state(&server), before, "nothing was done");
    let metrics = server.get("/metrics").text();
    let counted = metrics.lines().find_map(|line| line.strip_prefix("crosspoint_refusals_total{limit=\"foreign\"} "));
    assert!(counted.is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 300)), "{counted:?}");
    assert!(
        metrics.contains(r#"crosspoint_http_requests_total{method="GET",route="/health",status="403"}"#),
        "{metrics}"
    );
}

#[test]
fn programs_and_pages_of_the_server_itself_pass_everywhere() {
    let (server, job) = furnished("[server]\nnames = [\"jobs.example.org\"]\n");
    let port = server.address().port();
    let (local, origin) = (format!("Host: 127.0.0.1:{port}"), format!("Origin: http://127.0.0.1:{port}"));
    let heads: [&[&str]; 10] = [
        &["Host: localhost"],
        &["host: LOCALHOST.:1"],
        &["Host: 127.9.9.9"],
        &["Host: [::1]"],
        &[&local, "Content-Type: text/plain"],
        &[&local, &origin],
        &[&local, &origin, "Sec-Fetch-Site: same-origin"],
        &[&local, "Sec-Fetch-Site: none"],
        &["Host: Jobs.Example.ORG", "Origin: https://jobs.example.org"],
        &[&local, "Origin: https://jobs.example.org"],
    ];
    for endpoint in endpoints(&job) {
        for lines in heads {
            let status = endpoint.status(&server, &endpoint.path, "HTTP/1.1", lines);
            assert_ne!(status, 403, "{} with {lines:?}", endpoint.named());
        }
        let target = format!("http://localhost:{port}{}", endpoint.path);
        assert_ne!(endpoint.status(&server, &target, "HTTP/1.1", &["Host: localhost"]), 403, "{target}");
        assert_ne!(endpoint.status(&server, &endpoint.path, "HTTP/1.0", &[]), 403, "{}", endpoint.named());
    }
}

#[test]
fn names_come_from_the_environment_as_well() {
    let mut server = Server::start();
    server.kill();
    server.start_by(&["env", "CROSSPOINT_SERVER_NAMES=one.example, two.example"]);
    server.restart();
    let health = Endpoint { method: "GET".to_owned(), path: "/health".to_owned(), body: String::new() };
    for (host, status) in [("one.example", 200), ("two.example:80", 200), ("three.example", 403)] {
        assert_eq!(health.status(&server, "/health", "HTTP/1.1", &[&format!("Host: {host}")]), status, "{host}");
    }
}

#[test]
fn an_address_that_others_reach_is_served_only_if_that_is_said() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let place = Place::new(&format!("exposed-{}", listen.len()), "");
        let said = transcript(place.crosspoint(&["serve", "--listen", listen]).timeout(PATIENCE));
        assert!(said.starts_with("exit 2\n"), "{said}");
        assert!(said.contains("can be reached from other machines") && said.contains("--insecure"), "{said}");
        assert!(!place.path().join(".crosspoint").exists(), "nothing is opened");
    }
    let toml = "[server]\ninsecure = true\n";
    for server in [Server::listening("0.0.0.0:0", "", &["--insecure"]), Server::listening("0.0.0.0:0", toml, &[])] {
        let port = server.address().port();
        let log = server.log();
        assert!(log.contains(&format!("listens on http://0.0.0.0:{port}\n")), "{log}");
        assert!(log.contains("every address of this machine"), "{log}");
        assert!(log.contains("every program that reaches it may submit, see and cancel all jobs"), "{log}");
        // The file that it left can be used here.
        assert!(transcript(&mut beside(&server, &["agents", "list"])).starts_with("exit 0\n"));
    }
}

#[test]
fn a_banner_of_the_loopback_warns_of_nothing() {
    let server = Server::start();
    assert!(server.log().contains(&format!("listens on {}\n", server.url())), "{}", server.log());
    assert!(!server.log().contains("insecure"), "{}", server.log());
    assert_eq!(server.get("/health").json()["status"], json!("ok"));
}
