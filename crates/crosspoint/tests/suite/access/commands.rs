//! `crosspoint token`, and where commands find theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::program::{crosspoint, stdout, transcript};
use crate::support::server::{Server, until};
use crate::support::tokens::{self, with};

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
    assert!(listed.contains("planner") && listed.contains("admin") && listed.contains("old until"), "{listed}");
    assert!(listed.lines().all(|line| line.len() <= 80), "{listed}");
    assert!(!listed.contains(planner.trim()) && !listed.contains(again.trim()), "{listed}");
    stdout(&mut crosspoint(&["token", "revoke", "planner", "--data", data]));
    let listed = stdout(&mut crosspoint(&["token", "list", "--data", data]));
    assert!(listed.contains("revoked 2"), "{listed}");
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

/// What expires is shown as expired at the time of asking, and is renewed by another token.
#[test]
fn a_token_that_has_expired_is_listed_as_such_and_renewed() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let made = r#"{"name": "planner", "for": "caller", "expires_seconds": 1}"#;
    let first = with(&server, Some(&admin), "POST", "/api/v1/tokens", made).json();
    let first = first["token"].as_str().expect("a token").to_owned();
    let state = || {
        let page = with(&server, Some(&admin), "GET", "/api/v1/tokens", "").json();
        let all = page["tokens"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|token| token["name"] == "planner").expect("it is listed")
    };
    let expired = until("it expires", || Some(state()).filter(|token| token["state"] == "expired"));
    assert_eq!(expired["revoked_at"], Value::Null);
    let rotated = r#"{"overlap_seconds": 3600, "expires_seconds": 3600}"#;
    let renewed = with(&server, Some(&admin), "POST", "/api/v1/tokens/planner/rotate", rotated).json();
    assert_eq!((&renewed["state"], &renewed["former_until"]), (&json!("good"), &Value::Null), "{renewed}");
    let asks = |token: &str| with(&server, Some(token), "GET", "/api/v1/jobs", "");
    assert_eq!(asks(renewed["token"].as_str().expect("a token")).status, 200);
    let former = asks(&first);
    assert_eq!((former.status, former.text().contains("the token was replaced")), (401, true), "{former:?}");
    let again = with(&server, Some(&admin), "POST", "/api/v1/tokens/planner/rotate", r#"{"overlap_seconds": 60}"#);
    assert!(again.json()["former_until"].is_string(), "{again:?}");
    let gone = with(&server, Some(&admin), "POST", "/api/v1/tokens/planner/revoke", "").json();
    assert_eq!((&gone["state"], &gone["former_until"]), (&json!("revoked"), &Value::Null), "{gone}");
    let refused = with(&server, Some(&admin), "POST", "/api/v1/tokens/planner/rotate", "{}");
    assert_eq!(refused.status, 409, "{refused:?}");
}

/// Hints say what the one who asks can do.
#[test]
fn a_refused_command_is_told_what_to_do() {
    let server = Server::configured("[limits]\nrequests_per_token = 5\n");
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let url = server.url();
    let list = |command: &str, token: Option<&str>| {
        let mut command = crosspoint(&[command, "list", "--server", &url]);
        for variable in ["CROSSPOINT_SERVER", "CROSSPOINT_TOKEN", "CROSSPOINT_TOKEN_FILE"] {
            command.env_remove(variable);
        }
        transcript(command.envs(token.map(|token| ("CROSSPOINT_TOKEN", token))))
    };
    let missing = list("jobs", None);
    assert!(missing.contains("CROSSPOINT_TOKEN_FILE") && missing.contains("is not used"), "{missing}");
    let encrypted = transcript(&mut crosspoint(&["jobs", "list", "--server", &url.replace("http:", "https:")]));
    assert!(encrypted.contains("does not speak TLS") && encrypted.contains("write http://"), "{encrypted}");
    let unknown = list("jobs", Some(&"x".repeat(32)));
    assert!(unknown.contains("taken from CROSSPOINT_TOKEN") && unknown.contains("that you were given"), "{unknown}");
    let narrow = list("token", Some(&planner));
    assert!(narrow.contains("a token for admin is needed"), "{narrow}");
    let hurried = (0..60).map(|_| with(&server, Some(&planner), "GET", "/api/v1/jobs", ""));
    let hurried = hurried.filter(|answer| answer.status == 429).count();
    let late = list("jobs", Some(&planner));
    assert!(hurried > 0 && !late.contains("or raise"), "{late}");
    if late.starts_with("exit 2") {
        assert!(late.contains("it may be sent again in 1 s") && late.contains("requests_per_token"), "{late}");
    }
}

#[test]
fn what_a_token_cannot_do_is_noted() {
    let server = Server::start();
    let said = |arguments: &[&str]| {
        let mut command = crosspoint(arguments);
        // An explicit directory wins over the environment.
        command.arg("--data").arg(server.data()).env("CROSSPOINT_SERVER", "http://127.0.0.1:1");
        transcript(command.env_remove("CROSSPOINT_TOKEN").env_remove("CROSSPOINT_TOKEN_FILE"))
    };
    let configured = said(&["token", "create", "echo-1", "--for", "agent", "--agent", "echo"]);
    assert!(configured.starts_with("exit 0") && configured.contains("never shows this token"), "{configured}");
    let good = said(&["token", "create", "infra-1", "--for", "agent"]);
    assert!(good.starts_with("exit 0") && !good.contains("never shows this token"), "{good}");
    for name in ["one", "two"] {
        assert!(said(&["token", "create", name, "--for", "admin"]).starts_with("exit 0"));
    }
    assert!(!said(&["token", "revoke", "one"]).contains("no token for admin"));
    assert!(said(&["token", "revoke", "two"]).contains("no token for admin is good now"));
}
