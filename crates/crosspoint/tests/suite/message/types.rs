//! Types of agents (MSG-18): work that is addressed to a type, and what replies say.

use serde_json::{Value, json};

use crate::support::message_post::{Posted, pulling, registration, result, work_request};
use crate::support::server::Server;

/// An agent of the work `dig` that says which it is.
fn digger(by: &'static str) -> Posted {
    Posted::saying(move |request| result(request, by))
}

fn asked(to: &str) -> Value {
    let mut request = work_request("dig", &json!({}));
    request["to_agent"] = json!(to);
    request
}

const DIG: &str = "work = [\"dig\"]";

#[test]
fn work_that_is_addressed_to_a_type_goes_to_agents_of_that_type_alone() {
    let (infra, code) = (digger("infra"), digger("code"));
    let typed = |name: &str, agent: &Posted| agent.configuration(name, &format!("{DIG}\ntype = \"{name}\""));
    let server = Server::configured(&(typed("infra", &infra) + &typed("code", &code)));
    for to in ["infra", "code", "infra", "infra", "code"] {
        let request = asked(to);
        let answer = server.work_answer(&request).json();
        assert_eq!((&answer["type"], &answer["payload"]["output"]), (&json!("work_result"), &json!(to)), "{answer:#}");
        // The reply comes from the type of the agent, and goes to whoever asked.
        assert_eq!((&answer["from_agent"], &answer["to_agent"]), (&json!(to), &json!("orchestrator")), "{answer:#}");
    }
    assert!(infra.had("work_request").iter().all(|request| request["to_agent"] == "infra"));
    assert!(code.had("work_request").iter().all(|request| request["to_agent"] == "code"));
}

#[test]
fn an_agent_without_a_type_takes_work_for_any_type_and_replies_come_from_the_type_that_was_addressed() {
    let any = digger("any");
    let server = Server::configured(&any.configuration("any", DIG));
    for to in ["infra", "research"] {
        let answer = server.work_answer(&asked(to)).json();
        assert_eq!((&answer["payload"]["output"], &answer["from_agent"]), (&json!("any"), &json!(to)), "{answer:#}");
        assert_eq!(any.had("work_request").last().expect("it was asked")["to_agent"], to);
    }
}

#[test]
fn work_that_nobody_of_its_type_takes_is_refused_as_unsupported() {
    let infra = digger("infra");
    let server = Server::configured(&infra.configuration("infra", &format!("{DIG}\ntype = \"infra\"")));
    let request = asked("code");
    let answer = server.work_answer(&request);
    let document = answer.json();
    assert_eq!((answer.status, &document["payload"]["error_code"]), (400, &json!(5006)), "{document:#}");
    assert_eq!(document["request_id"], request["request_id"]);
    assert_eq!(document["payload"]["error_context"]["work_type_requested"], "dig", "{document:#}");
    assert!(infra.had("work_request").is_empty());
}

#[test]
fn work_that_names_no_type_goes_to_any_agent() {
    let infra = digger("infra");
    let server = Server::configured(&infra.configuration("infra", &format!("{DIG}\ntype = \"infra\"")));
    let id = server.begin("dig");
    assert_eq!(server.over(&id)["outcome"]["outputs"], "infra");
    assert_eq!(infra.request(1)["to_agent"], "infra");
    // To the orchestrator means to nobody else.
    let answer = server.work_answer(&asked("orchestrator")).json();
    assert_eq!(answer["payload"]["output"], "infra", "{answer:#}");
}

#[test]
fn work_for_a_type_whose_agents_are_away_waits_for_them() {
    let server = Server::configured(
        &(pulling("infra", &format!("{DIG}\ntype = \"infra\"")) + &pulling("code", &format!("{DIG}\ntype = \"code\""))),
    );
    server.polled("agent=code");
    let accepted = server.post("/api/agent/message", &asked("infra").to_string());
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let jobs = server.get("/api/v1/jobs").json();
    let id = jobs["jobs"][0]["id"].as_str().expect("there is a job").to_owned();
    let job = server.job(&id);
    let reason = job["stuck"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("agent infra is away since ") && !reason.contains("agent code"), "{reason}");
    assert_eq!(server.pulled("infra")["request_id"], json!(id));
}

#[test]
fn agents_that_register_are_of_their_type() {
    let server = Server::start();
    let mut infra = registration("digger", &["dig"]);
    infra["agent_type"] = json!("infra");
    server.registers(&infra);
    assert_eq!(server.work_answer(&asked("code")).status, 400);
    let accepted = server.post("/api/agent/message", &asked("infra").to_string());
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let given = server.pulled("digger");
    assert_eq!(given["to_agent"], "infra");
    server.takes(&result(&given, "done"));
}

#[test]
fn a_type_that_the_operator_added_is_one_like_any_other() {
    let robot = digger("robot");
    let toml = robot.configuration("robot", &format!("{DIG}\ntype = \"robot\""));
    let server = Server::configured(&toml);
    let answer = server.work_answer(&asked("robot")).json();
    assert_eq!((&answer["payload"]["output"], &answer["from_agent"]), (&json!("robot"), &json!("robot")), "{answer:#}");
    let jobs = server.get("/api/v1/jobs").json();
    let job = server.job(jobs["jobs"][0]["id"].as_str().expect("there is a job"));
    assert!(job.get("violations").is_none(), "{job:#}");
    let unknown = server.work_answer(&asked("nobody"));
    assert_eq!((unknown.status, &unknown.json()["payload"]["error_code"]), (400, &json!(5003)), "{unknown:?}");
}
