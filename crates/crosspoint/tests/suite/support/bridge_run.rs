//! `crosspoint bridge run` in a directory with a program that asks by files.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::bridge_directory::Directory;

/// Asks as often as its first argument says, each time the agent of its second, and then exits with its third. It
/// writes its arguments to `calls` and keeps each answer, as `answer-0` and so on. It may be killed at any moment, and
/// asks the same under the same id. If several share a store, `ROUND` tells them apart.
pub(crate) const ASKS: &str = r#"#!/bin/bash
echo "$*" >> calls
answers=(answer-*); took=${#answers[@]}; [ -e answer-0 ] || took=0
if [ "${!#}" = --resume ] && [ -e .agent-response.json ]; then
    mv .agent-response.json "answer-$took"
    took=$((took + 1))
fi
if [ "$took" -lt "$1" ]; then
    id=$(printf '%08d-0000-4000-8000-%012d' "$took" "${ROUND:-0}")
    prompt="question $took of round ${ROUND:-0}"
    printf '{"request_id":"%s","version":"1.0","agent_name":"%s","prompt":"%s"}' "$id" "$2" "$prompt" > request.new
    mv request.new .agent-request.json
    exit 42
fi
[ "${3:---resume}" = --resume ] || exit "$3"
"#;

/// An agent that returns its input, and appends its job to `ran`. The lines of one write do not mix.
pub(crate) const COUNTS: &str = r#"[[agent]]
name = "counts"
contract = "exec"
exec = ["bash", "-c", 'echo "$CROSSPOINT_JOB_ID" >> ran; cat']
"#;

/// How the driver ended, and its output.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
        // A killed process has no code: the signal is given as a negative number.
        let code = output.status.code().unwrap_or_else(|| -output.status.signal().expect("one of them"));
        Ran { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Directory {
    /// A directory with this configuration, and the asking program as `asks`.
    pub(crate) fn configured(toml: &str) -> Directory {
        let directory = Directory::temporary();
        directory.write("crosspoint.toml", toml);
        directory.script("asks", ASKS);
        directory
    }

    /// `crosspoint bridge run` with these options and this command, not started yet.
    pub(crate) fn driver(&self, options: &[&str], command: &[&str]) -> Command {
        let mut driver = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
        driver.current_dir(self.path()).args(["bridge", "run"]).args(options).arg("--").args(command);
        driver.env("NO_COLOR", "1").env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        driver.stdin(Stdio::null());
        driver
    }

    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> Ran {
        self.driver(options, command).output().expect("it starts").into()
    }

    /// Starts it. Its output is kept for the end.
    pub(crate) fn begin(&self, options: &[&str], command: &[&str]) -> Child {
        let mut driver = self.driver(options, command);
        driver.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// The answers that the program got, in their order.
    pub(crate) fn answers(&self) -> Vec<Value> {
        (0..)
            .map(|number| format!("answer-{number}"))
            .take_while(|name| self.has(name))
            .map(|name| self.json(&name))
            .collect()
    }

    /// Checks that the program asked this often and got the answer to each of its questions.
    pub(crate) fn is_answered(&self, often: usize) {
        let answers = self.answers();
        assert_eq!(answers.len(), often, "{answers:?}");
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(answer["status"], "success", "{answer}");
            is_to(answer, number, 0);
        }
    }
}

/// Checks that this answers the question of the round, with the right text if it succeeded.
pub(crate) fn is_to(answer: &Value, question: usize, round: u64) {
    assert_eq!(answer.as_object().map(serde_json::Map::len), Some(9), "{answer}");
    assert_eq!(answer["request_id"], format!("{question:08}-0000-4000-8000-{round:012}"), "crossed");
    if answer["status"] == "success" {
        let said = answer["response"].as_str().expect("a text");
        assert!(said.contains(&format!("question {question} of round {round}")), "crossed: {said}");
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status();
    assert!(sent.is_ok(), "there is kill");
}

/// The permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o7777
}
