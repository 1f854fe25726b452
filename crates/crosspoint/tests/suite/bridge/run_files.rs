//! `crosspoint bridge run`: everything that can be in the directory or happen to it.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::bridge::run::{asking, request};
use crate::support::bridge_directory::{Directory, PRINTED_ID};
use crate::support::bridge_run::{COUNTS, Ran, mode};

/// BRIDGE-8.5
#[test]
fn a_request_that_cannot_be_understood_is_shown_and_kept() {
    let whole = request(PRINTED_ID, "counts");
    let mut broken: Vec<(String, &str)> =
        vec![("{ not json".to_owned(), ""), (String::new(), ""), ("[]".to_owned(), "")];
    for field in ["request_id", "version", "agent_name", "prompt"] {
        let mut without = whole.clone();
        without.as_object_mut().expect("an object").remove(field);
        broken.push((without.to_string(), field));
    }
    let mut empty = whole;
    empty["request_id"] = json!("");
    broken.push((empty.to_string(), "request_id"));
    for (text, field) in broken {
        let place = Directory::configured(COUNTS);
        place.write("ask", &text);
        place.write("good", &request(PRINTED_ID, "counts").to_string());
        // If one of several requests is malformed, none is handed in.
        let both = "cp ask .agent-request.json; cp good .agent-request-phase2.json; echo >> calls; exit 42";
        let ran = place.run(&[], &["bash", "-c", both]);
        assert_eq!(ran.code, 1, "{text} {ran:?}");
        assert!(ran.stderr.contains(".agent-request.json") && ran.stderr.contains(field), "{ran:?}");
        assert_eq!(place.bridge_files(), [".agent-bridge.json", ".agent-request-phase2.json", ".agent-request.json"]);
        assert_eq!(place.read(".agent-request.json"), text, "it is as it was");
        assert!(!place.has(".crosspoint"), "nobody was asked for anything");
        let again = place.run(&[], &["bash", "-c", both]);
        assert_eq!((again.code, place.lines("calls").len()), (1, 1), "it is not run before that is mended: {again:?}");
    }
}

/// BRIDGE-4.2, BRIDGE-4.4
#[test]
fn an_answer_to_something_else_is_set_aside_when_there_is_another() {
    let place = asking("", &request(PRINTED_ID, "echo").to_string());
    let foreign = r#"{"request_id":"another","version":"1.0","status":"success","response":"old","error_message":null,"error_type":null,"created_at":"2025-11-24T14:22:45+00:00","duration_seconds":1.0,"metadata":{}}"#;
    place.write(".agent-response.json", foreign);
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.lines("calls"), ["", "--resume"], "it is not resumed with a foreign answer");
    assert_eq!(place.json("answer-0")["request_id"], PRINTED_ID);
    assert_eq!(place.bridge_files(), [".agent-response.json.stale-1"]);
    assert_eq!(place.read(".agent-response.json.stale-1"), foreign);
    assert!(ran.stderr.contains(".agent-response.json.stale-1"), "{ran:?}");
    // A malformed response is not an answer either.
    place.remove("answer-0");
    place.write(".agent-response.json", "{");
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!(place.read(".agent-response.json.stale-2"), "{");
}

#[test]
fn what_waits_at_the_start_is_answered_first_if_the_user_says_so() {
    let place = asking("", "unused");
    place.write(".agent-request.json", &request(PRINTED_ID, "echo").to_string());
    assert_eq!(place.run(&["--resume"], &["./asks"]).code, 0);
    assert_eq!(place.lines("calls"), ["--resume"]);
    // An answer that is already there is taken as it is.
    fs::rename(place.file("answer-0"), place.file(".agent-response.json")).expect("it is there");
    place.write(".agent-request.json", &request(PRINTED_ID, "nobody").to_string());
    let ran = place.run(&["--resume", "--server", "http://127.0.0.1:1"], &["./asks"]);
    assert_eq!((ran.code, &place.json("answer-0")["status"]), (0, &json!("success")), "{ran:?}");
    assert_eq!(place.bridge_files(), [""; 0]);
}

