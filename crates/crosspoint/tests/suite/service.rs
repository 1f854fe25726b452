//! Programs that serve callers without a server: `crosspoint agent --listen`.

mod ends;
mod limits;
mod printing;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::envelopes::envelope;
use crate::support::message_caller::request;
use crate::support::program::crosspoint;
use crate::support::reader::Reader;
use crate::support::server::until;
use crate::support::service::Service;

const TASK: &str = "550e8400-e29b-41d4-a716-446655440000";
const MESSAGE: &str = "550e8400-e29b-41d4-a716-446655440001";

/// Notes that it ran, and gives back what it was asked.
const COUNTS: &str = "echo ran >> ran; cat";

#[test]
fn callers_of_four_contracts_call_one_program() {
    let service = Service::of("tr a-z A-Z", &[]);
    let run = service.run("r-1", &json!({"a": "basil"}));
    assert_eq!((run.status, &run.json()["outputs"]), (200, &json!({"A": "BASIL"})), "{run:?}");
    assert_eq!(run.header("location"), None, "there is nothing of a server");
    let task = service.post("/tasks?wait=30", &json!({"id": TASK, "type": "help", "payload": {"a": "x"}}));
    assert_eq!((task.status, &task.json()["result"]), (200, &json!({"A": "X"})), "{task:?}");
    let message = service.post("/api/agent/message", &request(MESSAGE, "help", &json!({"a": "y"})));
    assert_eq!(message.json()["payload"]["output"], "{\"A\":\"Y\"}", "{message:?}");
    let output = service.ask("POST", "/agents/helper/envelope", &[], &envelope("help", &json!({"a": "z"})));
    assert_eq!(output.json()["success"], true, "{output:?}");
    assert!(output.text().contains(r#"{"A":"Z"}"#) || output.text().contains(r#"{"A": "Z"}"#), "{output:?}");
    let stream = service.post("/agents/run/stream", &json!({"request_id": "s", "task_type": "help", "inputs": {}}));
    assert!(stream.text().contains("event: final"), "{stream:?}");
    assert_eq!(service.get("/health/ready").json(), json!({"status": "ready"}));
    let unknown = service.post("/agents/run/sync", &json!({"request_id": "u", "task_type": "other", "inputs": {}}));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (400, &json!("UNSUPPORTED_TASK_TYPE")));
}

#[test]
fn only_the_named_contracts_are_served() {
    let service = Service::of("cat", &["--contract", "task,run"]);
    assert!(service.said().contains("for callers of task, run"), "{}", service.said());
    assert_eq!(service.run("r-1", &json!({})).status, 200);
    let refused = service.post("/api/agent/message", &request(MESSAGE, "help", &json!({})));
    assert_eq!(refused.status, 404);
    let hint = refused.json()["error"]["hint"].clone();
    assert_eq!(hint, "ask for work with POST /agents/run/sync, POST /tasks");
}

#[test]
fn a_program_tells_how_far_it_is_and_prints_and_gives_artifacts() {
    let script = r#"echo '@crosspoint {"progress": 40, "step": "Look"}'; until [ -e go ]; do sleep 0.02; done
        echo '@crosspoint {"artifact": {"name": "report.md", "type": "text/markdown", "content": "well"}}'
        echo 'printed ü'; echo '{"found": 3}'"#;
    let service = Service::of(script, &[]);
    let task = service.begin(TASK);
    let running = until("it is at 40 percent", || {
        Some(service.get(&task).json()).filter(|task| task.to_string().contains("Look"))
    });
    assert_eq!(running["status"], "in_progress", "{running}");
    std::fs::write(service.directory().join("go"), "").expect("it can be written");
    let done = service.has_status(&task, "completed");
    assert_eq!(done["result"], json!({"found": 3}), "{done}");
    assert!(done.to_string().contains("printed ü\\n"), "{done}");
    assert!(done.to_string().contains("report.md"), "{done}");
}

#[test]
fn the_same_request_is_answered_alike_after_the_agent_was_killed() {
    let mut service = Service::of(COUNTS, &[]);
    let first = service.run("r-1", &json!({"a": 1}));
    let again = service.run("r-1", &json!({"a": 1}));
    service.kill();
    service.start();
    let later = service.run("r-1", &json!({"a": 1}));
    assert_eq!(
        (first.status, &again.json()["outputs"], &later.json()["outputs"]),
        (200, &json!({"a": 1}), &json!({"a": 1}))
    );
    assert_eq!(service.file("ran"), "ran\n", "it ran once");
    assert_eq!(service.run("r-1", &json!({"a": 2})).status, 409);
}

#[test]
fn a_program_asks_and_leaves_its_place_to_another_meanwhile() {
    let script = r#"read -r input; case $input in *quick*) echo done; exit;; esac
        echo '@crosspoint {"ask": {"prompt": "Which zone?"}}'; read -r answer; echo "{\"zone\": $answer}""#;
    let service = Service::of(script, &["--ask", "--concurrency", "1", "--waiting", "1"]);
    let task = service.begin(TASK);
    let asks = service.has_status(&task, "input_required");
    assert!(asks.to_string().contains("Which zone?"), "{asks}");
    let quick = service.run("r-1", &json!({"quick": true}));
    assert_eq!(quick.json()["outputs"]["output"], "done\n", "{quick:?}");
    assert_eq!(service.post(&format!("{task}/input"), &json!({"input": "north"})).status, 202);
    assert_eq!(service.has_status(&task, "completed")["result"], json!({"zone": "north"}));
}

#[test]
fn a_program_finds_the_whole_document_in_a_file_of_its_own() {
    let script = r#"echo "$CROSSPOINT_DOCUMENT" > where; stat -c %a "$CROSSPOINT_DOCUMENT" > mode
        cat "$CROSSPOINT_DOCUMENT""#;
    let mut service = Service::of(script, &[]);
    let mut document: Value = serde_json::from_str(&envelope("help", &json!({"a": 1}))).expect("JSON");
    document["prior_context"] = json!(["The build is green."]);
    let output = service.post("/agents/helper/envelope", &document).json();
    assert_eq!(output["x_crosspoint"]["outputs"], document, "{output}");
    assert_eq!(service.file("mode"), "600\n");
    let path = std::path::PathBuf::from(service.file("where").trim());
    assert!(!path.exists(), "it is removed with the job");
    // A job that is killed with its agent leaves one.
    service.kill();
    std::fs::write(&path, "left").expect("it can be written");
    service.start();
    service.run("r-1", &json!({}));
    assert!(!path.exists(), "it is removed before the first program");
}

#[test]
fn the_time_of_a_person_is_not_the_programs() {
    let script =
        r#"echo '@crosspoint {"ask": {"prompt": "Which zone?"}}'; read -r input; read -r answer; echo "$answer""#;
    let service = Service::of(script, &["--ask", "--total-seconds", "3"]);
    let (task, began) = (service.begin(TASK), Instant::now());
    until("the program's own time is over", || {
        let asks = service.has_status(&task, "input_required");
        (began.elapsed() > Duration::from_secs(4)).then_some(asks)
    });
    assert_eq!(service.post(&format!("{task}/input"), &json!({"input": "north"})).status, 202);
    assert!(service.has_status(&task, "completed").to_string().contains("north"));
}

#[test]
fn a_caller_shows_the_token_and_strangers_get_nothing() {
    let directory = std::env::temp_dir().join(format!("crosspoint-service-token-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("it can be made");
    let token = directory.join("token");
    std::fs::write(&token, "abcdefghijklmnopqrstuvwxyz012345\n").expect("it can be written");
    let service = Service::of("cat", &["--token-file", token.to_str().expect("UTF-8")]);
    let body = json!({"request_id": "r-1", "task_type": "help", "inputs": {}}).to_string();
    assert_eq!(service.ask("POST", "/agents/run/sync", &[], &body).status, 401);
    let bearer = |token: &str| format!("Bearer {token}");
    for (token, status) in [("abcdefghijklmnopqrstuvwxyz012346", 401), ("abcdefghijklmnopqrstuvwxyz012345", 200)] {
        let answer = service.ask("POST", "/agents/run/sync", &[("authorization", &bearer(token))], &body);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(service.get("/health").status, 200);
    let page = service.ask("POST", "/agents/run/sync", &[("origin", "http://evil.example")], &body);
    assert_eq!(page.status, 403, "{page:?}");
    std::fs::remove_dir_all(&directory).expect("it can be removed");
}

#[test]
fn an_agent_without_a_token_keeps_to_the_loopback() {
    let mut command = crosspoint(&["agent", "x", "--work", "w", "--listen", "0.0.0.0:0", "--", "cat"]);
    let output = command.current_dir(std::env::temp_dir()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no token is asked for") && said.contains("--token-file"), "{said}");
}

#[test]
fn the_page_about_programs_shows_what_a_reader_gets() {
    let mut reader = Reader::new("programs");
    reader.follow("docs/programs.md", "## Without a server");
    assert_eq!(reader.answers, 3);
}

/// The result of a run as JSON.
fn failure(answer: &Value) -> (&Value, &Value) {
    (&answer["status"], &answer["error"]["code"])
}

#[test]
fn an_address_that_another_program_has_is_said_to_be_taken() {
    let service = Service::of("cat", &[]);
    let address = service.address().to_string();
    let mut second = crosspoint(&["agent", "second", "--work", "help", "--listen", &address, "--", "cat"]);
    let second = second.current_dir(service.directory()).output().expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot listen on {address}")) && said.contains("another program has it"), "{said}");
}

#[test]
fn a_second_agent_of_the_name_is_told_which_file_is_taken_and_what_to_do() {
    let service = Service::of("cat", &[]);
    let mut second = crosspoint(&["agent", "helper", "--work", "help", "--listen", "127.0.0.1:0", "--", "cat"]);
    let second = second.current_dir(service.directory()).output().expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("helper.answers") && said.contains("--data DIR"), "{said}");
}

#[test]
fn what_is_said_of_a_request_has_the_id_that_its_caller_knows() {
    let service = Service::of("cat", &[]);
    assert_eq!(service.run("order-7", &json!({"a": 1})).status, 200);
    until("it is told", || service.said().contains("request order-7  help  completed").then_some(()));
    let other = service.run("order-7", &json!({"a": 2}));
    assert_eq!(other.status, 409, "{other:?}");
    assert!(other.text().contains("that of request order-7"), "{other:?}");
}

#[test]
fn a_failed_result_has_the_exit_code_of_the_program() {
    let service = Service::of("echo printed; exit 7", &[]);
    let failed = service.post("/api/agent/message", &request(MESSAGE, "help", &json!({}))).json();
    assert_eq!(
        (&failed["payload"]["status"], &failed["payload"]["exit_code"]),
        (&json!("failed"), &json!(7)),
        "{failed}"
    );
    let killed = Service::of("kill -9 $$", &[]);
    let failed = killed.post("/api/agent/message", &request(MESSAGE, "help", &json!({}))).json();
    assert_eq!(failed["payload"]["exit_code"], 1, "it has none of its own: {failed}");
}
