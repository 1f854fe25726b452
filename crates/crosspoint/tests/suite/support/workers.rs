//! `crosspoint agent` as real processes, and what its programs leave behind.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use crate::support::server::{Server, until};

/// A running worker, killed when this is dropped.
pub(crate) struct Worker {
    child: Option<Child>,
    log: PathBuf,
}

/// Where a worker runs: the directory of its server.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn of(server: &Server) -> Place {
        Place(server.directory().to_owned())
    }
}

impl Worker {
    /// Starts a worker for work of its own name, in the server's directory.
    pub(crate) fn start(server: &Server, name: &str, more: &[&str], program: &[&str]) -> Worker {
        Worker::start_as(server, name, name, more, program)
    }

    /// The same, where the server itself is out of reach.
    pub(crate) fn start_at(place: &Place, name: &str, more: &[&str], program: &[&str]) -> Worker {
        Worker::start_in(place, name, name, more, program)
    }

    pub(crate) fn start_as(server: &Server, name: &str, work: &str, more: &[&str], program: &[&str]) -> Worker {
        Worker::start_in(&Place::of(server), name, work, more, program)
    }

    fn start_in(Place(directory): &Place, name: &str, work: &str, more: &[&str], program: &[&str]) -> Worker {
        let number = fs::read_dir(directory).expect("it is there").count();
        let log = directory.join(format!("worker-{name}-{number}"));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
        command.args(["agent", name, "--work", work, "--data", "data"]).env_remove("CROSSPOINT_SERVER");
        command.args(more).arg("--").args(program).current_dir(directory);
        command.stderr(fs::File::create(&log).expect("a log can be made")).env("NO_COLOR", "1");
        Worker { child: Some(command.spawn().expect("the program starts")), log }
    }

    /// Starts a worker and waits until it has joined.
    pub(crate) fn joined(server: &Server, name: &str, more: &[&str], program: &[&str]) -> Worker {
        let worker = Worker::start(server, name, more, program);
        worker.says("has joined");
        worker
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Its stderr so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("it can be read")
    }

    pub(crate) fn says(&self, what: &str) {
        until(what, || self.said().contains(what).then_some(()));
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        until("it ends", || child.try_wait().expect("it can be asked"))
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
