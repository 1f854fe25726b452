//! The log: a line per request and a line per transition, and no content of callers, agents or people.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::support::server::Server;

/// Marks content.
const SECRET: &str = "x7secret";

/// Small bodies and a short drain, and an agent that may be silent for a tenth of a second.
const SETTLED: &str = r#"
[server]
drain_seconds = 0.1
[limits]
body_bytes = 4096
[[agent]]
name = "echo"
contract = "builtin"
[[agent]]
name = "slow_echo"
contract = "builtin"
[[agent]]
name = "ask"
contract = "builtin"
[[agent]]
name = "fail"
contract = "builtin"
repeatable = true
[[agent]]
name = "mute"
contract = "builtin"
run = "slow_echo"
silence_seconds = 0.1
"#;

/// A server, and the requests that it was sent.
struct Watched {
    server: Server,
    requests: std::cell::RefCell<Vec<(String, String, u16)>>,
}

impl Watched {
    fn start(format: &str) -> Watched {
        let server = Server::with(SETTLED, &["--log", "debug", "--log-format", format]);
        Watched { server, requests: std::cell::RefCell::default() }
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Value {
        let answer = self.server.request(method, path, headers, body.as_bytes());
        let logged = path.split('?').next().unwrap_or(path).to_owned();
        self.requests.borrow_mut().push((method.to_owned(), logged, answer.status));
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &[], "")
    }

    fn post(&self, path: &str, body: &str) -> Value {
        self.ask("POST", path, &[], body)
    }

    /// Submits, waits for the outcome, and returns the id.
    fn done(&self, body: &str) -> String {
        let job = self.post("/api/v1/jobs?wait=60", body);
        assert!(job["outcome"].is_object(), "{job}");
        id(&job)
    }
}

fn id(job: &Value) -> String {
    job["id"].as_str().unwrap_or_else(|| panic!("a job has an id: {job}")).to_owned()
}

/// Work of every kind, with a secret in every place where content can be. Returns the ids of the jobs with their
/// transitions.
fn works(watched: &Watched) -> Vec<(String, Vec<&'static str>)> {
    let job = |work: &str, input: Value, more: Value| {
        let mut body = json!({"work": work, "input": input, SECRET: SECRET});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        body.to_string()
    };
    let hidden = json!({SECRET: SECRET});
    let echo = watched.done(&job("echo", hidden.clone(), json!({"request_id": "r1", "priority": "high"})));
    let slow = watched.done(&job("slow_echo", json!({"seconds": 0, SECRET: SECRET}), json!({})));
    let failed = watched.done(&job("fail", json!({"message": SECRET}), json!({})));
    let broken = json!({"message": SECRET, "failure": "broken_contract"});
    let broken = watched.done(&job("fail", broken, json!({})));
    let retried = json!({"message": SECRET, "failure": "unavailable"});
    let retried = watched.done(&job("fail", retried, json!({"limits": {"attempts": 2}})));
    let unknown = watched.done(&job("fail", json!({"failure": SECRET}), json!({})));
    let mute = watched.done(&job("mute", json!({"seconds": 30, SECRET: SECRET}), json!({"limits": {"attempts": 1}})));
    let long =
        watched.done(&job("slow_echo", json!({"seconds": 0}), json!({"limits": {"output_bytes": 3, SECRET: 1}})));
    let late = watched.done(&job("slow_echo", json!({"seconds": 30}), json!({"limits": {"seconds": 0.1}})));
    vec![
        (echo, vec!["accepted", "started", "completed"]),
        (slow, vec!["accepted", "started", "completed"]),
        (failed, vec!["accepted", "started", "failed"]),
        (broken, vec!["accepted", "started", "failed"]),
        (retried, vec!["accepted", "started", "retrying", "started", "failed"]),
        (unknown, vec!["accepted", "started", "failed"]),
        (mute, vec!["accepted", "started", "failed"]),
        (long, vec!["accepted", "started", "failed"]),
        (late, vec!["accepted", "started", "failed"]),
    ]
}

/// Requests that people make.
fn people(watched: &Watched) -> Vec<(String, Vec<&'static str>)> {
    let question = json!({"work": "ask", "input": {"prompt": format!("{SECRET}?")}}).to_string();
    let ask = id(&watched.post("/api/v1/jobs", &question));
    while watched.get(&format!("/api/v1/jobs/{ask}"))["state"] != "waiting" {}
    watched.post(&format!("/api/v1/jobs/{ask}/answer"), &format!("{{\"input\": {SECRET}}}"));
    watched.post(&format!("/api/v1/jobs/{ask}/answer"), &json!({SECRET: 1}).to_string());
    watched.post(&format!("/api/v1/jobs/{ask}/answer"), &json!({"input": {SECRET: SECRET}}).to_string());
    watched.get(&format!("/api/v1/jobs/{ask}?wait=60"));
    watched.post(&format!("/api/v1/jobs/{ask}/answer"), &json!({"input": SECRET}).to_string());
    watched.post(&format!("/api/v1/jobs/{ask}/cancel"), SECRET);
    let again = id(&watched.ask("POST", &format!("/api/v1/jobs/{ask}/retry"), &[("idempotency-key", "k1")], SECRET));
    while watched.get(&format!("/api/v1/jobs/{again}"))["state"] != "waiting" {}
    watched.post(&format!("/api/v1/jobs/{again}/retry"), "");
    watched.post(&format!("/api/v1/jobs/{again}/cancel"), SECRET);
    for job in [&ask, &again] {
        watched.get(&format!("/api/v1/jobs/{job}/events?after=0&{SECRET}={SECRET}"));
        watched.ask("GET", &format!("/api/v1/jobs/{job}/events"), &[("last-event-id", SECRET)], "");
        watched.get(&format!("/api/v1/jobs/{job}/document"));
    }
    let waited = vec!["accepted", "started", "waiting", "answered", "completed"];
    vec![(ask, waited), (again, vec!["accepted", "started", "waiting", "cancelled"])]
}

