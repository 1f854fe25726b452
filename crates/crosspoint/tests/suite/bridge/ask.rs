//! `crosspoint bridge ask`: questions of scripts.

use serde_json::json;

use crate::support::bridge_directory::{Directory, PRINTED_ID, REQUEST};

#[test]
fn a_question_is_asked_once_and_answered_as_often_as_it_is_asked() {
    let directory = Directory::temporary();
    let ask = ["reviewer", "--prompt", "Is it good?"];
    let ended = directory.ask(&ask);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (42, "", ""), "pipes are told nothing");
    let request = directory.json(REQUEST);
    assert_eq!((&request["agent_name"], &request["prompt"]), (&json!("reviewer"), &json!("Is it good?")));
    assert_eq!(directory.ask(&ask).code, 42);
    assert_eq!(directory.json(REQUEST), request, "it is the same request");
    directory.respond_text("Yes.");
    for _ in 0..2 {
        let ended = directory.ask(&ask);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "Yes.\n", ""));
    }
    assert_eq!(directory.bridge_files(), [".agent-answers"]);
    assert_eq!(directory.ask(&["--forget"]).code, 0);
    assert_eq!(directory.bridge_files(), [""; 0]);
    assert_eq!(directory.ask(&ask).code, 42, "a new run asks anew");
    assert_ne!(directory.json(REQUEST)["request_id"], request["request_id"]);
}

#[test]
fn all_options_come_into_the_request() {
    let directory = Directory::temporary();
    directory.write("prompt.txt", "From a file.\n");
    let words = ["planner", "--prompt", "@prompt.txt", "--context", r#"{"files": 3}"#, "--phase", "2", "--phase-name"];
    let ended = directory.ask(&[&words[..], &["planning", "--timeout", "7.5", "--model", "small"]].concat());
    assert_eq!(ended.code, 42, "{}", ended.stderr);
    let request = directory.json(".agent-request-phase2.json");
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
    let directory = Directory::temporary();
    for option in [&["a"][..], &["a", "--prompt", "-"]] {
        let mut command = directory.crosspoint(&[&["bridge", "ask"], option].concat());
        let output = command.write_stdin("Zeile eins\nZeile zwei ü").output().expect("it starts");
        assert_eq!(output.status.code(), Some(42));
        assert_eq!(directory.json(REQUEST)["prompt"], "Zeile eins\nZeile zwei ü");
    }
    let mut command = directory.crosspoint(&["bridge", "ask", "a"]);
    let output = command.write_stdin(vec![0xff, 0xfe]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("<stdin> is not UTF-8"));
}

#[test]
fn a_text_is_printed_as_it_is_with_one_end_of_line() {
    for (text, printed) in
        [("two\nlines", "two\nlines\n"), ("ended\n", "ended\n"), ("", "\n"), ("\u{1b}[1m", "\u{1b}[1m\n")]
    {
        let directory = Directory::temporary();
        directory.ask(&["a", "--prompt", "b"]);
        directory.respond_text(text);
        assert_eq!(directory.ask(&["a", "--prompt", "b"]).stdout, printed);
    }
}

#[test]
fn json_is_demanded_where_it_is_wanted() {
    let directory = Directory::temporary();
    let ask = ["a", "--prompt", "b", "--inner", "json"];
    directory.ask(&ask);
    directory.respond_text("# Markdown");
    let ended = directory.ask(&ask);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("BRIDGE-5.2") && ended.stderr.contains("hint: "), "{}", ended.stderr);
    assert_eq!(directory.ask(&ask[..3]).stdout, "# Markdown\n", "it is still there for whoever takes any text");
    directory.ask(&["a", "--prompt", "c"]);
    directory.respond_text(" {\"a\": 1}\n");
    assert_eq!(directory.ask(&["a", "--prompt", "c", "--inner", "json"]).stdout, "{\"a\": 1}\n");
}

