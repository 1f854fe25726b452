//! A directory with a program that asks by files, and the driver that has it answered.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::server::until;

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

pub(crate) struct Place {
    directory: PathBuf,
}

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

impl Place {
    /// A place with this configuration, and the asking program as `asks`.
    pub(crate) fn new(toml: &str) -> Place {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("crosspoint-bridge-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        let place = Place { directory };
        place.write("crosspoint.toml", toml);
        place.script("asks", ASKS);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it can be written");
    }

    /// Writes an executable file.
    pub(crate) fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("it is JSON")
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Names of all files of the bridge.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).expect("it can be listed");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
        let mut names: Vec<String> = names.filter(|name| name.starts_with(".agent-")).collect();
        names.sort();
        names
    }

    /// `crosspoint bridge run` with these options and this command, not started yet.
    pub(crate) fn driver(&self, options: &[&str], command: &[&str]) -> Command {
        let mut driver = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
        driver.current_dir(&self.directory).args(["bridge", "run"]).args(options).arg("--").args(command);
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

    /// Waits until the file exists.
    pub(crate) fn until_there(&self, name: &str) {
        until(name, || self.has(name).then_some(()));
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

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
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
