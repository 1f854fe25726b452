//! Agents that register (MSG-10, MSG-11): what they are told, and what lasts.

use serde_json::{Value, json};

use crate::support::message_post::{Posted, heartbeat, pulling, registration, result};
use crate::support::server::{Answer, Server, until};

fn register(server: &Server, registration: &Value) -> Answer {
    server.post("/api/agent/register", &registration.to_string())
}

/// What a refusal says: its status, its code and its context.
fn refusal(answer: &Answer) -> (u16, u64, Value) {
    let document = answer.json();
    assert_eq!(document["type"], "error", "{document:#}");
    let payload = &document["payload"];
    (answer.status, payload["error_code"].as_u64().expect("a code"), payload["error_context"].clone())
}

#[test]
fn an_agent_that_registers_is_told_what_is_spoken_and_gets_work_when_it_asks() {
    let server = Server::start();
    let answer = server.registers(&registration("digger", &["dig", "fill"]));
    assert_eq!(answer, json!({"protocol_version": "1.0", "heartbeat_seconds": 30, "agent_id": "digger"}));
    let agent = server.agent("digger");
    assert_eq!((&agent["contract"], &agent["work"]), (&json!("message"), &json!(["dig", "fill"])), "{agent:#}");
    assert_eq!((&agent["type"], &agent["protocol_version"]), (&json!("code"), &json!("1.0")), "{agent:#}");
    for work in ["dig", "fill"] {
        let id = server.begin(work);
        let given = server.pulled("digger");
        assert_eq!((&given["request_id"], &given["to_agent"]), (&json!(id), &json!("code")), "{given:#}");
        server.takes(&result(&given, "done"));
        assert_eq!(server.job(&id)["outcome"]["outputs"], "done");
    }
}

#[test]
fn the_lowest_common_version_is_picked() {
    let server = Server::start();
    for versions in [json!(["1.0"]), json!(["2.0", "1.0"]), json!(["1.1", "1.0", "no version"]), json!(["01.0"])] {
        let mut digger = registration("digger", &["dig"]);
        digger["supported_versions"] = versions.clone();
        assert_eq!(server.registers(&digger)["protocol_version"], "1.0", "{versions}");
    }
}

#[test]
fn without_a_common_version_both_lists_are_named() {
    let server = Server::start();
    let mut digger = registration("digger", &["dig"]);
    digger["supported_versions"] = json!(["2.0", "3.1"]);
    let answer = register(&server, &digger);
    let (status, code, context) = refusal(&answer);
    assert_eq!((status, code), (400, 5006), "{answer:?}");
    let text = answer.text();
    for version in ["1.0", "2.0", "3.1"] {
        assert!(text.contains(version), "{version}: {text}");
    }
    assert!(context["work_type_requested"].is_string() && context["supported_types"].is_array(), "{context}");
    assert_eq!(server.get("/api/v1/agents/digger").status, 404);
}

#[test]
fn what_is_missing_or_wrong_is_named_with_its_place() {
    let server = Server::start();
    for member in ["agent_id", "agent_type", "supported_versions", "work_types"] {
        let mut digger = registration("digger", &["dig"]);
        digger.as_object_mut().expect("an object").remove(member);
        let (status, code, context) = refusal(&register(&server, &digger));
        assert_eq!((status, code, &context["field_name"]), (400, 5003, &json!(member)), "{context}");
        let said = context["validation_error"].as_str().expect("a text");
        assert!(said.contains(member), "{said}");
    }
    let (_, _, context) = refusal(&register(&server, &json!({})));
    assert!(context["validation_error"].as_str().is_some_and(|said| said.ends_with("(one of 4 errors)")), "{context}");
    for (member, value) in [
        ("agent_id", json!("")),
        ("agent_id", json!(7)),
        ("agent_id", json!("x".repeat(201))),
        ("agent_id", json!("two\nlines")),
        ("supported_versions", json!([])),
        ("work_types", json!(["dig", 7])),
        ("work_types", json!([])),
        ("base_url", json!("ftp://digger")),
        ("base_url", json!("http://user:secret@digger")),
        ("base_url", json!(7)),
        ("base_url", json!("http://127.0.0.1:8000/api/agent/message")),
        ("concurrency", json!(0)),
        ("concurrency", json!(1001)),
    ] {
        let mut digger = registration("digger", &["dig"]);
        digger[member] = value.clone();
        let (status, code, context) = refusal(&register(&server, &digger));
        let place = context["field_name"].as_str().unwrap_or_default();
        assert_eq!((status, code), (400, 5003), "{member}: {value}: {context}");
        assert!(place.starts_with(member), "{member}: {value}: {context}");
    }
    for body in ["", "[]", "{", "{\"agent_id\": \"a\", \"agent_id\": \"b\"}"] {
        let answer = server.post("/api/agent/register", body);
        assert_eq!((answer.status, refusal(&answer).1), (400, 5003), "{body}: {answer:?}");
    }
    assert_eq!(server.get("/api/v1/agents/digger").status, 404);
}

