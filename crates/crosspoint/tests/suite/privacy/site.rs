//! A closed server with every sort of agent, at the highest log level, and those who use it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answers::{self, OWNER, Script};
use super::ledger::{Found, Ledger, TOKEN};
use crate::support::bridge_directory::Directory;
use crate::support::message_post::pulling;
use crate::support::programs::python;
use crate::support::scripted_agent::ScriptedAgent;
use crate::support::server::{Answer, Server};
use crate::support::tokens;

/// Bodies are small here, so that a larger one is soon sent.
const BODY_BYTES: usize = 262_144;

/// A program that prints and does what its input says.
pub(crate) const PROGRAM: &str = r#"
import json, os, signal, sys, time
told = json.loads(sys.stdin.readline())
for line in told.get("out", []): print(line, flush=True)
for line in told.get("err", []): print(line, file=sys.stderr, flush=True)
end = told.get("end")
if end == "answer": print(sys.stdin.readline(), flush=True)
if end == "env": print(os.environ["NOTE"], flush=True)
if end == "signal": os.kill(os.getpid(), signal.SIGSEGV)
if end == "hang": time.sleep(60)
if end == "flood": print("x" * 300000, flush=True)
if end == "panic": raise RuntimeError(told["err"][0])
sys.exit(end if isinstance(end, int) else 0)
"#;

pub(crate) struct Site {
    pub(crate) ledger: Ledger,
    pub(crate) server: Server,
    pub(crate) scripts: BTreeMap<String, Script>,
    pub(crate) scripted: ScriptedAgent,
    /// The directory of the agent that answers in files.
    pub(crate) inbox: Directory,
    pub(crate) admin: String,
    /// Who plants.
    pub(crate) owner: String,
    /// Who must learn nothing.
    pub(crate) other: String,
    /// The token of each agent that asks for its work.
    pub(crate) agents: BTreeMap<&'static str, String>,
    _tokens: Directory,
}

impl Site {
    /// Starts everything, by this command if it is not empty.
    pub(crate) fn start(format: &str, starter: &[&str]) -> Site {
        let ledger = Ledger::default();
        let scripts = answers::all(&ledger);
        let scripted = answers::agents(&ledger, &scripts);
        let (tokens_of_agents, inbox) = (Directory::temporary(), Directory::temporary());
        let toml = configuration(&ledger, &scripts, &scripted, &tokens_of_agents, &inbox);
        let mut server = Server::with("", &["--log", "debug", "--log-format", format]);
        server.stop();
        server.configure(&toml);
        server.start_by(starter);
        server.restart();
        let admin = tokens::closed(&server);
        let [owner, other] = [OWNER, "other"].map(|name| tokens::caller(&server, &admin, name));
        let names = ["pulled", "message_pulled", "digger", "shouter", "idle"];
        let agents = names.map(|name| (name, tokens::agent(&server, &admin, name)));
        for (name, token) in agents.iter().map(|(name, token)| (*name, token)).chain([
            ("admin", &admin),
            (OWNER, &owner),
            ("other", &other),
        ]) {
            ledger.secret(&format!("the token of {name}"), token);
        }
        let agents = agents.into_iter().collect();
        Site { ledger, server, scripts, scripted, inbox, admin, owner, other, agents, _tokens: tokens_of_agents }
    }

