//! `crosspoint bridge watch` as a process.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::support::bridge_directory::Directory;
use crate::support::server::{Server, until};

/// The prompt that an echoing agent returned in the response.
pub(crate) fn prompt_of(response: &Value) -> String {
    assert_eq!(response["status"], "success", "{response}");
    let inner: Value = serde_json::from_str(response["response"].as_str().expect("a text")).expect("it is JSON");
    inner["prompt"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

/// An agent that notes each of its runs in a file, and returns its input after `seconds` seconds.
pub(crate) fn noting(name: &str, file: &Path, seconds: &str) -> String {
    let script =
        format!("read -r line; echo \"$CROSSPOINT_REQUEST_ID\" >> {}; sleep {seconds}; echo \"$line\"", file.display());
    crate::support::programs::bash(name, &script, "concurrency = 4")
}

/// The noted runs, in order of the requests.
pub(crate) fn noted(file: &Path) -> Vec<String> {
    let mut runs: Vec<String> = fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect();
    runs.sort();
    runs
}

pub(crate) struct Watcher {
    child: Child,
    log: PathBuf,
}

/// The command that starts the watcher. Its log is kept in the home.
pub(crate) fn watch(home: &Directory, name: &str, arguments: &[&str], inboxes: &[&Directory]) -> Command {
    let log = File::options().create(true).append(true).open(home.path().join(name)).expect("a log can be made");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.current_dir(home.path()).args(["bridge", "watch"]).args(arguments);
    command.args(inboxes.iter().map(|inbox| inbox.path()));
    command.stdout(Stdio::piped()).stderr(log).env("NO_COLOR", "1").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    command
}

impl Watcher {
    /// Starts a watcher for a server.
    pub(crate) fn of(server: &Server, home: &Directory, inboxes: &[&Directory]) -> Watcher {
        Watcher::start(home, "log", &["--server", &server.url()], inboxes)
    }

    pub(crate) fn start(home: &Directory, name: &str, arguments: &[&str], inboxes: &[&Directory]) -> Watcher {
        Watcher::started(home, name, &mut watch(home, name, arguments, inboxes))
    }

    pub(crate) fn started(home: &Directory, name: &str, command: &mut Command) -> Watcher {
        Watcher { child: command.spawn().expect("it starts"), log: home.path().join(name) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that any watcher has written to this log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("it can be read")
    }

    /// Waits until the log contains these words.
    pub(crate) fn says(&self, words: &str) {
        until(&format!("the watcher says {words:?}"), || self.log().contains(words).then_some(()));
    }

    pub(crate) fn count(&self, words: &str) -> usize {
        self.log().matches(words).count()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("it ends", || self.child.try_wait().expect("it can be asked"))
    }

    /// Asks it to stop. It must print nothing on stdout.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let sent = Command::new("kill").args(["-s", "TERM", &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
        let status = self.wait();
        let mut said = String::new();
        let mut stdout = self.child.stdout.take().expect("it is piped");
        std::io::Read::read_to_string(&mut stdout, &mut said).expect("it can be read");
        assert_eq!(said, "");
        status
    }
}

impl Drop for Watcher {
    /// The log goes with its directory, so it is shown if the test has failed.
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr().lock(), "{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// A watcher of these directories, for as long as both values are kept.
pub(crate) fn watched(server: &Server, directories: &[PathBuf]) -> (Watcher, Directory) {
    let home = Directory::temporary();
    let directories: Vec<Directory> = directories.iter().map(Directory::at).collect();
    let watcher = Watcher::of(server, &home, &directories.iter().collect::<Vec<_>>());
    (watcher, home)
}
