//! `crosspoint bridge ask`: questions of scripts.

use serde_json::json;

use crate::support::asking_programs::{Desk, PRINTED_ID};

#[test]
fn a_question_is_asked_once_and_answered_as_often_as_it_is_asked() {
    let desk = Desk::new();
    let ask = ["reviewer", "--prompt", "Is it good?"];
    let ended = desk.ask(&ask);
    assert_eq!((ended.code, ended.said.as_str(), ended.errors.as_str()), (Some(42), "", ""), "pipes are told nothing");
    let request = desk.request();
    assert_eq!((&request["agent_name"], &request["prompt"]), (&json!("reviewer"), &json!("Is it good?")));
    assert_eq!(desk.ask(&ask).code, Some(42));
    assert_eq!(desk.request(), request, "it is the same request");
    desk.answer("Yes.");
    for _ in 0..2 {
        let ended = desk.ask(&ask);
        assert_eq!((ended.code, ended.said.as_str(), ended.errors.as_str()), (Some(0), "Yes.\n", ""));
    }
    assert_eq!(desk.files(), [".agent-answers"]);
    assert_eq!(desk.ask(&["--forget"]).code, Some(0));
    assert_eq!(desk.files(), [""; 0]);
    assert_eq!(desk.ask(&ask).code, Some(42), "a new run asks anew");
    assert_ne!(desk.request()["request_id"], request["request_id"]);
}

