//! Every endpoint that is described, with every sort of token. The description is compared with the router elsewhere,
//! so a new endpoint is tried here without a line of its own.

use serde_json::{Value, json};

use crate::support::server::{Answer, Server, until};
use crate::support::tokens::{self, with};

struct Endpoint {
    method: String,
    path: String,
    needs: String,
}

/// Every endpoint of the description, with names in its path that may stand for anything.
fn endpoints(server: &Server) -> Vec<Endpoint> {
    let described = server.get("/openapi.json").json();
    let mut all = Vec::new();
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let needs = operation["security"][1]["token"][0].as_str().unwrap_or("nothing").to_owned();
            let path =
                path.replace("{id}", "01a1e2d0-641e-7000-8000-0005a7fde28e").replace("{file}", "run.request.json");
            // The tokens that are asked with must stay good.
            let name = if path.starts_with("/api/v1/tokens") { "missing" } else { "worker" };
            let path = path.replace("{name}", name) + query(path.as_str());
            all.push(Endpoint { method: method.to_uppercase(), path, needs });
        }
    }
    assert!(all.len() > 40, "the description was not understood");
    all
}

/// What a path needs to be looked at.
fn query(path: &str) -> &'static str {
    match path {
        "/api/agent/messages" => "?agent=worker",
        "/api/v1/translate" => "?to=run",
        _ => "",
    }
}

/// A body that is read far enough for its sender to matter.
fn body(endpoint: &Endpoint) -> String {
    match (&*endpoint.method, &*endpoint.path) {
        ("GET" | "DELETE", _) => String::new(),
        (_, "/api/agent/register") => {
            let works = ["dig"];
            json!({"agent_id": "worker", "agent_type": "code", "supported_versions": ["1.0"], "work_types": works})
                .to_string()
        }
        _ => "{}".to_owned(),
    }
}

