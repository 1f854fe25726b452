//! What the task door refuses: in the shape of the contract, with its most exact code, and nothing of it is done.

use std::io::{BufReader, Write};
use std::{fs, net, thread};

use serde_json::{Value, json};

use crate::support::program::root;
use crate::support::server::{Answer, Server, head, until};
use crate::support::task_caller::{Task, faultless, request};

struct Wanted<'w> {
    status: u16,
    code: &'w str,
    clause: Option<&'w str>,
    field: Option<&'w str>,
    recoverable: bool,
}

#[track_caller]
fn refused(task: &Task, wanted: &Wanted<'_>) {
    assert_eq!((task.status, task.word()), (wanted.status, "failed"), "{:?}", task.answer);
    let error = &task.document["error"];
    assert_eq!((&error["code"], &error["recoverable"]), (&json!(wanted.code), &json!(wanted.recoverable)), "{error}");
    let details = &error["details"];
    assert_eq!((details["clause"].as_str(), &details["repeat"]), (wanted.clause, &json!("never")), "{error}");
    assert_eq!(details["field"].as_str(), wanted.field, "{error}");
    assert!(details["hint"].is_string() && error["message"].is_string(), "{error}");
}

/// A code for what is wrong with a document, and whether its caller can mend it.
const CODES: [(&str, bool); 8] = [
    ("INVALID_INPUT", true),
    ("MISSING_REQUIRED_FIELD", true),
    ("INVALID_FIELD_TYPE", true),
    ("INVALID_FIELD_VALUE", true),
    ("CAPABILITY_NOT_FOUND", false),
    ("AGENT_NOT_FOUND", false),
    ("TASK_GRAPH_CYCLE", false),
    ("DELEGATION_FAILED", false),
];

