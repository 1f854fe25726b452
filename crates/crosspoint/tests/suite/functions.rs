//! Functions that are agents (`crosspoint-agent`), reached by a server in every contract that they serve.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use crosspoint_agent::{Agent, Context, Failure, Url};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::reader::Reader;
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
