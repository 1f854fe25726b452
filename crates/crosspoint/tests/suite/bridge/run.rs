//! `crosspoint bridge run`: a program is run until it has its answers.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::bridge_caller;
use crate::support::bridge_directory::{Directory, PRINTED_ID};
use crate::support::bridge_run::COUNTS;
use crate::support::server::Server;

/// A request as the test writes it.
pub(crate) fn request(id: &str, agent: &str) -> Value {
    bridge_caller::request(id, agent, "What?")
}

/// Asks what is in the file `ask` and keeps the answer as `answer-0`.
const ASKS_THIS: &str = r#"#!/bin/bash
echo "$*" >> calls
if [ "${!#}" = --resume ] && [ -e .agent-response.json ]; then mv .agent-response.json answer-0; exit 0; fi
cp ask .agent-request.json
exit 42
"#;

/// A place with a program that asks this.
pub(crate) fn asking(toml: &str, request: &str) -> Directory {
    let place = Directory::configured(toml);
    place.script("asks", ASKS_THIS);
    place.write("ask", request);
    place
}

#[test]
fn a_program_that_asks_is_answered_and_resumed_and_nothing_is_left() {
    let place = Directory::configured(COUNTS);
    let ran = place.run(&[], &["./asks", "3", "counts"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    place.is_answered(3);
    let resumed = "3 counts --resume";
    assert_eq!(place.lines("calls"), ["3 counts", resumed, resumed, resumed]);
    assert_eq!(place.lines("ran").len(), 3);
    assert_eq!(place.bridge_files(), [""; 0]);
    assert_eq!(ran.stderr.matches("counts: answered after").count(), 3, "{ran:?}");
}

#[test]
fn a_server_that_runs_does_it_whether_it_is_found_or_named() {
    let server = Server::configured(COUNTS);
    let place = Directory::configured("");
    let data = server.data().display().to_string();
    assert_eq!(place.run(&["--data", &data], &["./asks", "1", "counts"]).code, 0);
    place.is_answered(1);
    place.remove("answer-0");
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
    let place = Directory::configured(&toml);
    let three = request("00000003-0000-4000-8000-000000000000", "left");
    let seven = request("00000007-0000-4000-8000-000000000000", "right");
    let script = format!(
        "#!/bin/bash\n[ -n \"$1\" ] && exit 5\necho '{three}' > .agent-request-phase3.json\necho '{seven}' > .agent-request-phase7.json\nexit 42\n"
    );
    place.script("asks", &script);
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert_eq!(place.bridge_files(), [".agent-response-phase3.json", ".agent-response-phase7.json"]);
    assert_eq!(place.json(".agent-response-phase3.json")["request_id"], three["request_id"]);
    assert_eq!(place.json(".agent-response-phase7.json")["request_id"], seven["request_id"]);
    assert!(ran.stderr.contains("phase 3 \u{b7} left") && ran.stderr.contains("phase 7 \u{b7} right"), "{ran:?}");
}

#[test]
fn what_the_program_exits_with_is_passed_on() {
    let place = Directory::configured("");
    for code in [0, 1, 3, 41, 43, 126, 127, 129, 255] {
        assert_eq!(place.run(&[], &["bash", "-c", &format!("exit {code}")]).code, code);
    }
    assert_eq!(place.run(&[], &["./asks", "1", "echo", "7"]).code, 7);
    assert_eq!(place.bridge_files(), [""; 0], "it has ended, however it did");
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
        assert_eq!(place.run(&[], &["bash", "-c", &format!("ulimit -c 0; kill -s {name} $$")]).code, 128 + number);
    }
    let ran = place.run(&[], &["bash", "-c", "echo out; echo err >&2; cat"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn a_program_that_cannot_be_run_is_told_apart_as_shells_do() {
    let place = Directory::configured("");
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
    let place = Directory::configured("");
    assert_eq!(place.run(&[], &["./asks", "1", "echo", "0", "--resume"]).code, 0);
    assert_eq!(place.lines("calls"), ["1 echo 0 --resume", "1 echo 0 --resume"]);
}

#[test]
fn a_program_in_another_directory_is_meant_from_here_first() {
    let place = Directory::configured("");
    place.make("inner");
    let ran = place.run(&["--dir", "inner", "--resume"], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.has("inner/answer-0") && place.has("inner/calls") && !place.has("calls"));
    place.script("inner/only-there", "#!/bin/sh\nexit 9\n");
    assert_eq!(place.run(&["--dir", "inner", "--resume"], &["./only-there"]).code, 9);
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
        let mut asked = request(PRINTED_ID, agent);
        asked["timeout_seconds"] = json!(if agent == "slow" { 0.2 } else { 30.0 });
        let place = asking(&toml, &asked.to_string());
        let ran = place.run(&[], &["./asks"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let answer = place.json("answer-0");
        assert_eq!((&answer["status"], &answer["error_type"]), (&json!(status), &json!(kind)), "{answer}");
        assert_eq!((&answer["response"], &answer["request_id"]), (&Value::Null, &json!(PRINTED_ID)));
        assert!(
            answer["error_message"].as_str().is_some_and(|text| !text.is_empty()) && answer["metadata"].is_object()
        );
        let validated = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
            .args(["validate", "--as", "bridge.response", "answer-0"])
            .current_dir(place.path())
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
        let place = asking(toml, &request(PRINTED_ID, agent).to_string());
        let ran = place.run(options, &["./asks"]);
        assert_eq!((ran.code, &place.json("answer-0")["status"]), (0, &json!("success")), "{agent} {ran:?}");
    }
    let place = asking(toml, &request(PRINTED_ID, "reviewer").to_string());
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("known works: ") && ran.stderr.contains("counting"), "{ran:?}");
}

/// BRIDGE-8.4
#[test]
fn who_asks_once_more_than_it_may_is_stopped_and_can_go_on() {
    let place = Directory::configured(COUNTS);
    let ran = place.run(&["--max-iterations", "2"], &["./asks", "4", "counts"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("resumed 2 times") && ran.stderr.contains("--max-iterations"), "{ran:?}");
    place.is_answered(2);
    assert_eq!(place.bridge_files(), [".agent-bridge.json", ".agent-request.json"]);
    let ran = place.run(&["--max-iterations", "2"], &["./asks", "4", "counts"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    place.is_answered(4);
    assert_eq!((place.lines("ran").len(), place.bridge_files()), (4, vec![]));
    // The default limit is five questions.
    let place = Directory::configured("");
    assert_eq!(place.run(&[], &["./asks", "5", "echo"]).code, 0);
    let place = Directory::configured("");
    assert_eq!(place.run(&[], &["./asks", "6", "echo"]).code, 1);
}

#[test]
fn who_asks_nothing_is_told_so() {
    let place = Directory::configured("");
    let ran = place.run(&[], &["bash", "-c", "exit 42"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("there is no .agent-request.json"), "{ran:?}");
}

#[test]
fn a_configuration_that_is_broken_is_said_before_the_program_runs() {
    let place = Directory::configured("[[agent]]\nnme = 1\n");
    let ran = place.run(&[], &["./asks", "1", "echo"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("crosspoint.toml") && !place.has("calls"), "{ran:?}");
}
