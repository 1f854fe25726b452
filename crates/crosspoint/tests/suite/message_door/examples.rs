//! The agent and the caller of the message examples do what their page says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::run::examples::{parts, pasted, script, valid};
use crate::support::message_post::{ENDPOINT, new_id};
use crate::support::message_sender::{PRINTED, asking, cancelling};
use crate::support::program::root;
use crate::support::programs::violations;
use crate::support::scripted_agent::{Request, ScriptedAgent, unused_address};
use crate::support::server::{Server, until};

/// The agents that pull and are pushed to.
const AGENTS: [(&str, &str); 2] = [("agent.py", "infra-1"), ("push_agent.py", "infra-2")];

/// The scripts, and most lines of them that are not empty.
const SCRIPTS: [(&str, usize); 3] = [("agent.py", 40), ("push_agent.py", 54), ("callback.py", 40)];

/// The command that runs a script of the examples, in a directory where its log is.
fn script_in(directory: &Path, script: &str, server: &str) -> Command {
    let said = File::options().create(true).append(true).open(directory.join("agent.log")).expect("a log");
    let mut command = Command::new("python3");
    command.arg(root().join("examples/message").join(script)).arg(server).current_dir(directory).stderr(said);
    command.env_remove("AGENT_TOKEN").env_remove("CALLER_TOKEN");
    command
}

/// What the scripts have printed to stderr.
fn log_in(directory: &Path) -> String {
    fs::read_to_string(directory.join("agent.log")).expect("it is there")
}

/// An agent of the examples, until this is dropped.
struct Agent {
    child: Child,
}

impl Agent {
    /// Starts the agent in a directory for its answers, and waits until the server knows it.
    fn start(server: &Server, directory: &Path, token: Option<&str>) -> Agent {
        let agent = Agent::begin(&server.url(), directory, token);
        until("it polls", || {
            let known = server.get("/api/v1/agents/infra-1");
            (known.status == 200 && known.json()["away_since"].is_null()).then_some(())
        });
        agent
    }

    fn begin(server: &str, directory: &Path, token: Option<&str>) -> Agent {
        let mut command = script_in(directory, "agent.py", server);
        command.envs(token.map(|token| ("AGENT_TOKEN", token)));
        Agent { child: command.spawn().expect("it starts") }
    }

