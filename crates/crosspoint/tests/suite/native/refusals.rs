//! How the native API refuses: one shape, with the place of the mistake and without its content.

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};

/// Checks the one shape of refusals, and returns the error in it.
#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/json")), "{answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
    assert!(["safe", "unknown", "never"].contains(&error["repeat"].as_str().unwrap_or_default()), "{error}");
    error
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place_and_without_its_content() {
    let server = Server::start();
    let at = |body: &str| {
        let answer = server.post("/api/v1/jobs", body);
        assert!(!answer.text().contains("secret"), "{}", answer.text());
        let error = refused(&answer, 400, "invalid");
        (error["at"].as_str().unwrap_or("-").to_owned(), error["message"].as_str().unwrap_or_default().to_owned())
    };
    let (place, message) = at("{\"work\": \"echo\",\n  secret: 1}");
    assert!(place == "-" && message.contains("line 2, column 3"), "{message}");
    assert!(at("").1.contains("empty"));
    for (body, pointer) in [
        (r#"["secret"]"#, ""),
        (r#"{"input":"secret"}"#, "/work"),
        (r#"{"work":7}"#, "/work"),
        (r#"{"work":""}"#, "/work"),
        (r#"{"work":"echo","request_id":["secret"]}"#, "/request_id"),
        (r#"{"work":"echo","agent":false}"#, "/agent"),
        (r#"{"work":"echo","priority":"secret"}"#, "/priority"),
        (r#"{"work":"echo","limits":"secret"}"#, "/limits"),
        (r#"{"work":"echo","limits":{"seconds":0}}"#, "/limits/seconds"),
        (r#"{"work":"echo","limits":{"seconds":1e300}}"#, "/limits/seconds"),
        (r#"{"work":"echo","limits":{"output_bytes":-1}}"#, "/limits/output_bytes"),
        (r#"{"work":"echo","limits":{"attempts":11}}"#, "/limits/attempts"),
    ] {
        assert_eq!(at(body).0, pointer, "{body}");
    }
    assert!(at(r#"{"work":"echo","work":"secret"}"#).1.contains("twice"));
    let long = format!(r#"{{"work":"echo","request_id":"{}"}}"#, "secret".repeat(100));
    assert_eq!(at(&long).0, "/request_id");
    let key = [("Idempotency-Key", "")];
    refused(&server.request("POST", "/api/v1/jobs", &key, br#"{"work":"echo"}"#), 400, "invalid");
}

#[test]
fn unknown_work_and_agents_are_refused_at_once() {
    let server = Server::start();
    let error = refused(&server.post("/api/v1/jobs", r#"{"work":"secret"}"#), 400, "unsupported");
    assert_eq!((&error["at"], &error["clause"]), (&json!("/work"), &json!("ALL-6")));
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("ask, echo, fail, slow_echo")), "{error}");
    for body in [r#"{"work":"echo","agent":"nobody"}"#, r#"{"work":"echo","agent":"ask"}"#] {
        assert_eq!(refused(&server.post("/api/v1/jobs", body), 400, "unsupported")["at"], "/agent");
    }
    let job = server.post("/api/v1/jobs?wait=60", r#"{"work":"echo","agent":"echo"}"#).json();
    assert_eq!((&job["agent"], &job["state"]), (&json!("echo"), &json!("completed")));
}

#[test]
fn paths_methods_ids_and_queries_that_are_wrong_say_so() {
    let server = Server::start();
    refused(&server.get("/api/v1/nothing"), 404, "invalid");
    refused(&server.get("/"), 404, "invalid");
    let answer = server.request("DELETE", "/api/v1/jobs", &[], b"");
    refused(&answer, 405, "invalid");
    let allowed = answer.header("allow").expect("it names what is allowed");
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
    let missing = "/api/v1/jobs/01a1e299-52c9-7000-8000-0004bf63de56";
    for path in [missing, "/api/v1/jobs/7", "/api/v1/jobs/%ff", "/api/v1/agents/nobody", "/api/v1/agents/%ff"] {
        refused(&server.get(path), 404, "invalid");
    }
    for path in ["events", "document"] {
        refused(&server.get(&format!("{missing}/{path}")), 404, "invalid");
    }
    for path in ["cancel", "retry"] {
        refused(&server.post(&format!("{missing}/{path}"), ""), 404, "invalid");
    }
    refused(&server.post(&format!("{missing}/answer"), r#"{"input":1}"#), 404, "invalid");
    refused(&server.post("/api/v1/agents/nobody/drain", ""), 404, "invalid");
    refused(&server.post("/api/v1/agents/nobody/breaker", r#"{"state":"open"}"#), 404, "invalid");
    for query in ["state=sleeping", "door=window", "limit=0", "limit=501", "before=x", "stat=queued"] {
        refused(&server.get(&format!("/api/v1/jobs?{query}")), 400, "invalid");
    }
    for wait in ["wait=-1", "wait=301", "wait=soon", "wait=NaN", "wait=1&weight=2"] {
        refused(&server.post(&format!("/api/v1/jobs?{wait}"), r#"{"work":"echo"}"#), 400, "invalid");
    }
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "nothing of all this became a job");
}

#[test]
fn all_mistakes_of_a_request_are_named_in_one_go() {
    let server = Server::start();
    let body =
        r#"{"request_id":"","agent":7,"priority":"secret","limits":{"seconds":0,"attempts":"many","output_bytes":-1}}"#;
    let answer = server.request("POST", "/api/v1/jobs", &[("Idempotency-Key", "\u{e9}")], body.as_bytes());
    let error = refused(&answer, 400, "invalid");
    let mistakes = error["mistakes"].as_array().expect("there are several");
    let places: Vec<&str> = mistakes.iter().map(|mistake| mistake["at"].as_str().unwrap_or("-")).collect();
    let members = ["/request_id", "/agent", "/priority", "/limits/seconds", "/limits/attempts", "/limits/output_bytes"];
    assert_eq!(places, [members.as_slice(), &["/work", "-"]].concat());
    assert_eq!(
        (&error["at"], &error["message"]),
        (&mistakes[0]["at"], &mistakes[0]["message"]),
        "the first is the refusal"
    );
    assert!(!answer.text().contains("secret"), "{}", answer.text());
    let one = refused(&server.post("/api/v1/jobs", r#"{"priority":"secret","work":"echo"}"#), 400, "invalid");
    assert!(one.get("mistakes").is_none(), "{one}");
}
