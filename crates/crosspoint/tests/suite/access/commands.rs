//! `crosspoint token`, and where commands find theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::program::{crosspoint, stdout, transcript};
use crate::support::server::Server;

#[test]
fn a_token_is_made_listed_replaced_and_revoked() {
    let server = Server::start();
    let data = server.data();
    let data = data.to_str().expect("a path");
    let file = server.data().join("token");
    let made = crosspoint(&["token", "create", "ops", "--for", "admin", "--data", data, "--out"])
        .arg(&file)
        .output()
        .expect("it runs");
    assert!(made.status.success() && made.stdout.is_empty(), "{made:?}");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    // From now on commands of this directory find it.
    let planner =
        stdout(&mut crosspoint(&["token", "create", "planner", "--for", "caller", "--expires", "90d", "--data", data]));
    let again = stdout(&mut crosspoint(&["token", "rotate", "planner", "--overlap", "1h", "--data", data]));
    assert!(planner.trim().len() == 32 && again.trim().len() == 32 && planner != again);
    let listed = stdout(&mut crosspoint(&["token", "list", "--data", data]));
    assert!(
        listed.contains("planner") && listed.contains("admin") && listed.contains("the one before until"),
        "{listed}"
    );
    assert!(!listed.contains(planner.trim()) && !listed.contains(again.trim()), "{listed}");
    stdout(&mut crosspoint(&["token", "revoke", "planner", "--data", data]));
    let listed = stdout(&mut crosspoint(&["token", "list", "--data", data]));
    assert!(listed.contains("revoked at"), "{listed}");
    let taken = transcript(&mut crosspoint(&["token", "create", "planner", "--for", "caller", "--data", data]));
    assert!(taken.contains("there is, or was, a token of this name"), "{taken}");
    let unknown = transcript(&mut crosspoint(&["token", "revoke", "missing", "--data", data]));
    assert!(unknown.contains("crosspoint token list"), "{unknown}");
}

#[test]
fn a_file_that_others_can_read_is_used_with_a_warning() {
    let server = Server::start();
    let data = server.data();
    let file = server.data().join("token");
    let data = data.to_str().expect("a path");
    let made = crosspoint(&["token", "create", "ops", "--for", "admin", "--data", data, "--out"]).arg(&file).output();
    assert!(made.expect("it runs").status.success());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it can be opened to others");
    let listed = crosspoint(&["jobs", "list", "--data", data]).output().expect("it runs");
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success() && said.contains("chmod 600"), "{said}");
}