/// BRIDGE-8, BRIDGE-8.2
#[test]
fn what_is_too_large_is_answered_so() {
    let mut asked = request(PRINTED_ID, "echo");
    asked["prompt"] = json!("x".repeat(1 << 20));
    let place = asking("", &asked.to_string());
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!(place.json("answer-0")["error_type"], "RequestTooLarge");
    let script = r#"printf '@crosspoint {"outputs":{"x":"'; head -c 11000000 /dev/zero | tr '\0' x; echo '"}}'"#;
    let large = crate::support::programs::bash("large", script, "output_bytes = 67108864");
    let place = asking(&large, &request(PRINTED_ID, "large").to_string());
    let ran = place.run(&[], &["./asks"]);
    assert_eq!((ran.code, &place.json("answer-0")["error_type"]), (0, &json!("ResponseTooLarge")), "{ran:?}");
}

#[test]
fn requests_that_are_odd_are_answered_with_a_warning() {
    let mut asked = request("no-uuid", "echo");
    asked["created_at"] = json!("2025-11-24T14:22:45+00:00");
    let place = asking("", &asked.to_string());
    let ran = place.run(&[], &["./asks"]);
    assert_eq!((ran.code, &place.json("answer-0")["status"]), (0, &json!("success")), "{ran:?}");
    assert_eq!(ran.stderr.matches("BRIDGE-4.5").count(), 1, "{ran:?}");
    assert_eq!(ran.stderr.matches("BRIDGE-8.3").count(), 1, "{ran:?}");
    let mut other = request(PRINTED_ID, "echo");
    other["phase"] = json!(4);
    place.write(".agent-request-phase2.json", &other.to_string());
    let ran = place.run(&["--resume"], &["bash", "-c", "exit 0"]);
    assert!(ran.stderr.contains("BRIDGE-126"), "{ran:?}");
    assert!(place.has(".agent-response-phase2.json"));
}

#[test]
fn what_is_asked_and_answered_is_in_the_files_alone_and_they_are_ours_alone() {
    let mut asked = request(PRINTED_ID, "echo");
    (asked["prompt"], asked["context"]) = (json!("SECRET-prompt"), json!({"key": "SECRET-context"}));
    let place = asking("", &asked.to_string());
    let ran = place.run(
        &["--max-iterations", "1"],
        &["bash", "-c", "[ \"$0\" = --resume ] || { cp ask .agent-request.json; exit 42; }; exit 130"],
    );
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(!ran.stderr.contains("SECRET") && !ran.stdout.contains("SECRET"), "{ran:?}");
    assert_eq!(place.bridge_files(), [".agent-bridge.json", ".agent-response.json"]);
    assert!(
        !place.read(".agent-bridge.json").contains("SECRET") && !place.read(".agent-bridge.json").contains("cp ask")
    );
    assert!(place.read(".agent-response.json").contains("SECRET-context"));
    assert_eq!((mode(&place.file(".agent-bridge.json")), mode(&place.file(".agent-response.json"))), (0o600, 0o600));
}

#[test]
fn what_is_planted_under_the_names_is_not_followed() {
    let place = asking("", &request(PRINTED_ID, "echo").to_string());
    place.write("elsewhere", &request(PRINTED_ID, "echo").to_string());
    std::os::unix::fs::symlink("elsewhere", place.file(".agent-request.json")).expect("it can be made");
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("a symbolic link, not a file"), "{ran:?}");
    assert!(!place.has("calls") && place.has("elsewhere"));
    place.remove(".agent-request.json");
    let made = Command::new("mkfifo").arg(place.file(".agent-response.json")).status();
    assert!(made.expect("it starts").success());
    assert_eq!(place.run(&[], &["./asks"]).code, 0, "a pipe is moved out of the way");
    assert_eq!(place.bridge_files(), [".agent-response.json.stale-1"]);
}