#[test]
fn all_options_come_into_the_request() {
    let desk = Desk::new();
    desk.put("prompt.txt", "From a file.\n");
    let words = ["planner", "--prompt", "@prompt.txt", "--context", r#"{"files": 3}"#, "--phase", "2", "--phase-name"];
    let ended = desk.ask(&[&words[..], &["planning", "--timeout", "7.5", "--model", "small"]].concat());
    assert_eq!(ended.code, Some(42), "{}", ended.errors);
    let request: serde_json::Value =
        serde_json::from_str(&desk.text(".agent-request-phase2.json")).expect("it is JSON");
    let said = ["agent_name", "prompt", "context", "phase", "phase_name", "timeout_seconds", "model"];
    let said: Vec<_> = said.iter().map(|name| &request[name]).collect();
    assert_eq!(
        json!(said),
        json!(["planner", "From a file.\n", {"files": 3}, 2, "planning", 7.5, "small"]),
        "{request}"
    );
}

#[test]
fn the_prompt_may_come_from_standard_input() {
    let desk = Desk::new();
    for option in [&["a"][..], &["a", "--prompt", "-"]] {
        let mut command = desk.crosspoint(&[&["bridge", "ask"], option].concat());
        let output = command.write_stdin("Zeile eins\nZeile zwei ü").output().expect("it starts");
        assert_eq!(output.status.code(), Some(42));
        assert_eq!(desk.request()["prompt"], "Zeile eins\nZeile zwei ü");
    }
    let mut command = desk.crosspoint(&["bridge", "ask", "a"]);
    let output = command.write_stdin(vec![0xff, 0xfe]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("<stdin> is not UTF-8"));
}

#[test]
fn a_text_is_printed_as_it_is_with_one_end_of_line() {
    for (text, printed) in
        [("two\nlines", "two\nlines\n"), ("ended\n", "ended\n"), ("", "\n"), ("\u{1b}[1m", "\u{1b}[1m\n")]
    {
        let desk = Desk::new();
        desk.ask(&["a", "--prompt", "b"]);
        desk.answer(text);
        assert_eq!(desk.ask(&["a", "--prompt", "b"]).said, printed);
    }
}

#[test]
fn json_is_demanded_where_it_is_wanted() {
    let desk = Desk::new();
    let ask = ["a", "--prompt", "b", "--inner", "json"];
    desk.ask(&ask);
    desk.answer("# Markdown");
    let ended = desk.ask(&ask);
    assert_eq!((ended.code, ended.said.as_str()), (Some(1), ""));
    assert!(ended.errors.contains("BRIDGE-5.2") && ended.errors.contains("hint: "), "{}", ended.errors);
    assert_eq!(desk.ask(&ask[..3]).said, "# Markdown\n", "it is still there for whoever takes any text");
    desk.ask(&["a", "--prompt", "c"]);
    desk.answer(" {\"a\": 1}\n");
    assert_eq!(desk.ask(&["a", "--prompt", "c", "--inner", "json"]).said, "{\"a\": 1}\n");
}

#[test]
fn an_agent_that_failed_is_said_with_exit_code_1() {
    for (status, error_type) in [("error", "agent_failed"), ("timeout", "timeout"), ("error", "timeout")] {
        let desk = Desk::new();
        desk.ask(&["a", "--prompt", "b"]);
        let response = json!({
            "request_id": PRINTED_ID, "version": "1.0", "status": status, "response": null,
            "error_message": "It\u{1b}[31m broke.", "error_type": error_type, "created_at": "2025-11-24T14:22:45Z",
            "duration_seconds": 0, "metadata": {},
        });
        desk.respond(&response.to_string());
        let ended = desk.ask(&["a", "--prompt", "b"]);
        assert_eq!((ended.code, ended.said.as_str()), (Some(1), ""));
        let hint = "crosspoint jobs list shows the job, and jobs show what its agent printed";
        let expected = format!("error: the agent a failed: It\u{b7}[31m broke. [{error_type}]\nhint: {hint}\n");
        assert_eq!(ended.errors, expected, "and it cannot colour the terminal");
    }
}

#[test]
fn what_cannot_be_asked_is_said_with_exit_code_2() {
    let desk = Desk::new();
    desk.put("large", &"x".repeat(1 << 20));
    for (words, expected) in [
        (&["a", "--prompt", "b", "--context", "[1]"][..], "the context is not a JSON object (BRIDGE-111)"),
        (&["a", "--prompt", "b", "--context", "{,}"], "--context:1:2"),
        (&["a", "--prompt", "@large"], "pass large content by path"),
        (&["a", "--prompt", "@missing"], "cannot read missing"),
        (&["a", "--prompt", "-", "--context", "-"], "cannot both come from standard input"),
        (&["a", "--prompt", "b", "--dir", "missing"], "missing is not there"),
        (&["a", "--prompt", "b", "--phase", "10"], "10 is not in 1..=9"),
        (&["", "--prompt", "b"], "a value is required"),
        (&["a", "--forget"], "cannot be used with"),
        (&[], "required"),
    ] {
        let ended = desk.ask(words);
        assert_eq!((ended.code, ended.said.as_str()), (Some(2), ""), "{words:?}: {}", ended.errors);
        assert!(ended.errors.contains(expected), "{words:?}: {}", ended.errors);
    }
    assert!(!desk.has(".agent-request.json"));
    desk.put(".agent-request.json", "somebody else's");
    let ended = desk.ask(&["a", "--prompt", "b"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains("another request waits in ./.agent-request.json"), "{}", ended.errors);
}

#[test]
fn questions_of_several_phases_are_left_together() {
    let desk = Desk::new();
    desk.put(
        "both.sh",
        "crosspoint bridge ask a --prompt one --phase 1 > one & first=$!\n\
         crosspoint bridge ask a --prompt two --phase 2 > two; code=$?\n\
         wait $first || exit\nexit $code\n",
    );
    let ended = desk.run(&["bridge", "run", "--agent", "a=echo", "--", "bash", "both.sh"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(desk.text("one").contains("one") && desk.text("two").contains("two"));
    assert_eq!(desk.files(), [""; 0]);
}

/// What a line of shell writes to a terminal, and its exit code.
fn at_a_terminal(desk: &Desk, line: &str) -> (String, Option<i32>) {
    let mut script = std::process::Command::new("script");
    script.args(["-qec", line, "/dev/null"]).current_dir(desk.path()).stdin(std::process::Stdio::null());
    let path =
        desk.crosspoint(&[]).get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path.map(Into::into));
    let path: std::ffi::OsString = path.expect("it has one");
    script.env("PATH", path).env("TERM", "xterm").env_remove("CROSSPOINT_SERVER");
    let output = script.output().expect("it starts");
    (String::from_utf8(output.stdout).expect("it is UTF-8"), output.status.code())
}

#[test]
fn whoever_runs_a_script_by_hand_is_told_how_to_run_it() {
    let desk = Desk::new();
    let (said, code) = at_a_terminal(&desk, "crosspoint bridge ask a --prompt b");
    assert_eq!(code, Some(42), "{said}");
    assert!(said.contains("run the script with `crosspoint bridge run -- ...`"), "{said}");
    let desk = Desk::new();
    desk.put("ask.sh", "crosspoint bridge ask a --prompt b\n");
    let (said, code) = at_a_terminal(&desk, "crosspoint bridge run --agent a=echo -- sh ask.sh");
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("run the script with"), "under a driver there is nothing to tell: {said}");
}

#[test]
fn an_answer_cannot_move_the_cursor_of_a_terminal() {
    let desk = Desk::new();
    desk.ask(&["a", "--prompt", "b"]);
    desk.answer("\u{1b}[2Jgone\nnext");
    let (said, code) = at_a_terminal(&desk, "crosspoint bridge ask a --prompt b");
    assert_eq!((code, said.as_str()), (Some(0), "\u{b7}[2Jgone\r\nnext\r\n"));
}
