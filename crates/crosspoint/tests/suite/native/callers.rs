//! Callers that are told later: what they are owed is seen, outlives kills and is told.

use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use serde_json::{Value, json};

use crate::support::documents::faultless;
use crate::support::program::{crosspoint, transcript};
use crate::support::scripted_agent::{Request, ScriptedAgent, unused_address};
use crate::support::server::{Server, until};

const SECRET: &str = "x7content";

fn caller(url: &str) -> String {
    format!("[server]\ndrain_seconds = 0.2\n[[caller]]\nname = \"planner\"\ncallback = \"{url}\"\n")
}

/// A request with ids of its own.
fn document(work: &str) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    json!({
        "protocol_version": "1.0", "message_id": id, "from_agent": "orchestrator", "to_agent": "code",
        "timestamp": "2026-01-19T04:21:04Z", "trace_id": id, "request_id": id, "type": "work_request",
        "payload": { "task_id": id, "work_type": work, "parameters": { "text": SECRET, "seconds": 0.2 }, "hints": {} },
        "x_custom_fields": {},
    })
}

/// Sends work of the caller that is told later, and returns the job's id.
fn request(server: &Server) -> String {
    assert_eq!(server.post("/api/agent/message", &document("echo").to_string()).status, 202);
    let listed = server.get("/api/v1/jobs?door=message&limit=1").json();
    let id = listed["jobs"][0]["id"].as_str().expect("it is there").to_owned();
    server.ended(&id);
    id
}

fn planner(server: &Server) -> Value {
    server.get("/api/v1/callers").json()["callers"][0].clone()
}

fn metric(server: &Server, line: &str) -> Option<String> {
    let text = server.get("/metrics").text();
    text.lines().find_map(|found| found.strip_prefix(line)).map(|value| value.trim().to_owned())
}

fn card(server: &Server, id: &str) -> String {
    transcript(&mut crosspoint(&["jobs", "show", id, "--server", &server.url()]))
}

#[test]
fn what_a_caller_is_owed_is_seen_until_it_is_told() {
    let nowhere = format!("http://{}/", unused_address());
    let mut server = Server::configured(&caller(&nowhere));
    assert_eq!(planner(&server), json!({ "name": "planner", "callback": nowhere, "configured": true, "owed": 0 }));
    let id = request(&server);
    server.kill();
    server.restart();
    let failing = until("it fails", || Some(planner(&server)).filter(|caller| caller["failing"].is_object()));
    assert_eq!((&failing["owed"], &failing["failing"]["last"]), (&json!(1), &json!("no connection can be made")));
    assert!(failing["since"].is_string() && failing["failing"]["tries"].as_u64() >= Some(1), "{failing}");
    let owed = until("it says why", || {
        Some(server.job(&id)["owed"].clone()).filter(|owed| owed["failing"]["next_at"].is_string())
    });
    assert_eq!((&owed["to"], &owed["since"]), (&json!("planner"), &failing["since"]));
    let card = card(&server, &id);
    assert!(card.contains("owed to     planner, since 2"), "{card}");
    assert!(card.contains("no connection can be made; next at 2"), "{card}");
    until("it is counted", || {
        metric(&server, "crosspoint_owed{caller=\"planner\"}").filter(|count| count == "1").map(drop)
    });
    let unanswered = "crosspoint_deliveries_total{caller=\"planner\",result=\"unanswered\"}";
    assert!(metric(&server, unanswered).is_some_and(|count| count != "0"));
    let log = server.log();
    assert!(log.contains("caller=\"planner\"") && !log.contains("an agent cannot be connected to"), "{log}");

    // It is taken out of the configuration.
    server.stop();
    server.configure("");
    server.restart();
    let gone = planner(&server);
    assert_eq!((&gone["name"], &gone["configured"], &gone["owed"]), (&json!("planner"), &json!(false), &json!(1)));
    assert_eq!(server.job(&id)["owed"]["to"], "planner");
    until("it is counted", || {
        metric(&server, "crosspoint_owed{caller=\"other\"}").filter(|count| count == "1").map(drop)
    });

    // It is back, and listens.
    let there = ScriptedAgent::start(|_, connection| connection.whole(200, "text/plain", "thanks"));
    server.stop();
    server.configure(&caller(&there.url()));
    server.restart();
    until("it is told", || Some(planner(&server)).filter(|caller| caller["owed"] == 0));
    let told = there.requests();
    assert_eq!((told.len(), told[0].path.as_str()), (1, "/api/agent/message"));
    faultless(&told[0].body, crosspoint_contracts::Kind::WorkResult);
    assert_eq!(server.job(&id).get("owed"), None);
    until("it is logged", || server.log().contains("told").then_some(()));
    assert!(!server.log().contains(SECRET));
}