struct Tokens {
    admin: String,
    caller: String,
    agent: String,
    useless: Vec<(&'static str, String)>,
}

/// A server that asks for tokens, with one of every sort.
fn server() -> (Server, Tokens) {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let caller = tokens::caller(&server, &admin, "planner");
    let agent = tokens::agent(&server, &admin, "worker");
    let mut useless = vec![("wrong", "a7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2".to_owned())];
    for (role, name) in [("caller", "old-caller"), ("agent", "old-agent"), ("admin", "old-admin")] {
        let old = json!({"name": name, "for": role, "expires_seconds": 1});
        let old = tokens::create(&server, Some(&admin), &old);
        until("it expires", || {
            let answer = with(&server, Some(&old), "POST", "/api/v1/validate", "{}");
            (answer.status == 401).then_some(())
        });
        useless.push(("expired", old));
        let gone = format!("gone-{role}");
        let token = tokens::create(&server, Some(&admin), &json!({"name": gone, "for": role}));
        let revoked = with(&server, Some(&admin), "POST", &format!("/api/v1/tokens/{gone}/revoke"), "");
        assert_eq!(revoked.status, 200, "{revoked:?}");
        useless.push(("revoked", token));
    }
    (server, Tokens { admin, caller, agent, useless })
}

/// Whether an answer says, in whatever shape, that the sender may not come in.
fn is_refusal(answer: &Answer) -> bool {
    let text = answer.text().to_lowercase();
    ["unauthenticated", "authentication_failed", "5004"].iter().any(|word| text.contains(word))
}

#[test]
fn every_endpoint_asks_for_a_token_of_its_scope() {
    let (server, tokens) = server();
    for endpoint in endpoints(&server) {
        let Endpoint { method, path, needs } = &endpoint;
        let body = body(&endpoint);
        let asked = |token: Option<&str>| with(&server, token, method, path, &body);
        let is_let_in = |answer: &Answer| ![401, 403].contains(&answer.status);
        let (right, wrong): (Vec<&String>, Vec<&String>) = match needs.as_str() {
            "nothing" => {
                assert!(is_let_in(&asked(None)), "{method} {path}");
                // What a probe presents is not looked at.
                let answer = server.request(method, path, &[("authorization", "Basic YTpi")], body.as_bytes());
                assert!(is_let_in(&answer), "{method} {path}: {answer:?}");
                continue;
            }
            "caller" => (vec![&tokens.caller, &tokens.admin], vec![&tokens.agent]),
            "agent" => (vec![&tokens.agent], vec![&tokens.caller, &tokens.admin]),
            // Without a word about who sends it, a message is a caller's.
            "caller or agent" if path == "/api/agent/message" => (vec![&tokens.caller], vec![]),
            "caller or agent" => (vec![&tokens.agent], vec![]),
            "admin" => (vec![&tokens.admin], vec![&tokens.caller, &tokens.agent]),
            other => panic!("{method} {path} needs {other}"),
        };
        let none = asked(None);
        assert!(none.status == 401 && is_refusal(&none), "{method} {path}: {none:?}");
        for malformed in ["Basic YTpi", "Bearer", "Bearer  ", "token"] {
            let answer = server.request(method, path, &[("authorization", malformed)], body.as_bytes());
            assert!(answer.status == 401 && is_refusal(&answer), "{method} {path} {malformed}: {answer:?}");
        }
        for (what, token) in &tokens.useless {
            let answer = asked(Some(token));
            assert!(answer.status == 401 && is_refusal(&answer), "{method} {path} {what}: {answer:?}");
            assert!(!answer.text().contains(token.as_str()), "a token is in an answer");
        }
        for token in wrong {
            let answer = asked(Some(token));
            assert!(answer.status == 403 && is_refusal(&answer), "{method} {path}: {answer:?}");
        }
        for token in right {
            let answer = asked(Some(token));
            assert!(is_let_in(&answer), "{method} {path}: {answer:?}");
        }
    }
    let log = server.log();
    let all = [&tokens.admin, &tokens.caller, &tokens.agent].into_iter().chain(tokens.useless.iter().map(|(_, it)| it));
    assert!(all.clone().all(|token| !log.contains(token.as_str())), "a token is in the log");
}

#[test]
fn an_agent_speaks_for_itself_alone() {
    let (server, tokens) = server();
    let joining = json!({"session": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "work": ["dig"], "concurrency": 1});
    let join = |name: &str| {
        with(&server, Some(&tokens.agent), "POST", &format!("/api/v1/agents/{name}/join"), &joining.to_string())
    };
    assert_eq!(join("worker").status, 200);
    let other = join("another");
    assert_eq!((other.status, &other.json()["error"]["code"]), (401, &json!("unauthenticated")), "{other:?}");
}

#[test]
fn messages_are_taken_from_senders_of_their_scope() {
    let (server, tokens) = server();
    let code =
        json!({"agent_id": "worker", "agent_type": "code", "supported_versions": ["1.0"], "work_types": ["dig"]});
    let message = |kind: &str, payload: Value| {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        let message = json!({
            "protocol_version": "1.0", "message_id": id, "from_agent": "code", "to_agent": "orchestrator",
            "timestamp": "2026-01-19T04:21:04Z", "trace_id": id, "request_id": id, "type": kind, "payload": payload,
        });
        message.to_string()
    };
    let task = "550e8400-e29b-41d4-a716-446655440001";
    let step = json!({"number": 1, "name": "dig", "output": ""});
    let status = json!({"task_id": task, "status": "running", "progress_percent": 1, "step": step});
    let result = json!({"task_id": task, "status": "success", "exit_code": 0, "output": ""});
    let beat = json!({"agent_id": "worker", "status": "healthy"});
    let work = json!({"task_id": task, "work_type": "echo", "parameters": {}, "hints": {}});
    for (method, path, body) in [
        ("POST", "/api/agent/register", code.to_string()),
        ("GET", "/api/agent/messages?agent=worker", String::new()),
        ("POST", "/api/agent/message", message("work_status", beat)),
        ("POST", "/api/agent/message", message("work_status", status)),
        ("POST", "/api/agent/message", message("work_result", result)),
    ] {
        for token in [&tokens.caller, &tokens.admin] {
            let answer = with(&server, Some(token), method, path, &body);
            assert!(answer.status == 403 && is_refusal(&answer), "{method} {path} {body}: {answer:?}");
        }
    }
    // An agent that asks for work is the wrong sender of it (MSG-13.5).
    let answer = with(&server, Some(&tokens.agent), "POST", "/api/agent/message", &message("work_request", work));
    assert!(answer.status == 401 && answer.text().contains("wrong_agent"), "{answer:?}");
}

#[test]
fn the_log_says_from_where_and_with_whose_token_a_refused_request_came() {
    let server = Server::with("", &["--log-format", "json"]);
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    assert_eq!(with(&server, None, "GET", "/api/v1/jobs", "").status, 401);
    assert_eq!(with(&server, Some("wrong"), "GET", "/api/v1/jobs", "").status, 401);
    assert_eq!(with(&server, Some(&planner), "GET", "/api/v1/tokens", "").status, 403);
    assert_eq!(with(&server, Some(&planner), "GET", "/api/v1/jobs", "").status, 200);
    let lines = || {
        let log = server.log();
        assert!(!log.contains(&planner), "a token is in the log");
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let asked = lines.filter(|line| line["message"] == "request" && line["method"] == "GET");
        let fields = |line: Value| ["path", "status", "from", "token"].map(|name| line[name].clone());
        Some(asked.map(fields).collect::<Vec<_>>()).filter(|lines| lines.len() == 4)
    };
    let (here, jobs, nothing) = (json!("127.0.0.1"), json!("/api/v1/jobs"), Value::Null);
    let expected = [
        [jobs.clone(), json!(401), here.clone(), nothing.clone()],
        [jobs.clone(), json!(401), here.clone(), nothing.clone()],
        [json!("/api/v1/tokens"), json!(403), here, json!("planner")],
        [jobs, json!(200), nothing.clone(), nothing],
    ];
    assert_eq!(until("all are in the log", lines), expected);
}

#[test]
fn a_server_without_tokens_asks_for_none_and_passes_over_those_of_others() {
    let server = Server::start();
    let strange = "Bearer a7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2";
    for headers in [&[][..], &[("authorization", strange)][..], &[("authorization", "Basic YTpi")][..]] {
        let answer = server.request("GET", "/api/v1/jobs", headers, b"");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // The token of an agent alone closes nothing, but no other client speaks for that agent.
    let worker = tokens::create(&server, None, &json!({"name": "worker", "for": "agent"}));
    assert_eq!(server.get("/api/v1/jobs").status, 200);
    let joining = json!({"session": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "work": ["dig"]}).to_string();
    let join = |token| with(&server, token, "POST", "/api/v1/agents/worker/join", &joining).status;
    assert_eq!((join(None), join(Some(worker.as_str()))), (401, 200));
}

#[test]
fn a_token_that_was_replaced_is_good_for_as_long_as_was_said() {
    let (server, tokens) = server();
    let rotate = |body: &Value| {
        let answer = with(&server, Some(&tokens.admin), "POST", "/api/v1/tokens/planner/rotate", &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["token"].as_str().expect("a token").to_owned()
    };
    let asks = |token: &str| with(&server, Some(token), "GET", "/api/v1/jobs", "").status;
    let second = rotate(&json!({"overlap_seconds": 3_600}));
    assert_eq!((asks(&tokens.caller), asks(&second)), (200, 200));
    let third = rotate(&json!({}));
    assert_eq!((asks(&tokens.caller), asks(&second), asks(&third)), (401, 401, 200));
}

#[test]
fn an_agent_registers_on_a_closed_server_with_the_token_of_its_name() {
    let (server, tokens) = server();
    let register = |token: Option<&str>, name: &str| {
        let works = ["dig"];
        let said = json!({"agent_id": name, "agent_type": "code", "supported_versions": ["1.0"], "work_types": works});
        with(&server, token, "POST", "/api/agent/register", &said.to_string()).status
    };
    assert_eq!(register(None, "worker"), 401);
    assert_eq!(register(Some(&tokens.agent), "another"), 401);
    assert_eq!(register(Some(&tokens.caller), "worker"), 403);
    assert_eq!(register(Some(&tokens.agent), "worker"), 200);
    let poll = |token: Option<&str>| with(&server, token, "GET", "/api/agent/messages?agent=worker", "").status;
    assert_eq!((poll(None), poll(Some(&tokens.agent))), (401, 200));
}
