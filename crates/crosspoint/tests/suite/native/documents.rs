//! Documents over HTTP: the same judgement and the same translation as on the command line, and nothing of them is
//! stored.

use std::{fs, thread};

use serde_json::{Value, json};

use crate::support::program::{crosspoint, root, stdout};
use crate::support::server::{Answer, Server};

fn bytes(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn send(server: &Server, target: &str, document: &[u8]) -> Answer {
    server.request("POST", target, &[("content-type", "application/json")], document)
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    error
}

#[test]
fn schemas_are_those_that_the_program_prints() {
    let server = Server::start();
    let kinds = stdout(&mut crosspoint(&["schema"]));
    assert_eq!(kinds.lines().count(), 13);
    for kind in kinds.lines() {
        let answer = server.get(&format!("/schemas/{kind}.json"));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert_eq!(answer.text(), stdout(&mut crosspoint(&["schema", kind])), "{kind}");
    }
    for wrong in ["run.request", "run.requests.json", "x", ".json", "..%2Frun.request.json"] {
        let error = refused(&server.get(&format!("/schemas/{wrong}")), 404, "invalid");
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(kinds.lines().all(|kind| hint.contains(&format!("{kind}.json"))), "{hint}");
    }
}

/// Every document of the corpus, good and broken.
#[test]
fn judgements_are_those_that_the_program_prints() {
    let server = Server::start();
    let output = crosspoint(&["validate", "--format", "json", "testdata"]).output().expect("it starts");
    let printed = String::from_utf8(output.stdout).expect("output is UTF-8");
    let (mut good, mut bad, mut unknown) = (0, 0, 0);
    for line in printed.lines() {
        let mut line: Value = serde_json::from_str(line).expect("each line is an object");
        let file = line["file"].as_str().expect("it names its file").to_owned();
        line.as_object_mut().expect("it is an object").remove("file");
        let document = bytes(&file);
        let answer = send(&server, "/api/v1/validate", &document);
        if document.is_empty() {
            // A file may have been cut off to nothing. A request without a body has no document.
            refused(&answer, 400, "invalid");
            continue;
        }
        if line.get("error").is_some() {
            let error = refused(&answer, 400, "invalid");
            assert_eq!(error["message"], line["error"], "{file}");
            unknown += 1;
            continue;
        }
        assert_eq!((answer.status, answer.json()), (200, line.clone()), "{file}");
        if line["valid"] == true { good += 1 } else { bad += 1 }
    }
    assert!(good > 50 && bad > 100 && unknown > 0, "{good} good, {bad} bad, {unknown} unknown");
}

#[test]
fn how_a_document_is_judged_can_be_said() {
    let server = Server::start();
    let valid = |target: &str, document: &[u8]| {
        let answer = send(&server, &format!("/api/v1/validate{target}"), document);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["valid"].clone()
    };
    let loose = bytes("testdata/run/response-loose.json");
    assert_eq!((valid("", &loose), valid("?strict=true", &loose)), (json!(true), json!(false)));
    assert_eq!(valid("?kind=task.request", &bytes("testdata/run/request-full.json")), json!(false));
    let judged = send(&server, "/api/v1/validate?kind=run.stream", &bytes("testdata/run/stream-full.sse")).json();
    assert_eq!((&judged["kind"], &judged["valid"]), (&json!("run.stream"), &json!(true)), "{judged}");
    let broken = send(&server, "/api/v1/validate", b"{\"a\":\n").json();
    assert_eq!((&broken["kind"], &broken["findings"][0]["clause"]), (&Value::Null, &json!("ALL-101")), "{broken}");
    for wrong in ["?kind=letter", "?strict=yes", "?inner=xml", "?agent_type=", "?as=run.request", "?kind"] {
        refused(&send(&server, &format!("/api/v1/validate{wrong}"), &loose), 400, "invalid");
    }
    refused(&send(&server, "/api/v1/validate", b""), 400, "invalid");
}

#[test]
fn a_document_goes_to_another_contract_and_comes_back() {
    let server = Server::start();
    let original = bytes("testdata/run/request-full.json");
    let there = send(&server, "/api/v1/translate?to=task", &original).json();
    assert_eq!((&there["kind"], &there["documents"][0]["kind"]), (&json!("run.request"), &json!("task.request")));
    let printed = stdout(&mut crosspoint(&["translate", "testdata/run/request-full.json", "--to", "task"]));
    let printed: Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(there["documents"][0]["document"], printed, "as the program prints it");
    assert!(there["carried"].as_array().is_some_and(|carried| carried.contains(&json!("mode"))), "{there}");
    let back = send(&server, "/api/v1/translate?to=run", printed.to_string().as_bytes()).json();
    let original: Value = serde_json::from_slice(&original).expect("it is JSON");
    assert_eq!(back["documents"][0]["document"], original);
    assert_eq!(back["carried"], json!([]), "{back}");
}

#[test]
fn what_is_carried_lost_made_up_and_left_without_is_said() {
    let server = Server::start();
    let request = bytes("testdata/run/request-full.json");
    let without = send(&server, "/api/v1/translate?to=task&carry=false", &request).json();
    assert!(without["carried"] == json!([]) && without["lost"].as_array().is_some_and(|lost| !lost.is_empty()));
    refused(&send(&server, "/api/v1/translate?to=task&carry=false&strict=true", &request), 400, "invalid");
    let message = send(&server, "/api/v1/translate?to=message&agent=research", &request).json();
    assert_eq!(message["documents"][0]["document"]["to_agent"], "research", "{message}");
    assert!(message["filled"].as_array().is_some_and(|filled| !filled.is_empty()), "{message}");
    // A stream becomes one document per event. Its progress events have no counterpart in contracts that only know
    // ends.
    let stream = bytes("testdata/run/stream-full.sse");
    let tasks = send(&server, "/api/v1/translate?to=task", &stream).json();
    assert!(tasks["documents"].as_array().is_some_and(|documents| documents.len() > 1), "{tasks}");
    let bridge = send(&server, "/api/v1/translate?to=bridge", &stream).json();
    assert_eq!(bridge["documents"].as_array().map(Vec::len), Some(1), "{bridge}");
    assert!(bridge["without"].as_u64().is_some_and(|without| without > 0), "{bridge}");
    let same = send(&server, "/api/v1/translate?to=run", &stream).json();
    assert!(same["documents"][0]["text"].is_string(), "{same}");
}

#[test]
fn what_cannot_be_translated_is_refused_with_its_reasons() {
    let server = Server::start();
    let request = bytes("testdata/run/request-full.json");
    let error = refused(&send(&server, "/api/v1/translate?to=task", br#"{"task_type":1}"#), 400, "invalid");
    assert!(error["findings"].as_array().is_some_and(|findings| findings.len() > 1), "{error}");
    let status = bytes("testdata/message/work_status-full.json");
    let error = refused(&send(&server, "/api/v1/translate?to=bridge", &status), 400, "unsupported");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.starts_with("it goes to ")), "{error}");
    for wrong in ["", "?to=letters", "?to=task&agent=nobody", "?to=task&carry=no", "?to=task&from=run.request"] {
        refused(&send(&server, &format!("/api/v1/translate{wrong}"), &request), 400, "invalid");
    }
    refused(&send(&server, "/api/v1/translate?to=task", b"{}"), 400, "invalid");
    refused(&send(&server, "/api/v1/translate?to=task", b""), 400, "invalid");
}

#[test]
fn nothing_of_a_document_is_kept_logged_or_quoted() {
    const SECRET: &str = "x7secret";
    let server = Server::with("", &["--log", "debug"]);
    let documents = [
        json!({ "request_id": SECRET, "task_type": SECRET, "inputs": { SECRET: SECRET } }),
        json!({ "request_id": 1, "task_type": SECRET, "inputs": SECRET, SECRET: SECRET }),
        json!({ SECRET: SECRET }),
    ];
    for document in documents {
        let body = document.to_string();
        let judged = send(&server, "/api/v1/validate", body.as_bytes()).text();
        // A pointer names members, which are the caller's. Nothing else repeats content.
        assert!(!judged.replace(&format!("/{SECRET}"), "").contains(SECRET), "{judged}");
        send(&server, "/api/v1/translate?to=task", body.as_bytes());
    }
    send(&server, &format!("/api/v1/validate?kind={SECRET}"), b"{}");
    assert!(!server.log().contains(SECRET), "{}", server.log());
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]));
    assert!(!server.fetch("/metrics").text().contains(SECRET));
}

#[test]
fn large_documents_are_judged_while_jobs_go_on() {
    let server = Server::start();
    let items = vec![json!({ "text": "a line of text, which is not short" }); 40_000];
    let document = json!({ "request_id": "r", "task_type": "t", "inputs": { "items": items } }).to_string();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let answer = send(&server, "/api/v1/validate?kind=run.request", document.as_bytes());
                assert_eq!((answer.status, &answer.json()["valid"]), (200, &json!(true)));
            });
        }
        for _ in 0..20 {
            assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).json()["state"], "completed");
        }
    });
}