/// The caller acknowledges, and the server is killed before it could take note of that.
#[test]
fn a_kill_between_acknowledgement_and_its_note_sends_the_same_message_again() {
    let (had, has) = mpsc::channel();
    let is_dead = Arc::new(AtomicBool::new(false));
    let dead = is_dead.clone();
    let there = ScriptedAgent::start(move |request, connection| {
        if is_result(request) {
            had.send(request.json()["message_id"].clone()).expect("the test is there");
            until("it is killed", || dead.load(Ordering::SeqCst).then_some(()));
        }
        connection.whole(200, "text/plain", "")
    });
    let mut server = Server::configured(&caller(&there.url()));
    request(&server);
    let first = has.recv().expect("it is sent");
    server.kill();
    is_dead.store(true, Ordering::SeqCst);
    server.restart();
    assert_eq!(has.recv().expect("it is sent again"), first);
    until("it is told", || Some(planner(&server)).filter(|caller| caller["owed"] == 0));
    server.kill();
    server.restart();
    assert_eq!(planner(&server)["owed"], 0);
    server.stop();
    assert_eq!(there.requests().iter().filter(|request| is_result(request)).count(), 2, "and never again");
}

/// A caller that takes the message and says nothing does not hold the server up.
#[test]
fn a_server_that_stops_leaves_what_is_owed_to_the_next_start() {
    let (had, has) = mpsc::channel();
    let there = ScriptedAgent::start(move |_, connection| {
        had.send(()).expect("the test is there");
        connection.until_gone()
    });
    let mut server = Server::configured(&caller(&there.url()));
    request(&server);
    has.recv().expect("it is sent");
    assert!(server.stop().success());
    server.configure("");
    server.restart();
    assert_eq!(planner(&server)["owed"], 1);
}

/// MSG-17: the answer on the same connection is the one answer, and is not sent to the callback as well.
#[test]
fn a_caller_that_waited_is_not_told_again() {
    let there = ScriptedAgent::start(|_, connection| connection.whole(200, "text/plain", ""));
    let mut server = Server::configured(&caller(&there.url()));
    let answer = server.post("/api/agent/message?wait=60", &document("fail").to_string());
    assert_eq!(answer.json()["type"], "work_result", "{answer:?}");
    assert_eq!(planner(&server)["owed"], 0);
    let answer = server.post("/api/agent/message?wait=0", &document("slow_echo").to_string());
    assert_eq!((answer.status, &answer.json()["type"]), (202, &json!("work_status")));
    until("the other is told", || there.requests().iter().any(is_result).then_some(()));
    until("that is noted", || Some(planner(&server)).filter(|caller| caller["owed"] == 0));
    server.stop();
    let told = there.requests();
    assert_eq!(told.iter().filter(|request| is_result(request)).count(), 1);
    assert_eq!(told.iter().filter(|request| !is_result(request) && is_status(request)).count(), told.len() - 1);
}

fn is_result(request: &Request) -> bool {
    request.json()["type"] == "work_result"
}

fn is_status(request: &Request) -> bool {
    request.json()["type"] == "work_status"
}