#[test]
fn a_type_that_nobody_knows_is_refused_unless_the_operator_added_it() {
    let mut digger = registration("digger", &["dig"]);
    digger["agent_type"] = json!("robot");
    let server = Server::start();
    let (status, code, context) = refusal(&register(&server, &digger));
    assert_eq!((status, code, &context["field_name"]), (400, 5003, &json!("agent_type")), "{context}");
    let server = Server::configured("[server]\nagent_types = [\"robot\"]\n");
    server.registers(&digger);
    assert_eq!(server.agent("digger")["type"], "robot");
    let id = server.begin("dig");
    let given = server.pulled("digger");
    assert_eq!(given["to_agent"], "robot");
    server.takes(&heartbeat("digger", "robot", "online"));
    server.takes(&result(&given, "done"));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], job.get("violations")), (&json!("done"), None), "{job:#}");
}

#[test]
fn an_agent_with_an_address_is_pushed_to() {
    let agent = Posted::saying(|request| result(request, "pushed"));
    let server = Server::start();
    let mut digger = registration("digger", &["dig"]);
    digger["base_url"] = json!(agent.url());
    server.registers(&digger);
    let id = server.begin("dig");
    let job = server.over(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["agent"]), (&json!("pushed"), &json!("digger")), "{job:#}");
    assert_eq!(agent.asked()[0].header("authorization"), None);
}

#[test]
fn an_agent_has_as_many_jobs_as_it_says() {
    let agent = Posted::taking();
    let server = Server::start();
    let mut digger = registration("digger", &["dig"]);
    (digger["base_url"], digger["concurrency"]) = (json!(agent.url()), json!(2));
    server.registers(&digger);
    assert_eq!(server.agent("digger")["concurrency"], 2);
    let begun: Vec<String> = (0..3).map(|_| server.begin("dig")).collect();
    let second = agent.request(2);
    let queued: Vec<&String> = begun.iter().filter(|id| server.job(id)["state"] == "queued").collect();
    assert_eq!(queued.len(), 1, "the third waits");
    server.takes(&result(&second, "done"));
    assert_eq!(agent.request(3)["request_id"], json!(queued[0]));
}

#[test]
fn a_registered_agent_is_known_after_a_restart_and_its_work_waits_while_it_is_away() {
    let mut server = Server::start();
    server.registers(&registration("digger", &["dig"]));
    let before = server.agent("digger");
    for end in [Server::kill as fn(&mut Server), |server| assert!(server.stop().success())] {
        end(&mut server);
        server.restart();
        let agent = server.agent("digger");
        for member in ["contract", "type", "protocol_version", "work"] {
            assert_eq!(agent[member], before[member], "{member}");
        }
        assert!(agent["away_since"].is_string(), "{agent:#}");
        let id = server.begin("dig");
        let job = server.job(&id);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job:#}");
        let reason = job["stuck"]["reason"].as_str().expect("a reason");
        assert!(reason.starts_with("agent digger is away since "), "{reason}");
        server.takes(&result(&server.pulled("digger"), "done"));
        assert_eq!(server.job(&id)["outcome"]["outputs"], "done");
    }
}

#[test]
fn an_agent_with_an_address_is_pushed_to_after_a_restart_without_registering_again() {
    let agent = Posted::saying(|request| result(request, "pushed"));
    let mut server = Server::start();
    let mut digger = registration("digger", &["dig"]);
    digger["base_url"] = json!(agent.url());
    server.registers(&digger);
    server.kill();
    server.restart();
    let id = server.begin("dig");
    assert_eq!(server.over(&id)["outcome"]["outputs"], "pushed");
}

