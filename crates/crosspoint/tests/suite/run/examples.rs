//! The run agents of the examples keep the contract, and the caller of the examples reaches them through a server.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::native::openapi::python;
use crate::support::program::{crosspoint, root};
use crate::support::server::{Answer, PATIENCE, Server, until};

/// An id such as callers may have: it must come back unchanged.
const ID: &str = "Größe/\"1\"\n\u{1F980}";

/// One of the example agents, on a free port, until this is dropped.
struct Agent {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Agent {
    /// The agent that needs nothing but Python.
    fn plain() -> Agent {
        Agent::start(Command::new("python3"), "agent.py")
    }

    fn fastapi() -> Agent {
        Agent::start(python("python"), "agent_fastapi.py")
    }

    fn start(mut interpreter: Command, script: &str) -> Agent {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("crosspoint-example-{}-{number}.log", std::process::id()));
        interpreter.arg(root().join("examples/run").join(script)).args(["--port", "0"]);
        interpreter.stdout(Stdio::piped()).stderr(File::create(&log).expect("a log can be made"));
        let mut child = interpreter.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it has one")).read_line(&mut line).expect("it can be read");
        let address = line.strip_prefix("http://").and_then(|address| address.trim_end().parse().ok());
        let Some(address) = address else {
            let _ = child.kill();
            panic!("it said {line:?} and {}", fs::read_to_string(log).unwrap_or_default());
        };
        Agent { child, address, log }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket can have a timeout");
        BufReader::new(stream)
    }

    fn get(&self, path: &str) -> Answer {
        exchange(&mut self.connect(), "GET", path, b"")
    }

    fn post(&self, endpoint: &str, body: &[u8]) -> Answer {
        exchange(&mut self.connect(), "POST", &format!("/agents/run/{endpoint}"), body)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.log);
    }
}

/// One request over a connection that may have served others, and may serve more.
fn exchange(connection: &mut BufReader<TcpStream>, method: &str, path: &str, body: &[u8]) -> Answer {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("it takes it");
    Answer::read(connection).expect("it answers")
}

/// Validates a document against the contract; warnings count.
pub(crate) fn valid(kind: &str, document: &[u8]) {
    let mut validate = crosspoint(&["validate", "--strict", "--as", kind, "-"]);
    let output = validate.write_stdin(document).output().expect("it starts");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(document));
}

/// The names and data of the events of a stream that has neither comments nor data over several lines.
fn events(stream: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        let (name, data) = block.strip_prefix("event: ")?.split_once("\ndata: ")?;
        Some((name.to_owned(), serde_json::from_str(data).ok()?))
    };
    stream.split_terminator("\n\n").map(|block| event(block).unwrap_or_else(|| panic!("{block}"))).collect()
}

fn run_of(task_type: &str, inputs: &Value) -> Vec<u8> {
    json!({"request_id": ID, "task_type": task_type, "inputs": inputs, "tenant": "acme"}).to_string().into_bytes()
}

