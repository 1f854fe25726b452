//! `crosspoint bridge answer`: what it writes, and when it writes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::config::Place;
use crate::support::bridge_directory::{Directory, PRINTED_ID, REQUEST, RESPONSE, success};
use crate::support::program::transcript;

fn request() -> Value {
    json!({
        "request_id": PRINTED_ID, "version": "1.0", "agent_name": "reviewer", "phase": 3, "phase_name": "review",
        "prompt": "Review this.\nTwo lines: ü", "created_at": "2026-01-05T10:00:00Z",
    })
}

/// A directory with this request under that file name.
fn asked(name: &str, file: &str, request: &Value) -> (Place, Directory) {
    let place = Place::new(name, "");
    let inbox = Directory::at(place.path().join("inbox"));
    fs::create_dir_all(inbox.path()).expect("it can be made");
    inbox.write(file, &request.to_string());
    (place, inbox)
}

fn response(inbox: &Directory, file: &str) -> Value {
    inbox.json(file)
}

/// The output of the command, without the path of the directory.
fn said(inbox: &Directory, arguments: &[&str]) -> String {
    let place = format!("{}/", inbox.path().parent().map(Path::display).expect("it has one"));
    transcript(&mut inbox.command("answer", arguments)).replace(&place, "")
}

#[test]
fn a_response_is_complete_and_the_request_is_gone() {
    let (_place, inbox) = asked("answer-text", REQUEST, &request());
    assert_eq!(
        said(&inbox, &["--text", "Größer ✅"]),
        format!("exit 0\n--- stdout\n--- stderr\ninbox/{RESPONSE} answers {PRINTED_ID}\n")
    );
    assert_eq!(inbox.whole_files(), [RESPONSE]);
    let text = inbox.read(RESPONSE);
    assert!(text.starts_with(&format!("{{\n  \"request_id\": \"{PRINTED_ID}\",\n  \"version\": \"1.0\"")), "{text}");
    assert!(text.contains("\"response\": \"Größer ✅\""), "{text}");
    let mode = fs::metadata(inbox.file(RESPONSE)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let written = response(&inbox, RESPONSE);
    assert!(
        written["duration_seconds"].as_f64().is_some_and(|seconds| seconds > 1_000.0),
        "since it was asked: {written}"
    );
    let valid = crate::support::program::crosspoint(&["validate", "--strict"])
        .arg(inbox.file(RESPONSE))
        .output()
        .expect("it starts");
    assert!(valid.status.success(), "{valid:?}");
}

#[test]
fn a_value_is_encoded_and_standard_input_is_taken() {
    let (_place, inbox) = asked("answer-json", ".agent-request-phase3.json", &request());
    let done =
        inbox.command("answer", &["--json", "-", "--phase", "3"]).write_stdin("{\"größe\": [1.50, null]}\n").output();
    assert!(done.expect("it starts").status.success());
    assert_eq!(response(&inbox, ".agent-response-phase3.json")["response"], "{\"größe\":[1.50,null]}");
    inbox.write(REQUEST, &request().to_string());
    let done = inbox.command("answer", &["--text", "-"]).write_stdin("a\nb\n").output();
    assert!(done.expect("it starts").status.success());
    assert_eq!(response(&inbox, RESPONSE)["response"], "a\nb\n");
    inbox.write(REQUEST, &request().to_string());
    inbox.remove(RESPONSE);
    let done = inbox.command("answer", &["--json", "-"]).write_stdin("{a: 1}").output().expect("it starts");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(inbox.file(REQUEST).exists() && !inbox.file(RESPONSE).exists());
}

#[test]
fn nothing_is_answered_that_is_not_there_or_malformed_or_answered() {
    let (_place, inbox) = asked("answer-none", REQUEST, &json!({"request_id": PRINTED_ID, "prompt": "secret words"}));
    let malformed = said(&inbox, &["--text", "a"]);
    assert!(malformed.starts_with("exit 1\n") && malformed.contains("error[BRIDGE-105]"), "{malformed}");
    assert!(!malformed.contains("secret words"), "{malformed}");
    assert_eq!(inbox.whole_files(), [REQUEST], "it is kept");
    inbox.remove(REQUEST);
    assert!(said(&inbox, &["--text", "a"]).contains("no request waits in inbox"));
    for phase in [2, 4] {
        fs::write(inbox.file(&format!(".agent-request-phase{phase}.json")), request().to_string())
            .expect("it is written");
    }
    let several = said(&inbox, &["--text", "a"]);
    assert!(several.starts_with("exit 1\n") && several.contains("--phase N"), "{several}");
    assert!(said(&inbox, &["--text", "a", "--phase", "4"]).starts_with("exit 0\n"));
    inbox.write(REQUEST, &request().to_string());
    inbox.write_response(&success(PRINTED_ID, "mine"));
    let answered = said(&inbox, &["--text", "a"]);
    assert!(answered.starts_with("exit 1\n") && answered.contains("answered already"), "{answered}");
    inbox.write_response(&success("another", "stale"));
    let stale = said(&inbox, &["--text", "a"]);
    assert!(stale.starts_with("exit 0\n") && stale.contains("kept as .agent-response.json.stale-1"), "{stale}");
    let gone = said(&Directory::at(inbox.file("nowhere")), &["--text", "a"]);
    assert!(gone.starts_with("exit 2\n"), "{gone}");
}

#[test]
fn an_editor_shows_the_request_and_what_is_above_the_line_is_the_answer() {
    let (place, inbox) = asked("answer-editor", REQUEST, &request());
    let editor = place.path().join("editor");
    let script = |text: &str| {
        fs::write(
            &editor,
            format!("#!/bin/sh\ncat \"$1\" > \"$0.saw\"; stat -c %a \"$1\" \"${{1%/*}}\" > \"$0.mode\"\n{text}\n"),
        )
        .expect("it is written");
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).expect("it can be run");
        let mut command = inbox.command("answer", &[]);
        command.env_remove("VISUAL").env("EDITOR", &editor).env("TMPDIR", place.path());
        transcript(&mut command)
    };
    for nothing in ["true", "echo >> \"$1\"", "exit 1", "echo mine > \"$1\""] {
        let said = script(nothing);
        assert!(said.starts_with("exit 1\n") && said.contains("nothing was answered"), "{nothing}: {said}");
        assert_eq!(inbox.whole_files(), [REQUEST], "{nothing}");
    }
    let said = script("{ printf 'Good.\\n\\nÜ\\n'; cat \"$1\"; } > \"$0.new\"; cat \"$0.new\" > \"$1\"");
    assert!(said.starts_with("exit 0\n"), "{said}");
    assert_eq!(response(&inbox, RESPONSE)["response"], "Good.\n\nÜ");
    let saw = fs::read_to_string(place.path().join("editor.saw")).expect("it ran");
    assert!(saw.contains("# agent: reviewer\n# phase: 3 (review)\n# prompt:\n\nReview this.\nTwo lines: ü\n"), "{saw}");
    assert_eq!(fs::read_to_string(place.path().join("editor.mode")).expect("it ran"), "600\n700\n");
    let left = fs::read_dir(place.path()).expect("it is there").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("crosspoint-answer")).count();
    assert_eq!(left, 1, "only what somebody wrote and lost the line of is kept");
}

#[test]
fn a_process_that_answers_there_already_is_named() {
    let (place, inbox) = asked("answer-lock", REQUEST, &request());
    let (begun, go) = (place.path().join("begun"), place.path().join("go"));
    let editor = format!("mkfifo '{0}'; : > '{1}'; cat '{0}' #", go.display(), begun.display());
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let mut other = std::process::Command::new(program);
    other.args(["bridge", "answer"]).arg(inbox.path()).env("VISUAL", editor).env("TMPDIR", place.path());
    let mut other = other.spawn().expect("it starts");
    crate::support::server::until("the editor", || begun.exists().then_some(()));
    let said = said(&inbox, &["--text", "a"]);
    let who = format!("process {}, crosspoint bridge answer", other.id());
    assert!(said.starts_with("exit 2\n") && said.contains(&who), "{said}");
    let status = inbox.command("status", &["--json"]).output().expect("it starts");
    assert_eq!(serde_json::from_slice::<Value>(&status.stdout).expect("an object")["state"], "being_answered");
    fs::write(&go, "").expect("somebody reads");
    assert_eq!(other.wait().expect("it ends").code(), Some(1), "its editor changed nothing");
}
