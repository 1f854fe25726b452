//! `to_agent` and `from_agent`: which agents get the work of a caller, and whom the answer is from (MSG-18).

use serde_json::{Value, json};

use crate::support::message_sender::{ADDED_TYPE, asking};
use crate::support::server::Server;

/// Two agents for the same work with types, and one without.
const AGENTS: &str = r#"
[server]
agent_types = ["gardener"]

[[agent]]
name = "coder"
contract = "builtin"
run = "echo"
work = ["dig", "both"]
type = "code"

[[agent]]
name = "garden"
contract = "builtin"
run = "echo"
work = ["plant", "both"]
type = "gardener"

[[agent]]
name = "anyone"
contract = "builtin"
run = "echo"
work = ["rake"]
"#;

fn to(agent_type: &str, work: &str) -> Value {
    let mut request = asking(work, &json!({}));
    request["to_agent"] = json!(agent_type);
    request
}

#[test]
fn work_goes_to_an_agent_of_the_type_that_it_is_addressed_to() {
    let server = Server::configured(AGENTS);
    for (agent_type, work, agent) in [
        ("code", "both", "coder"),
        ("gardener", "both", "garden"),
        ("code", "dig", "coder"),
        ("research", "rake", "anyone"),
        ("gardener", "rake", "anyone"),
        ("orchestrator", "dig", "coder"),
        ("orchestrator", "plant", "garden"),
    ] {
        let request = to(agent_type, work);
        let said = server.outcome_of(&request);
        assert_eq!(server.job_of_message(&request)["agent"], agent, "{work} to {agent_type}");
        assert_eq!(said.document["to_agent"], request["from_agent"], "{}", said.document);
    }
}

#[test]
fn an_answer_is_from_the_type_of_the_agent_or_else_from_the_type_that_was_addressed() {
    let server = Server::configured(AGENTS);
    for (agent_type, work, from) in [
        ("code", "dig", "code"),
        ("orchestrator", "dig", "code"),
        ("orchestrator", "plant", "gardener"),
        ("research", "rake", "research"),
        ("orchestrator", "rake", "orchestrator"),
    ] {
        let said = server.outcome_of(&to(agent_type, work));
        assert_eq!(said.document["from_agent"], from, "{work} to {agent_type}: {}", said.document);
    }
}

#[test]
fn work_of_another_type_is_refused_and_a_type_that_nobody_knows_is_wrong() {
    let server = Server::configured(AGENTS);
    let wrong = server.say(&to("gardener", "dig"));
    assert_eq!((wrong.status, wrong.code()), (400, Some(5006)), "{:?}", wrong.answer);
    let unknown = server.say(&to("baker", "dig"));
    assert_eq!((unknown.status, unknown.code()), (400, Some(5003)), "{:?}", unknown.answer);
    assert_eq!(unknown.context()["field_name"], "to_agent");
    let mut from = to("code", "dig");
    from["from_agent"] = json!(ADDED_TYPE);
    let said = server.outcome_of(&from);
    assert_eq!(said.document["to_agent"], ADDED_TYPE, "a type that the operator added may ask: {}", said.document);
}