#[test]
fn every_mistake_has_its_most_exact_code() {
    let server = Server::start();
    let chain: Vec<String> = (0..17).map(|n| format!("\"a{n}\"")).collect();
    let chain =
        format!(r#"{{"id":"t","type":"echo","payload":{{}},"routing":{{"delegationChain":[{}]}}}}"#, chain.join(","));
    for (body, code, clause, field) in [
        (r#"{"type":"echo","payload":{}}"#, "MISSING_REQUIRED_FIELD", "TASK-1", Some("id")),
        (r#"{"id":"t","payload":{}}"#, "MISSING_REQUIRED_FIELD", "TASK-1", Some("type")),
        (r#"{"id":"t","type":"echo"}"#, "MISSING_REQUIRED_FIELD", "TASK-1", Some("payload")),
        (r#"{"ID":"t","type":"echo","payload":{}}"#, "MISSING_REQUIRED_FIELD", "TASK-1", Some("ID")),
        (r#"{"id":7,"type":"echo","payload":{}}"#, "INVALID_FIELD_TYPE", "TASK-101", Some("id")),
        (r#"{"id":"t","type":"echo","payload":[]}"#, "INVALID_FIELD_TYPE", "TASK-1.2", Some("payload")),
        (
            r#"{"id":"t","type":"echo","payload":{},"retryPolicy":3}"#,
            "INVALID_FIELD_TYPE",
            "TASK-7",
            Some("retryPolicy"),
        ),
        (r#"{"id":"","type":"echo","payload":{}}"#, "INVALID_FIELD_VALUE", "TASK-101", Some("id")),
        (
            r#"{"id":"t","type":"echo","payload":{},"context":{"priority":"HIGH"}}"#,
            "INVALID_FIELD_VALUE",
            "TASK-1.3",
            Some("context.priority"),
        ),
        (
            r#"{"id":"t","type":"echo","payload":{},"retryPolicy":{"maxAttempts":0}}"#,
            "INVALID_FIELD_VALUE",
            "TASK-7",
            Some("retryPolicy.maxAttempts"),
        ),
        ("", "INVALID_INPUT", "ALL-101", None),
        (r#"{"id":"t","#, "INVALID_INPUT", "ALL-101", None),
        ("[]", "INVALID_INPUT", "ALL-108", None),
        (r#"{"id":"t","type":"unheard","payload":{}}"#, "CAPABILITY_NOT_FOUND", "ALL-6", Some("type")),
        (
            r#"{"id":"t","type":"echo","payload":{},"routing":{"target":"nobody"}}"#,
            "AGENT_NOT_FOUND",
            "TASK-1.5",
            Some("routing.target"),
        ),
        (
            r#"{"id":"t","type":"echo","payload":{},"routing":{"target":"ask"}}"#,
            "CAPABILITY_NOT_FOUND",
            "TASK-122",
            Some("type"),
        ),
        (
            r#"{"id":"t","type":"echo","payload":{},"routing":{"target":"echo","delegationChain":["echo"]}}"#,
            "TASK_GRAPH_CYCLE",
            "TASK-9.2",
            Some("routing.target"),
        ),
        (&chain, "DELEGATION_FAILED", "TASK-9.3", Some("routing.delegationChain")),
    ] {
        let task = server.task("POST", "/tasks", &[], body);
        let recoverable = CODES.iter().find(|(known, _)| *known == code).expect("it is listed").1;
        refused(&task, &Wanted { status: 400, code, clause: Some(clause), field, recoverable });
        if body.starts_with(r#"{"id":"t""#) {
            assert_eq!(task.document["id"], "t", "the id is that of the request where it could be read");
        }
        if let Some(field) = field.filter(|_| body.len() < 500) {
            let pointer = format!("/{}", field.replace('.', "/"));
            assert_eq!(task.document["error"]["details"]["at"], pointer.as_str(), "{body}");
        }
    }
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "nothing of it became a job");
}

#[test]
fn an_id_that_is_too_long_breaks_no_clause_but_a_limit_of_ours() {
    let server = Server::start();
    let id = "x".repeat(513);
    let too_long = server.task("POST", "/tasks", &[], &request(&id, "echo", &json!({})));
    let field = Some("id");
    refused(&too_long, &Wanted { status: 400, code: "INVALID_FIELD_VALUE", clause: None, field, recoverable: true });
    assert_eq!(too_long.document["id"], id.as_str());
}

#[test]
fn a_refusal_has_the_id_wherever_it_could_be_read() {
    let server = Server::start();
    let body = request("a/b", "echo", &json!({}));
    let refused = |task: &Task, clause| {
        assert_eq!((task.status, &task.document["id"]), (400, &json!("a/b")), "{:?}", task.answer);
        assert_eq!(task.document["error"]["code"], "INVALID_INPUT");
        assert_eq!(task.document["error"]["details"]["clause"].as_str(), clause);
    };
    refused(&server.task("POST", "/tasks", &[("idempotency-key", "é")], &body), Some("ALL-1"));
    refused(&server.task("POST", "/tasks?wait=long", &[], &body), None);
    refused(&server.task("GET", "/tasks/a%2Fb?wait=long", &[], ""), None);
    refused(&server.task("POST", "/tasks/a%2Fb/input?wait=long", &[], r#"{"input":1}"#), None);
    refused(&server.task("GET", "/tasks/a%2Fb/events?after=long", &[], ""), None);
}

#[test]
fn all_that_is_wrong_is_said_in_one_go() {
    let server = Server::start();
    let many = server.task("POST", "/tasks", &[], r#"{"type":1,"payload":2,"retryPolicy":3}"#);
    let findings = many.document["error"]["details"]["findings"].as_array().map(Vec::len);
    assert_eq!(findings, Some(4), "all that is wrong is said in one go: {}", many.document);
}

#[test]
fn a_document_with_ten_thousand_mistakes_gets_a_short_answer() {
    let server = Server::start();
    let twice = vec![r#""a":1"#; 20_000].join(",");
    let body = format!(r#"{{"id":"t","type":"echo","payload":{{{twice}}}}}"#);
    let task = server.task("POST", "/tasks", &[], &body);
    refused(
        &task,
        &Wanted {
            status: 400,
            code: "INVALID_INPUT",
            clause: Some("ALL-103"),
            field: Some("payload.a"),
            recoverable: true,
        },
    );
    assert_eq!(task.document["error"]["details"]["findings"].as_array().map(Vec::len), Some(50));
    let message = task.document["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("(one of 19999 errors)"), "{message}");
}

#[test]
fn an_id_with_other_work_or_another_payload_is_a_conflict_that_names_the_field() {
    let server = Server::start();
    let first = server.submit_task("?wait=60", &request("t", "echo", &json!({"n": 1})));
    for (body, field) in [
        (request("t", "slow_echo", &json!({"n": 1})), "type"),
        (request("t", "slow_echo", &json!({"n": 2})), "type"),
        (request("t", "echo", &json!({"n": 2})), "payload"),
        (request("t", "echo", &json!({})), "payload"),
    ] {
        let task = server.task("POST", "/tasks", &[], &body);
        let wanted = Wanted {
            status: 409,
            code: "INVALID_FIELD_VALUE",
            clause: Some("TASK-5"),
            field: Some(field),
            recoverable: true,
        };
        refused(&task, &wanted);
        assert_eq!(task.document["id"], "t");
    }
    assert_eq!(server.poll("t").document["result"], first.document["result"]);
}

#[test]
fn an_answer_without_input_is_refused() {
    let server = Server::start();
    server.submit_task("?wait=60", &request("t", "ask", &json!({})));
    let post = |body: &str| server.task("POST", "/tasks/t/input", &[], body);
    let wanted = |code, field| Wanted { status: 400, code, clause: Some("TASK-4.3"), field, recoverable: true };
    refused(&post("{}"), &wanted("MISSING_REQUIRED_FIELD", Some("input")));
    refused(&post(r#"{"answer":1}"#), &wanted("MISSING_REQUIRED_FIELD", Some("input")));
    refused(&post("yes"), &wanted("INVALID_INPUT", None));
    refused(&post(r#"["input"]"#), &wanted("INVALID_INPUT", None));
    assert_eq!(server.poll("t").word(), "input_required");
    assert_eq!(post("{}").document["id"], "t");
}

#[test]
fn whatever_else_is_refused_is_in_the_same_shape() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\njobs = 1\nbody_seconds = 1\n");
    let code = |task: &Task| task.document["error"]["code"].as_str().expect("a code").to_owned();
    for (method, path) in [
        ("GET", "/tasks"),
        ("PUT", "/tasks"),
        ("DELETE", "/tasks/t"),
        ("GET", "/tasks/t/input"),
        ("GET", "/tasks/t/cancel"),
        ("POST", "/tasks/t/events"),
    ] {
        let task = server.task(method, path, &[], "");
        assert_eq!((task.status, code(&task).as_str()), (405, "INVALID_INPUT"), "{method} {path}");
        assert!(task.answer.header("allow").is_some(), "{:?}", task.answer);
    }
    for path in ["/tasks/", "/tasks/t/more", "/tasks/a/b/c"] {
        let task = server.task("GET", path, &[], "");
        assert_eq!((task.status, code(&task).as_str()), (404, "INVALID_INPUT"), "{path}");
    }
    let not_text = server.task("GET", "/tasks/%ff", &[], "");
    assert_eq!((not_text.status, code(&not_text).as_str()), (404, "INVALID_FIELD_VALUE"));
    let large = server.task("POST", "/tasks", &[], &request("t", "echo", &json!({"x": "x".repeat(2000)})));
    assert_eq!((large.status, code(&large).as_str()), (413, "INVALID_INPUT"));
    assert_eq!(large.document["error"]["details"]["repeat"], "never");
    let large = server.task("POST", "/tasks/a%2Fb/input", &[], &json!({"input": "x".repeat(2000)}).to_string());
    assert_eq!((large.status, &large.document["id"]), (413, &json!("a/b")));
    let key = server.task("POST", "/tasks", &[("idempotency-key", "é")], &request("t", "echo", &json!({})));
    assert_eq!((key.status, code(&key).as_str()), (400, "INVALID_INPUT"));
    server.submit_task("", &request("first", "ask", &json!({})));
    let full = server.task("POST", "/tasks", &[], &request("t", "echo", &json!({})));
    assert_eq!((full.status, code(&full).as_str()), (429, "AGENT_BUSY"));
    assert_eq!(
        (full.answer.header("retry-after"), &full.document["error"]["details"]["repeat"]),
        (Some("1"), &json!("safe"))
    );
    // A body that never comes.
    let mut stream = server.connect();
    stream.write_all((head("POST", "/tasks", &[], 100) + "{").as_bytes()).expect("it can be sent");
    let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
    let document = faultless(&answer.text());
    assert_eq!((answer.status, &document["error"]["code"]), (408, &json!("TIMEOUT")));
    assert_eq!(document["error"]["details"]["repeat"], "safe");
}

/// Every broken request of the task contract in the corpus.
fn broken() -> Vec<Vec<u8>> {
    let directory = fs::read_dir(root().join("testdata/broken/task")).expect("it is there");
    let documents = directory.map(|entry| fs::read(entry.expect("an entry").path()).expect("it can be read"));
    documents
        .filter(|document| serde_json::from_slice::<Value>(document).is_ok_and(|value| value.get("status").is_none()))
        .collect()
}

#[test]
fn a_flood_of_broken_documents_is_refused_one_by_one_and_others_are_served() {
    let server = Server::start();
    let broken = broken();
    assert!(broken.len() > 10, "{}", broken.len());
    thread::scope(|scope| {
        for flood in 0..4 {
            let (server, broken) = (&server, &broken);
            scope.spawn(move || {
                for round in 0..5 {
                    for document in broken {
                        // Every other document is cut off.
                        let end = if (round + flood) % 2 == 0 { document.len() } else { document.len() * 2 / 3 };
                        let answer = server.request("POST", "/tasks", &[], &document[..end]);
                        faultless(&answer.text());
                        // A clause that is a warning breaks nothing, but no agent takes this work.
                        assert_eq!(answer.status, 400, "{answer:?}");
                    }
                }
            });
        }
        for n in 0..50 {
            let task = server.submit_task("?wait=60", &request(&format!("good-{n}"), "echo", &json!({"n": n})));
            assert_eq!((task.status, &task.document["result"]["n"]), (200, &json!(n)));
        }
    });
    let jobs = server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(jobs, Some(50));
}

/// Sends a text, and disconnects.
fn send_and_leave(server: &Server, text: &str) {
    let mut stream = net::TcpStream::connect(server.address()).expect("it listens");
    stream.write_all(text.as_bytes()).expect("it can be sent");
}

#[test]
fn a_caller_that_leaves_at_any_point_disturbs_neither_the_task_nor_other_callers() {
    let server = Server::start();
    let body = request("t", "slow_echo", &json!({"seconds": 0.5}));
    let whole = head("POST", "/tasks?wait=60", &[], body.len()) + &body;
    for end in 0..whole.len() {
        send_and_leave(&server, &whole[..end]);
    }
    // A whole request becomes a task, whether a caller waits for it or not.
    let mut leaving = server.connect();
    leaving.write_all(whole.as_bytes()).expect("it can be sent");
    until("it is a task", || {
        (server.get("/api/v1/jobs?door=task").json()["jobs"].as_array()?.len() == 1).then_some(())
    });
    drop(leaving);
    for path in ["/tasks/t/events", "/tasks/t?wait=60", "/tasks/t"] {
        for _ in 0..20 {
            send_and_leave(&server, &head("GET", path, &[], 0));
        }
    }
    let task = server.settled("t");
    assert_eq!((task.word(), &task.document["result"]), ("completed", &json!({"seconds": 0.5})));
    assert_eq!(server.job_of_task("t")["attempts"], 1);
    assert!(!server.log().contains("internal error"), "{}", server.log());
}
