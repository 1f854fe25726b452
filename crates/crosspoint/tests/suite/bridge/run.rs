//! `crosspoint bridge run`: a program is run until it has its answers.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::bridged_program::{COUNTS, Place, mode};
use crate::support::server::Server;

/// A request as the test writes it.
pub(crate) fn request(id: &str, agent: &str) -> Value {
    json!({"request_id": id, "version": "1.0", "agent_name": agent, "prompt": "What?"})
}

pub(crate) const ID: &str = "32ecfadc-2b66-4daa-a7c0-a03c449fcea5";

/// Asks what is in the file `ask` and keeps the answer as `answer-0`.
const ASKS_THIS: &str = r#"#!/bin/bash
echo "$*" >> calls
if [ "${!#}" = --resume ] && [ -e .agent-response.json ]; then mv .agent-response.json answer-0; exit 0; fi
cp ask .agent-request.json
exit 42
"#;

/// A place with a program that asks this.
pub(crate) fn asking(toml: &str, request: &str) -> Place {
    let place = Place::new(toml);
    place.script("asks", ASKS_THIS);
    place.write("ask", request);
    place
}

#[test]
fn a_program_that_asks_is_answered_and_resumed_and_nothing_is_left() {
    let place = Place::new(COUNTS);
    let ran = place.run(&[], &["./asks", "3", "counts"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    place.is_answered(3);
    let resumed = "3 counts --resume";
    assert_eq!(place.lines("calls"), ["3 counts", resumed, resumed, resumed]);
    assert_eq!(place.lines("ran").len(), 3);
    assert_eq!(place.left(), [""; 0]);
    assert_eq!(ran.stderr.matches("counts: answered after").count(), 3, "{ran:?}");
}

#[test]
fn a_server_that_runs_does_it_whether_it_is_found_or_named() {
    let server = Server::configured(COUNTS);
    let place = Place::new("");
    let data = server.data().display().to_string();
    assert_eq!(place.run(&["--data", &data], &["./asks", "1", "counts"]).code, 0);
    place.is_answered(1);
    fs::remove_file(place.path("answer-0")).expect("it is there");
    // The same question under the same id: the work is not done again.
    assert_eq!(place.run(&["--server", &server.url()], &["./asks", "2", "counts"]).code, 0);
    place.is_answered(2);
    let ran = fs::read_to_string(server.directory().join("ran")).expect("it ran");
    assert_eq!(ran.lines().count(), 2, "{ran}");
    assert!(!place.has(".crosspoint"), "there is no store of its own");
}

#[test]
fn all_phases_that_are_asked_at_once_are_answered_at_once() {
    // Each agent waits for the other, so they would never end if run one after the other.
    let meet = |own: &str, other: &str| format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done; cat");
    let agent = |name: &str, script: &str| {
        format!("[[agent]]\nname = \"{name}\"\ncontract = \"exec\"\nexec = {}\n", json!(["bash", "-c", script]))
    };
    let toml = agent("left", &meet("l", "r")) + &agent("right", &meet("r", "l"));
    let place = Place::new(&toml);
    let three = request("00000003-0000-4000-8000-000000000000", "left");
    let seven = request("00000007-0000-4000-8000-000000000000", "right");
    let script = format!(
        "#!/bin/bash\n[ -n \"$1\" ] && exit 5\necho '{three}' > .agent-request-phase3.json\necho '{seven}' > .agent-request-phase7.json\nexit 42\n"
    );
    place.script("asks", &script);
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert_eq!(place.left(), [".agent-response-phase3.json", ".agent-response-phase7.json"]);
    assert_eq!(place.json(".agent-response-phase3.json")["request_id"], three["request_id"]);
    assert_eq!(place.json(".agent-response-phase7.json")["request_id"], seven["request_id"]);
    assert!(ran.stderr.contains("phase 3 \u{b7} left") && ran.stderr.contains("phase 7 \u{b7} right"), "{ran:?}");
}

#[test]
fn what_the_program_exits_with_is_passed_on() {
    let place = Place::new("");
    for code in [0, 1, 3, 41, 43, 126, 127, 129, 255] {
        assert_eq!(place.run(&[], &["bash", "-c", &format!("exit {code}")]).code, code);
    }
    assert_eq!(place.run(&[], &["./asks", "1", "echo", "7"]).code, 7);
    assert_eq!(place.left(), [""; 0], "it has ended, however it did");
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
        assert_eq!(place.run(&[], &["bash", "-c", &format!("ulimit -c 0; kill -s {name} $$")]).code, 128 + number);
    }
    let ran = place.run(&[], &["bash", "-c", "echo out; echo err >&2; cat"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn a_program_that_cannot_be_run_is_told_apart_as_shells_do() {
    let place = Place::new("");
    let ran = place.run(&[], &["no-such-program-anywhere"]);
    assert_eq!(ran.code, 127);
    assert!(ran.stderr.contains("there is no program no-such-program-anywhere"), "{ran:?}");
    assert_eq!(place.run(&[], &["./no-such-program"]).code, 127);
    place.write("plain", "echo\n");
    let ran = place.run(&[], &["./plain"]);
    assert_eq!(ran.code, 126);
    assert!(ran.stderr.contains("not executable"), "{ran:?}");
    place.script("odd", "#!/no/such/interpreter\n");
    assert_eq!(place.run(&[], &["./odd"]).code, 127);
    assert_eq!(place.run(&[], &["/tmp"]).code, 126);
}

#[test]
fn the_word_to_resume_is_added_once() {
    let place = Place::new("");
    assert_eq!(place.run(&[], &["./asks", "1", "echo", "0", "--resume"]).code, 0);
    assert_eq!(place.lines("calls"), ["1 echo 0 --resume", "1 echo 0 --resume"]);
}

#[test]
fn a_program_in_another_directory_is_meant_from_here_first() {
    let place = Place::new("");
    fs::create_dir(place.path("inner")).expect("it can be made");
    let ran = place.run(&["--dir", "inner"], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.has("inner/answer-0") && place.has("inner/calls") && !place.has("calls"));
    place.script("inner/only-there", "#!/bin/sh\nexit 9\n");
    assert_eq!(place.run(&["--dir", "inner"], &["./only-there"]).code, 9);
    let ran = place.run(&["--dir", "nowhere"], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("nowhere is not there") && ran.stderr.contains("hint: "), "{ran:?}");
    assert_eq!(place.run(&["--dir", "calls-are-no-directory"], &["true"]).code, 2);
}

/// BRIDGE-9: the program has a fallback of its own.
#[test]
fn a_failure_of_the_agent_is_an_answer_and_the_program_goes_on() {
    let slow = "[[agent]]\nname = \"slow\"\ncontract = \"exec\"\nexec = [\"sleep\", \"600\"]\n";
    let toml = format!("[[agent]]\nname = \"fail\"\ncontract = \"exec\"\nexec = [\"false\"]\n{slow}");
    let cases =
        [("fail", "error", "agent_failed"), ("slow", "timeout", "timeout"), ("nobody", "error", "unsupported_work")];
    for (agent, status, kind) in cases {
        let mut asked = request(ID, agent);
        asked["timeout_seconds"] = json!(if agent == "slow" { 0.2 } else { 30.0 });
        let place = asking(&toml, &asked.to_string());
        let ran = place.run(&[], &["./asks"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let answer = place.json("answer-0");
        assert_eq!((&answer["status"], &answer["error_type"]), (&json!(status), &json!(kind)), "{answer}");
        assert_eq!((&answer["response"], &answer["request_id"]), (&Value::Null, &json!(ID)));
        assert!(
            answer["error_message"].as_str().is_some_and(|text| !text.is_empty()) && answer["metadata"].is_object()
        );
        let validated = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
            .args(["validate", "--as", "bridge.response", "answer-0"])
            .current_dir(place.path(""))
            .status();
        assert!(validated.expect("it starts").success());
        assert!(ran.stderr.contains(kind), "{ran:?}");
    }
}

#[test]
fn names_lead_to_works_to_agents_and_where_one_says() {
    let toml = "[[agent]]\nname = \"counter\"\ncontract = \"exec\"\nexec = [\"cat\"]\nwork = [\"counting\"]\n";
    for (agent, options) in [
        ("counting", &[][..]),
        ("counter", &[]),
        ("reviewer", &["--agent", "other=x", "--agent", "reviewer=counting"]),
        ("reviewer", &["--agent", "reviewer=counter"]),
    ] {
        let place = asking(toml, &request(ID, agent).to_string());
        let ran = place.run(options, &["./asks"]);
        assert_eq!((ran.code, &place.json("answer-0")["status"]), (0, &json!("success")), "{agent} {ran:?}");
    }
    let place = asking(toml, &request(ID, "reviewer").to_string());
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("known works: ") && ran.stderr.contains("counting"), "{ran:?}");
}

/// BRIDGE-8.4
#[test]
fn who_asks_once_more_than_it_may_is_stopped_and_can_go_on() {
    let place = Place::new(COUNTS);
    let ran = place.run(&["--max-iterations", "2"], &["./asks", "4", "counts"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("resumed 2 times") && ran.stderr.contains("--max-iterations"), "{ran:?}");
    place.is_answered(2);
    assert_eq!(place.left(), [".agent-bridge.json", ".agent-request.json"]);
    let ran = place.run(&["--max-iterations", "2"], &["./asks", "4", "counts"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    place.is_answered(4);
    assert_eq!((place.lines("ran").len(), place.left()), (4, vec![]));
    // The default limit is five questions.
    let place = Place::new("");
    assert_eq!(place.run(&[], &["./asks", "5", "echo"]).code, 0);
    let place = Place::new("");
    assert_eq!(place.run(&[], &["./asks", "6", "echo"]).code, 1);
}

#[test]
fn who_asks_nothing_is_told_so() {
    let place = Place::new("");
    let ran = place.run(&[], &["bash", "-c", "exit 42"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("there is no .agent-request.json"), "{ran:?}");
}

/// BRIDGE-8.5
#[test]
fn a_request_that_cannot_be_understood_is_shown_and_kept() {
    let whole = request(ID, "counts");
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
        let place = Place::new(COUNTS);
        place.write("ask", &text);
        place.write("good", &request(ID, "counts").to_string());
        // If one of several requests is malformed, none is handed in.
        let both = "cp ask .agent-request.json; cp good .agent-request-phase2.json; echo >> calls; exit 42";
        let ran = place.run(&[], &["bash", "-c", both]);
        assert_eq!(ran.code, 1, "{text} {ran:?}");
        assert!(ran.stderr.contains(".agent-request.json") && ran.stderr.contains(field), "{ran:?}");
        assert_eq!(place.left(), [".agent-bridge.json", ".agent-request-phase2.json", ".agent-request.json"]);
        assert_eq!(place.read(".agent-request.json"), text, "it is as it was");
        assert!(!place.has(".crosspoint"), "nobody was asked for anything");
        let again = place.run(&[], &["bash", "-c", both]);
        assert_eq!((again.code, place.lines("calls").len()), (1, 1), "it is not run before that is mended: {again:?}");
    }
}

/// BRIDGE-4.2, BRIDGE-4.4
#[test]
fn an_answer_to_something_else_is_set_aside_when_there_is_another() {
    let place = asking("", &request(ID, "echo").to_string());
    let foreign = r#"{"request_id":"another","version":"1.0","status":"success","response":"old","error_message":null,"error_type":null,"created_at":"2025-11-24T14:22:45+00:00","duration_seconds":1.0,"metadata":{}}"#;
    place.write(".agent-response.json", foreign);
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.lines("calls"), ["", "--resume"], "it is not resumed with somebody else's answer");
    assert_eq!(place.json("answer-0")["request_id"], ID);
    assert_eq!(place.left(), [".agent-response.json.stale-1"]);
    assert_eq!(place.read(".agent-response.json.stale-1"), foreign);
    assert!(ran.stderr.contains(".agent-response.json.stale-1"), "{ran:?}");
    // A malformed response is not an answer either.
    fs::remove_file(place.path("answer-0")).expect("it is there");
    place.write(".agent-response.json", "{");
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!(place.read(".agent-response.json.stale-2"), "{");
}

#[test]
fn what_waits_at_the_start_is_answered_first_if_the_user_says_so() {
    let place = asking("", "unused");
    place.write(".agent-request.json", &request(ID, "echo").to_string());
    assert_eq!(place.run(&["--resume"], &["./asks"]).code, 0);
    assert_eq!(place.lines("calls"), ["--resume"]);
    // An answer that is already there is taken as it is.
    fs::rename(place.path("answer-0"), place.path(".agent-response.json")).expect("it is there");
    place.write(".agent-request.json", &request(ID, "nobody").to_string());
    let ran = place.run(&["--resume", "--server", "http://127.0.0.1:1"], &["./asks"]);
    assert_eq!((ran.code, &place.json("answer-0")["status"]), (0, &json!("success")), "{ran:?}");
    assert_eq!(place.left(), [""; 0]);
}

/// BRIDGE-8, BRIDGE-8.2
#[test]
fn what_is_too_large_is_answered_so() {
    let mut asked = request(ID, "echo");
    asked["prompt"] = json!("x".repeat(1 << 20));
    let place = asking("", &asked.to_string());
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!(place.json("answer-0")["error_type"], "RequestTooLarge");
    let script = r#"printf '@crosspoint {"outputs":{"x":"'; head -c 11000000 /dev/zero | tr '\0' x; echo '"}}'"#;
    let large = crate::support::programs::bash("large", script, "output_bytes = 67108864");
    let place = asking(&large, &request(ID, "large").to_string());
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
    let mut other = request(ID, "echo");
    other["phase"] = json!(4);
    place.write(".agent-request-phase2.json", &other.to_string());
    let ran = place.run(&["--resume"], &["bash", "-c", "exit 0"]);
    assert!(ran.stderr.contains("BRIDGE-126"), "{ran:?}");
    assert!(place.has(".agent-response-phase2.json"));
}

#[test]
fn what_is_asked_and_answered_is_in_the_files_alone_and_they_are_ours_alone() {
    let mut asked = request(ID, "echo");
    (asked["prompt"], asked["context"]) = (json!("SECRET-prompt"), json!({"key": "SECRET-context"}));
    let place = asking("", &asked.to_string());
    let ran = place.run(
        &["--max-iterations", "1"],
        &["bash", "-c", "[ \"$0\" = --resume ] || { cp ask .agent-request.json; exit 42; }; exit 130"],
    );
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(!ran.stderr.contains("SECRET") && !ran.stdout.contains("SECRET"), "{ran:?}");
    assert_eq!(place.left(), [".agent-bridge.json", ".agent-response.json"]);
    assert!(
        !place.read(".agent-bridge.json").contains("SECRET") && !place.read(".agent-bridge.json").contains("cp ask")
    );
    assert!(place.read(".agent-response.json").contains("SECRET-context"));
    assert_eq!((mode(&place.path(".agent-bridge.json")), mode(&place.path(".agent-response.json"))), (0o600, 0o600));
}

#[test]
fn what_is_planted_under_the_names_is_not_followed() {
    let place = asking("", &request(ID, "echo").to_string());
    place.write("elsewhere", &request(ID, "echo").to_string());
    std::os::unix::fs::symlink("elsewhere", place.path(".agent-request.json")).expect("it can be made");
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("a symbolic link, not a file"), "{ran:?}");
    assert!(!place.has("calls") && place.has("elsewhere"));
    fs::remove_file(place.path(".agent-request.json")).expect("it is there");
    let made = Command::new("mkfifo").arg(place.path(".agent-response.json")).status();
    assert!(made.expect("it starts").success());
    assert_eq!(place.run(&[], &["./asks"]).code, 0, "a pipe is moved out of the way");
    assert_eq!(place.left(), [".agent-response.json.stale-1"]);
}

/// The answers that `crosspoint bridge ask` keeps belong to one run, from its beginning to its successful end.
#[test]
fn answers_of_an_earlier_run_are_not_those_of_this_one() {
    let place = Place::new("");
    fs::create_dir(place.path(".agent-answers")).expect("it can be made");
    let makes = |code: u8| format!("[ -e .agent-answers ] && exit 9; mkdir .agent-answers; exit {code}");
    assert_eq!(place.run(&[], &["bash", "-c", &makes(3)]).code, 3);
    assert_eq!(place.left(), [".agent-answers"], "who failed may be run again");
    assert_eq!(place.run(&[], &["bash", "-c", &makes(0)]).code, 0);
    assert_eq!(place.left(), [""; 0]);
    place.write("ask", &request(ID, "echo").to_string());
    let asks = "if [ \"$0\" = --resume ]; then [ -e .agent-answers ]; exit; fi; mkdir .agent-answers; cp ask .agent-request.json; exit 42";
    assert_eq!(place.run(&[], &["bash", "-c", asks]).code, 0, "in between they stay");
    // A link is not followed.
    fs::create_dir(place.path("elsewhere")).expect("it can be made");
    place.write("elsewhere/kept", "");
    std::os::unix::fs::symlink("elsewhere", place.path(".agent-answers")).expect("it can be made");
    assert_eq!(place.run(&[], &["true"]).code, 0);
    assert!(place.has("elsewhere/kept"));
}

#[test]
fn a_configuration_that_is_broken_is_said_before_the_program_runs() {
    let place = Place::new("[[agent]]\nnme = 1\n");
    let ran = place.run(&[], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("crosspoint.toml") && !place.has("calls"), "{ran:?}");
}

#[test]
fn a_directory_that_vanishes_is_said() {
    let place = Place::new("");
    fs::create_dir(place.path("inner")).expect("it can be made");
    let ran = place.run(&["--dir", "inner"], &["bash", "-c", "rm -r ../inner; exit 42"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("inner is not there"), "{ran:?}");
}

/// The driver in a namespace of its own, after a shell command.
fn apart(place: &Place, prepare: &str, command: &[&str]) -> Command {
    let driver = place.driver(&["--dir", "inner", "--resume"], command);
    let mut apart = Command::new("unshare");
    apart.args(["--map-root-user", "--mount", "sh", "-c", &format!("{prepare} && exec \"$@\""), "sh"]);
    apart.arg(driver.get_program()).args(driver.get_args()).current_dir(place.path("")).env("NO_COLOR", "1");
    apart.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    apart
}

#[test]
fn a_directory_that_is_read_only_or_full_is_said_and_what_was_done_is_not_done_again() {
    let place = Place::new(COUNTS);
    fs::create_dir(place.path("inner")).expect("it can be made");
    let asked = request(ID, "counts").to_string();
    place.write("ask", &asked);
    place.write("inner/.agent-request.json", &asked);
    let command = ["../takes"];
    place.script("takes", "#!/bin/bash\n[ -e .agent-response.json ] && mv .agent-response.json ../answer-0\n");
    let read_only = "mount --bind inner inner && mount -o remount,bind,ro inner";
    let ran: crate::support::bridged_program::Ran =
        apart(&place, read_only, &command).output().expect("it starts").into();
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("read-only") && ran.stderr.contains("goes on"), "{ran:?}");
    // First there is room for the record and none for the answer; then there is room for both.
    let full = "mount -t tmpfs -o size=20k tmpfs inner && cp ask inner/.agent-request.json";
    let filled = "head -c 8192 /dev/zero > inner/ballast";
    let large = place.read("ask").replace("What?", &"x".repeat(6_000));
    place.write("ask", &large);
    let script = format!("{full} && {filled}; \"$@\"; echo \"first $?\" >&2; rm inner/ballast");
    let ran: crate::support::bridged_program::Ran =
        apart(&place, &script, &command).output().expect("it starts").into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("no room") && ran.stderr.contains("first 2"), "{ran:?}");
    assert_eq!(place.lines("ran").len(), 1, "it was done once");
    assert_eq!(place.json("answer-0")["status"], "success");
}
