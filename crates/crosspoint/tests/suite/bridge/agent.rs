//! Agents that answer in a directory: what they are asked, and what happens to the files that they write.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cli::config::Place;
use crate::support::bridge_agent::{human, inbox_of, prompt, says};
use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE, success};
use crate::support::bridge_watcher::Watcher;
use crate::support::program::transcript;
use crate::support::programs::bash;
use crate::support::server::{Server, until};
use crate::task::agent::{clauses, ended};

/// The algorithm of the contract's document, as it is printed there.
const DOCUMENTED: &str = r###"
import json
from datetime import datetime, timezone

# Step 1: Create agent output as Python dict
agent_output = {
    "sections": ["related_templates", "examples", "boundaries"],
    "related_templates": "## Related Templates\n\n- template1",
    "examples": "## Code Examples\n\n### Example 1\n```code```",
    "boundaries": "## Boundaries\n\n### ALWAYS\n- ✅ Rule 1"
}

# Step 2: Read request file to get request_id
with open(".agent-request.json", "r") as f:
    request = json.load(f)
    request_id = request["request_id"]

# Step 3: Create response envelope with correct format
response_data = {
    "request_id": request_id,
    "version": "1.0",
    "status": "success",
    "response": json.dumps(agent_output),  # ← JSON-encode the output
    "error_message": None,
    "error_type": None,
    "created_at": datetime.now(timezone.utc).isoformat(),
    "duration_seconds": 1.0,
    "metadata": {}
}

# Step 4: Write to file with proper formatting
with open(".agent-response.json", "w", encoding="utf-8") as f:
    json.dump(response_data, f, indent=2, ensure_ascii=False)
"###;

fn start() -> (Server, Directory) {
    let server = Server::configured(&human("inbox", ""));
    let inbox = inbox_of(&server);
    (server, inbox)
}

#[test]
fn a_job_becomes_a_request_and_the_response_its_outcome() {
    let (server, inbox) = start();
    let id = prompt(&server, "Größe?");
    let request = inbox.request_of(&id);
    assert_eq!((&request["prompt"], &request["agent_name"]), (&json!("Größe?"), &json!("human")));
    assert_eq!((&request["version"], &request["timeout_seconds"]), (&json!("1.0"), &json!(3_600)));
    assert!(request["created_at"].is_string(), "{request}");
    let text = inbox.read(REQUEST);
    assert!(text.contains("\n  \"prompt\": \"Größe?\""), "laid out for people: {text}");
    let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(inbox.file(REQUEST)), mode(inbox.path().to_owned())), (0o600, 0o700));
    assert_eq!(inbox.answer(&["--text", "Groß ✅"]), 0);
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("Groß ✅"), &json!(1)), "{job}");
    assert_eq!(job["progress"]["step"], "Answered", "{job}");
    assert!(clauses(&job).is_empty(), "{job}");
    inbox.is_cleared();
}

#[test]
fn objects_and_errors_are_answered_too() {
    let (server, inbox) = start();
    let id = prompt(&server, "Sizes?");
    inbox.request_of(&id);
    fs::write(server.directory().join("a.json"), "{ \"größe\": [1, 2.50],\n \"b\": null }\n").expect("it is written");
    assert_eq!(inbox.answer(&["--json", &server.directory().join("a.json").display().to_string()]), 0);
    let outputs = &ended(&server, &id)["outcome"]["outputs"];
    assert_eq!(outputs, &json!(r#"{"größe":[1,2.50],"b":null}"#));
    let id = prompt(&server, "More?");
    inbox.request_of(&id);
    assert_eq!(inbox.answer(&["--error", "I cannot", "--error-type", "unreadable"]), 0);
    let job = ended(&server, &id);
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["message"]), (&json!("agent_failed"), &json!("I cannot")), "{job}");
    inbox.is_cleared();
}

