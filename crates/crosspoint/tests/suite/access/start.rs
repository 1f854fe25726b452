//! An address that other machines reach is served with tokens, or not at all.

use std::process::{Command, Stdio};

use crate::support::program::{crosspoint, stdout};
use crate::support::server::{Server, until};
use crate::support::tokens;

/// A directory of its own, which is removed.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("crosspoint-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("it can be made");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_address_that_others_reach_needs_a_token_first() {
    let directory = Directory::new("exposed");
    let data = directory.0.to_str().expect("a path");
    let serve = ["serve", "--listen", "0.0.0.0:0", "--data", data];
    let refused = crosspoint(&serve).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("crosspoint token create") && said.contains("--insecure"), "{said}");

    // Without a server, the command opens the store itself.
    let token = stdout(&mut crosspoint(&["token", "create", "ops", "--for", "admin", "--data", data]));
    assert_eq!(token.trim().len(), 32, "it is 32 characters");
    let mut server = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    let server = server.args(serve).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut server = server.expect("it starts");
    let file = directory.0.join("server.json");
    let is_there = || std::fs::read_to_string(&file).ok().filter(|text| text.contains("http"));
    let left = until("it is ready", is_there);
    assert!(left.contains("http://127.0.0.1"), "{left}");
    let left: serde_json::Value = serde_json::from_str(&left).expect("it is JSON");
    let url = left["url"].as_str().expect("an address");
    let list = |token: Option<&str>| {
        let mut command = crosspoint(&["jobs", "list", "--server", url]);
        command.env_remove("CROSSPOINT_TOKEN");
        if let Some(token) = token {
            command.env("CROSSPOINT_TOKEN", token);
        }
        command.output().expect("it runs")
    };
    let without = list(None);
    assert_eq!(without.status.code(), Some(2), "{without:?}");
    assert!(String::from_utf8_lossy(&without.stderr).contains("CROSSPOINT_TOKEN"), "{without:?}");
    assert_eq!(list(Some(token.trim())).status.code(), Some(0));
    server.kill().expect("it can be ended");
    let _ = server.wait();
    // The token itself is nowhere in the data directory.
    for entry in std::fs::read_dir(&directory.0).expect("it is there").flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let is_there = bytes.windows(token.trim().len()).any(|some| some == token.trim().as_bytes());
        assert!(!is_there, "{}", entry.path().display());
    }
}

/// The holder of the file would inherit the jobs of the token in the store, also if that one was revoked.
#[test]
fn a_token_file_with_the_name_of_a_token_of_the_store_is_refused_at_start() {
    let mut server = Server::start();
    let admin = tokens::closed(&server);
    tokens::caller(&server, &admin, "planner");
    let revoked = tokens::with(&server, Some(&admin), "POST", "/api/v1/tokens/planner/revoke", "");
    assert_eq!(revoked.status, 200, "{revoked:?}");
    server.stop();
    std::fs::write(server.directory().join("planner.token"), "p".repeat(32)).expect("it can be written");
    server.configure("[[caller]]\nname = \"planner\"\ntoken_file = \"planner.token\"\n");
    let mut command =
        crosspoint(&["serve", "--listen", "127.0.0.1:0", "--config", "crosspoint.toml", "--data", "data"]);
    let refused = command.current_dir(server.directory()).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("the token_file of planner") && said.contains("another name"), "{said}");
}

/// The command that the banner shows works, though the server asks others for tokens.
#[test]
fn what_the_banner_says_to_try_can_be_done_on_a_closed_server() {
    let directory = Directory::new("banner");
    let data = directory.0.to_str().expect("a path");
    stdout(&mut crosspoint(&["token", "create", "ops", "--for", "admin", "--data", data]));
    let mut server = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    let server = server.args(["serve", "--listen", "127.0.0.1:0", "--data", data]).env("NO_COLOR", "1");
    let log = directory.0.join("log");
    let server = server.stderr(std::fs::File::create(&log).expect("it can be made")).stdout(Stdio::null()).spawn();
    let mut server = server.expect("it starts");
    let tried = |text: String| text.lines().find(|line| line.contains("submit slow_echo")).map(str::to_owned);
    let line = until("it is ready", || {
        let is_there = directory.0.join("server.json").exists();
        std::fs::read_to_string(&log).ok().filter(|_| is_there).and_then(tried)
    });
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir("/").env_remove("CROSSPOINT_SERVER").env_remove("CROSSPOINT_TOKEN");
    let output = shell.output().expect("it runs");
    server.kill().expect("it can be ended");
    let _ = server.wait();
    assert!(output.status.success(), "{line}: {output:?}");
}