/// The result of a run, at both endpoints, which must agree.
fn result(agent: &Agent, task_type: &str, inputs: &Value) -> Value {
    let request = run_of(task_type, inputs);
    let sync = agent.post("sync", &request);
    assert_eq!((sync.status, sync.header("content-type")), (200, Some("application/json")), "{sync:?}");
    valid("run.response", &sync.body);
    let stream = agent.post("stream", &request);
    assert_eq!(stream.status, 200, "{stream:?}");
    assert!(stream.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")), "{stream:?}");
    valid("run.stream", &stream.body);
    let events = events(&stream.text());
    let (last, before) = events.split_last().expect("there are events");
    assert_eq!(before[0], ("started".to_owned(), json!({"request_id": ID, "task_type": task_type})));
    assert!(before[1..].iter().all(|(name, _)| name == "progress"), "{before:?}");
    assert_eq!((last.0.as_str(), &last.1["request_id"]), ("final", &json!(ID)));
    let (ended, task_type_of) = (sync.json(), &last.1["task_type"]);
    assert_eq!((&ended["request_id"], &ended["outputs"]), (&json!(ID), &last.1["outputs"]));
    assert_eq!((&ended["status"], task_type_of), (&last.1["status"], &json!(task_type)));
    ended
}

/// Checks that an agent keeps the contract when it is asked directly.
fn keeps_the_contract(agent: &Agent) {
    for path in ["/health", "/health/ready"] {
        let health = agent.get(path);
        assert!(health.status == 200 && health.json()["status"].is_string(), "{health:?}");
    }
    let counted = result(agent, "WORD_COUNT", &json!({"text": "ein Wort,\nzwei  Wörter"}));
    assert_eq!(counted["outputs"], json!({"words": 4, "characters": 22}));
    let lines = "one two three four five six\n\n seven \n";
    let summary = result(agent, "SUMMARISE_LINES", &json!({"text": lines}));
    assert_eq!(summary["outputs"], json!({"lines": ["one two three four five ...", "seven"]}));
    let failed = result(agent, "WORD_COUNT", &json!({"text": 7}));
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("error"), &json!("TASK_FAILED")), "{failed}");
    refuses_what_it_must(agent);
    // One connection serves several requests in a row, at both endpoints.
    let mut connection = agent.connect();
    for endpoint in ["sync", "stream", "sync", "stream"] {
        let path = format!("/agents/run/{endpoint}");
        let answer = exchange(&mut connection, "POST", &path, &run_of("WORD_COUNT", &json!({"text": "hush"})));
        assert!(answer.status == 200 && answer.text().contains("\"words\": 1"), "{answer:?}");
    }
    // The log shows which runs there were, and no content.
    let log = until("all runs are logged", || {
        Some(fs::read_to_string(&agent.log).expect("it is there")).filter(|log| log.lines().count() >= 10)
    });
    let known = ["duration_ms", "request_id", "status", "task_type"];
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {log}"));
        assert_eq!(
            (line["request_id"].as_str(), line.as_object().map(serde_json::Map::len)),
            (Some(ID), Some(4)),
            "{log}"
        );
        assert!(known.iter().all(|name| line.get(name).is_some()), "{log}");
    }
}