#[test]
fn the_documents_own_algorithm_answers() {
    let (server, inbox) = start();
    let id = prompt(&server, "Enhance.");
    inbox.request_of(&id);
    let ran = Command::new("python3").args(["-c", DOCUMENTED]).current_dir(inbox.path()).status();
    assert!(ran.is_ok_and(|status| status.success()));
    let job = ended(&server, &id);
    let text = job["outcome"]["outputs"].as_str().expect("a text");
    let inner: Value = serde_json::from_str(text).expect("JSON within");
    assert_eq!(inner["boundaries"], "## Boundaries\n\n### ALWAYS\n- ✅ Rule 1");
    assert!(clauses(&job).is_empty(), "{job}");
    inbox.is_cleared();
}

#[test]
fn each_mistake_is_named_and_waits_to_be_mended() {
    let mistake = |change: fn(&mut Value)| change;
    let mistakes = [
        (
            "BRIDGE-2",
            mistake(|response| {
                let text = response["response"].take();
                response.as_object_mut().expect("an object").remove("response");
                response["result"] = text;
            }),
        ),
        ("BRIDGE-1.2", mistake(|response| response["response"] = json!({"sections": ["a"]}))),
        ("BRIDGE-1.2", mistake(|response| response["response"] = json!(["not", "encoded"]))),
        // Which request it answers, and whether it went well, cannot be told; whatever else is wrong costs nothing.
        ("BRIDGE-1", mistake(|response| *response = json!({"status": "success", "response": "{}"}))),
        ("BRIDGE-3", mistake(|response| response["status"] = json!("fine"))),
    ];
    let (server, inbox) = start();
    for (clause, change) in mistakes {
        let id = prompt(&server, "Enhance.");
        inbox.request_of(&id);
        let mut response = success(&id, "secret words");
        change(&mut response);
        inbox.write_response(&response);
        let job = says(&server, &id, &format!("({clause})"));
        assert!(clauses(&job).contains(&clause.to_owned()), "{clause}: {job}");
        let status = inbox.command("status", &[]).output().expect("it starts");
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        assert_eq!(status.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("error[{clause}]")) && said.contains("malformed response"), "{said}");
        assert!(!said.contains("secret") && !said.contains("Enhance"), "{said}");
        assert!(inbox.file(RESPONSE).exists(), "it is kept");
        inbox.write_response(&success(&id, "right"));
        let job = ended(&server, &id);
        assert_eq!((&job["outcome"]["outputs"], &job["progress"]["step"]), (&json!("right"), &json!("Answered")));
        inbox.is_cleared();
    }
}

#[test]
fn an_answer_to_another_request_is_refused_with_the_id_that_was_expected() {
    let (server, inbox) = start();
    let id = prompt(&server, "Which?");
    inbox.request_of(&id);
    inbox.write_response(&success("32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "crossed"));
    let job = says(&server, &id, "(BRIDGE-4.3)");
    let step = job["progress"]["step"].as_str().expect("a text");
    assert!(step.contains(&id), "{step}");
    assert_eq!(clauses(&job), ["BRIDGE-4.3"]);
    let status = inbox.command("status", &["--json"]).output().expect("it starts");
    let said: Value = serde_json::from_slice(&status.stdout).expect("an object");
    assert_eq!((&said["state"], &said["problems"][0]["clause"]), (&json!("foreign_response"), &json!("BRIDGE-4")));
    assert_eq!(inbox.answer(&["--text", "mine"]), 0);
    assert_eq!(ended(&server, &id)["outcome"]["outputs"], "mine");
    until("it is set aside", || (inbox.whole_files() == [format!("{RESPONSE}.stale-1")]).then_some(()));
}

#[test]
fn jobs_are_asked_one_after_the_other() {
    let (server, inbox) = start();
    let ids: Vec<String> = ["a", "b", "c"].map(|text| prompt(&server, text)).to_vec();
    for (id, text) in ids.iter().zip(["a", "b", "c"]) {
        assert_eq!(inbox.request_of(id)["prompt"], text);
        inbox.write_response(&success(id, text));
        assert_eq!(ended(&server, id)["outcome"]["outputs"], text);
    }
    inbox.is_cleared();
}

#[test]
fn a_request_is_taken_back_when_its_job_ends_without_an_answer() {
    let server = Server::configured(&human("inbox", "total_seconds = 1"));
    let inbox = inbox_of(&server);
    let id = prompt(&server, "Cancelled?");
    inbox.request_of(&id);
    server.cancel(&id);
    inbox.is_cleared();
    let id = prompt(&server, "Late?");
    let job = ended(&server, &id);
    assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job}");
    inbox.is_cleared();
    inbox.write_response(&success(&id, "too late"));
    let next = prompt(&server, "Next?");
    inbox.request_of(&next);
    assert!(
        inbox.whole_files().contains(&format!("{RESPONSE}.stale-1")),
        "what nobody has taken is kept: {:?}",
        inbox.whole_files()
    );
    server.cancel(&next);
}

#[test]
fn directories_that_cannot_be_used_are_said_to_be() {
    let attempts = json!({"work": "human", "limits": {"attempts": 1}}).to_string();
    for (dir, word) in [("no/such/place", "it is not there"), ("crosspoint.toml", "it is not a directory")] {
        let server = Server::configured(&human(dir, ""));
        let id = server.submit(&attempts)["id"].as_str().expect("an id").to_owned();
        let job = ended(&server, &id);
        let failure = &job["outcome"]["failure"];
        assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("safe")), "{job}");
        assert!(failure["message"].as_str().is_some_and(|message| message.contains(word)), "{job}");
    }
    let (server, inbox) = start();
    let id = prompt(&server, "There?");
    inbox.request_of(&id);
    fs::remove_dir_all(inbox.path()).expect("it can be removed");
    let job = ended(&server, &id);
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("unknown")), "{job}");
}

