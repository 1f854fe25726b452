//! Runs the program in tests.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The program, in the repository's root, without colour.
pub(crate) fn crosspoint(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("crosspoint").expect("the program was built");
    command.current_dir(root()).env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE").args(arguments);
    command
}

/// Exit code, stdout and stderr in one text, for snapshots.
pub(crate) fn transcript(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    let code = output.status.code().expect("the program exits");
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

pub(crate) fn stdout(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}
