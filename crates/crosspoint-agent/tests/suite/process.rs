//! The example `deploy` as a process: what its handlers do, and how signals end it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{ask_at, scratch};

/// The example, on a free port and in a directory of its own, until this is dropped.
pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start() -> Process {
        Process::start_with("exec \"$0\" \"$@\"")
    }

    /// Starts it from a shell, by a script that ends with it.
    pub(crate) fn start_with(script: &str) -> Process {
        let directory = scratch("process");
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .arg(example("deploy"))
            .arg("127.0.0.1:0")
            .current_dir(directory)
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it has one")).read_line(&mut line).expect("it can be read");
        let address = line.trim().strip_prefix("http://").and_then(|address| address.parse().ok());
        Process { child, address: address.unwrap_or_else(|| panic!("it said {line:?}")) }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        ask_at(self.address, "POST", path, &body.to_string(), "").json()
    }

    /// Sends it a signal, by name.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where cargo puts an example of this crate: beside the directory of the tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("it is known");
    tests.parent().and_then(|deps| deps.parent()).expect("they are in a directory").join("examples").join(name)
}

#[test]
fn sigterm_and_ctrl_c_end_a_process_in_order() {
    for signal in ["TERM", "INT"] {
        let mut process = Process::start();
        let inputs = json!({"service": "kuma", "hosts": ["a", "b"]});
        let planned =
            process.post("/agents/run/sync", &json!({"request_id": "r", "task_type": "plan", "inputs": inputs}));
        assert_eq!(planned["outputs"], json!({"hosts": 2}), "{planned}");
        process.signal(signal);
        let status = process.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{signal}: {status}");
    }
}

#[test]
fn work_that_waits_for_a_person_is_answered_and_ends() {
    let process = Process::start();
    let id = "550e8400-e29b-41d4-a716-446655440030";
    let payload = json!({"service": "kuma", "hosts": ["a", "b"]});
    let asked = process.post("/tasks?wait=60", &json!({"id": id, "type": "deploy", "payload": payload}));
    assert_eq!(asked["inputRequest"]["prompt"], "Deploy kuma?", "{asked}");
    let input = json!({"input": true});
    let done = process.post(&format!("/tasks/{id}/input?wait=60"), &input);
    let done = if done["status"] == "completed" {
        done
    } else {
        ask_at(process.address, "GET", &format!("/tasks/{id}?wait=60"), "", "").json()
    };
    assert_eq!((&done["status"], &done["result"]["hosts"]), (&json!("completed"), &json!(2)), "{done}");
    assert!(done.to_string().contains("b: kuma runs") && done.to_string().contains("hosts.json"), "{done}");
}
