//! `crosspoint serve --listen unix`: a server without a port, on a socket of its data directory.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::cli::config::Place;
use crate::cli::embedded::{begun, completed, gated, let_go, mode, place, ports_of, sockets};
use crate::support::program::transcript;
use crate::support::server::{Answer, PATIENCE, until};

const DATA: &str = ".crosspoint";

/// A running server, killed at the end.
struct Unix {
    child: Child,
    data: PathBuf,
}

impl Unix {
    fn start(place: &Place, data: &str, more: &[&str]) -> Unix {
        let log = File::options().create(true).append(true).open(place.path().join("log")).expect("a log can be made");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
        command.args(["serve", "--listen", "unix", "--data", data]).args(more).current_dir(place.path()).stderr(log);
        command.stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        let child = command.spawn().expect("the program starts");
        let server = Unix { data: place.path().join(data), child };
        until("it is ready", || server.left().filter(|left| left["pid"] == server.child.id()));
        server
    }

    /// The `server.json` that it has left for commands.
    fn left(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.data.join("server.json")).ok()?).ok()
    }

    fn socket(&self) -> PathBuf {
        self.data.join("server.sock")
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, and waits until it has.
    fn stop(&mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
        until("it ends", || self.child.try_wait().expect("it can be asked")).code()
    }

    /// One request with these header lines.
    fn get(&self, path: &str, lines: &[&str]) -> Answer {
        let mut stream = UnixStream::connect(self.socket()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket can have a timeout");
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!("GET {path} HTTP/1.1\r\n{lines}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it can be sent");
        Answer::read(&mut BufReader::new(stream)).expect("it answers")
    }
}

impl Drop for Unix {
    fn drop(&mut self) {
        self.kill();
    }
}

fn said(place: &Place, arguments: &[&str]) -> String {
    transcript(place.crosspoint(arguments).env_remove("CROSSPOINT_SERVER").timeout(PATIENCE))
}

#[test]
fn it_has_no_port_and_is_found_by_what_it_leaves() {
    let place = place("unix");
    let mut server = Unix::start(&place, DATA, &[]);
    assert_eq!(ports_of(server.child.id()), Vec::<String>::new());
    assert_eq!(sockets(&server.data), [server.socket()]);
    assert_eq!((mode(&server.data), mode(&server.socket())), (0o700, 0o600));
    let url = format!("unix:{}", server.socket().display());
    assert_eq!(server.left().expect("it is there")["url"], url);
    let log = fs::read_to_string(place.path().join("log")).expect("it is there");
    assert!(log.contains(&format!("listens on {url}\n")) && !log.contains("insecure"), "{log}");
    let child = gated(&place, "one", &[]);
    let listed = said(&place, &["jobs", "list", "--json"]);
    assert!(listed.starts_with("exit 0\n") && listed.contains("\"running\""), "{listed}");
    let_go(&place);
    let output = completed(child);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("no server runs here"), "{output:?}");
    assert!(said(&place, &["agents", "list", "--server", &url, "--data", "nothing"]).starts_with("exit 0\n"));
    assert_eq!(server.stop(), Some(0));
    assert!(!server.socket().exists() && server.left().is_none(), "what it made goes with it");
    let away = said(&place, &["agents", "list", "--server", &url]);
    assert!(away.starts_with("exit 2\n") && away.contains(&format!("no server answers at {url}")), "{away}");
}

#[test]
fn hosts_and_origins_count_there_too_and_it_has_no_address() {
    let place = place("unix-hosts");
    let server = Unix::start(&place, DATA, &[]);
    for (lines, status) in [
        (&["Host: localhost"][..], 200),
        (&["Host: 127.0.0.1:7420"], 200),
        (&["Host: localhost", "Origin: http://localhost"], 200),
        (&["Host: evil.example"], 403),
        (&["Host: 192.0.2.1"], 403),
        (&["Host: unix"], 403),
        (&["Host: localhost", "Origin: http://evil.example"], 403),
        (&["Host: localhost", "Sec-Fetch-Site: cross-site"], 403),
    ] {
        assert_eq!(server.get("/health", lines).status, status, "{lines:?}");
    }
}

#[test]
fn one_server_a_directory_and_what_a_killed_one_left_is_replaced() {
    let place = place("unix-again");
    let mut server = Unix::start(&place, DATA, &[]);
    let second = said(&place, &["serve", "--listen", "unix", "--store", "sqlite:other.db"]);
    assert!(second.starts_with("exit 2\n") && second.contains("cannot listen on unix"), "{second}");
    assert!(!place.path().join("other.db").exists(), "nothing is opened");
    assert_eq!(server.get("/health", &["Host: localhost"]).status, 200);
    // A waiting command finds the server that is started after the killed one.
    let child = gated(&place, "one", &[]);
    server.kill();
    assert!(server.socket().exists(), "a killed server leaves its socket");
    let server = Unix::start(&place, DATA, &[]);
    assert_eq!(sockets(&server.data), [server.socket()]);
    let_go(&place);
    completed(child);
}

#[test]
fn a_link_in_the_place_of_the_socket_is_replaced_and_not_followed() {
    let place = place("unix-link");
    let (data, elsewhere) = (place.path().join(DATA), place.path().join("elsewhere"));
    fs::create_dir(&data).expect("it can be made");
    fs::write(&elsewhere, "kept").expect("it can be written");
    symlink(&elsewhere, data.join("server.sock")).expect("it can be made");
    let server = Unix::start(&place, DATA, &[]);
    assert_eq!(sockets(&server.data), [server.socket()]);
    assert_eq!(fs::read_to_string(&elsewhere).expect("it is there"), "kept");
}

#[test]
fn its_directory_may_be_longer_than_the_address_of_a_socket() {
    let place = place("unix-long");
    let data = format!("{}/{}", "d".repeat(120), "e".repeat(120));
    let mut server = Unix::start(&place, &data, &[]);
    let_go(&place);
    let output = completed(begun(&place, &["submit", "gate", "--data", &data]));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("no server runs here"), "{output:?}");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(sockets(Path::new(&server.data)), Vec::<PathBuf>::new());
}

#[test]
fn a_worker_waits_for_a_server_that_has_no_port() {
    let place = Place::new("unix-worker", "[server]\nlisten = \"unix\"\n");
    let _worker = begun(&place, &["agent", "same", "--work", "same", "--", "cat"]);
    let _server = Unix::start(&place, DATA, &[]);
    until("it has joined", || said(&place, &["agents", "list"]).contains("same").then_some(()));
    let done = said(&place, &["submit", "same", "--input", "{\"a\": 1}"]);
    assert!(done.starts_with("exit 0\n--- stdout\n{\n  \"a\": 1\n}\n"), "{done}");
}
