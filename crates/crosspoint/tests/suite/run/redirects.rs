//! Agents that redirect: only configured addresses are called, and no agent can lead the server round in circles.

use std::thread;

use serde_json::json;

use crate::support::misbehaving_agents::{clauses, one_outcome};
use crate::support::scripted_agent::{After, Asked, Scripted, Wire};
use crate::support::server::Server;

const STATUSES: [&str; 5] =
    ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"];

/// Most requests to an agent about one job that it says nothing of: to do it, and then whether it has it after all.
const LOOKS_MAX: usize = 6;

/// Most redirects that are followed, on one host or several.
const STEPS_MAX: usize = 5;

fn redirect(wire: &mut Wire, status: &str, to: &str) -> After {
    wire.send(format!("HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"));
    After::Keep
}

/// The status that a script's name ends with.
fn status_of(asked: &Asked) -> &'static str {
    let number = asked.script.rsplit('_').next().unwrap_or_default();
    STATUSES.into_iter().find(|status| status.starts_with(number)).expect("the name ends with a status")
}

fn names(what: &str) -> Vec<String> {
    STATUSES.iter().map(|status| format!("{what}_{}", &status[..3])).collect()
}

/// Has all agents work at once. Each fails in one way, with the rule recorded, and is asked at most `asked_max` times.
fn all_fail(contract: &str, works: &[String], scripted: &Scripted, asked_max: usize) {
    let agents: String = works.iter().map(|name| scripted.agent(contract, name, "")).collect();
    let server = Server::configured(&agents);
    thread::scope(|scope| {
        for work in works {
            let server = &server;
            scope.spawn(move || {
                let job = server.done(work, &json!({}));
                one_outcome(server, job["id"].as_str().expect("an id"), work);
                assert_eq!(job["outcome"]["failure"]["code"], "broken_contract", "{contract} {job}");
                assert!(!clauses(&job).is_empty(), "{contract} {job}");
                let asked = scripted.asked(work).len();
                assert!((1..=asked_max).contains(&asked), "{contract} {work} was asked {asked} times");
            });
        }
    });
}

#[test]
fn nobody_is_called_who_was_not_configured() {
    for contract in ["run", "task"] {
        // The answer would be good, but the operator did not configure that address.
        let elsewhere = Scripted::start(|asked, wire| match asked.path.as_str() {
            "/tasks" => wire.json("200 OK", &asked.completed("elsewhere")),
            _ => wire.stream(&[asked.started(), asked.finale("elsewhere")]),
        });
        let there = elsewhere.address();
        let scripted = Scripted::start(move |asked: &Asked, wire: &mut Wire| {
            let host = if asked.script.starts_with("port") { "127.0.0.1" } else { "localhost" };
            let to = format!("http://{host}:{}/x{}", there.port(), asked.path);
            redirect(wire, status_of(asked), &to)
        });
        all_fail(contract, &[names("port"), names("host")].concat(), &scripted, LOOKS_MAX);
        assert_eq!(elsewhere.connections(), 0, "somebody was called whom nobody has configured");
    }
}

#[test]
fn circles_come_to_an_end() {
    for contract in ["run", "task"] {
        let scripted = Scripted::start(|asked: &Asked, wire: &mut Wire| {
            let to = if asked.script.starts_with("itself") {
                format!("/{}{}", asked.script, asked.path)
            } else {
                format!("/{}{}?step={}", asked.script, asked.path.split('?').next().unwrap_or_default(), asked.turn)
            };
            redirect(wire, status_of(asked), &to)
        });
        all_fail(contract, &[names("itself"), names("onward")].concat(), &scripted, LOOKS_MAX * STEPS_MAX);
    }
}