#[test]
fn what_is_planted_under_the_names_is_not_followed() {
    let (server, inbox) = start();
    let elsewhere = server.directory().join("elsewhere.json");
    fs::create_dir(inbox.path()).expect("it can be made");
    symlink(&elsewhere, inbox.file(REQUEST)).expect("a link can be made");
    let id = prompt(&server, "Free?");
    says(&server, &id, "is a symbolic link");
    inbox.remove(REQUEST);
    inbox.request_of(&id);
    fs::write(&elsewhere, success(&id, "planted").to_string()).expect("it is written");
    symlink(&elsewhere, inbox.file("link")).expect("a link can be made");
    fs::rename(inbox.file("link"), inbox.file(RESPONSE)).expect("it can be moved");
    says(&server, &id, "is a symbolic link");
    inbox.remove(RESPONSE);
    assert!(Command::new("mkfifo").arg(inbox.file("pipe")).status().is_ok_and(|made| made.success()));
    fs::rename(inbox.file("pipe"), inbox.file(RESPONSE)).expect("it can be moved");
    says(&server, &id, "is a named pipe");
    inbox.remove(RESPONSE);
    fs::create_dir(inbox.file("folder")).expect("it can be made");
    fs::rename(inbox.file("folder"), inbox.file(RESPONSE)).expect("it can be moved");
    says(&server, &id, "is a directory");
    assert_eq!(inbox.answer(&["--text", "real"]), 0, "it is set aside for the answer");
    assert_eq!(ended(&server, &id)["outcome"]["outputs"], "real");
}

#[test]
fn a_request_of_another_server_is_waited_for() {
    let (first, inbox) = start();
    let second = Server::configured(&human(&inbox.path().display().to_string(), ""));
    let theirs = prompt(&first, "First?");
    inbox.request_of(&theirs);
    let ours = prompt(&second, "Second?");
    says(&second, &ours, "Not asked yet: .agent-request.json is another program's");
    assert_eq!(inbox.answer(&["--text", "one"]), 0);
    assert_eq!(ended(&first, &theirs)["outcome"]["outputs"], "one");
    inbox.request_of(&ours);
    assert_eq!(inbox.answer(&["--text", "two"]), 0);
    let job = ended(&second, &ours);
    assert_eq!(job["outcome"]["outputs"], "two");
    assert!(clauses(&job).is_empty(), "{job}");
    inbox.is_cleared();
}

#[test]
fn an_answer_that_is_too_long_ends_the_job_and_is_kept() {
    let server = Server::configured(&human("inbox", "output_bytes = 1000"));
    let inbox = inbox_of(&server);
    let id = prompt(&server, "Long?");
    inbox.request_of(&id);
    inbox.write_response(&success(&id, &"x".repeat(2_000)));
    let job = ended(&server, &id);
    assert_eq!(job["outcome"]["failure"]["code"], "resource_limit", "{job}");
    until("it is set aside", || (inbox.whole_files() == [format!("{RESPONSE}.stale-1")]).then_some(()));
}

