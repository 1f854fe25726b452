//! Functions that are agents (`crosspoint-agent`), reached by a server in every contract that they serve.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use crosspoint_agent::{Agent, Context, Failure, Url};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;

use crate::support::program::crosspoint;
use crate::support::reader::Reader;
use crate::support::scripted_agent::configuration;
use crate::support::server::{Server, exchange, until};

async fn sum(input: Value, context: Context) -> Result<Value, Failure> {
    context.progress(50.0, "Adding");
    let numbers = input["of"].as_array().ok_or_else(|| Failure::new("there is nothing to add").code("NOTHING"))?;
    Ok(json!({"sum": numbers.iter().filter_map(Value::as_i64).sum::<i64>()}))
}

async fn asks(_: Value, context: Context) -> Result<Value, Failure> {
    let zone: String = context.ask("Which zone?", None).await?;
    Ok(json!({"zone": zone}))
}

/// Prints before it fails.
async fn prints_and_fails(_: Value, context: Context) -> Result<Value, Failure> {
    context.output().write_all(b"looked at 3 places\n").await?;
    Err(Failure::new("there is no place left").code("NO_PLACE"))
}

/// Prints before it asks, and while it does.
async fn prints_and_asks(_: Value, context: Context) -> Result<Value, Failure> {
    context.progress(20.0, "Look");
    context.output().write_all(b"looked\n").await?;
    let zone: String = context.ask("Which zone?", None).await?;
    Ok(json!({"zone": zone}))
}

/// The contracts that the function is called in, and how an agent of each is configured.
const WAYS: [(&str, &str); 4] = [
    ("run", "url = \"http://ADDRESS\""),
    ("task", "url = \"http://ADDRESS\""),
    ("message", "via = \"push:http://ADDRESS\""),
    ("workflow", "url = \"http://ADDRESS/agents/adder/envelope\""),
];

fn agent() -> Agent {
    let agent = Agent::new("adder").on("task_asks", asks).on("pulled_sum", sum).forgetful();
    WAYS.iter().fold(agent, |agent, (way, _)| agent.on(&format!("{way}_sum"), sum))
}

/// Something that runs in a runtime of its own, until this value is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn start<F: Future<Output = std::io::Result<()>>>(
        run: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> Running {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(run(stopped))
        });
        Running { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            panic!("{error}");
        }
    }
}

/// Serves an agent on a free port.
pub(crate) fn serve(agent: Agent) -> (SocketAddr, Running) {
    serve_at(SocketAddr::from(([127, 0, 0, 1], 0)), agent)
}

fn serve_at(address: SocketAddr, agent: Agent) -> (SocketAddr, Running) {
    let listener = std::net::TcpListener::bind(address).expect("the port is free");
    listener.set_nonblocking(true).expect("it can be set");
    let address = listener.local_addr().expect("it has an address");
    let running = Running::start(|stopped| async move {
        agent.serve(tokio::net::TcpListener::from_std(listener)?, async { drop(stopped.await) }).await
    });
    (address, running)
}

fn server_for(address: SocketAddr) -> Server {
    let agent = |(way, place): &(&str, &str)| {
        let place = place.replace("ADDRESS", &address.to_string());
        let more = if *way == "task" { ", \"task_asks\"" } else { "" };
        format!("[[agent]]\nname = \"{way}-adder\"\ncontract = \"{way}\"\n{place}\nwork = [\"{way}_sum\"{more}]\n")
    };
    Server::configured(&WAYS.iter().map(agent).collect::<String>())
}

