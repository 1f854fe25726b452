//! Traces, priorities, retries and delegation: what travels with a task.

use serde_json::{Value, json};

use crate::support::programs::bash;
use crate::support::server::Server;
use crate::support::task_agent::{Call, TaskAgent, asking};
use crate::support::task_caller::Task;
use crate::support::workers::Worker;
use crate::task::agent::answer;
use crate::task::door::ONE;

const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A server whose program returns its place in the trace.
fn telling() -> Server {
    Server::configured(&bash("tells", "echo \"{\\\"trace\\\": \\\"$TRACEPARENT\\\"}\"", ""))
}

/// Has a task done, and returns it with the trace that reached its agent: trace, span, flags.
fn traced(server: &Server, id: &str, observability: &Value, header: Option<&str>) -> (Task, [String; 3]) {
    let mut body = json!({"id": id, "type": "tells", "payload": {}});
    if observability.is_object() {
        body["observability"] = observability.clone();
    }
    let headers: Vec<(&str, &str)> = header.into_iter().map(|header| ("traceparent", header)).collect();
    let task = server.task("POST", "/tasks?wait=60", &headers, &body.to_string());
    let told = task.document["result"]["trace"].as_str().unwrap_or_else(|| panic!("{:?}", task.answer)).to_owned();
    let parts: Vec<String> = told.split('-').map(str::to_owned).collect();
    let [version, trace, span, flags] = parts.try_into().expect("four parts");
    assert_eq!((version.as_str(), span.len()), ("00", 16));
    assert_ne!(span, SPAN, "every hop is a span of its own");
    (task, [trace, span, flags])
}

#[test]
fn a_trace_goes_on_whether_the_header_names_it_or_the_block() {
    let server = telling();
    let header = format!("00-{TRACE}-{SPAN}-00");
    let block = json!({"traceId": TRACE, "spanId": SPAN, "baggage": {"k": "v"}});
    let (_, [trace, first, flags]) = traced(&server, "a", &Value::Null, Some(&header));
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "00"));
    let (_, [trace, second, _]) = traced(&server, "b", &block, None);
    assert_eq!(trace, TRACE);
    assert_ne!(first, second, "two tasks are two spans");
    // The same trace in both is no contradiction, whatever the flags say: a block has none.
    let (task, [trace, ..]) = traced(&server, UUID, &block, Some(&header));
    assert_eq!((trace.as_str(), task.warnings()), (TRACE, Value::Null));
    let upper = json!({"traceId": TRACE.to_uppercase(), "spanId": SPAN.to_uppercase()});
    assert_eq!(traced(&server, "c", &upper, None).1[0], TRACE, "one id, in another case");
    let (_, [trace, ..]) = traced(&server, "d", &json!({"traceId": TRACE}), None);
    assert_eq!(trace, TRACE, "a trace without a span goes on too");
    let job = server.job_of_task("b")["id"].as_str().expect("an id").to_owned();
    let document = server.get(&format!("/api/v1/jobs/{job}/document")).json();
    assert_eq!(document["observability"], block, "baggage is kept for readers of the document");
}

#[test]
fn the_header_wins_over_the_block_and_that_is_said() {
    let server = telling();
    let other = "0af7651916cd43dd8448eb211c80319c";
    let header = format!("00-{other}-b7ad6b7169203331-01");
    let (task, [trace, ..]) = traced(&server, UUID, &json!({"traceId": TRACE, "spanId": SPAN}), Some(&header));
    assert_eq!(trace, other);
    let warnings = task.warnings();
    let [Value::String(warning)] = &warnings.as_array().expect("a list")[..] else { panic!("one: {warnings}") };
    assert!(warning.starts_with("TASK-8.2: "), "{warning}");
    assert_eq!(server.poll(UUID).warnings(), Value::Null, "only the caller that sent it is told");
}

