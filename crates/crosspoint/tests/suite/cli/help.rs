//! `--help` that teaches.

use crate::support::program::{crosspoint, stdout, transcript};

const COMMANDS: [&str; 13] = [
    "serve",
    "agent",
    "submit",
    "jobs",
    "agents",
    "store",
    "config",
    "validate",
    "translate",
    "migrate",
    "schema",
    "clauses",
    "completions",
];

/// Commands that have subcommands.
const INNER: [(&str, &[&str]); 4] = [
    ("jobs", &["list", "show", "events", "document", "cancel", "answer", "retry"]),
    ("agents", &["list", "show", "breaker", "drain", "forget"]),
    ("store", &["check", "export"]),
    ("config", &["check", "show"]),
];

#[test]
fn every_command_shows_an_example() {
    for command in COMMANDS {
        let help = stdout(&mut crosspoint(&[command, "--help"]));
        let example = format!("\n  crosspoint {command}");
        assert!(help.contains("Examples:") && help.contains(&example), "{command}: {help}");
    }
}

#[test]
fn every_inner_command_shows_an_example() {
    for (command, inner) in INNER {
        for action in inner {
            let help = stdout(&mut crosspoint(&[command, action, "--help"]));
            let example = format!("\n  crosspoint {command} {action}");
            assert!(help.contains("Examples:") && help.contains(&example), "{command} {action}: {help}");
        }
    }
}

#[test]
fn the_first_help_fits_a_screen() {
    let help = stdout(&mut crosspoint(&["--help"]));
    insta::assert_snapshot!(help);
}

/// An example that is broken into two lines cannot be copied.
#[test]
fn the_examples_of_the_server_fit_80_columns() {
    let help = stdout(&mut crosspoint(&["serve", "--help"]));
    let examples = help.split_once("Examples:").expect("it has examples").1.split("\n\n").next().unwrap_or_default();
    assert!(examples.lines().all(|line| line.len() <= 80), "{examples}");
    assert!(examples.lines().skip(1).all(|line| line.contains(" serve") || line.contains(" curl")), "{examples}");
}

#[test]
fn usage_errors_exit_2() {
    for arguments in
        [&["frobnicate"][..], &["validate", "--as", "bridge"], &["schema", "nothing"], &["completions", "tcl"], &[]]
    {
        let said = transcript(&mut crosspoint(arguments));
        assert!(said.starts_with("exit 2\n--- stdout\n--- stderr\n"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_contract_in_place_of_a_kind_is_answered_with_its_kinds() {
    let said = transcript(&mut crosspoint(&["validate", "--as", "bridge", "-"]));
    assert!(said.contains("bridge is a contract, and its kinds are bridge.request, bridge.response\n"), "{said}");
    let help = stdout(&mut crosspoint(&["validate", "--help"]));
    assert!(help.contains("bridge.request") && help.contains("run.stream"), "{help}");
    let said = transcript(&mut crosspoint(&["validate", "--as", "bridge.reqest", "-"]));
    assert!(said.contains("a similar value exists: 'bridge.request'"), "{said}");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&mut crosspoint(&["completions", shell]));
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut program = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
        .args(["clauses", "--format", "markdown"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(program.stdout.take());
    let output = program.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