/// The answers that `crosspoint bridge ask` keeps belong to one run, from its beginning to its successful end.
#[test]
fn answers_of_an_earlier_run_are_not_those_of_this_one() {
    let place = Directory::configured("");
    place.make(".agent-answers");
    let makes = |code: u8| format!("[ -e .agent-answers ] && exit 9; mkdir .agent-answers; exit {code}");
    assert_eq!(place.run(&[], &["bash", "-c", &makes(3)]).code, 3);
    assert_eq!(place.bridge_files(), [".agent-answers"], "who failed may be run again");
    assert_eq!(place.run(&[], &["bash", "-c", &makes(0)]).code, 0);
    assert_eq!(place.bridge_files(), [""; 0]);
    place.write("ask", &request(PRINTED_ID, "echo").to_string());
    let asks = "if [ \"$0\" = --resume ]; then [ -e .agent-answers ]; exit; fi; mkdir .agent-answers; cp ask .agent-request.json; exit 42";
    assert_eq!(place.run(&[], &["bash", "-c", asks]).code, 0, "in between they stay");
    // A link is not followed.
    place.make("elsewhere");
    place.write("elsewhere/kept", "");
    std::os::unix::fs::symlink("elsewhere", place.file(".agent-answers")).expect("it can be made");
    assert_eq!(place.run(&[], &["true"]).code, 0);
    assert!(place.has("elsewhere/kept"));
}

#[test]
fn a_directory_that_vanishes_is_said() {
    let place = Directory::configured("");
    place.make("inner");
    let ran = place.run(&["--dir", "inner", "--resume"], &["bash", "-c", "rm -r ../inner; exit 42"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("inner is not there"), "{ran:?}");
}

/// The driver in a namespace of its own, after a shell command.
fn apart(place: &Directory, prepare: &str, command: &[&str]) -> Command {
    let driver = place.driver(&["--dir", "inner", "--resume"], command);
    let mut apart = Command::new("unshare");
    apart.args(["--map-root-user", "--mount", "sh", "-c", &format!("{prepare} && exec \"$@\""), "sh"]);
    apart.arg(driver.get_program()).args(driver.get_args()).current_dir(place.path()).env("NO_COLOR", "1");
    apart.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    apart
}

#[test]
fn a_directory_that_is_read_only_or_full_is_said_and_what_was_done_is_not_done_again() {
    let place = Directory::configured(COUNTS);
    place.make("inner");
    let asked = request(PRINTED_ID, "counts").to_string();
    place.write("ask", &asked);
    place.write("inner/.agent-request.json", &asked);
    let command = ["../takes"];
    place.script("takes", "#!/bin/bash\n[ -e .agent-response.json ] && mv .agent-response.json ../answer-0\n");
    let read_only = "mount --bind inner inner && mount -o remount,bind,ro inner";
    let ran: Ran = apart(&place, read_only, &command).output().expect("it starts").into();
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("read-only") && ran.stderr.contains("goes on"), "{ran:?}");
    // First there is room for the record and none for the answer; then there is room for both.
    let full = "mount -t tmpfs -o size=20k tmpfs inner && cp ask inner/.agent-request.json";
    let filled = "head -c 8192 /dev/zero > inner/ballast";
    let large = place.read("ask").replace("What?", &"x".repeat(6_000));
    place.write("ask", &large);
    let script = format!("{full} && {filled}; \"$@\"; echo \"first $?\" >&2; rm inner/ballast");
    let ran: Ran = apart(&place, &script, &command).output().expect("it starts").into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("no room") && ran.stderr.contains("first 2"), "{ran:?}");
    assert_eq!(place.lines("ran").len(), 1, "it was done once");
    assert_eq!(place.json("answer-0")["status"], "success");
}