#[test]
fn ids_that_are_none_are_carried_with_a_warning_and_headers_that_are_none_are_ignored() {
    let server = telling();
    let (task, [trace, ..]) = traced(&server, UUID, &json!({"traceId": "my-trace", "spanId": "1"}), Some("nonsense"));
    let job = server.job_of_task(UUID)["id"].as_str().expect("an id").replace('-', "");
    assert_eq!(trace, job, "a job without a trace is one");
    let warnings = task.warnings();
    let all: Vec<&str> = warnings.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(all.len() == 2 && all.iter().all(|warning| warning.starts_with("TASK-8: ")), "{all:?}");
}

const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";

/// The headers of a request to an agent that say where it belongs.
fn place(call: &Call) -> (String, Option<String>) {
    (
        call.request.header("traceparent").expect("a trace").to_owned(),
        call.request.header("tracestate").map(str::to_owned),
    )
}

/// Every request about a task is of the same span, with the state that its caller sent, also after a restart.
#[test]
fn every_request_to_an_agent_has_the_trace_and_its_state() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let header = format!("00-{TRACE}-{SPAN}-01");
    // Two headers are one list.
    let (first, second) = STATE.split_once(',').expect("two members");
    let headers = [("traceparent", &*header), ("tracestate", first), ("tracestate", second)];
    let body = json!({"id": "t", "type": "helper", "payload": {}}).to_string();
    server.task("POST", "/tasks", &headers, &body);
    let post = place(&agent.awaited("post", 1));
    assert!(post.0.starts_with(&format!("00-{TRACE}-")) && !post.0.contains(SPAN), "{post:?}");
    assert_eq!(post.1.as_deref(), Some(STATE));
    let id = agent.awaited("look", 1).id;
    agent.stands(&id, asking("Size?"));
    server.in_state(&id, "waiting");
    server.kill();
    server.restart();
    agent.looked_again();
    answer(&server, &id, &json!("big"));
    agent.awaited("input", 1);
    server.cancel(&id);
    agent.awaited("cancel", 1);
    for what in ["look", "input", "cancel"] {
        let places: Vec<_> = agent.asked(what).iter().map(place).collect();
        assert!(places.iter().all(|there| *there == post), "{what}: {places:?}");
    }
}

#[test]
fn programs_have_the_state_in_their_environment_and_only_where_there_is_one() {
    let script = "printf '{\"state\": \"%s\", \"set\": \"%s\"}' \"$TRACESTATE\" \"${TRACESTATE+yes}\"";
    let server = Server::configured(&bash("tells", script, ""));
    let _worker = Worker::joined(&server, "joined", &[], &["bash", "-c", script]);
    let header = format!("00-{TRACE}-{SPAN}-01");
    for work in ["tells", "joined"] {
        let told = |headers: &[(&str, &str)]| {
            let body = json!({"work": work}).to_string();
            let job = server.request("POST", "/api/v1/jobs?wait=60", headers, body.as_bytes()).json();
            job["outcome"]["outputs"].clone()
        };
        let with = told(&[("traceparent", &header), ("tracestate", STATE)]);
        assert_eq!(with, json!({"state": STATE, "set": "yes"}), "{work}");
        // A state belongs to a trace, and one that cannot be read is none.
        for none in [vec![("tracestate", STATE)], vec![("traceparent", &*header), ("tracestate", "nonsense")]] {
            assert_eq!(told(&none), json!({"state": "", "set": ""}), "{work}");
        }
    }
}

/// No program is given another state by its configuration.
#[test]
fn a_configuration_cannot_set_the_state() {
    let place = crate::cli::config::Place::new(
        "tracestate",
        "[[agent]]\nname = \"p\"\ncontract = \"exec\"\nexec = [\"true\"]\nenv = { TRACESTATE = \"a=1\" }\n",
    );
    let told = place.check();
    assert!(told.contains("TRACESTATE") && told.contains("cannot be used"), "{told}");
}

