//! Agents that are processes of their own, killed with SIGKILL.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process, killed when this is dropped.
pub(super) struct Process(Child);

impl Process {
    /// Starts a program. Its stderr goes into the file.
    fn start(command: &mut Command, log: &Path) -> Process {
        let log = File::options().create(true).append(true).open(log).expect("a log can be made");
        Process(command.stdin(Stdio::null()).stderr(log).spawn().expect("the program starts"))
    }

    /// The address that it prints when it is ready.
    fn address(&mut self) -> SocketAddr {
        let mut line = String::new();
        let said = self.0.stdout.take().expect("it is read");
        BufReader::new(said).read_line(&mut line).expect("it says where it is");
        line.trim().parse().unwrap_or_else(|_| panic!("no address: {line}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The agent of `tests/agents/counting.rs`. Cargo builds it along with the tests, beside them.
fn counting() -> Command {
    let tests = std::env::current_exe().expect("a test has a path");
    let built = tests.ancestors().nth(2).expect("it is in target/PROFILE/deps").join("examples/counting");
    assert!(built.exists(), "{} is not built: run the tests of this package without --test", built.display());
    Command::new(built)
}

/// Where an agent keeps its answers over its restarts.
fn answers(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.answers"))
}

/// An agent that is called, in every contract. It is ready, and this is its address.
pub(super) fn serving(directory: &Path, works: &[&str]) -> (SocketAddr, Process) {
    let mut command = counting();
    command.args(["serve", "counting"]).arg(directory).arg(answers(directory, "serving")).args(works);
    let mut process = Process::start(command.stdout(Stdio::piped()), &directory.join("serving.log"));
    let address = process.address();
    (address, process)
}

/// An agent that pulls messages in this name.
pub(super) fn pulling(directory: &Path, url: &str, name: &str, works: &[&str]) -> Process {
    let mut command = counting();
    command.args(["pull", url, name]).arg(directory).arg(answers(directory, name)).args(works);
    Process::start(&mut command, &directory.join("pulling.log"))
}

/// An agent that answers in a directory.
pub(super) fn files(directory: &Path, inbox: &Path, ledger: &Path) -> Process {
    let mut command = counting();
    command.arg("files").arg(inbox).arg(ledger);
    Process::start(&mut command, &directory.join("files.log"))
}

/// `crosspoint agent` in this name, for a script of bash.
pub(super) fn worker(directory: &Path, url: &str, name: &str, more: &[&str], script: &str) -> Process {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.args(["agent", name, "--work", name, "--server", url, "--lease-seconds", "5", "--concurrency", "4"]);
    command.args(more).args(["--", "bash", "-c", script]).env("NO_COLOR", "1").current_dir(directory);
    Process::start(&mut command, &directory.join(format!("{name}.log")))
}