    /// A request of the owner, to whom everything in the answer belongs.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(method, path, &[], body.as_bytes())
    }

    pub(crate) fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let bearer = format!("Bearer {}", self.owner);
        let mut headers = headers.to_vec();
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            headers.push(("authorization", &bearer));
        }
        let answer = self.server.exchange(method, path, &headers, body).expect("it answers");
        self.ledger.arrives(&answer.body);
        answer
    }

    /// A request of an agent, to which the work in the answer belongs.
    pub(crate) fn by_agent(&self, name: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.agents[name]);
        let headers = [("authorization", bearer.as_str())];
        let answer = self.server.exchange(method, path, &headers, body.as_bytes()).expect("it answers");
        self.ledger.arrives(&answer.body);
        answer
    }

    pub(crate) fn by_admin(&self, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.admin);
        self.server.exchange(method, path, &[("authorization", &bearer)], body.as_bytes()).expect("it answers")
    }

    /// Begins a job of the owner that is tried once, and returns its id.
    pub(crate) fn begin(&self, work: &str, input: &Value, seconds: f64) -> String {
        let body = json!({"work": work, "input": input, "limits": {"attempts": 1, "seconds": seconds}});
        let answer = self.ask("POST", "/api/v1/jobs", &body.to_string());
        answer.json()["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }

    /// The job of the owner, once it has ended, and everything else that can be read of it. Questions are answered.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let job = |what: &str| self.ask("GET", &format!("/api/v1/jobs/{id}{what}"), "");
        let ended = crate::support::server::until("it ends", || {
            let now = job("?wait=0.05").json();
            if now["state"] == "waiting" {
                let answer = self.ledger.plant("native.answer", &json!({"input": {"text": "yes"}}));
                self.ask("POST", &format!("/api/v1/jobs/{id}/answer"), &answer.to_string());
            }
            now["outcome"].is_object().then_some(now)
        });
        for what in ["", "/document", "/output", "/events?follow=false"] {
            job(what);
        }
        ended
    }

    /// All jobs of the owner.
    pub(crate) fn jobs(&self) -> Vec<Value> {
        let (mut jobs, mut before) = (Vec::new(), String::new());
        loop {
            let page = self.ask("GET", &format!("/api/v1/jobs?limit=500{before}"), "").json();
            jobs.extend(page["jobs"].as_array().expect("a list").iter().cloned());
            let Some(next) = page["next"].as_str() else { return jobs };
            before = format!("&before={next}");
        }
    }

    /// Looks everywhere, stops the server, and returns all that is found where it does not belong.
    pub(crate) fn looked_through(mut self, mut found: Vec<Found>) -> (Vec<Found>, Ledger) {
        for job in self.jobs() {
            // Every request that was accepted is kept as it came.
            self.ask("GET", &format!("/api/v1/jobs/{}/document", job["id"].as_str().expect("an id")), "");
        }
        found.extend(super::places::others(&self));
        found.extend(super::places::system(&self));
        let data = self.server.data();
        self.server.stop();
        found.extend(super::places::left(&self.ledger, &self.server.log(), &data));
        (found, self.ledger)
    }
}

fn configuration(
    ledger: &Ledger,
    scripts: &BTreeMap<String, Script>,
    scripted: &ScriptedAgent,
    tokens: &Directory,
    inbox: &Directory,
) -> String {
    let mut toml = format!("[server]\ndrain_seconds = 0.2\n[limits]\nbody_bytes = {BODY_BYTES}\n");
    for (name, run) in [("echo", "echo"), ("ask", "ask"), ("fail", "fail"), ("mute", "slow_echo")] {
        let keys = if name == "mute" { "silence_seconds = 0.1" } else { "" };
        toml += &format!("[[agent]]\nname = \"{name}\"\ncontract = \"builtin\"\nrun = \"{run}\"\n{keys}\n");
    }
    let note = ledger.text("the configuration", "/agent/env/NOTE");
    let keys = format!("env = {{ NOTE = \"{note}\" }}\nask = true\noutput_bytes = 200000\nconcurrency = 8");
    toml += &python("program", PROGRAM, &keys);
    toml += &pulling("message_pulled", "");
    toml += &format!("[[caller]]\nname = \"{OWNER}\"\ncallback = \"{}/{OWNER}\"\n", scripted.url());
    toml += &format!("[[agent]]\nname = \"files\"\ncontract = \"bridge\"\ndir = \"{}\"\n", inbox.path().display());
    for (name, script) in scripts {
        let token = ledger.text(TOKEN, name);
        tokens.write(name, &token);
        let stream =
            if script.contract == "run" { format!("stream = {}\n", script.is_stream()) } else { String::new() };
        let token_file = tokens.file(name);
        let keys = format!("token_file = \"{}\"\n{stream}", token_file.display());
        toml += &scripted.agent(script.contract, name, &keys);
    }
    toml
}