#[test]
fn a_caller_pulls_with_its_own_token_and_acknowledges() {
    let toml = "[[caller]]\nname = \"planner\"\ntoken_file = \"planner.token\"\n[[caller]]\nname = \"other\"\ntoken_file = \"other.token\"\n";
    let mut server = Server::start();
    server.stop();
    for name in ["planner", "other"] {
        fs::write(server.directory().join(format!("{name}.token")), format!("{name}-s3cret")).expect("it is written");
    }
    server.configure(toml);
    server.restart();
    let server = server.operated();
    let bearer = |name: &str| format!("Bearer {name}-s3cret");
    let body = document("echo").to_string();
    let refused = server.post("/api/agent/message", &body);
    assert_eq!((refused.status, &refused.json()["payload"]["error_code"]), (401, &json!(5004)));
    let sent = server.request("POST", "/api/agent/message", &[("authorization", &bearer("planner"))], body.as_bytes());
    assert_eq!(sent.status, 202, "{sent:?}");
    let pull = |query: &str, token: &str| {
        let path = format!("/api/agent/messages?agent=planner{query}");
        server.request("GET", &path, &[("authorization", token)], b"")
    };
    for token in [bearer("other"), bearer("nobody")] {
        assert_eq!(pull("", &token).status, 401);
    }
    assert_eq!(server.get("/api/agent/messages?agent=planner").status, 401);
    assert_eq!(server.get("/api/agent/messages?agent=missing").status, 401, "nothing is looked up");
    let mut acks = Vec::new();
    let result = until("the result comes", || {
        let answer = pull(&format!("&wait=10&max=10&ack={}", acks.join(",")), &bearer("planner"));
        let messages = answer.json()["messages"].as_array().expect("a list").clone();
        acks.extend(messages.iter().map(|message| message["message_id"].as_str().expect("an id").to_owned()));
        messages.into_iter().find(|message| message["type"] == "work_result")
    });
    assert_eq!(result["payload"]["status"], "success");
    let owed = |name: &str| {
        let callers = server.get("/api/v1/callers").json()["callers"].as_array().expect("a list").clone();
        callers.iter().find(|caller| caller["name"] == name).expect("it is there")["owed"].clone()
    };
    assert_eq!((owed("planner"), owed("other")), (json!(1), json!(0)));
    let task = result["payload"]["task_id"].as_str().expect("an id");
    assert_eq!(pull(&format!("&ack={task}"), &bearer("planner")).json(), json!({ "messages": [] }));
    assert_eq!(owed("planner"), 0);
    assert!(!server.log().contains("s3cret"));
}

#[test]
fn a_caller_that_waits_and_hangs_up_is_told_as_soon_as_its_work_has_ended() {
    let (told, was_told) = mpsc::channel();
    let there = ScriptedAgent::start(move |request: &Request, connection| {
        let _ = told.send(request.json());
        connection.whole(200, "text/plain", "thanks")
    });
    let server = Server::configured(&caller(&there.url()));
    let asked = document("ask").to_string();
    let mut connection = server.connect();
    let head = "POST /api/agent/message?wait=300 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{asked}", asked.len()).expect("it can be sent");
    let listed = || server.get("/api/v1/jobs?door=message&limit=1").json();
    let id = until("it is there", || listed()["jobs"][0]["id"].as_str().map(str::to_owned));
    server.in_state(&id, "waiting");
    drop(connection);
    // What is said is what the caller would have seen on its connection. Between the acceptance of its work and the
    // begin of its wait it counts as one that has left, and may be told that the work runs.
    let is_news = |told: &Value| told["payload"]["status"] != "running";
    let first = until("it is told", || was_told.try_iter().find(is_news));
    assert_eq!(first["payload"]["status"], "paused", "{first}");
    assert_eq!(server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "go on"}"#).status, 200);
    let outcome = until("it is told the outcome", || was_told.try_iter().find(|told| told["type"] == "work_result"));
    assert_eq!(outcome["request_id"], first["request_id"]);
}
