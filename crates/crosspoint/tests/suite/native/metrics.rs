//! `/metrics`: text that parses, numbers that agree with what was done, and no more series than allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;

use crate::native::openapi::python;
use crate::support::server::{Answer, Server, until};

/// A metric's name and its labels, as they are written.
type Series = (String, BTreeMap<String, String>);

struct Page(BTreeMap<Series, f64>);

impl Page {
    fn of(server: &Server) -> Page {
        let answer = server.get("/metrics");
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        Page::parse(&answer)
    }

    /// Parses strictly: each metric is announced once, and all its lines follow at once.
    fn parse(answer: &Answer) -> Page {
        let (mut page, mut announced) = (BTreeMap::new(), BTreeSet::new());
        let mut family = (String::new(), String::new());
        let text = answer.text();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("there is help");
                assert!(name.starts_with("crosspoint_") && help.ends_with('.') | help.contains("version"), "{line}");
                assert!(announced.insert(name.to_owned()), "{name} is announced twice");
                let kind =
                    lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")).map(str::to_owned));
                let kind = kind.unwrap_or_else(|| panic!("{name} has no type"));
                assert!(["gauge", "counter", "histogram"].contains(&kind.as_str()), "{kind}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                family = (name.to_owned(), kind);
                continue;
            }
            let (series, value) = sample(line);
            let of_family = match family.1.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| series.0 == format!("{}{end}", family.0)),
                _ => series.0 == family.0,
            };
            assert!(of_family, "{line} stands under {}", family.0);
            assert!(page.insert(series, value).is_none(), "{line} stands twice");
        }
        assert!(text.ends_with('\n'));
        Page(page)
    }

    fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.get(&(name.to_owned(), labels)).copied().unwrap_or(0.0)
    }

    /// The values of a label, over all metrics.
    fn values(&self, label: &str) -> BTreeSet<&str> {
        self.0.keys().filter_map(|(_, labels)| labels.get(label).map(String::as_str)).collect()
    }

    /// Checks that the buckets of each histogram grow, and that the last is the count. Returns the number of
    /// histograms.
    fn check_histograms(&self) -> usize {
        let mut histograms: BTreeMap<Series, Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), count) in &self.0 {
            let Some(name) = name.strip_suffix("_bucket") else { continue };
            let mut labels = labels.clone();
            let bound = labels.remove("le").expect("a bucket has a bound");
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("it is a number") };
            histograms.entry((name.to_owned(), labels)).or_default().push((bound, *count));
        }
        for ((name, labels), buckets) in &mut histograms {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {buckets:?}");
            let last = buckets.last().expect("there is one");
            let count = self.0[&(format!("{name}_count"), labels.clone())];
            assert_eq!((last.0, last.1), (f64::INFINITY, count), "{name}");
            let sum = self.0[&(format!("{name}_sum"), labels.clone())];
            // No value is smaller than the bucket below its own.
            let least: f64 = buckets.windows(2).map(|pair| (pair[1].1 - pair[0].1) * pair[0].0).sum();
            assert!(sum >= least - 1e-6 * count - 1e-9, "{name}: {sum} is less than {least}");
        }
        histograms.len()
    }
}

fn sample(line: &str) -> (Series, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a line has a value");
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
    assert!(value >= 0.0 && value.is_finite(), "{line}");
    let Some((name, labels)) = series.split_once('{') else { return ((series.to_owned(), BTreeMap::new()), value) };
    let mut rest = labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"));
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let end = (0..after.len()).find(|at| after.as_bytes()[*at] == b'"' && !escaped(&after[..*at]));
        let end = end.unwrap_or_else(|| panic!("{line}"));
        labels.insert(name.to_owned(), after[..end].to_owned());
        rest = after[end + 1..].strip_prefix(',').unwrap_or(&after[end + 1..]);
    }
    ((name.to_owned(), labels), value)
}

fn escaped(before: &str) -> bool {
    before.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// How often a limit was reached.
pub(crate) fn refusals(server: &Server, limit: &str) -> f64 {
    measured(server, "crosspoint_refusals_total", &[("limit", limit)])
}

/// One number, once the metrics can be read.
pub(crate) fn measured(server: &Server, name: &str, labels: &[(&str, &str)]) -> f64 {
    let answer = until("it can be asked", || Some(server.get("/metrics")).filter(|answer| answer.status == 200));
    Page::parse(&answer).get(name, labels)
}

fn ended<'a>(work: &'a str, outcome: &'a str, failure: &'a str) -> [(&'a str, &'a str); 4] {
    [("work", work), ("agent", work), ("outcome", outcome), ("failure", failure)]
}

