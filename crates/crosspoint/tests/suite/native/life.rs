//! A server's life: how it starts, how it ends, and what is there when it starts again.

use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::program::{crosspoint, transcript};
use crate::support::server::{Answer, Server, chunk, head, until};

/// Attempts under way must not delay the end of a test.
const SHORT: &str = "[server]\ndrain_seconds = 1\n";

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

#[test]
fn it_says_where_it_is_and_what_to_try_and_leaves_its_address() {
    let mut server = Server::start();
    let said = server.log();
    for part in
        [&server.url(), "data/jobs.db", "slow_echo", "crosspoint submit slow_echo --input '{\"message\":\"hello\"}'"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    let file = server.data().join("server.json");
    let known: Value = serde_json::from_slice(&fs::read(&file).expect("it is there")).expect("it is JSON");
    assert_eq!((&known["url"], &known["pid"]), (&json!(server.url()), &json!(server.pid())));
    assert_eq!(known["version"], env!("CARGO_PKG_VERSION"));
    assert!(known["started_at"].is_string());
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(server.stop().code(), Some(0));
    assert!(!file.exists(), "a server that is gone has no address");
    assert_eq!(
        fs::read_dir(server.data())
            .expect("it is there")
            .filter(|entry| {
                entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("server"))
            })
            .count(),
        0
    );
}

#[test]
fn a_taken_port_and_a_taken_store_are_said_clearly() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = holder.local_addr().expect("it has an address").to_string();
    let directory = std::env::temp_dir().join(format!("crosspoint-taken-{}", std::process::id()));
    let data = directory.to_str().expect("UTF-8");
    let said = transcript(&mut crosspoint(&["serve", "--listen", &address, "--data", data]));
    assert!(said.starts_with("exit 2\n--- stdout\n--- stderr\nerror: cannot listen on 127.0.0.1:"), "{said}");
    assert!(said.contains("\nhint: another program has it"), "{said}");
    assert!(!directory.exists(), "nothing was made");
    let server = Server::start();
    let output = server.command().output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(server.log().contains("jobs.db is in use by another process"), "{}", server.log());
    assert_eq!(server.get("/health/ready").status, 200, "the first one is not disturbed");
}

#[test]
fn streams_and_waits_end_with_it_and_work_is_refused_meanwhile() {
    let mut server = Server::configured("[server]\ndrain_seconds = 60\n");
    let ask = id(&server.submit(r#"{"work":"ask"}"#));
    let slow = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":1}}"#));
    server.in_state(&ask, "waiting");
    server.in_state(&slow, "running");
    let mut stream = server.connect();
    let path = format!("/api/v1/jobs/{ask}/events");
    stream.write_all(head("GET", &path, &[], 0).as_bytes()).expect("it can be sent");
    let mut waiting = server.connect();
    let path = format!("/api/v1/jobs/{ask}?wait=300");
    waiting.write_all(head("GET", &path, &[], 0).as_bytes()).expect("it can be sent");
    let mut submitting = server.connect();
    let body = r#"{"work":"ask","request_id":"asked"}"#;
    let request = head("POST", "/api/v1/jobs?wait=300", &[], body.len()) + body;
    submitting.write_all(request.as_bytes()).expect("it can be sent");
    // All three are under way: the third has become a job.
    until("the job of the caller that waits", || {
        (server.get("/api/v1/jobs?work=ask").json()["jobs"].as_array()?.len() == 2).then_some(())
    });
    server.signal("TERM");
    let answer = Answer::read(&mut BufReader::new(submitting)).expect("it is answered");
    assert_eq!((answer.status, &answer.json()["work"]), (202, &json!("ask")));
    let answer = Answer::read(&mut BufReader::new(waiting)).expect("it is answered");
    assert_eq!((answer.status, &answer.json()["state"]), (200, &json!("waiting")));
    let answer = Answer::read(&mut BufReader::new(stream)).expect("the stream ends as streams end");
    assert!(answer.text().contains("event: question"), "{}", answer.text());
    let ready = server.get("/health/ready");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("stopping")));
    let refused = server.post("/api/v1/jobs", r#"{"work":"echo"}"#);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(refused.json()["error"]["repeat"], "safe");
    let repeated = server.post("/api/v1/jobs", body);
    assert_eq!((repeated.status, &repeated.json()["request_id"]), (202, &json!("asked")), "it is the same job");
    let status = server.wait();
    assert_eq!(status.code(), Some(0), "{}", server.log());
    server.restart();
    let job = server.job(&slow);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "it had the time to end");
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let mut server = Server::configured("[server]\ndrain_seconds = 3600\n");
    let job = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":3600}}"#));
    server.in_state(&job, "running");
    server.signal("INT");
    until("it stops", || (server.get("/health/ready").status == 503).then_some(()));
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(130));
    server.restart();
    assert_eq!(server.in_state(&job, "running")["attempts"], 2, "what was cut short is taken up");
}