#[test]
fn priorities_order_the_queue() {
    let server = Server::configured(ONE);
    server.post("/api/v1/agents/one/drain", "");
    for priority in ["low", "normal", "urgent", "high"] {
        let body =
            json!({"id": priority, "type": "w", "payload": {"seconds": 0.05}, "context": {"priority": priority}});
        assert_eq!(server.submit_task("", &body.to_string()).word(), "pending");
        assert_eq!(server.job_of_task(priority)["priority"], priority);
    }
    server.post("/api/v1/agents/one/drain", r#"{"drained":false}"#);
    let mut ended = ["low", "normal", "urgent", "high"]
        .map(|id| (server.settled(id).document["metadata"]["completedAt"].to_string(), id));
    ended.sort_unstable();
    assert_eq!(ended.map(|(_, id)| id), ["urgent", "high", "normal", "low"]);
}

/// How often a task was tried, and the shortest pauses before its repeats, in milliseconds.
fn tried(server: &Server, id: &str, policy: Value) -> (Value, Vec<i64>) {
    server.post("/api/v1/agents/fail/breaker", r#"{"state":"closed"}"#);
    let mut body = json!({"id": id, "type": "fail", "payload": {"failure": "timeout"}});
    if policy.is_object() {
        body["retryPolicy"] = policy;
    }
    let mut task = server.submit_task("", &body.to_string());
    // Five failures open the agent's breaker, and a task with more attempts waits for it.
    while task.word() != "failed" {
        server.post("/api/v1/agents/fail/breaker", r#"{"state":"closed"}"#);
        task = server.task("GET", &format!("/tasks/{id}?wait=0.05"), &[], "");
    }
    assert_eq!(task.document["error"]["code"], "TIMEOUT");
    let job = server.job_of_task(id)["id"].as_str().expect("an id").to_owned();
    let events = server.get(&format!("/api/v1/jobs/{job}/events")).text();
    let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
    let pauses = data.map(|data| serde_json::from_str::<Value>(data).expect("JSON")).filter_map(|event| pause(&event));
    (task.document["metadata"]["retryCount"].clone(), pauses.collect())
}

/// The pause in an event of a job, in milliseconds.
fn pause(event: &Value) -> Option<i64> {
    let at = |name: &str| event[name].as_str()?.parse::<jiff::Timestamp>().ok();
    Some(at("until")?.as_millisecond() - at("at")?.as_millisecond())
}

/// Whether each pause is the wanted one, lengthened by at most half.
fn fits(pauses: &[i64], wanted: &[i64]) -> bool {
    // Times are given in whole milliseconds.
    pauses.len() == wanted.len()
        && pauses.iter().zip(wanted).all(|(pause, least)| (least - 1..=least * 3 / 2 + 1).contains(pause))
}

#[test]
fn a_retry_policy_is_followed_within_what_is_allowed() {
    let server = Server::start();
    for (id, policy, wanted) in [
        ("none", Value::Null, &[][..]),
        ("fixed", json!({"maxAttempts": 3, "backoffType": "fixed", "initialDelay": 40}), &[40, 40]),
        ("linear", json!({"maxAttempts": 4, "backoffType": "linear", "initialDelay": 40}), &[40, 80, 120]),
        ("doubled", json!({"maxAttempts": 4, "backoffType": "exponential", "initialDelay": 40}), &[40, 80, 160]),
        ("default", json!({"maxAttempts": 2}), &[1_000]),
        ("once", json!({"maxAttempts": 1}), &[]),
        ("many", json!({"maxAttempts": 1_000, "backoffType": "fixed", "initialDelay": 1}), &[1; 9]),
    ] {
        let (retries, pauses) = tried(&server, id, policy);
        assert_eq!(retries, json!(wanted.len()), "{id}");
        assert!(fits(&pauses, wanted), "{id}: {pauses:?}");
    }
}

#[test]
fn a_target_is_the_agent_that_gets_it_and_a_chain_may_be_long_but_no_circle() {
    let agent =
        |name: &str| format!("[[agent]]\nname = \"{name}\"\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [\"w\"]\n");
    let server = Server::configured(&(agent("a") + &agent("b")));
    for (id, target) in [("1", "a"), ("2", "b"), ("3", "b"), ("4", "a")] {
        let chain: Vec<String> = (0..16).map(|n| format!("agent-{n}")).collect();
        let body = json!({"id": id, "type": "w", "payload": {}, "routing": {"source": "s", "target": target, "delegationChain": chain}});
        let task = server.submit_task("?wait=60", &body.to_string());
        assert_eq!((task.word(), &task.document["metadata"]["agent"]), ("completed", &json!(target)));
    }
}
