//! ALL-11: JSON with a name twice in an object, or nested over 127 levels, from every source.

use serde_json::{Value, json};

use crate::support::programs::{bash, violations};
use crate::support::puller::Puller;
use crate::support::scripted_agent::ScriptedAgent;
use crate::support::server::Server;
use crate::support::workers::Worker;

const TWICE: &str = r#"{"secret":1,"b":[{"a":1,"a":2}]}"#;

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// What was kept of the answer for which a job failed.
#[track_caller]
fn kept(job: &Value) -> String {
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("broken_contract"), &json!("unknown")), "{job}");
    failure["details"]["answer"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_callers_document_is_refused_wherever_the_name_stands_and_the_place_is_told() {
    let server = Server::start();
    let refused = |path: &str, body: &str| {
        let answer = server.post(path, body);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (400, &json!("invalid")), "{answer:?}");
        assert!(!answer.text().contains("secret"), "{}", answer.text());
        (error["clause"].clone(), error["message"].as_str().unwrap_or_default().to_owned())
    };
    let body = |input: &str| format!("{{\"work\": \"echo\",\n \"input\": {input}}}");
    let (clause, message) = refused("/api/v1/jobs", &body(TWICE));
    assert!(clause == "ALL-103" && message.contains("line 2, column 35"), "{message}");
    assert_eq!(refused("/api/v1/jobs", &body(r#"["\ud800"]"#)).0, "ALL-104");
    refused("/api/v1/jobs", &body(&nested(127)));
    // If the work has ended by then, the answer has more levels than the reader of these tests takes.
    let deep = server.exchange("POST", "/api/v1/jobs", &[], body(&nested(126)).as_bytes()).expect("it answers");
    assert!(matches!(deep.status, 200 | 202), "{deep:?}");
    let asking = server.submit(r#"{"work":"ask","input":{"prompt":"?"}}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&asking, "waiting");
    refused(&format!("/api/v1/jobs/{asking}/answer"), &format!("{{\"input\": {TWICE}}}"));
    assert_eq!(server.job(&asking)["state"], "waiting", "nothing was answered");
}

#[test]
fn what_a_joined_agent_gives_is_judged_by_what_it_gives() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let result = |said: &str| format!(r#""result":{said}"#);
    let answers = [
        result(&format!(r#"{{"outputs":{TWICE}}}"#)),
        result(&format!(r#"{{"outputs":{{}},"artifacts":[{{"name":"n","content":{TWICE}}}]}}"#)),
        result(r#"{"outputs":{},"outputs":{"secret":1}}"#),
        result(r#"{"outputs":"secret \ud800"}"#),
        format!(r#""failure":{{"code":"agent_failed","details":{TWICE}}}"#),
        format!(r#""n":1,"ask":{{"prompt":"?","schema":{TWICE}}}"#),
    ];
    for said in answers {
        let (id, answer) = report(&server, &mut worker, &said);
        assert_eq!((answer.status, answer.text()), (200, r#"{"reports":["taken"]}"#.to_owned()), "{said}");
        let answer = kept(&server.ended(&id));
        assert!(answer.contains("secret") && said.ends_with(&answer), "{said}: {answer}");
    }
    assert!(!server.log().contains("secret"), "it is never logged: {}", server.log());
}

#[test]
fn a_report_that_is_wrong_elsewhere_or_too_deep_is_refused_and_nothing_is_taken() {
    let server = Server::start();
    let mut worker = Puller::joined(&server, "dig", 1);
    let said = [
        r#""progress":{"percent":1,"percent":2}"#.to_owned(),
        format!(r#""result":{{"outputs":{TWICE}}},"result":{{"outputs":{{}}}}"#),
        format!(r#""result":{{"outputs":{}}}"#, nested(128)),
        format!(r#""result":{{"outputs":{}}}"#, nested(400)),
    ];
    for said in said {
        let (id, answer) = report(&server, &mut worker, &said);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!("invalid")), "{said:.100}");
        assert_eq!(worker.finish(&server, &json!(id), 1), "taken", "nothing was taken before");
    }
    let (_, answer) = report(&server, &mut worker, &format!(r#""result":{{"outputs":{}}}"#, nested(127)));
    assert_eq!(answer.text(), r#"{"reports":["taken"]}"#);
}

/// A job's id, and the answer to a report about its first attempt.
fn report(server: &Server, worker: &mut Puller, said: &str) -> (String, crate::support::server::Answer) {
    let id = server.begin("dig");
    worker.take_some(server, 1);
    worker.holding.clear();
    let body = format!(r#"{{"session":"{}","reports":[{{"id":"{id}","attempt":1,{said}}}]}}"#, worker.session);
    let answer = server.post(&format!("/api/v1/agents/{}/report", worker.name), &body);
    (id, answer)
}

/// The document that a worker gets nests deeper than what the caller wrote.
#[test]
fn a_worker_takes_the_deepest_input_that_callers_may_give() {
    let server = Server::start();
    let _worker = Worker::joined(&server, "count", &[], &["sh", "-c", r#"echo "{\"bytes\": $(wc -c)}""#]);
    let body = format!(r#"{{"work":"count","input":{}}}"#, nested(126));
    let id = server.submit(&body)["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.ended(&id)["outcome"]["outputs"], json!({"bytes": 253}));
}

#[test]
fn lines_that_a_program_meant_for_us_are_output_too() {
    let script = format!(
        r#"read -r input; echo '@crosspoint {{"outputs":{TWICE}}}'; echo '@crosspoint {{"outputs":{{"deep":{}}}}}'"#,
        nested(127)
    );
    let server = Server::configured(&bash("twice", &script, ""));
    let job = server.done("twice", &json!({}));
    let output = job["outcome"]["outputs"]["output"].as_str().unwrap_or_default().to_owned();
    let expected =
        format!("@crosspoint {{\"outputs\":{TWICE}}}\n@crosspoint {{\"outputs\":{{\"deep\":{}}}}}\n", nested(127));
    assert_eq!(output, expected, "{job}");
    assert_eq!(violations(&job), ["a line that began with @crosspoint held no JSON object, and was kept as output"]);
}

#[test]
fn the_answers_of_run_agents_are_kept_within_bounds_and_never_logged() {
    let long = format!("{{\"text\":\"secret {}\"", "ä".repeat(100_000));
    let outputs = [TWICE.to_owned(), format!("{{\"secret\":{}}}", nested(126)), long];
    for outputs in outputs {
        for streams in [true, false] {
            let given = outputs.clone();
            let agent = ScriptedAgent::start(move |asked, connection| {
                let response = asked.response(json!("@")).to_string().replace("\"@\"", &given);
                match streams {
                    true => connection.events(asked.started() + &format!("event: final\ndata: {response}\n\n")),
                    false => connection.whole(200, "application/json", response),
                }
            });
            let server = Server::configured(&agent.far(""));
            let job = server.done("far", &json!({}));
            let answer = kept(&job);
            assert!(answer.contains("secret") && answer.len() <= 64 << 10, "{} bytes", answer.len());
            let length = job["outcome"]["failure"]["details"]["answer_bytes"].as_u64();
            assert_eq!(length.is_some(), outputs.len() > 64 << 10, "{length:?}");
            assert!(!server.log().contains("secret"), "{}", server.log());
        }
    }
}