/// Mistakes of every kind.
fn mistakes(watched: &Watched) {
    let jobs = "/api/v1/jobs";
    for body in [
        SECRET.to_owned(),
        format!("{{\"work\": \"{SECRET}"),
        format!("[\"{SECRET}\"]"),
        json!({"work": SECRET}).to_string(),
        json!({"work": "echo", "agent": SECRET}).to_string(),
        json!({"work": "echo", "priority": SECRET}).to_string(),
        json!({"work": "echo", "limits": {"seconds": SECRET}}).to_string(),
        json!({"work": {SECRET: SECRET}}).to_string(),
        json!({"work": "echo", "request_id": "r1", "input": SECRET}).to_string(),
        json!({"work": "echo", "input": SECRET.repeat(1_000)}).to_string(),
    ] {
        let refused = watched.post(jobs, &body);
        assert!(refused["error"].is_object(), "{refused}");
    }
    for path in ["?state={}", "?limit={}", "?before={}", "?door={}", "?work={}", "?agent={}", "?{}={}", "?{}"] {
        watched.get(&format!("{jobs}{}", path.replace("{}", SECRET)));
    }
    let authorization = format!("Bearer {SECRET}");
    let headers = [("authorization", &*authorization), ("cookie", SECRET), ("x-anything", SECRET)];
    watched.ask("GET", jobs, &headers, "");
    watched.ask("POST", "/api/v1/jobs?wait=x7secret", &[], r#"{"work":"echo"}"#);
    watched.ask("DELETE", jobs, &[], SECRET);
    watched.post("/nowhere?x7secret", SECRET);
    // Bytes that are not a request get no line of their own.
    for bytes in [format!("{SECRET}\r\n\r\n"), format!("GET / HTTP/1.1\r\n{SECRET}\r\n\r\n")] {
        let mut stream = watched.server.connect();
        stream.write_all(bytes.as_bytes()).expect("it can be sent");
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
    }
    for what in ["drain", "breaker"] {
        watched.post(&format!("/api/v1/agents/echo/{what}"), &json!({"state": SECRET, "drained": SECRET}).to_string());
    }
}

/// Requests that operators make.
fn operators(watched: &Watched) {
    watched.get("/health");
    watched.get("/health/ready");
    watched.get("/api/v1/agents");
    watched.get("/api/v1/agents/echo");
    watched.get("/api/v1/agents/nobody");
    watched.post("/api/v1/agents/echo/drain", "");
    watched.post("/api/v1/agents/echo/drain", r#"{"drained":false}"#);
    watched.post("/api/v1/agents/echo/breaker", r#"{"state":"open"}"#);
    watched.post("/api/v1/agents/echo/breaker", r#"{"state":"closed"}"#);
}

#[test]
fn nothing_that_is_said_is_in_it_and_everything_that_happens_is_once() {
    let mut watched = Watched::start("json");
    let mut lives = works(&watched);
    lives.extend(people(&watched));
    mistakes(&watched);
    operators(&watched);
    assert!(watched.server.stop().success());
    let log = watched.server.log();
    holds_no_content(&log);
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for (job, transitions) in &lives {
        let of_it = lines.iter().filter(|line| line["job"] == **job && line["message"] != "request");
        // Rules that were broken are said beside.
        let of_it = of_it.filter(|line| line["clause"].is_null());
        let said: Vec<&str> = of_it.filter_map(|line| line["message"].as_str()).collect();
        assert_eq!(&said, transitions, "{job}");
    }
    let silent = |line: &&Value| line["clause"] == "ALL-4" && line["agent"] == "mute" && line["job"].is_string();
    assert_eq!(lines.iter().filter(silent).count(), 1, "{log}");
    let accepted = lines.iter().filter(|line| line["message"] == "accepted").count();
    assert_eq!(accepted, lives.len(), "{log}");
    let logged = lines.iter().filter(|line| line["message"] == "request").map(|line| {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        assert!(line["duration_ms"].is_number(), "{line}");
        (text("method"), text("path"), u16::try_from(line["status"].as_u64().unwrap_or_default()).unwrap_or_default())
    });
    let logged: Vec<_> = logged.collect();
    assert_eq!(logged, *watched.requests.borrow());
}

#[test]
fn as_text_it_holds_no_content_either() {
    let mut watched = Watched::start("text");
    let mut lives = works(&watched);
    lives.extend(people(&watched));
    mistakes(&watched);
    operators(&watched);
    assert!(watched.server.stop().success());
    let log = watched.server.log();
    holds_no_content(&log);
    let requests = log.lines().filter(|line| line.ends_with(" request")).count();
    assert_eq!(requests, watched.requests.borrow().len(), "{log}");
    for (job, transitions) in &lives {
        let of_it = log.lines().filter(|line| line.contains(&**job) && !line.ends_with(" request"));
        let of_it: Vec<&str> = of_it.filter(|line| !line.contains(" clause=")).collect();
        assert_eq!(of_it.len(), transitions.len(), "{of_it:?}");
        let in_order = of_it.iter().zip(transitions);
        assert!(in_order.clone().all(|(line, name)| line.ends_with(&format!(" {name}"))), "{of_it:?}");
    }
}

fn holds_no_content(log: &str) {
    let found: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(!log.contains("dropped"), "{log}");
}
