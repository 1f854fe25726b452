//! `crosspoint agent --listen` as a real process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::server::{Answer, exchange, until};

/// A program that is an agent of its own, in a directory of its own. Killed when this is dropped.
pub(crate) struct Service {
    child: Option<Child>,
    directory: PathBuf,
    arguments: Vec<String>,
    /// What the shell does that starts it.
    before: &'static str,
    address: Option<SocketAddr>,
}

impl Service {
    /// Starts an agent `helper` for the work `help`, as which bash runs this script.
    pub(crate) fn of(script: &str, more: &[&str]) -> Service {
        Service::at("127.0.0.1:0", script, more)
    }

    /// Like `of`, at this address.
    pub(crate) fn at(listen: &str, script: &str, more: &[&str]) -> Service {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("crosspoint-service-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        let start = ["agent", "helper", "--work", "help", "--listen", listen];
        let arguments = [&start[..], more, &["--", "bash", "-c", script]].concat();
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let mut service = Service { child: None, directory, arguments, before: "true", address: None };
        service.start();
        service
    }

    /// Ends it, and starts it again in a shell that does this before.
    pub(crate) fn restart_after(&mut self, before: &'static str) {
        self.kill();
        self.before = before;
        self.start();
    }

    pub(crate) fn start(&mut self) {
        let log = self.directory.join("log");
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{} && exec \"$0\" \"$@\"", self.before)]);
        command.arg(assert_cmd::cargo::cargo_bin!("crosspoint"));
        command.args(&self.arguments).current_dir(&self.directory).env("NO_COLOR", "1");
        command.stderr(fs::File::create(&log).expect("a log can be made"));
        self.child = Some(command.spawn().expect("it starts"));
        let address = |text: String| text.split("http://").nth(1)?.split(' ').next()?.parse().ok();
        self.address = Some(until("it listens", || address(self.said())));
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its stderr so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it listens")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        exchange(self.address(), method, path, headers, body.as_bytes()).expect("there is an answer")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string())
    }

    /// Runs to the end in the run contract.
    pub(crate) fn run(&self, id: &str, inputs: &Value) -> Answer {
        self.post("/agents/run/sync", &json!({"request_id": id, "task_type": "help", "inputs": inputs}))
    }

    /// Begins a task, and returns its path.
    pub(crate) fn begin(&self, id: &str) -> String {
        let answer = self.post("/tasks", &json!({"id": id, "type": "help", "payload": {}}));
        assert_eq!(answer.status, 202, "{answer:?}");
        format!("/tasks/{id}")
    }

    /// Waits until a task has this status.
    pub(crate) fn has_status(&self, task: &str, status: &str) -> Value {
        until(status, || Some(self.get(task).json()).filter(|task| task["status"] == status))
    }

    /// What a file in its directory says.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
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

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