#[test]
fn a_function_is_an_agent_of_a_server_in_every_contract() {
    let (address, _running) = serve(agent());
    let server = server_for(address);
    for (way, _) in WAYS {
        let body = json!({"work": format!("{way}_sum"), "input": {"of": [1, 2, 39]}}).to_string();
        let job = server.post("/api/v1/jobs?wait=60", &body).json();
        assert_eq!(job["state"], "completed", "{way}: {job}");
        assert!(job["outcome"].to_string().contains("42"), "{way}: {job}");
        let body = json!({"work": format!("{way}_sum"), "input": {"none": true}}).to_string();
        let failed = server.post("/api/v1/jobs?wait=60", &body).json();
        assert_eq!(failed["state"], "failed", "{way}: {failed}");
        assert!(failed["outcome"].to_string().contains("there is nothing to add"), "{way}: {failed}");
    }
    let asked = server.begin("task_asks");
    server.in_state(&asked, "waiting");
    assert_eq!(server.post(&format!("/api/v1/jobs/{asked}/answer"), r#"{"input": "north"}"#).status, 200);
    assert_eq!(server.ended(&asked)["outcome"]["outputs"], json!({"zone": "north"}));
}

/// Sends work that only an agent which pulls has, once one has registered.
fn pulled_work_is_done(server: &Server) {
    let body = json!({"work": "pulled_sum", "input": {"of": [40, 2]}}).to_string();
    until("it has registered", || (server.post("/api/v1/jobs", &body).status == 202).then_some(()));
    let job = server.post("/api/v1/jobs?wait=60", &body).json();
    assert_eq!(job["state"], "completed", "{job}");
    assert!(job["outcome"].to_string().contains("42"), "{job}");
}

/// What was printed before the failure stands beside its words, at every door.
#[test]
fn a_function_that_prints_before_it_fails_keeps_its_words() {
    let (address, _running) = serve(Agent::new("placer").on("place", prints_and_fails).forgetful());
    let keys = "contract = \"message\"\nwork = [\"place\"]";
    let server =
        Server::configured(&format!("[[agent]]\nname = \"placer\"\n{keys}\nvia = \"push:http://{address}\"\n"));
    let run = json!({"request_id": "r-1", "task_type": "place"});
    let task = json!({"id": "550e8400-e29b-41d4-a716-446655440000", "type": "place", "payload": {}});
    let context = json!({"feature_id": null, "workflow": "try", "iteration": 1});
    let envelope = json!({"context": context, "paths": {}, "task": {"action": "place", "params": {}}});
    let ids = "550e8400-e29b-41d4-a716-446655440003";
    let message = json!({
        "protocol_version": "1.0", "message_id": ids, "request_id": ids, "trace_id": ids,
        "from_agent": "orchestrator", "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z",
        "type": "work_request", "payload": {"task_id": ids, "work_type": "place", "parameters": {}},
    });
    for (path, body, at) in [
        ("/agents/run/sync", run, "/error/message"),
        ("/tasks?wait=60", task, "/error/message"),
        ("/agents/placer/envelope", envelope, "/summary"),
        ("/api/agent/message?wait=60", message, "/payload/output"),
    ] {
        let answer = server.post(path, &body.to_string()).json();
        assert_eq!(answer.pointer(at), Some(&json!("there is no place left")), "{path}: {answer}");
        assert!(answer.to_string().contains("looked at 3 places"), "{path}: {answer}");
        assert!(!answer.to_string().contains(r#""output":null"#), "{path}: {answer}");
    }
}

/// The question is there at once, and stays; what was printed is no step.
#[test]
fn a_question_of_a_function_is_shown_at_once_and_stays() {
    let (address, _running) = serve(Agent::new("pushed").on("pushed_asks", prints_and_asks).forgetful());
    let keys = "contract = \"message\"\nwork = [\"pushed_asks\"]";
    let server =
        Server::configured(&format!("[[agent]]\nname = \"pushed\"\n{keys}\nvia = \"push:http://{address}\"\n"));
    let pulling = Agent::new("pulled").on("pulled_asks", prints_and_asks).forgetful();
    let pulling = pulling.connect(server.url().parse().expect("an address"));
    let _pulling = Running::start(|stopped| pulling.pull(async { drop(stopped.await) }));
    for work in ["pushed_asks", "pulled_asks"] {
        let body = json!({"work": work}).to_string();
        let begun = until("it is known", || Some(server.post("/api/v1/jobs", &body)).filter(|job| job.status == 202));
        let id = begun.json()["id"].as_str().expect("an id").to_owned();
        server.in_state(&id, "waiting");
        until("it is printed", || {
            let output = server.get(&format!("/api/v1/jobs/{id}/output")).text();
            (output == "looked\n" || work == "pushed_asks").then_some(())
        });
        let job = server.job(&id);
        assert_eq!((&job["state"], &job["progress"]["step"]), (&json!("waiting"), &json!("Look")), "{job:#}");
        assert_eq!(server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "north"}"#).status, 200);
        let job = server.ended(&id);
        assert!(job["outcome"].to_string().contains("north"), "{job:#}");
        let events = server.get(&format!("/api/v1/jobs/{id}/events?follow=false")).text();
        assert_eq!(events.matches("event: question").count(), 1, "it was never taken back: {events}");
    }
}

/// MSG-12.
#[test]
fn a_function_that_pulls_and_is_stopped_gets_no_more_work() {
    let server = Server::start();
    let url: Url = server.url().parse().expect("an address");
    let pulling = agent().connect(url);
    let running = Running::start(|stopped| pulling.pull(async { drop(stopped.await) }));
    pulled_work_is_done(&server);
    drop(running);
    assert_eq!(server.agent("adder")["heartbeat"]["status"], "offline");
    until("it is away", || server.agent("adder")["away_since"].is_string().then_some(()));
}

#[test]
fn a_function_pulls_its_work_and_needs_no_address() {
    let server = Server::start();
    let url: Url = server.url().parse().expect("an address");
    let pulling = agent().agent_type("infra").connect(url);
    let _running = Running::start(|stopped| pulling.pull(async { drop(stopped.await) }));
    pulled_work_is_done(&server);
}

#[test]
fn a_function_that_is_served_pulls_work_too() {
    let server = Server::start();
    let url: Url = server.url().parse().expect("an address");
    let (address, _running) = serve(agent().connect(url));
    pulled_work_is_done(&server);
    let run = json!({"request_id": "r-1", "task_type": "run_sum", "inputs": {"of": [40, 2]}}).to_string();
    let run = exchange(address, "POST", "/agents/run/sync", &[], run.as_bytes()).expect("it answers");
    assert_eq!(run.json()["outputs"], json!({"sum": 42}), "{run:?}");
}

async fn two_words(_: Value, context: Context) -> Result<Value, Failure> {
    let first: String = context.ask("First?", None).await?;
    let second: String = context.ask("Second?", None).await?;
    Ok(json!({"first": first, "second": second}))
}

#[test]
fn a_person_is_asked_once_though_the_agent_ends_between_two_questions() {
    let server = Server::start();
    let url: Url = server.url().parse().expect("an address");
    let path = std::env::temp_dir().join(format!("crosspoint-asked-once-{}", std::process::id()));
    let pull = || {
        let agent = Agent::new("asker").on("two_words", two_words).connect(url.clone());
        let agent = agent.answers(&path).drain(std::time::Duration::ZERO);
        Running::start(|stopped| agent.pull(async { drop(stopped.await) }))
    };
    let running = pull();
    let body = json!({"work": "two_words", "input": {}}).to_string();
    let job = until("it has registered", || {
        Some(server.post("/api/v1/jobs", &body)).filter(|taken| taken.status == 202).map(|taken| taken.json())
    });
    let id = job["id"].as_str().expect("it has an id").to_owned();
    let asks = |prompt: &str| until(prompt, || (server.job(&id)["question"]["prompt"] == prompt).then_some(()));
    let answer = |text: &str| {
        let answer = json!({"input": text}).to_string();
        until("it is asked", || {
            (server.post(&format!("/api/v1/jobs/{id}/answer"), &answer).status == 200).then_some(())
        });
    };
    asks("First?");
    answer("one");
    asks("Second?");
    drop(running);
    let _running = pull();
    answer("two");
    let done = server.ended(&id);
    assert_eq!(done["outcome"]["outputs"], json!({"first": "one", "second": "two"}), "{done}");
    let _ = std::fs::remove_file(&path);
}

/// ALL-2: an envelope that is posted again has the same `Idempotency-Key`, and joins the work that it began.
#[test]
fn an_envelope_that_is_sent_again_is_done_once() {
    let (begun, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let (counted, opened) = (begun.clone(), gate.clone());
    let plan = move |_: Value, _: Context| {
        let (counted, opened) = (counted.clone(), opened.clone());
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            let _open = opened.acquire().await?;
            Ok::<_, Failure>(json!({"planned": true}))
        }
    };
    let (address, _running) = serve(Agent::new("planner").on("plan", plan).forgetful());
    let url = format!("http://{address}/agents/planner/envelope");
    let mut server = Server::configured(&configuration("plan", "workflow", &url, "repeatable = true"));
    let id = server.begin("plan");
    until("it is begun", || (begun.load(Ordering::SeqCst) > 0).then_some(()));
    server.kill();
    server.restart();
    gate.add_permits(1);
    assert_eq!(server.ended(&id)["outcome"]["outputs"], json!({"planned": true}));
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

async fn echo(input: Value, context: Context) -> Result<Value, Failure> {
    context.progress(50.0, "Echoing");
    Ok(input)
}

/// The agent of the page is the crate's example, which has a test there.
#[test]
fn the_page_about_functions_shows_what_a_reader_gets() {
    let mut reader = Reader::new("functions");
    let (_, _running) = serve_at(reader.agent, Agent::new("echo").on("echo", echo).forgetful());
    reader.follow("docs/sdk.md", "## Calling it in each contract");
    assert_eq!(reader.answers, WAYS.len());
    reader.follow("docs/sdk.md", "## Behind a server");
    for (way, _) in WAYS {
        let body = json!({"work": "echo", "agent": format!("echo-{way}"), "input": {"way": way}}).to_string();
        let job = exchange(reader.server, "POST", "/api/v1/jobs?wait=60", &[], body.as_bytes()).expect("it answers");
        assert_eq!(job.json()["state"], "completed", "{way}: {job:?}");
    }
    reader.jobs_went_well();
}

/// An operator sees which agent it is, where it should be, and why it is not reached.
#[test]
fn an_agent_that_does_not_run_is_shown_with_its_address_and_the_cause() {
    let (address, running) = serve(agent());
    let server = server_for(address);
    let job = server.post("/api/v1/jobs?wait=60", &json!({"work": "run_sum", "input": {"of": [1]}}).to_string());
    assert_eq!(job.json()["state"], "completed", "{job:?}");
    let shown = server.agent("run-adder");
    assert_eq!(shown["address"], format!("http://{address}/"), "{shown:#}");
    assert!(shown.get("cannot_connect").is_none(), "{shown:#}");
    drop(running);
    server.post("/api/v1/jobs?wait=60", &json!({"work": "run_sum", "limits": {"seconds": 1}}).to_string());
    let shown = server.agent("run-adder");
    assert!(shown["cannot_connect"].as_str().is_some_and(|cause| cause.contains("refused")), "{shown:#}");
    let mut command = crosspoint(&["agents", "show", "run-adder", "--server", &server.url()]);
    let text = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
    assert!(text.contains(&format!("address     http://{address}/")) && text.contains("unreached   "), "{text}");
    let log = server.log();
    assert!(log.lines().any(|line| line.contains("cannot be connected to") && line.contains("run-adder")), "{log}");
}