/// Bodies that are not a run, and whether the id in them can be read.
const MALFORMED: [(&str, bool); 8] = [
    ("", false),
    ("{\"request_id\": ", false),
    ("[]", false),
    (r#"{"task_type": "WORD_COUNT"}"#, false),
    (r#"{"request_id": "", "task_type": "WORD_COUNT"}"#, false),
    (r#"{"request_id": 7, "task_type": "WORD_COUNT"}"#, false),
    (r#"{"request_id": "known"}"#, true),
    (r#"{"request_id": "known", "task_type": "WORD_COUNT", "inputs": []}"#, true),
];

fn refuses_what_it_must(agent: &Agent) {
    let refused = |endpoint: &str, body: &[u8], code: &str| {
        let answer = agent.post(endpoint, body);
        valid("run.response", &answer.body);
        let said = answer.json();
        assert_eq!((answer.status, &said["ok"], &said["error"]["code"]), (400, &json!(false), &json!(code)), "{said}");
        said
    };
    for endpoint in ["sync", "stream"] {
        let unsupported = refused(endpoint, &run_of("NOBODY_DOES_THIS", &json!({})), "UNSUPPORTED_TASK_TYPE");
        assert_eq!((&unsupported["request_id"], &unsupported["outputs"]), (&json!(ID), &json!({})));
        for (body, known) in MALFORMED {
            let said = refused(endpoint, body.as_bytes(), "VALIDATION_ERROR");
            assert_eq!(said["request_id"] == "known", known, "{body}: {said}");
            assert_eq!(said["warnings"].as_array().map(Vec::len), Some(usize::from(!known)), "{body}: {said}");
        }
        refused(endpoint, b"\"\xff\"", "VALIDATION_ERROR");
        refused(endpoint, "[".repeat(100_000).as_bytes(), "VALIDATION_ERROR");
        // JSON can escape half a character, and no answer could echo that.
        refused(endpoint, br#"{"request_id": "\ud83e", "task_type": "WORD_COUNT"}"#, "VALIDATION_ERROR");
    }
    let elsewhere = agent.post("nowhere", b"{}");
    assert_eq!(elsewhere.status, 404, "{elsewhere:?}");
}

#[test]
fn the_agent_of_the_standard_library_keeps_the_contract() {
    keeps_the_contract(&Agent::plain());
}

#[test]
fn the_agent_with_fastapi_keeps_the_contract() {
    keeps_the_contract(&Agent::fastapi());
}

#[test]
fn what_the_example_needs_is_what_the_tests_have() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("it is there");
    let (needed, tools) = (read("examples/run/requirements.txt"), read("scripts/python-tools.txt"));
    let pins: Vec<&str> = needed.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(pins.len(), 2, "{pins:?}");
    for pin in pins {
        assert!(pin.contains("==") && tools.lines().any(|line| line == pin), "{pin}");
    }
}

/// A server with the configuration of the example, except for the agent's address.
fn server_with(agent: &Agent) -> Server {
    let toml = fs::read_to_string(root().join("examples/run/crosspoint.toml")).expect("it is there");
    let settled = toml.replace("127.0.0.1:8000", &agent.address.to_string());
    assert_ne!(settled, toml, "the example names the port of the README");
    Server::configured(&settled)
}

/// Runs a script of the examples as people do, and returns what it prints.
pub(crate) fn script(path: &str, server: &Server) -> String {
    // The timeout only ends what hangs.
    let mut script = Command::new("timeout");
    script.args(["120", path, &server.url()]).current_dir(root()).env_remove("HOME");
    let output = script.output().expect("it starts");
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}{wrong}\n{}", output.status, server.log());
    assert_eq!(wrong, "", "{said}");
    said.into_owned()
}

/// The output of a script, part by part: each begins with a line that names it.
pub(crate) fn parts(said: &str) -> Vec<(&str, &str)> {
    said.split("\n== ").skip(1).map(|part| part.split_once('\n').expect("a line ends")).collect()
}

/// Runs the caller of the examples, and checks its output and its jobs.
fn is_reached(agent: &Agent) {
    let server = server_with(agent);
    let said = script("examples/run/call.sh", &server);
    let parts = parts(&said);
    let [counted, again, followed, refused] = parts[..] else { panic!("{said}") };
    valid("run.response", counted.1.as_bytes());
    let answer: Value = serde_json::from_str(counted.1).expect("it is JSON");
    assert_eq!((&answer["ok"], &answer["outputs"]), (&json!(true), &json!({"words": 5, "characters": 26})), "{said}");
    assert_eq!(again.1, "the same answer, byte for byte\n");
    valid("run.stream", followed.1.as_bytes());
    let events = events(followed.1);
    let ((first, _), (last, end)) = (&events[0], &events[events.len() - 1]);
    assert_eq!((first.as_str(), last.as_str()), ("started", "final"), "{said}");
    assert_eq!(end["outputs"], json!({"lines": ["the first line is rather ...", "the second is not"]}), "{said}");
    let (document, status) = refused.1.trim_end().rsplit_once('\n').expect("it is followed by the status");
    valid("run.response", document.as_bytes());
    assert!(document.contains("UNSUPPORTED_TASK_TYPE") && status == "HTTP 400", "{said}");
    let listed = server.get("/api/v1/jobs?door=run").json();
    let jobs = listed["jobs"].as_array().expect("there are jobs");
    assert_eq!(jobs.len(), 2, "the repeat and the refusal made none: {listed}");
    for job in jobs {
        assert_eq!((&job["state"], &job["agent"], &job["attempts"]), (&json!("completed"), &json!("words"), &json!(1)));
        let job = server.job(job["id"].as_str().expect("it has an id"));
        assert!(job.get("violations").is_none_or(|list| list.as_array().is_some_and(Vec::is_empty)), "{job}");
    }
}

#[test]
fn the_caller_of_the_examples_reaches_the_agent_of_the_standard_library() {
    is_reached(&Agent::plain());
}

#[test]
fn the_caller_of_the_examples_reaches_the_agent_with_fastapi() {
    is_reached(&Agent::fastapi());
}

/// The curl commands of a page of the examples, with the address replaced.
pub(crate) fn pasted(page: &str, server: &Server) -> String {
    let page = fs::read_to_string(root().join(page)).expect("it is there");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let commands: String = blocks.filter(|block| block.starts_with("curl ")).collect();
    let settled = commands.replace("http://127.0.0.1:7420", &server.url());
    assert_ne!(settled, commands, "the page has none");
    let mut shell = Command::new("timeout");
    let output = shell.args(["120", "bash", "-ec", &settled]).current_dir(root()).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[test]
fn the_commands_of_the_page_about_run_work() {
    let agent = Agent::plain();
    let server = server_with(&agent);
    let said = pasted("examples/run/README.md", &server);
    valid("task.response", said.as_bytes());
    let task: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!((&task["status"], &task["result"]["words"]), (&json!("completed"), &json!(5)), "{said}");
}