#[test]
fn without_a_server_the_command_itself_asks() {
    let place = Place::new("bridge-embedded", &human("inbox", ""));
    let inbox = Directory::at(place.path().join("inbox"));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.args(["submit", "human", "--input", "\"Here?\""]).current_dir(place.path());
    let submitted = command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").stdout(Stdio::piped()).spawn();
    let submitted = submitted.expect("it starts");
    until("the request", || inbox.found(REQUEST));
    assert_eq!(inbox.answer(&["--text", "yes"]), 0);
    let output = submitted.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"\"yes\"\n"[..]), "{output:?}");
    inbox.is_cleared();
}

#[test]
fn what_is_settled_about_it_is_shown_and_mistakes_are_named() {
    let good = human("inbox", "carry = false\nwork = [\"review\"]");
    let shown = transcript(&mut Place::new("bridge-good", &good).crosspoint(&["config", "show"]));
    let agents = shown.split_once("[[agent]]").expect("it has agents").1;
    insta::assert_snapshot!("settled", format!("[[agent]]{agents}"));
    let keys =
        ["", "dir = 1", "dir = \"\"", "dir = \"a\"\nconcurrency = 2", "dir = \"a\"\nurl = \"http://a\"\ncarry = 1"];
    let agent = |(number, keys)| format!("[[agent]]\nname = \"a{number}\"\ncontract = \"bridge\"\n{keys}\n");
    let bad: String = keys.into_iter().enumerate().map(agent).collect();
    insta::assert_snapshot!("mistakes", Place::new("bridge-bad", &bad).check());
}

/// A directory under the name of a file is neither a request nor an answer.
#[test]
fn a_directory_in_the_place_of_a_request_is_waited_for() {
    let (server, inbox) = start();
    fs::create_dir_all(inbox.file(REQUEST)).expect("it can be made");
    let id = prompt(&server, "Free?");
    says(&server, &id, "Not asked yet: .agent-request.json is a directory, not a file");
    fs::remove_dir(inbox.file(REQUEST)).expect("it can be removed");
    inbox.request_of(&id);
    assert_eq!(inbox.answer(&["--text", "yes"]), 0);
    assert_eq!(ended(&server, &id)["outcome"]["outputs"], "yes");
    inbox.is_cleared();
}

/// The job already has an outcome, from another agent, so this answer is only kept.
#[test]
fn an_answer_to_a_job_that_another_agent_has_done_is_kept() {
    let server = Server::configured(&(human("inbox", "") + &bash("other", "cat", "")));
    let inbox = inbox_of(&server);
    let done = server.submit(&json!({"work": "other", "input": "x"}).to_string());
    let done = ended(&server, done["id"].as_str().expect("an id"));
    fs::create_dir(inbox.path()).expect("it can be made");
    inbox.write_response(&success(done["id"].as_str().expect("an id"), "late"));
    let id = prompt(&server, "Next?");
    inbox.request_of(&id);
    let stale = format!("{RESPONSE}.stale-1");
    assert!(
        fs::read_to_string(inbox.file(&stale)).is_ok_and(|text| text.contains("late")),
        "{:?}",
        inbox.whole_files()
    );
    server.cancel(&id);
}

/// The watcher of another server plays the tool that answers.
#[test]
fn a_watcher_answers() {
    let (server, inbox) = start();
    fs::create_dir(inbox.path()).expect("it can be made");
    let home = Directory::temporary();
    fs::write(home.file("crosspoint.toml"), bash("tool", "cat", "")).expect("it can be written");
    let directory = Directory::at(inbox.path());
    let mut watcher = Watcher::start(&home, "log", &["--agent", "human=tool"], &[&directory]);
    for text in ["one", "two"] {
        let job = ended(&server, &prompt(&server, text));
        assert_eq!(job["outcome"]["outputs"]["prompt"], text, "{job}");
        assert!(clauses(&job).is_empty(), "{job}");
    }
    inbox.is_cleared();
    assert_eq!(watcher.stop().code(), Some(0));
}
