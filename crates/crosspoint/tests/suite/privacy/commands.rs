//! Commands beside the server, which have logs of their own: a worker, a watcher of files, and a caller.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::corpus;
use super::ledger::Found;
use super::site::{PROGRAM, Site};
use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE};
use crate::support::bridge_watcher::{Watcher, watch};
use crate::support::message_post::new_id;
use crate::support::server::until;

/// A worker: its log has nothing of what its program reads, prints and says about mistakes.
pub(crate) fn worker(site: &Site) -> Vec<Found> {
    let home = Directory::temporary();
    let log = File::create(home.file("log")).expect("it can be made");
    let mut worker = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    worker.args(["agent", "shouter", "--work", "shout", "--ask", "--env", "NOTE", "--server", &site.server.url()]);
    worker.args(["--", "python3", "-c", PROGRAM]).current_dir(home.path()).stderr(log).stdout(Stdio::null());
    worker.env("NOTE", site.ledger.text("a worker", "env")).env("CROSSPOINT_TOKEN", &site.agents["shouter"]);
    let mut child = worker.spawn().expect("it starts");
    until("it has joined", || home.read("log").contains("has joined").then_some(()));
    for end in [json!(0), json!("env"), json!(3), json!("signal"), json!("panic"), json!("hang")] {
        let text = |what: &str| site.ledger.text("a worker", what);
        let step = json!({"progress": text("a progress of a wrong type"), "step": text("step")});
        let out = [text("stdout"), format!("@crosspoint {step}"), format!("@crosspoint {{\"{}", text("half"))];
        let seconds = if end == "hang" { 0.5 } else { 20.0 };
        site.ended(&site.begin("shout", &json!({"out": out, "err": [text("stderr")], "end": end}), seconds));
        site.by_admin("POST", "/api/v1/agents/shouter/breaker", r#"{"state":"closed"}"#);
    }
    let arguments = fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
    let _ = child.kill();
    let _ = child.wait();
    let mut found = site.ledger.found("the arguments of a worker", &arguments);
    found.extend(site.ledger.found("the log of a worker", &home.read("log")));
    found
}

/// A watcher of files: requests that are good, spoiled, and no JSON at all, each in a directory of its own.
pub(crate) fn watcher(site: &Site) -> Vec<Found> {
    let kind = "bridge.request";
    let mut requests: Vec<Value> = corpus::golden(kind).iter().map(|one| site.ledger.plant(kind, &one.1)).collect();
    requests.extend(site.ledger.spoiled(kind, &corpus::full(kind)));
    for request in &mut requests {
        for (name, value) in [("request_id", new_id()), ("agent_name", "echo".to_owned())] {
            if request[name].is_string() {
                request[name] = json!(value);
            }
        }
    }
    let mut texts: Vec<String> = requests.iter().map(Value::to_string).collect();
    texts.push(site.ledger.text(kind, "a file that is not JSON"));
    let home = Directory::temporary();
    let inboxes = home.make_many(texts.len());
    for (inbox, text) in inboxes.iter().zip(&texts) {
        inbox.leave(REQUEST, text);
    }
    let watched: Vec<&Directory> = inboxes.iter().collect();
    let mut command = watch(&home, "log", &["--server", &site.server.url()], &watched);
    let mut watcher = Watcher::started(&home, "log", command.env("CROSSPOINT_TOKEN", &site.owner));
    until("all are answered or found malformed", || {
        let answered = inboxes.iter().filter(|inbox| inbox.has(RESPONSE)).count();
        (answered + watcher.count("is malformed") >= texts.len()).then_some(())
    });
    for inbox in inboxes.iter().filter(|inbox| inbox.has(RESPONSE)) {
        site.ledger.arrives(inbox.read(RESPONSE).as_bytes());
    }
    let log = watcher.log();
    watcher.kill();
    assert!(log.contains("is malformed"), "no request was refused: {log}");
    site.ledger.found("the log of a watcher", &log)
}

/// A caller on the command line, whose input comes over stdin and whose token is in the environment.
pub(crate) fn caller(site: &Site) {
    for (work, extra) in [("echo", ""), ("fail", ""), ("echo", "{")] {
        let input = json!({"text": site.ledger.text("a caller on the command line", "input")}).to_string() + extra;
        let mut command = crate::support::program::crosspoint(&["submit", work, "--input", "-", "--server"]);
        let said = command.arg(site.server.url()).env("CROSSPOINT_TOKEN", &site.owner).write_stdin(input).output();
        let said = said.expect("it starts");
        site.ledger.arrives(&said.stdout);
    }
}