#[test]
fn an_agent_that_failed_is_said_with_exit_code_1() {
    for (status, error_type) in [("error", "agent_failed"), ("timeout", "timeout"), ("error", "timeout")] {
        let directory = Directory::temporary();
        directory.ask(&["a", "--prompt", "b"]);
        let response = json!({
            "request_id": PRINTED_ID, "version": "1.0", "status": status, "response": null,
            "error_message": "It\u{1b}[31m broke.", "error_type": error_type, "created_at": "2025-11-24T14:22:45Z",
            "duration_seconds": 0, "metadata": {},
        });
        directory.respond(&response.to_string());
        let ended = directory.ask(&["a", "--prompt", "b"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
        let hint = "crosspoint jobs list shows the job, and jobs show what its agent printed";
        let expected = format!("error: the agent a failed: It\u{b7}[31m broke. [{error_type}]\nhint: {hint}\n");
        assert_eq!(ended.stderr, expected, "and it cannot colour the terminal");
    }
}

#[test]
fn what_cannot_be_asked_is_said_with_exit_code_2() {
    let directory = Directory::temporary();
    directory.write("large", &"x".repeat(1 << 20));
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
        let ended = directory.ask(words);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
    assert!(!directory.has(".agent-request.json"));
    directory.write(".agent-request.json", "somebody else's");
    let ended = directory.ask(&["a", "--prompt", "b"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("another request waits in ./.agent-request.json"), "{}", ended.stderr);
}

#[test]
fn questions_of_several_phases_are_left_together() {
    let directory = Directory::temporary();
    directory.write(
        "both.sh",
        "crosspoint bridge ask a --prompt one --phase 1 > one & first=$!\n\
         crosspoint bridge ask a --prompt two --phase 2 > two; code=$?\n\
         wait $first || exit\nexit $code\n",
    );
    let ended = directory.run_crosspoint(&["bridge", "run", "--agent", "a=echo", "--", "bash", "both.sh"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(directory.read("one").contains("one") && directory.read("two").contains("two"));
    assert_eq!(directory.bridge_files(), [""; 0]);
}

/// What a line of shell writes to a terminal, and its exit code.
fn at_a_terminal(directory: &Directory, line: &str) -> (String, Option<i32>) {
    let mut script = std::process::Command::new("script");
    script.args(["-qec", line, "/dev/null"]).current_dir(directory.path()).stdin(std::process::Stdio::null());
    let path = directory
        .crosspoint(&[])
        .get_envs()
        .find(|(name, _)| *name == "PATH")
        .and_then(|(_, path)| path.map(Into::into));
    let path: std::ffi::OsString = path.expect("it has one");
    script.env("PATH", path).env("TERM", "xterm").env_remove("CROSSPOINT_SERVER");
    let output = script.output().expect("it starts");
    (String::from_utf8(output.stdout).expect("it is UTF-8"), output.status.code())
}

#[test]
fn a_person_who_runs_a_script_by_hand_is_told_how_to_run_it() {
    let directory = Directory::temporary();
    let (said, code) = at_a_terminal(&directory, "crosspoint bridge ask a --prompt b");
    assert_eq!(code, Some(42), "{said}");
    assert!(said.contains("run the script with `crosspoint bridge run -- ...`"), "{said}");
    let directory = Directory::temporary();
    directory.write("ask.sh", "crosspoint bridge ask a --prompt b\n");
    let (said, code) = at_a_terminal(&directory, "crosspoint bridge run --agent a=echo -- sh ask.sh");
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("run the script with"), "under a driver there is nothing to tell: {said}");
}

#[test]
fn an_answer_cannot_move_the_cursor_of_a_terminal() {
    let directory = Directory::temporary();
    directory.ask(&["a", "--prompt", "b"]);
    directory.respond_text("\u{1b}[2Jgone\nnext");
    let (said, code) = at_a_terminal(&directory, "crosspoint bridge ask a --prompt b");
    assert_eq!((code, said.as_str()), (Some(0), "\u{b7}[2Jgone\r\nnext\r\n"));
}
