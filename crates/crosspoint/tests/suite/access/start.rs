//! An address that other machines reach is served with tokens, or not at all.

use std::process::{Command, Stdio};

use crate::support::program::{crosspoint, stdout};
use crate::support::server::until;

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
