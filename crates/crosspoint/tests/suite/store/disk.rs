//! A disk that is full, and a read-only one: real ones, in a namespace of the server's own.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::persistent_callers::send;
use crate::support::server::{Answer, Server, until};

/// A server whose data directory is a file system that only it can see.
struct Apart {
    child: Child,
    /// The data directory, as the server sees it.
    data: PathBuf,
    address: SocketAddr,
}

/// The program behind a shell command that prepares the data directory, `$0`.
fn behind(server: &Server, prepare: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &format!("{prepare} && exec \"$@\"")]).arg(server.data());
    let program = server.command();
    command.arg(program.get_program()).args(program.get_args());
    command.current_dir(program.get_current_dir().expect("it has one")).env("NO_COLOR", "1");
    command
}

impl Apart {
    fn start(server: &Server, prepare: &str) -> Apart {
        let mut child = behind(server, prepare).stderr(Stdio::null()).spawn().expect("it starts");
        let root = PathBuf::from(format!("/proc/{}/root", child.id()));
        let data = root.join(server.data().strip_prefix("/").expect("it is absolute"));
        let address = until("it is ready", || {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it ended");
            let known: Value = serde_json::from_slice(&fs::read(data.join("server.json")).ok()?).ok()?;
            known["url"].as_str()?.strip_prefix("http://")?.parse().ok()
        });
        Apart { child, data, address }
    }

    fn get(&self, path: &str) -> Answer {
        send(self.address, "GET", path, "").expect("it answers")
    }

    fn submit(&self, body: &str) -> Answer {
        send(self.address, "POST", "/api/v1/jobs", body).expect("it answers")
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Submits until the disk is full, and returns the ids of the accepted jobs.
fn fill(apart: &Apart) -> Vec<String> {
    let body = format!(r#"{{"work":"echo","input":"{}"}}"#, "x".repeat(50_000));
    let mut accepted = Vec::new();
    loop {
        let answer = apart.submit(&body);
        if answer.status == 503 {
            assert_eq!(answer.json()["error"]["code"], "unavailable", "{answer:?}");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            return accepted;
        }
        assert!([200, 202].contains(&answer.status), "{answer:?}");
        accepted.push(answer.json()["id"].as_str().expect("an id").to_owned());
        assert!(accepted.len() < 1_000, "it must come to an end");
    }
}

#[test]
fn a_full_disk_stops_new_work_and_nothing_else_until_there_is_room() {
    let mut server = Server::start();
    server.kill();
    fs::remove_dir_all(server.data()).expect("it can be removed");
    fs::create_dir(server.data()).expect("it can be made");
    let prepare = r#"mount -t tmpfs -o size=6m tmpfs "$0" && head -c 2000000 /dev/zero > "$0"/ballast"#;
    let apart = Apart::start(&server, prepare);
    let question = apart.submit(r#"{"work":"ask"}"#).json()["id"].as_str().expect("an id").to_owned();
    let slow = apart.submit(r#"{"work":"slow_echo","input":{"seconds":1}}"#).json();
    let slow = slow["id"].as_str().expect("an id").to_owned();
    let accepted = fill(&apart);
    assert!(accepted.len() > 5, "{}", accepted.len());
    let ready = apart.get("/health/ready");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &Value::from("failing")), "{ready:?}");
    assert_eq!(apart.get("/health").status, 200);
    // Stored jobs can be looked at, and new ones that cannot be stored are refused.
    assert_eq!(apart.get(&format!("/api/v1/jobs/{}", accepted[0])).status, 200);
    assert_eq!(apart.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len), Some(accepted.len() + 2));

    fs::remove_file(apart.data.join("ballast")).expect("room can be made");
    // The results that the agents reached meanwhile were kept for this moment.
    for id in accepted.iter().chain([&slow]) {
        let job = apart.get(&format!("/api/v1/jobs/{id}?wait=60")).json();
        assert_eq!(job["state"], "completed", "{job}");
        assert_eq!(job["attempts"], 1, "{job}");
    }
    until("it is ready again", || (apart.get("/health/ready").status == 200).then_some(()));
    let answer = format!("/api/v1/jobs/{question}/answer");
    assert_eq!(send(apart.address, "POST", &answer, r#"{"input":1}"#).expect("it answers").status, 200);
    let job = apart.get(&format!("/api/v1/jobs/{question}?wait=60")).json();
    assert_eq!(job["outcome"]["outputs"]["answer"], 1, "{job}");
}

/// All files of a directory. The socket of a server that was killed is none.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("it can be listed").map(|entry| entry.expect("it can be read").path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).expect("it can be read")))
        .collect();
    files.sort();
    files
}

#[test]
fn a_directory_that_may_not_be_written_is_said_so_and_left_as_it_is() {
    let mut server = Server::start();
    let id = server.submit(r#"{"work":"echo"}"#)["id"].as_str().expect("an id").to_owned();
    server.ended(&id);
    server.kill();
    let before = files(&server.data());
    let prepare = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0""#;
    let output = behind(&server, prepare).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: ") && said.contains("cannot be written"), "{said}");
    assert!(files(&server.data()) == before);
    server.restart();
    assert_eq!(server.job(&id)["state"], "completed");
}
