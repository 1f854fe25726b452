//! `crosspoint bridge status`: what waits, and what is wrong with it, without any content.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::cli::config::Place;
use crate::support::bridge_caller;
use crate::support::bridge_directory::{Directory, PRINTED_ID, REQUEST, RESPONSE, success};
use crate::support::program::transcript;

fn request(id: &str) -> Value {
    bridge_caller::request(id, "reviewer", "secret words")
}

fn inbox(name: &str) -> (Place, Directory) {
    let place = Place::new(name, "");
    let inbox = Directory::at(place.path().join("inbox"));
    fs::create_dir_all(inbox.path()).expect("it can be made");
    (place, inbox)
}

fn states(inbox: &Directory) -> (Option<i32>, Vec<(String, String)>) {
    let output = inbox.command("status", &["--json"]).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("it is UTF-8");
    assert!(!text.contains("secret"), "{text}");
    let object = |line: &str| serde_json::from_str::<Value>(line).expect("an object");
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    let found = text.lines().map(object).map(|one| (word(&one["file"]), word(&one["state"])));
    (output.status.code(), found.collect())
}

#[test]
fn every_state_has_a_word() {
    let (_place, inbox) = inbox("status-states");
    assert_eq!(states(&inbox), (Some(0), vec![]));
    let one = |file: &str, state: &str| vec![(file.to_owned(), state.to_owned())];
    inbox.write(REQUEST, &request(PRINTED_ID).to_string());
    assert_eq!(states(&inbox), (Some(0), one(REQUEST, "waiting")));
    inbox.write_response(&success(PRINTED_ID, "secret"));
    assert_eq!(states(&inbox), (Some(0), one(REQUEST, "answered")));
    inbox.remove(REQUEST);
    assert_eq!(states(&inbox), (Some(0), one(RESPONSE, "answered")));
    inbox.write(REQUEST, &request("another").to_string());
    assert_eq!(states(&inbox), (Some(1), one(REQUEST, "foreign_response")));
    inbox.write_response(&json!({"result": "secret"}));
    assert_eq!(states(&inbox), (Some(1), one(REQUEST, "malformed_response")));
    inbox.remove(RESPONSE);
    inbox.write(REQUEST, "{\"prompt\": \"secret\"");
    assert_eq!(states(&inbox), (Some(1), one(REQUEST, "malformed")));
    let mut large = request(PRINTED_ID);
    large["prompt"] = json!("secret ".repeat(200_000));
    inbox.write(REQUEST, &large.to_string());
    assert_eq!(states(&inbox), (Some(1), one(REQUEST, "too_large")));
    inbox.remove(REQUEST);
    symlink("/etc/passwd", inbox.file(REQUEST)).expect("a link can be made");
    assert_eq!(states(&inbox), (Some(1), one(REQUEST, "no_file")));
}

#[test]
fn people_get_a_table_and_what_is_wrong_below_it() {
    let (place, inbox) = inbox("status-table");
    // A time in the future shows no age, so that the test does not depend on how fast it runs.
    let later = |id: &str| {
        let mut request = request(id);
        request["created_at"] = json!("2999-01-01T00:00:00Z");
        request
    };
    let mut phase = later(PRINTED_ID);
    (phase["phase"], phase["phase_name"]) = (json!(2), json!("planning"));
    inbox.write(".agent-request-phase2.json", &phase.to_string());
    inbox.write(REQUEST, &later("not-a-uuid").to_string());
    let mut wrong = success("not-a-uuid", "secret");
    wrong["duration_seconds"] = json!("1.0");
    inbox.write_response(&wrong);
    inbox.write(".agent-response.json.stale-1", "secret");
    inbox.write(".agent-response.json.tmp-0123456789abcdef0123456789abcdef", "secret");
    let other = Directory::at(place.path().join("other"));
    fs::create_dir(other.path()).expect("it can be made");
    let mut command = place.crosspoint(&["bridge", "status", "inbox", "other", "nowhere"]);
    let said = transcript(&mut command);
    assert!(!said.contains("secret"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn a_person_who_answers_is_shown_what_is_asked_and_how_much_time_is_left() {
    let (_place, inbox) = inbox("status-prompts");
    let mut asked = request(PRINTED_ID);
    asked["prompt"] = json!("First line\nsecond \u{1b}[31mline\n");
    (asked["created_at"], asked["timeout_seconds"]) = (json!("2999-01-01T00:00:00Z"), json!(7_200.5));
    inbox.write(REQUEST, &asked.to_string());
    let said = |arguments: &[&str]| {
        let output = inbox.command("status", arguments).output().expect("it starts");
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let table = said(&["--prompts"]);
    assert!(table.contains(&format!("{REQUEST}:\n  First line\n  second \u{b7}[31mline\n")), "{table}");
    assert!(table.contains("0s     2h    waiting"), "{table}");
    assert!(!said(&[]).contains("First"));
    let object = |text: String| serde_json::from_str::<Value>(&text).expect("an object");
    let shown = object(said(&["--json", "--prompts"]));
    assert_eq!((&shown["prompt"], &shown["until"]), (&asked["prompt"], &json!("2999-01-01T02:00:00.5Z")));
    assert_eq!(object(said(&["--json"])).get("prompt"), None);
    // The request's time is over.
    asked["created_at"] = json!("2020-01-01T00:00:00Z");
    inbox.write(REQUEST, &asked.to_string());
    assert!(said(&[]).contains("none  waiting"), "{}", said(&[]));
}