#[test]
fn numbers_agree_with_what_was_done() {
    let server = Server::configured("[limits]\nbody_bytes = 1000\n");
    for _ in 0..7 {
        server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#);
    }
    for failure in ["timeout", "timeout", "internal"] {
        server.post("/api/v1/jobs?wait=60", &format!(r#"{{"work":"fail","input":{{"failure":"{failure}"}}}}"#));
    }
    server.post("/api/v1/jobs?wait=60", r#"{"work":"fail","input":{"failure":"timeout"},"limits":{"attempts":2}}"#);
    let waiting = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&waiting, "waiting");
    let stopped = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&stopped, "waiting");
    server.post(&format!("/api/v1/jobs/{stopped}/cancel"), "");
    for _ in 0..3 {
        assert_eq!(server.post("/api/v1/jobs", &" ".repeat(1001)).status, 413);
    }
    let page = Page::of(&server);
    assert!(page.check_histograms() >= 3 + 3 + 3, "of works, of agents, and of commits");
    assert_eq!(page.get("crosspoint_jobs", &[("state", "waiting")]), 1.0);
    assert_eq!(page.get("crosspoint_jobs_accepted_total", &[("work", "echo")]), 7.0);
    assert_eq!(page.get("crosspoint_jobs_accepted_total", &[("work", "fail")]), 4.0);
    assert_eq!(page.get("crosspoint_jobs_ended_total", &ended("echo", "completed", "")), 7.0);
    assert_eq!(page.get("crosspoint_jobs_ended_total", &ended("fail", "failed", "timeout")), 3.0);
    assert_eq!(page.get("crosspoint_jobs_ended_total", &ended("fail", "failed", "internal")), 1.0);
    assert_eq!(page.get("crosspoint_jobs_ended_total", &ended("ask", "cancelled", "")), 1.0);
    let attempts = |agent, outcome, failure| {
        page.get("crosspoint_attempts_total", &[("agent", agent), ("outcome", outcome), ("failure", failure)])
    };
    assert_eq!((attempts("echo", "completed", ""), attempts("fail", "failed", "timeout")), (7.0, 4.0));
    assert_eq!(attempts("ask", "cancelled", ""), 1.0);
    assert_eq!(page.get("crosspoint_job_seconds_count", &[("work", "fail")]), 4.0);
    assert_eq!(page.get("crosspoint_attempt_seconds_count", &[("agent", "fail")]), 5.0);
    assert!(page.get("crosspoint_job_seconds_sum", &[("work", "fail")]) >= 1.0, "one waited before its second attempt");
    assert_eq!(page.get("crosspoint_refusals_total", &[("limit", "body_bytes")]), 3.0);
    let requests = |method, route, status| {
        page.get("crosspoint_http_requests_total", &[("method", method), ("route", route), ("status", status)])
    };
    assert_eq!((requests("POST", "/api/v1/jobs", "200"), requests("POST", "/api/v1/jobs", "413")), (11.0, 3.0));
    assert_eq!(requests("POST", "/api/v1/jobs/{id}/cancel", "200"), 1.0);
    let commits = page.get("crosspoint_commit_seconds_count", &[]);
    assert!(commits >= 11.0 && commits == page.get("crosspoint_commit_sync_seconds_count", &[]), "{commits}");
    assert!(page.get("crosspoint_commit_commands_sum", &[]) >= commits / 2.0);
    for name in ["store_bytes", "store_log_bytes", "process_resident_memory_bytes", "process_open_files"] {
        assert!(page.get(&format!("crosspoint_{name}"), &[]) > 0.0, "{name}");
    }
    assert_eq!(page.get("crosspoint_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
}

#[test]
fn queues_agents_and_breakers_are_seen_as_they_are() {
    let agent = "[[agent]]\nname = \"one\"\ncontract = \"builtin\"\nrun = \"ask\"\nwork = [\"dig\"]\nconcurrency = 1\n";
    let other =
        "[[agent]]\nname = \"two\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\nwork = [\"fill\"]\nconcurrency = 2\n";
    let server = Server::configured(&format!("{agent}{other}"));
    server.post("/api/v1/agents/one/drain", "");
    for _ in 0..3 {
        server.submit(r#"{"work":"dig"}"#);
        server.submit(r#"{"work":"fill","input":{"seconds":600}}"#);
    }
    server.post("/api/v1/agents/one/breaker", r#"{"state":"open"}"#);
    let joining = r#"{"session":"5f0c6c1e-8d0a-4c2e-9d8b-0a4f3f2f9b11","work":["haul"],"concurrency":7}"#;
    assert_eq!(server.post("/api/v1/agents/three/join", joining).status, 200);
    let page = Page::of(&server);
    assert_eq!(page.get("crosspoint_agent_concurrency", &[("agent", "three")]), 7.0);
    assert_eq!(page.get("crosspoint_queue_jobs", &[("work", "dig")]), 3.0);
    assert_eq!(page.get("crosspoint_queue_jobs", &[("work", "fill")]), 1.0);
    assert_eq!(page.get("crosspoint_jobs", &[("state", "queued")]), 4.0);
    assert_eq!(page.get("crosspoint_jobs", &[("state", "running")]), 2.0);
    assert_eq!(page.get("crosspoint_agent_running", &[("agent", "two")]), 2.0);
    assert_eq!(page.get("crosspoint_agent_concurrency", &[("agent", "two")]), 2.0);
    assert_eq!(page.get("crosspoint_agent_drained", &[("agent", "one")]), 1.0);
    assert_eq!(page.get("crosspoint_agent_breaker", &[("agent", "one"), ("state", "open")]), 1.0);
    assert_eq!(page.get("crosspoint_agent_breaker", &[("agent", "one"), ("state", "closed")]), 0.0);
    assert_eq!(page.get("crosspoint_agent_breaker", &[("agent", "two"), ("state", "closed")]), 1.0);
    let oldest = page.get("crosspoint_queue_oldest_seconds", &[("work", "dig")]);
    until("it grows older", || {
        Some(Page::of(&server)).filter(|page| page.get("crosspoint_queue_oldest_seconds", &[("work", "dig")]) > oldest)
    });
}

#[test]
fn names_have_a_limit_and_callers_have_none() {
    const SECRET: &str = "x7secret";
    let agents: String = (0..300)
        .map(|n| {
            format!("[[agent]]\nname = \"agent-{n}\"\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [\"work-{n}\"]\n")
        })
        .collect();
    let server = Server::configured(&agents);
    for n in 0..300 {
        assert_eq!(server.post("/api/v1/jobs?wait=60", &format!(r#"{{"work":"work-{n}"}}"#)).status, 200);
    }
    assert_eq!(server.post("/api/v1/jobs", &format!(r#"{{"work":"{SECRET}"}}"#)).status, 400);
    assert_eq!(server.get(&format!("/{SECRET}")).status, 404);
    assert_eq!(server.request(SECRET, "/health", &[], b"").status, 405);
    let page = Page::of(&server);
    for label in ["work", "agent"] {
        let values = page.values(label);
        assert_eq!((values.len(), values.contains("other")), (201, true), "{label}");
    }
    let all: f64 = page.0.iter().filter(|((name, _), _)| name == "crosspoint_jobs_ended_total").map(|(_, n)| n).sum();
    assert_eq!(all, 300.0, "none is lost");
    assert_eq!(page.get("crosspoint_agent_breaker", &[("agent", "other"), ("state", "closed")]), 100.0);
    assert!(!server.fetch("/metrics").text().contains(SECRET));
    assert_eq!(
        page.get("crosspoint_http_requests_total", &[("method", "other"), ("route", "other"), ("status", "404")]),
        1.0
    );
}

#[test]
fn numbers_count_from_the_start() {
    let mut server = Server::start();
    server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#);
    let id = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&id, "waiting");
    server.kill();
    server.restart();
    server.in_state(&id, "waiting");
    let page = Page::of(&server);
    assert_eq!(page.get("crosspoint_jobs_accepted_total", &[("work", "echo")]), 0.0);
    assert_eq!(page.get("crosspoint_jobs", &[("state", "waiting")]), 1.0, "what is, is seen");
    let interrupted = [("agent", "ask"), ("outcome", "interrupted"), ("failure", "")];
    assert_eq!(page.get("crosspoint_attempts_total", &interrupted), 1.0, "the end of the first server was its end");
    assert_eq!(page.get("crosspoint_attempt_seconds_count", &[("agent", "ask")]), 0.0, "it is unknown when it began");
    server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input":"yes"}"#);
    server.ended(&id);
    assert_eq!(Page::of(&server).get("crosspoint_jobs_ended_total", &ended("ask", "completed", "")), 1.0);
}

/// Prometheus' own parser, in Python.
#[test]
fn another_parser_reads_the_same() {
    let server = Server::start();
    server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#);
    let answer = server.get("/metrics");
    let program = "import sys\nfrom prometheus_client.parser import text_string_to_metric_families as read\n\
        print(sum(len(f.samples) for f in read(sys.stdin.read()) if f.type != 'unknown' and f.documentation))";
    let mut parser = python("python");
    parser.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut parser = parser.spawn().expect("it starts");
    parser.stdin.take().expect("it reads").write_all(&answer.body).expect("it reads all");
    let output = parser.wait_with_output().expect("it ends");
    let count: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(count, Page::parse(&answer).0.len());
}
