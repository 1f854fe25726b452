//! Agents that drop connections, over real sockets: one that is well stays open for others, one that is not is spared
//! (MSG-7).

use serde_json::{Value, json};

use crate::run::agent::failure;
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent, configuration, unused_address};
use crate::support::server::{Server, until};

const CONTRACTS: [&str; 3] = ["run", "task", "message"];

fn breaker(server: &Server, agent: &str) -> Value {
    server.get(&format!("/api/v1/agents/{agent}")).json()["breaker"].clone()
}

/// Waits until the agent was asked for its health.
fn checked(scripted: &ScriptedAgent, agent: &str) {
    let is_check = |request: &Request| request.path.starts_with("/health/ready");
    until("its health is asked for", || scripted.requests_of(agent).iter().any(is_check).then_some(()));
}

/// Takes a request for work and drops the connection. What it says of its health is in its name.
fn stumble(request: &Request, connection: &mut Connection) -> After {
    let (is_health, is_poll) = (request.path.starts_with("/health"), request.path.starts_with("/tasks/"));
    match request.agent.rsplit('-').next() {
        Some("well") if is_health => connection.json(200, &json!({"status": "ok"})),
        // An agent that was written from its contract alone has no such path.
        Some("bare") if is_health => connection.json(404, &json!({})),
        Some("ill") if is_health => connection.json(503, &json!({"status": "ill"})),
        _ if is_health => After::Close,
        _ if is_poll => connection.json(404, &json!({})),
        // A stream that breaks off is a dropped connection too.
        _ if request.agent.starts_with("run-mid") => {
            connection.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 900\r\n\r\n");
            connection.send(request.started());
            After::Reset
        }
        _ => After::Close,
    }
}

fn agents(healths: &[&str]) -> Vec<(&'static str, String)> {
    let named = |contract: &'static str| {
        let kinds: &[&str] = if contract == "run" { &["run", "run-mid"] } else { &[contract] };
        let names = kinds.iter().flat_map(|kind| healths.iter().map(move |health| format!("{kind}-{health}")));
        names.map(|name| (contract, name)).collect::<Vec<_>>()
    };
    CONTRACTS.into_iter().flat_map(named).collect()
}

fn serving(scripted: &ScriptedAgent, names: &[(&'static str, String)]) -> Server {
    Server::configured(&names.iter().map(|(contract, name)| scripted.agent(contract, name, "")).collect::<String>())
}

/// Begins a job of one attempt. Without a limit, an agent of messages would get the same request again (MSG-5).
fn begun(server: &Server, name: &str) -> String {
    if name.starts_with("message") {
        let job = server.submit(&json!({"work": name, "limits": {"attempts": 1}}).to_string());
        return job["id"].as_str().expect("an id").to_owned();
    }
    server.begin(name)
}

#[test]
fn one_callers_input_that_makes_an_agent_stumble_does_not_close_it_for_others() {
    let scripted = ScriptedAgent::start_many(stumble);
    let names = agents(&["well", "bare"]);
    let server = serving(&scripted, &names);
    // One after the other, and several at once.
    for jobs in [1, 6, 6] {
        let begun: Vec<(&str, String)> =
            names.iter().flat_map(|(_, name)| (0..jobs).map(|_| (name.as_str(), begun(&server, name)))).collect();
        for (name, id) in begun {
            let job = server.ended(&id);
            assert_eq!((failure(&job), &job["attempts"]), (("unavailable", "unknown"), &json!(1)), "{name}: {job}");
            checked(&scripted, name);
        }
    }
    for (_, name) in &names {
        assert_eq!(breaker(&server, name), json!({"state": "closed", "failures": 0, "until": null}), "{name}");
    }
}

#[test]
fn five_drops_of_an_agent_that_is_not_well_open_its_breaker() {
    let scripted = ScriptedAgent::start_many(stumble);
    // The second does not even answer for its health.
    let names = agents(&["ill", "dead"]);
    let server = serving(&scripted, &names);
    for (_, name) in &names {
        for number in 1..=5_u64 {
            assert_eq!(failure(&server.done(name, &json!({}))), ("unavailable", "unknown"), "{name}");
            until("the drop counts", || {
                let breaker = breaker(&server, name);
                (breaker["failures"] == number || breaker["state"] == "open").then_some(())
            });
        }
        assert_eq!(breaker(&server, name)["state"], "open", "{name}");
    }
}

#[test]
fn five_refusals_to_connect_open_the_breaker_without_a_check() {
    let nowhere = unused_address();
    let agent = |contract: &&str| configuration(contract, contract, &format!("http://{nowhere}"), "");
    let server = Server::configured(&CONTRACTS.iter().map(agent).collect::<String>());
    for contract in CONTRACTS {
        for number in 1..=5 {
            assert_eq!(breaker(&server, contract)["failures"], number - 1);
            let job = server.submit(&json!({"work": contract, "limits": {"attempts": 1}}).to_string());
            let job = server.ended(job["id"].as_str().expect("an id"));
            assert_eq!(failure(&job), ("unavailable", "safe"), "{job}");
        }
        assert_eq!(breaker(&server, contract)["state"], "open");
    }
}

#[test]
fn an_agent_that_is_full_is_not_closed_by_it() {
    let scripted = ScriptedAgent::start_many(|_, connection| connection.json(429, &json!({})));
    let names: Vec<(&str, String)> = CONTRACTS.iter().map(|contract| (*contract, format!("{contract}-full"))).collect();
    let server = serving(&scripted, &names);
    for (_, name) in &names {
        for _ in 0..7 {
            let job = server.submit(&json!({"work": name, "limits": {"attempts": 1}}).to_string());
            let job = server.ended(job["id"].as_str().expect("an id"));
            assert_eq!(failure(&job), ("resource_limit", "safe"), "{job}");
        }
        assert_eq!(breaker(&server, name), json!({"state": "closed", "failures": 0, "until": null}), "{name}");
    }
}
