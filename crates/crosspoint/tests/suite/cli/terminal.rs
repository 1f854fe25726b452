//! The output at a terminal: a real one, made by a program for that.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::server::Server;

/// Runs the program at a terminal of this width, with stdout in a file. Returns what the terminal got, and the file.
fn at_a_terminal(server: &Server, arguments: &str) -> (String, String) {
    let directory = server.data().with_file_name("");
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let line = format!("stty cols 100; '{}' {arguments} --data data > outputs", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(&directory).stdin(Stdio::null());
    script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CROSSPOINT_SERVER");
    let output = script.output().expect("it starts");
    let said = String::from_utf8(output.stdout).expect("it is UTF-8");
    assert!(output.status.success(), "{said}");
    (said, fs::read_to_string(directory.join("outputs")).expect("it was made"))
}

#[test]
fn a_bar_shows_how_far_it_is_and_what_is_done_and_leaves_stdout_alone() {
    let server = Server::start();
    let (said, outputs) = at_a_terminal(&server, r#"submit slow_echo --input '{"seconds":2,"text":"hello"}'"#);
    assert_eq!(outputs, "{\n  \"seconds\": 2,\n  \"text\": \"hello\"\n}\n");
    // Each drawing begins at the left edge.
    let drawings: Vec<&str> = said.split('\r').collect();
    let step = |number: u32| {
        let (name, percent) = (format!("Step {number} of 10"), format!(" {}%", (number - 1) * 10));
        drawings.iter().find(|drawing| drawing.contains(&name) && drawing.contains(&percent))
    };
    // A busy machine may leave out some steps.
    let drawn: Vec<&&str> = (2..=10).filter_map(step).collect();
    assert!(drawn.len() > 1, "{said:?}");
    assert!(drawn.iter().all(|drawing| drawing.contains('\u{2588}')), "there is a bar: {drawn:?}");
    assert!(!said.contains("hello"), "outputs are not for the terminal here: {said:?}");
    // The bar is erased at the end.
    let last = said.rfind("of 10").expect("steps are drawn");
    assert!(said[last..].contains("\u{1b}[2K"), "{:?}", &said[last..]);
}

#[test]
fn a_question_is_asked_at_a_terminal_without_a_bar_over_it() {
    let server = Server::start();
    let directory = server.data().with_file_name("");
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let line = format!("'{}' submit ask --input '{{\"prompt\":\"Who?\"}}' --data data", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(&directory).stdin(Stdio::null()).env("TERM", "xterm");
    let output = script.env_remove("CROSSPOINT_SERVER").output().expect("it starts");
    let said = String::from_utf8(output.stdout).expect("it is UTF-8");
    assert_eq!(output.status.code(), Some(3), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.iter().any(|line| line.trim() == "Who?"), "{said:?}");
}

#[test]
fn a_long_hint_is_broken_at_spaces() {
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let line = format!("stty cols 50 rows 24; '{}' jobs list --server http://127.0.0.1:1", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm").env("NO_COLOR", "1");
    let output = script.output().expect("it starts");
    let said = String::from_utf8(output.stdout).expect("it is UTF-8");
    let hint: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("hint: ")).map(str::trim_end).collect();
    assert!(hint.len() > 1 && hint.iter().all(|line| line.len() <= 50), "{said:?}");
    assert!(hint[1..].iter().all(|line| line.starts_with("      ")), "{said:?}");
}