#[test]
fn registering_again_changes_the_works_and_keeps_the_messages_that_wait() {
    let server = Server::start();
    server.registers(&registration("digger", &["dig"]));
    server.polled("agent=digger&max=2");
    let (first, second) = (server.begin("dig"), server.begin("dig"));
    server.in_state(&first, "running");
    server.in_state(&second, "running");
    let given = server.pulled("digger");
    server.registers(&registration("digger", &["fill"]));
    assert_eq!(server.agent("digger")["work"], json!(["fill"]));
    // Both of them are still the agent's: the one that it has, and the one that waits.
    server.takes(&result(&given, "one"));
    let other = server.pulled("digger");
    server.takes(&result(&other, "two"));
    for id in [first, second] {
        let job = server.job(&id);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job:#}");
    }
    let refused = server.post("/api/v1/jobs", r#"{"work": "dig"}"#);
    assert_eq!(refused.status, 400, "nobody takes it any more: {refused:?}");
    let id = server.begin("fill");
    assert_eq!(server.pulled("digger")["request_id"], json!(id));
}

#[test]
fn a_poll_that_waits_while_its_agent_registers_again_gets_the_new_work() {
    let server = Server::start();
    server.registers(&registration("digger", &["dig"]));
    std::thread::scope(|scope| {
        let poll = scope.spawn(|| server.pulled("digger"));
        until("it waits", || server.agent("digger")["away_since"].is_null().then_some(()));
        server.registers(&registration("digger", &["fill"]));
        let id = server.begin("fill");
        assert_eq!(poll.join().expect("it is answered")["request_id"], json!(id));
    });
}

#[test]
fn registering_again_with_another_address_moves_the_agent() {
    let (old, new) =
        (Posted::saying(|request| result(request, "old")), Posted::saying(|request| result(request, "new")));
    let server = Server::start();
    let mut digger = registration("digger", &["dig"]);
    for (agent, by) in [(&old, "old"), (&new, "new")] {
        digger["base_url"] = json!(agent.url());
        server.registers(&digger);
        let id = server.begin("dig");
        assert_eq!(server.over(&id)["outcome"]["outputs"], by);
    }
    digger.as_object_mut().expect("an object").remove("base_url");
    server.registers(&digger);
    let id = server.begin("dig");
    assert_eq!(server.pulled("digger")["request_id"], json!(id), "it pulls now");
}

#[test]
fn an_agent_that_is_configured_may_register_and_stays_as_it_is_configured() {
    let agent = Posted::saying(|request| result(request, "configured"));
    let server = Server::configured(
        &(agent.configuration("digger", "work = [\"dig\"]\ntype = \"infra\"") + &pulling("puller", "")),
    );
    let mut digger = registration("digger", &["fill"]);
    digger["base_url"] = json!("http://127.0.0.1:1");
    let (status, code, context) = refusal(&register(&server, &digger));
    assert_eq!((status, code), (409, 5903), "it is configured with another type: {context}");
    digger["agent_type"] = json!("infra");
    server.registers(&digger);
    assert_eq!(server.agent("digger")["work"], json!(["dig"]));
    let id = server.begin("dig");
    assert_eq!(server.over(&id)["outcome"]["outputs"], "configured");
    // One without a type may be of any.
    server.registers(&registration("puller", &["fill"]));
    assert_eq!(server.agent("puller")["work"], json!(["puller"]));
}

#[test]
fn an_agent_that_is_away_can_be_forgotten() {
    let mut server = Server::start();
    server.registers(&registration("digger", &["dig"]));
    server.kill();
    server.restart();
    let forgotten = server.request("DELETE", "/api/v1/agents/digger", &[], b"");
    assert_eq!(forgotten.status, 200, "{forgotten:?}");
    assert_eq!(server.get("/api/v1/agents/digger").status, 404);
    assert_eq!(server.get("/api/agent/messages?agent=digger").status, 404);
    assert_eq!(server.post("/api/v1/jobs", r#"{"work": "dig"}"#).status, 400);
    server.registers(&registration("digger", &["dig"]));
    let id = server.begin("dig");
    assert_eq!(server.pulled("digger")["request_id"], json!(id));
}

#[test]
fn work_that_waits_for_an_agent_that_wants_it_pushed_from_now_on_is_pushed() {
    let agent = Posted::saying(|request| result(request, "pushed"));
    let server = Server::configured("");
    server.registers(&registration("changing", &["paint"]));
    server.polled("agent=changing");
    let id = server.begin("paint");
    server.in_state(&id, "running");
    let mut pushed = registration("changing", &["paint"]);
    pushed["base_url"] = json!(agent.url());
    server.registers(&pushed);
    assert_eq!(server.over(&id)["outcome"]["outputs"], "pushed");
}

#[test]
fn one_agent_more_than_may_register_is_told_of_the_limit() {
    let server = Server::configured("");
    for number in 0..1_000 {
        server.registers(&registration(&format!("agent-{number}"), &["paint"]));
    }
    let answer = server.post("/api/agent/register", &registration("another", &["paint"]).to_string());
    assert_eq!(answer.status, 429, "{answer:?}");
    let payload = &answer.json()["payload"];
    assert_eq!((&payload["error_code"], &payload["error_context"]["limit_name"]), (&json!(5005), &json!("agents")));
}
