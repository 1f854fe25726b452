//! The keys of programs in the configuration: what is wrong is named, and secrets are not.

use crate::cli::config::Place;
use crate::support::program::transcript;

const GOOD: &str = r#"
[[agent]]
name = "shell"
contract = "exec"
exec = ["bash", "-c", "cat"]
env = { API_TOKEN = "s3cret-one", MODE = "s3cret-two" }
ask = true
retry_exit_codes = [69, 111]
memory_mb = 512
processes = 16
grace_seconds = 0.5
concurrency = 2
repeatable = false

[[agent]]
name = "plain"
contract = "exec"
exec = ["./plain"]
"#;

#[test]
fn everything_about_a_program_is_shown_but_what_its_environment_holds() {
    let place = Place::new("exec-good", GOOD);
    let shown = transcript(&mut place.crosspoint(&["config", "show"]));
    assert!(!shown.contains("s3cret"), "{shown}");
    let agents = shown.split_once("[[agent]]").expect("it has agents").1;
    insta::assert_snapshot!(format!("[[agent]]{agents}"));
}

#[test]
fn every_mistake_about_a_program_is_named_in_one_go() {
    let bad = r#"
[[agent]]
name = "none"
contract = "exec"

[[agent]]
name = "text"
contract = "exec"
exec = "bash -c ls"

[[agent]]
name = "empty"
contract = "exec"
exec = []

[[agent]]
name = "number"
contract = "exec"
exec = ["sleep", 5]
run = "echo"

[[agent]]
name = "keys"
contract = "exec"
exec = ["cat"]
env = { CROSSPOINT_WORK = "s3cret", PORT = 80, "A=B" = "s3cret" }
ask = "yes"
memory_mb = 0
processes = 1.5
grace_seconds = 60
memory = 5

[[agent]]
name = "echo"
contract = "builtin"
exec = ["cat"]
ask = true

[[agent]]
name = "list"
contract = "exec"
exec = ["cat"]
env = ["s3cret"]

[[agent]]
name = "codes"
contract = "exec"
exec = ["cat"]
retry_exit_codes = [69, 0]

[[agent]]
name = "code"
contract = "exec"
exec = ["cat"]
retry_exit_codes = 69
"#;
    let said = Place::new("exec-bad", bad).check();
    assert!(!said.contains("s3cret"), "{said}");
    insta::assert_snapshot!(said);
}