#[test]
fn what_was_under_way_when_it_was_killed_is_taken_up_again() {
    let mut server = Server::configured(SHORT);
    let done = server.post("/api/v1/jobs?wait=60", r#"{"work":"echo","input":1,"request_id":"done"}"#).json();
    let slow = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":0.5}}"#));
    let ask = id(&server.submit(r#"{"work":"ask","input":{"prompt":"Who?"}}"#));
    server.in_state(&slow, "running");
    server.in_state(&ask, "waiting");
    server.post("/api/v1/agents/fail/drain", "");
    let queued = id(&server.submit(r#"{"work":"fail"}"#));
    server.kill();
    server.restart();
    assert_eq!(server.job(&id(&done)), done);
    let again = server.submit(r#"{"work":"echo","input":1,"request_id":"done"}"#);
    assert_eq!(again, done, "a repeat is still one");
    let ended = server.ended(&slow);
    assert_eq!((&ended["state"], &ended["attempts"]), (&json!("completed"), &json!(2)));
    let events = server.get(&format!("/api/v1/jobs/{slow}/events")).text();
    assert!(events.contains("event: interrupted"), "{events}");
    assert_eq!(server.in_state(&ask, "waiting")["question"]["prompt"], "Who?");
    server.post(&format!("/api/v1/jobs/{ask}/answer"), r#"{"input":"me"}"#);
    assert_eq!(server.ended(&ask)["outcome"]["outputs"], json!({"answer": "me"}));
    let waits = server.job(&queued);
    assert_eq!(waits["state"], "queued", "what an operator has settled holds: {waits}");
    server.post("/api/v1/agents/fail/drain", r#"{"drained":false}"#);
    assert_eq!(server.ended(&queued)["state"], "failed");
}

#[test]
fn an_agent_that_must_not_repeat_does_not() {
    let mut server = Server::configured(
        "[[agent]]\nname = \"once\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\nwork = [\"w\"]\nrepeatable = false\n",
    );
    let job = id(&server.submit(r#"{"work":"w","input":{"seconds":600}}"#));
    server.in_state(&job, "running");
    server.kill();
    server.restart();
    let failure = &server.ended(&job)["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("unknown")));
}

#[test]
fn a_stream_is_followed_as_it_happens() {
    let server = Server::start();
    let job = id(&server.submit(r#"{"work":"ask","input":{"prompt":"Now?"}}"#));
    let mut stream = server.connect();
    let request = head("GET", &format!("/api/v1/jobs/{job}/events"), &[], 0);
    stream.write_all(request.as_bytes()).expect("it can be sent");
    let mut stream = BufReader::new(stream);
    let mut said = String::new();
    while !said.contains("\r\n\r\n") {
        std::io::BufRead::read_line(&mut stream, &mut said).expect("the head comes");
    }
    let mut next = || {
        let chunk = chunk(&mut stream).expect("chunks are whole");
        chunk.map(|chunk| String::from_utf8(chunk).expect("it is UTF-8"))
    };
    let mut events = String::new();
    while !events.contains("event: question") {
        events += &next().expect("the question comes before the end");
    }
    server.post(&format!("/api/v1/jobs/{job}/answer"), r#"{"input":"yes"}"#);
    while let Some(more) = next() {
        events += &more;
    }
    let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["accepted", "started", "question", "answer", "completed"]);
}

#[test]
fn the_log_has_a_line_a_request_and_a_transition_and_no_content() {
    let mut server = Server::with(SHORT, &["--log-format", "json"]);
    let secret = r#"{"work":"echo","input":"secret"}"#;
    let job = id(&server.post("/api/v1/jobs?wait=60", secret).json());
    server.post("/api/v1/jobs", "{secret");
    server.get("/api/v1/jobs?work=secret");
    server.stop();
    let log = server.log();
    assert!(!log.contains("secret"), "{log}");
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<&Value>>();
    for transition in ["accepted", "started", "completed"] {
        assert_eq!(of(transition).iter().map(|line| &line["job"]).collect::<Vec<_>>(), [&json!(job)], "{transition}");
    }
    let requests = of("request");
    let statuses: Vec<&Value> = requests.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [200, 400, 200], "{log}");
    assert_eq!((&requests[0]["job"], &requests[0]["path"]), (&json!(job), &json!("/api/v1/jobs")));
    assert!(requests[0]["duration_ms"].is_number() && requests[0]["method"] == "POST");
}

#[test]
fn a_line_for_people_begins_with_the_job_and_ends_with_what_happened() {
    let mut server = Server::configured(SHORT);
    let job = id(&server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).json());
    server.get(&format!("/api/v1/jobs/{job}"));
    server.get("/api/v1/jobs/nobody");
    server.stop();
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter_map(|line| Some(line.split_once("Z  INFO ")?.1)).collect();
    let begun = format!("job={job} ");
    for message in [" accepted", " started", " completed", " request"] {
        assert!(lines.iter().any(|line| line.starts_with(&begun) && line.ends_with(message)), "{message} in {log}");
    }
    let strange = lines.iter().find(|line| line.contains("/api/v1/jobs/nobody")).expect("it is logged");
    assert!(!strange.contains("job="), "only an id is one: {strange}");
}