    /// Starts one of the agents, on a free port if it is one that is pushed to.
    fn of_script(script: &str, server: &str, directory: &Path) -> Agent {
        Agent { child: script_in(directory, script, server).arg("0").spawn().expect("it starts") }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for the answers of an agent, which is removed with this.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Directory {
        let directory = std::env::temp_dir().join(format!("crosspoint-message-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        Directory(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every message that the agent sent about a job is one of the contract.
fn keeps_the_contract(server: &Server, job: &Value) {
    let id = job["id"].as_str().expect("an id");
    assert_eq!(violations(&server.job(id)), [""; 0], "{job}");
    let events = server.get(&format!("/api/v1/jobs/{id}/events")).text();
    for data in events.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).expect("it is JSON");
        let said = if event["said"].is_object() { &event["said"] } else { &event["outcome"]["said"] };
        if let Some(kind) = said["kind"].as_str() {
            valid(kind, said["document"].to_string().as_bytes());
        }
    }
}

#[test]
fn the_caller_of_the_examples_reaches_the_agents() {
    for (script, name) in AGENTS {
        reaches(script, name);
    }
}

fn reaches(agent: &str, name: &str) {
    let server = Server::start();
    let _agent = Agent::of_script(agent, &server.url(), server.directory());
    until("it registers", || (server.get(&format!("/api/v1/agents/{name}")).status == 200).then_some(()));
    let said = script("examples/message/call.sh", &server);
    let parts = parts(&said);
    let [done, again, accepted, cancelled] = parts[..] else { panic!("{said}") };
    valid("message.work_result", done.1.as_bytes());
    let result: Value = serde_json::from_str(done.1).expect("it is JSON");
    let asked: Value = serde_json::from_str(PRINTED).expect("it is JSON");
    assert_eq!(result["request_id"], asked["request_id"], "{said}");
    assert_eq!(result["payload"]["output"], "3 steps are done\n", "{said}");
    assert_eq!(again.1, "the same answer, byte for byte\n");
    valid("message.work_status", accepted.1.as_bytes());
    valid("message.error", cancelled.1.as_bytes());
    let cancelled: Value = serde_json::from_str(cancelled.1).expect("it is JSON");
    assert_eq!(cancelled["payload"]["error_code"], 5901, "{said}");
    let jobs = server.get("/api/v1/jobs?door=message").json()["jobs"].as_array().cloned().expect("a list");
    assert_eq!(jobs.len(), 2, "the repeat and the cancellation made none: {jobs:?}");
    // What was cancelled may not have begun.
    assert_eq!((&jobs[1]["agent"], &jobs[1]["attempts"]), (&json!(name), &json!(1)), "{jobs:?}");
    jobs.iter().for_each(|job| keeps_the_contract(&server, job));
    assert_eq!(jobs[1]["progress"], json!({"percent": 100, "step": "Step 3 of 3"}), "{jobs:?}");
    // The agent has stopped what was cancelled, and does other work.
    server.outcome_of(&asking("run_playbook", &json!({"steps": 1})));
    assert_eq!(log_in(server.directory()), "", "{}", server.log());
}

/// MSG-8
#[test]
fn the_pushed_agent_answers_a_request_that_comes_again_from_what_it_has_kept() {
    let server = scripted(Vec::new());
    let directory = Directory::new("pushed");
    let _agent = Agent::of_script("push_agent.py", &server.url(), &directory.0);
    let registration = until("it registers", || server.requests().into_iter().next()).json();
    let url = format!("{}{ENDPOINT}", registration["base_url"].as_str().expect("an address"));
    let request = asking("run_playbook", &json!({"steps": 2}));
    let answered = || {
        let sent = Command::new("curl").args(["-s", &url, "-d", &request.to_string()]).output().expect("it starts");
        valid("message.work_result", &sent.stdout);
        serde_json::from_slice::<Value>(&sent.stdout).expect("it is JSON")["payload"].clone()
    };
    assert_eq!(answered(), answered());
    assert_eq!(sent_to(&server).len(), 2, "the steps were taken once");
    assert_eq!(log_in(&directory.0), "");
}

#[test]
fn the_caller_with_a_callback_is_told_what_becomes_of_its_work() {
    let port = unused_address().port().to_string();
    let toml = fs::read_to_string(root().join("examples/message/callback.toml")).expect("it is there");
    let server = Server::configured(&toml.replace("9000", &port));
    let _agent = Agent::start(&server, server.directory(), None);
    let told = script_in(server.directory(), "callback.py", &server.url()).arg(port).output().expect("it starts");
    assert!(told.status.success(), "{}", log_in(server.directory()));
    let told = String::from_utf8(told.stdout).expect("it is UTF-8");
    let messages: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let (results, statuses): (Vec<&Value>, Vec<&Value>) =
        messages.iter().partition(|message| message["type"] == "work_result");
    let [result] = results[..] else { panic!("{told}") };
    assert_eq!(result["payload"]["output"], "3 steps are done\n");
    assert!(!statuses.is_empty() && statuses.iter().all(|message| message["type"] == "work_status"), "{told}");
    // The answer to the request is printed beside what comes to the callback, where the result is the last message.
    let told_last = messages.iter().rev().find(|message| message["payload"]["status"] != "accepted");
    assert_eq!(told_last, Some(result), "{told}");
}

/// A server that registers the agent, asks for frequent heartbeats, and gives it messages one poll after another.
fn scripted(messages: Vec<Value>) -> ScriptedAgent {
    ScriptedAgent::start(move |request, connection| match request.path.split('?').next() {
        Some("/api/agent/register") => {
            connection.json(200, &json!({"protocol_version": "1.0", "heartbeat_seconds": 0.2, "agent_id": "infra-1"}))
        }
        Some("/api/agent/messages") => {
            let given: Vec<&Value> = messages.iter().skip(polls(request)).take(1).collect();
            connection.json(200, &json!({"messages": given}))
        }
        Some(_) | None => connection.whole(204, "application/json", ""),
    })
}

/// How many messages the agent has acknowledged when it polls; the first poll acknowledges none.
fn polls(request: &Request) -> usize {
    usize::from(request.path.contains("&ack=") && !request.path.ends_with("&ack="))
}

fn sent_to(server: &ScriptedAgent) -> Vec<Value> {
    let messages = server.requests().into_iter().filter(|request| request.path == ENDPOINT);
    messages.map(|request| request.json()).collect()
}

/// MSG-12.2
#[test]
fn the_agent_of_the_examples_sends_heartbeats_as_often_as_its_registration_asked_for() {
    let server = scripted(Vec::new());
    let directory = Directory::new("heartbeats");
    let _agent = Agent::begin(&server.url(), &directory.0, None);
    let beats = until("three heartbeats", || Some(sent_to(&server)).filter(|sent| sent.len() >= 3));
    for beat in beats {
        valid("message.work_status", beat.to_string().as_bytes());
        let payload = &beat["payload"];
        assert_eq!((&payload["agent_id"], &payload["status"]), (&json!("infra-1"), &json!("online")), "{beat}");
    }
}

/// MSG-8
#[test]
fn a_request_that_comes_again_is_answered_from_what_the_agent_has_kept() {
    let mut again = asking("run_playbook", &json!({"steps": 2}));
    let first = again.clone();
    again["message_id"] = json!(new_id());
    let server = scripted(vec![first.clone(), again]);
    let directory = Directory::new("repeats");
    let about = |kind: &'static str| {
        let mut sent = sent_to(&server);
        sent.retain(|message| message["type"] == kind && message["request_id"] == first["request_id"]);
        sent
    };
    let results = |count| until("a result", || Some(about("work_result")).filter(|sent| sent.len() >= count));
    let agent = Agent::begin(&server.url(), &directory.0, None);
    let sent = results(2);
    assert_eq!(sent[0]["payload"], sent[1]["payload"]);
    assert_eq!(about("work_status").len(), 2, "the steps were taken once");
    drop(agent);
    // What the agent has kept survives it.
    let _agent = Agent::begin(&server.url(), &directory.0, None);
    let before = sent.len();
    let sent = results(before + 2);
    assert!(sent.iter().all(|one| one["payload"] == sent[0]["payload"]), "{sent:?}");
    assert_eq!(about("work_status").len(), 2, "the steps were taken once");
}

#[test]
fn an_agent_that_was_killed_at_its_work_goes_on_when_it_is_back() {
    let server = Server::configured(
        "[[agent]]\nname = \"infra-1\"\ncontract = \"message\"\nvia = \"pull\"\nwork = [\"run_playbook\"]\n\
         silence_seconds = 3\n",
    );
    let agent = Agent::start(&server, server.directory(), None);
    let request = asking("run_playbook", &json!({"steps": 5}));
    assert_eq!(server.say(&request).status, 202);
    until("it has begun", || server.job_of_message(&request)["progress"]["step"].as_str().map(drop));
    drop(agent);
    let _agent = Agent::start(&server, server.directory(), None);
    let done = server.outcome_of(&request);
    assert_eq!((done.kind(), &done.payload()["output"]), ("work_result", &json!("5 steps are done\n")));
    assert!(server.job_of_message(&request)["attempts"].as_u64() > Some(1), "{}", server.log());
}

#[test]
fn the_agent_of_the_examples_stops_work_that_is_cancelled() {
    let server = Server::start();
    let _agent = Agent::start(&server, server.directory(), None);
    let long = asking("run_playbook", &json!({"steps": 100_000}));
    assert_eq!(server.say(&long).status, 202);
    until("it has begun", || server.job_of_message(&long)["progress"]["step"].as_str().map(drop));
    assert_eq!(server.say(&cancelling(&long)).code(), Some(5901));
    // The agent does one piece of work at a time.
    assert_eq!(server.outcome_of(&asking("run_playbook", &json!({"steps": 1}))).kind(), "work_result");
}

#[test]
fn the_agent_of_the_examples_shows_its_token() {
    let token = "a7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2";
    let kept = Directory::new("token");
    let directory = &kept.0;
    fs::write(directory.join("infra-1.token"), token).expect("it can be written");
    let toml = fs::read_to_string(root().join("examples/message/crosspoint.toml")).expect("it is there");
    let settled = toml.replace("\"infra-1.token\"", &format!("{:?}", directory.join("infra-1.token")));
    assert_ne!(settled, toml);
    let server = Server::configured(&settled);
    let mut refused = Agent::begin(&server.url(), directory, Some("another"));
    assert_eq!(refused.child.wait().expect("it ends").code(), Some(1), "it is not let in");
    let said = log_in(directory);
    assert!(said.contains("token") && said.contains("\"hint\"") && !said.contains("Traceback"), "{said}");
    let _agent = Agent::start(&server, directory, Some(token));
    let asked: Value = serde_json::from_str(PRINTED).expect("it is JSON");
    assert_eq!(server.outcome_of(&asked).kind(), "work_result");
    assert!(!server.log().contains(token), "{}", server.log());
}

#[test]
fn the_commands_of_the_page_about_messages_work() {
    let server = Server::start();
    let _agent = Agent::start(&server, server.directory(), None);
    let said = pasted("examples/message/README.md", &server);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&said)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {said}"));
    let [result, listed] = &documents[..] else { panic!("{said}") };
    valid("message.work_result", result.to_string().as_bytes());
    assert_eq!(listed["jobs"][0]["request_id"], result["request_id"], "{said}");
}

#[test]
fn the_scripts_of_the_examples_are_short_and_the_page_has_all_files() {
    for (script, lines_max) in SCRIPTS {
        let text = fs::read_to_string(root().join("examples/message").join(script)).expect("it is there");
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        assert!(lines.len() <= lines_max, "{script} has {} lines", lines.len());
        assert!(lines.iter().all(|line| line.len() <= 120), "a line of {script} is too long");
    }
    let page = fs::read_to_string(root().join("examples/message/README.md")).expect("it is there");
    for entry in fs::read_dir(root().join("examples/message")).expect("it is there") {
        let name = entry.expect("it is there").file_name().into_string().expect("it is UTF-8");
        assert!(name == "README.md" || page.contains(&name), "{name}");
    }
}
