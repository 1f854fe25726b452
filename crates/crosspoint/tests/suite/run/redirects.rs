//! Agents that redirect: only configured addresses are called, and no agent can lead the server round in circles.

use std::thread;

use serde_json::json;

use crate::support::misbehaving_agents::{clauses, one_outcome};
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent};
use crate::support::server::Server;

const STATUSES: [&str; 5] =
    ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"];

/// Most requests to an agent about one job that it says nothing of: to do it, and then whether it has it after all.
const LOOKS_MAX: usize = 6;

/// Most redirects that are followed, on one host or several.
const STEPS_MAX: usize = 5;

fn redirect(connection: &mut Connection, status: &str, to: &str) -> After {
    connection.send(format!("HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"));
    After::Keep
}

/// The status that an agent's name ends with.
fn status_of(asked: &Request) -> &'static str {
    let number = asked.agent.rsplit('_').next().unwrap_or_default();
    STATUSES.into_iter().find(|status| status.starts_with(number)).expect("the name ends with a status")
}

fn names(what: &str) -> Vec<String> {
    STATUSES.iter().map(|status| format!("{what}_{}", &status[..3])).collect()
}

/// Has all agents work at once. Each fails in one way, with the rule recorded, and is asked at most `asked_max` times.
fn all_fail(contract: &str, works: &[String], scripted: &ScriptedAgent, asked_max: usize) {
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
                let asked = scripted.requests_of(work).len();
                assert!((1..=asked_max).contains(&asked), "{contract} {work} was asked {asked} times");
            });
        }
    });
}

#[test]
fn addresses_that_are_not_configured_are_not_called() {
    for contract in ["run", "task"] {
        // The answer would be good, but the operator did not configure that address.
        let elsewhere = ScriptedAgent::start_many(|asked, connection| match asked.path.as_str() {
            "/tasks" => connection.json(200, &asked.completed("elsewhere")),
            _ => connection.stream(&[asked.started(), asked.final_event("elsewhere")]),
        });
        let there = elsewhere.address();
        let scripted = ScriptedAgent::start_many(move |asked: &Request, connection: &mut Connection| {
            let host = if asked.agent.starts_with("port") { "127.0.0.1" } else { "localhost" };
            let to = format!("http://{host}:{}/x{}", there.port(), asked.path);
            redirect(connection, status_of(asked), &to)
        });
        all_fail(contract, &[names("port"), names("host")].concat(), &scripted, LOOKS_MAX);
        assert_eq!(elsewhere.connections(), 0, "an address was called that is not configured");
    }
}

#[test]
fn circles_come_to_an_end() {
    for contract in ["run", "task"] {
        let scripted = ScriptedAgent::start_many(|asked: &Request, connection: &mut Connection| {
            let to = if asked.agent.starts_with("itself") {
                format!("/{}{}", asked.agent, asked.path)
            } else {
                format!("/{}{}?step={}", asked.agent, asked.path.split('?').next().unwrap_or_default(), asked.turn)
            };
            redirect(connection, status_of(asked), &to)
        });
        all_fail(contract, &[names("itself"), names("onward")].concat(), &scripted, LOOKS_MAX * STEPS_MAX);
    }
}
