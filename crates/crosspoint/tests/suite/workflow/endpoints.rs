//! Agents behind an address that speak the workflow contract, well and badly.

use serde_json::{Value, json};

use crate::support::documents::faultless;
use crate::support::envelopes::{kept, output};
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent, configuration};
use crate::support::server::{Server, until};
use crosspoint_contracts::Kind;

/// A server with one agent, whose whole address this script answers at.
fn behind(script: impl Fn(&Request, &mut Connection) -> After + Send + Sync + 'static) -> (ScriptedAgent, Server) {
    with_keys("", script)
}

fn with_keys(
    keys: &str,
    script: impl Fn(&Request, &mut Connection) -> After + Send + Sync + 'static,
) -> (ScriptedAgent, Server) {
    let agent = ScriptedAgent::start(script);
    let url = format!("{}/hooks/plan", agent.url());
    let server = Server::configured(&configuration("plan", "workflow", &url, keys));
    (agent, server)
}

fn clauses(job: &Value) -> String {
    job["violations"].to_string()
}

#[test]
fn the_envelope_is_posted_to_the_very_address() {
    let (agent, server) = behind(|_, connection| {
        connection.json(200, &serde_json::from_str(&kept("output-printed.json")).expect("JSON"))
    });
    let input = kept("input-printed.json").replace("\"validate\"", "\"plan\"");
    let answer = server.give("plan", &input);
    let printed: Value = serde_json::from_str(&kept("output-printed.json")).expect("JSON");
    assert_eq!((answer.status, answer.json()), (200, printed));
    let asked = &agent.requests()[0];
    assert_eq!((&*asked.method, &*asked.path), ("POST", "/hooks/plan"));
    assert!(asked.header("traceparent").is_some(), "it is part of a trace");
    faultless(asked.json().to_string().as_bytes(), Kind::WorkflowInput);
    assert_eq!(asked.json()["prior_context"], json!(["Spec complete", "3 edge cases identified"]));
    let job = server.job_of(&answer);
    assert_eq!(job["violations"], json!(null));
    assert_eq!(asked.header("idempotency-key"), job["id"].as_str(), "ALL-2: the job's id");
}

/// Answers, and how each reads: its failure, its words, and whether it breaks a rule.
fn answers() -> [(u16, Value, &'static str, &'static str, bool); 9] {
    let elsewhere = "The agent refers to another place, where it is not followed.";
    [
        (200, output(false, "No plan.", "retry"), "agent_failed", "No plan.", false),
        (500, output(false, "No plan.", "retry"), "agent_failed", "No plan.", true),
        (503, output(false, "Later.", "retry"), "unavailable", "Later.", false),
        (429, output(false, "Later.", "retry"), "resource_limit", "Later.", false),
        (400, output(false, "No.", "escalate"), "invalid", "No.", false),
        (404, output(false, "No.", "escalate"), "unsupported", "No.", false),
        (500, json!({"detail": "a stack is here"}), "agent_failed", "a stack is here", false),
        (302, json!({}), "broken_contract", elsewhere, true),
        (200, json!({"detail": "fine"}), "broken_contract", "", true),
    ]
}

#[test]
fn a_status_and_an_envelope_are_weighed_together() {
    let (_agent, server) = behind(|asked, connection| {
        let number = asked.json()["task"]["params"]["case"].as_u64().and_then(|case| usize::try_from(case).ok());
        let (status, body, ..) = &answers()[number.expect("a number")];
        connection.json(*status, body)
    });
    for (number, (status, body, code, message, is_wrong)) in answers().into_iter().enumerate() {
        let job = server.done("plan", &json!({"case": number}));
        let failure = &job["outcome"]["failure"];
        assert_eq!(failure["code"], code, "{status} {body}: {job}");
        assert!(message.is_empty() || failure["message"] == message, "{status} {body}: {failure}");
        assert_eq!(clauses(&job) != "null", is_wrong, "{status} {body}: {job}");
    }
}

#[test]
fn an_envelope_of_success_counts_whatever_the_status() {
    let (_agent, server) = behind(|_, connection| connection.json(500, &output(true, "Done.", "proceed")));
    let job = server.done("plan", &json!({}));
    assert_eq!(job["outcome"]["status"], "completed", "{job}");
    assert!(clauses(&job).contains("WF-8"), "{job}");
}

/// RUN-5: the caller can do nothing about our token.
#[test]
fn an_agent_that_refuses_our_token_is_unavailable_and_the_operator_is_told() {
    let (_agent, server) = behind(|_, connection| connection.json(401, &json!({"detail": "who are you"})));
    let job = server.done("plan", &json!({}));
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("never")), "{job}");
    assert!(server.log().contains("token"), "{}", server.log());
    let agent = server.get("/api/v1/agents/plan").json();
    assert!(agent.to_string().contains("token_refused"), "{agent}");
}

#[test]
fn whose_token_is_refused_is_said_where_the_agent_says_nothing() {
    let (_agent, server) = behind(|_, connection| connection.whole(401, "text/plain", ""));
    let job = server.done("plan", &json!({}));
    let message = &job["outcome"]["failure"]["message"];
    assert_eq!(message, "The agent does not accept the server's token for it.", "{job}");
}

/// ALL-4: an agent that answers in one piece cannot show that it is alive, so silence does not count.
#[test]
fn a_slow_agent_has_the_total_time() {
    let (_agent, server) =
        with_keys("silence_seconds = 0.1\ntotal_seconds = 0.6", |_, connection| connection.until_gone());
    let job = server.done("plan", &json!({}));
    assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job}");
    assert!(clauses(&job).contains("ALL-4.2"), "it is the total time: {job}");
}

/// ALL-3: what became of it cannot be known.
#[test]
fn an_envelope_that_the_end_of_the_server_cut_short_is_sent_again_only_where_that_is_allowed() {
    for (keys, expected) in [("", "failed"), ("repeatable = true", "completed")] {
        let (agent, mut server) = with_keys(keys, |asked, connection| {
            if asked.turn == 0 {
                return connection.until_gone();
            }
            connection.json(200, &output(true, "Done.", "proceed"))
        });
        let id = server.begin("plan");
        until("it is asked", || (!agent.requests().is_empty()).then_some(()));
        server.kill();
        server.restart();
        let job = server.ended(&id);
        assert_eq!(job["outcome"]["status"], expected, "{job}");
        if expected == "failed" {
            let failure = &job["outcome"]["failure"];
            assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("unknown")), "{job}");
        }
    }
}

/// A connection that is dropped has the agent asked for its health, which is that of its host.
#[test]
fn the_health_of_an_agent_with_a_whole_address_is_that_of_its_host() {
    let (agent, server) = behind(|asked, connection| match &*asked.path {
        "/health/ready" => connection.json(404, &json!({})),
        "/health" => connection.json(200, &json!({})),
        _ => After::Close,
    });
    server.done("plan", &json!({}));
    until("its health is asked", || agent.requests().iter().any(|asked| asked.path == "/health").then_some(()));
}
