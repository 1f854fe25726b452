//! `crosspoint config`

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::support::program::{crosspoint, transcript};

/// A directory of the test's own, removed at the end.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str, configuration: &str) -> Place {
        let path = std::env::temp_dir().join(format!("crosspoint-config-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the directory can be made");
        fs::write(path.join("crosspoint.toml"), configuration).expect("it can be written");
        Place(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn crosspoint(&self, arguments: &[&str]) -> Command {
        let mut command = crosspoint(arguments);
        command.current_dir(&self.0).env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command
    }

    pub(crate) fn check(&self) -> String {
        transcript(&mut self.crosspoint(&["config", "check"]))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GOOD: &str = "\
[server]
listen = \"127.0.0.1:0\"
drain_seconds = 0.5
log_format = \"json\"

[store]
url = \"sqlite:data/jobs.db\"

[limits]
body_bytes = 1_000_000
store_bytes = 0x10000000

[[agent]]
name = \"echo\"
contract = \"builtin\"

[[agent]]
name = \"slow\"
contract = \"builtin\"
run = \"slow_echo\"
work = [\"reports\", \"summaries\"]
concurrency = 2
silence_seconds = 30
repeatable = false
";

const BAD: &str = "\
log = \"info\"

[server]
lisen = \"127.0.0.1:0\"
listen = \"7420\"
wait_seconds_max = 0
drain_seconds = \"10\"
log = \"inf\"
log_format = 7

[store]
url = \"postgres://me:secret@db/jobs\"

[limits]
jobs = -1
waiting = 1.5
body_bytes = 99999999999999999999
header_seconds = 1e12

[broker]
url_file = \"x\"

[[agent]]
name = \"echo\"
contract = \"builtin\"
work = []

[[agent]]
name = \"echo\"
contract = \"builtin\"
work = [\"a\", \"a\", 3]
total_seconds = 0
agnet = 1

[[agent]]
name = \"echo\"
contract = \"builtin\"

[[agent]]
name = \"writer\"
contract = \"builtin\"

[[agent]]
name = \"infra\"
contract = \"message\"
via = \"amqp\"

[[agent]]
name = \"x y\"
contract = \"smoke\"

[[agent]]
run = \"ecoh\"
";

#[test]
fn every_mistake_is_named_in_one_go() {
    insta::assert_snapshot!(Place::new("bad", BAD).check());
}

#[test]
fn what_is_not_toml_is_shown_at_its_place() {
    insta::assert_snapshot!(Place::new("toml", "[server]\nlisten = 127.0.0.1\nname = \"a\"\nname = \"b\"\n").check());
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    insta::assert_snapshot!(Place::new("limits", "[limits]\nwaiting_bytes = 1000\n").check());
}

#[test]
fn a_good_file_is_said_to_be_good() {
    let place = Place::new("good", GOOD);
    insta::assert_snapshot!(place.check());
    insta::assert_snapshot!(transcript(&mut place.crosspoint(&["config", "show"])));
}

/// The output of `config show` is a configuration with the same content.
#[test]
fn what_is_shown_can_be_used() {
    for text in [GOOD, ""] {
        let place = Place::new(if text.is_empty() { "again-defaults" } else { "again" }, text);
        let show = || {
            let said = place.crosspoint(&["config", "show"]).output().expect("it starts");
            assert!(said.status.success(), "{said:?}");
            String::from_utf8(said.stdout).expect("output is UTF-8")
        };
        let values = |shown: &str| -> Vec<String> {
            shown.lines().filter_map(|line| line.split(" # ").next()).map(|value| value.trim().to_owned()).collect()
        };
        let first = show();
        fs::write(place.0.join("crosspoint.toml"), &first).expect("it can be written");
        assert_eq!(values(&first)[1..], values(&show())[1..]);
    }
}

#[test]
fn the_environment_wins_over_the_file_and_flags_over_both() {
    let place = Place::new("overlay", GOOD);
    let mut command = place.crosspoint(&["config", "show", "--data", "elsewhere", "--store", "sqlite:flag.db"]);
    command.env("CROSSPOINT_SERVER_LISTEN", "localhost:1").env("CROSSPOINT_STORE_URL", "sqlite:env.db");
    let said = transcript(command.env("CROSSPOINT_LIMITS_STORE_BYTES", "5000").env("CROSSPOINT_DATA", "environment"));
    let lines: Vec<&str> =
        said.lines().filter(|line| line.contains("# environment") || line.contains("flag --")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_database_is_in_the_data_directory_unless_it_is_settled() {
    let place = Place::new("data", "");
    let url = |arguments: &[&str], data: Option<&str>| {
        let mut command = place.crosspoint(&["config", "show"]);
        command.args(arguments).envs(data.map(|data| ("CROSSPOINT_DATA", data)));
        let said = transcript(&mut command);
        said.lines()
            .find(|line| line.starts_with("url"))
            .map(|line| line.split(" # ").next().unwrap_or("").trim().to_owned())
    };
    assert_eq!(url(&[], None).as_deref(), Some("url = \"sqlite:.crosspoint/jobs.db\""));
    assert_eq!(url(&["--data", "d"], Some("e")).as_deref(), Some("url = \"sqlite:d/jobs.db\""));
    assert_eq!(url(&[], Some("e")).as_deref(), Some("url = \"sqlite:e/jobs.db\""));
    assert_eq!(url(&["--data", "d", "--store", "sqlite:x.db"], None).as_deref(), Some("url = \"sqlite:x.db\""));
}

#[test]
fn mistakes_in_the_environment_and_in_flags_are_named() {
    let place = Place::new("environment", "");
    let mut command = place.crosspoint(&["config", "check", "--store", "mysql://db"]);
    command.env("CROSSPOINT_SERVER_LISEN", "x").env("CROSSPOINT_LIMITS_BODY_BYTES", "many");
    insta::assert_snapshot!(transcript(command.env("CROSSPOINT_SERVER", "http://127.0.0.1:1")));
}

#[test]
fn a_file_that_is_not_there_could_not_be_read() {
    let place = Place::new("absent", "");
    insta::assert_snapshot!(transcript(&mut place.crosspoint(&["config", "check", "absent.toml"])));
    let said = transcript(&mut place.crosspoint(&["config", "show", "--config", "absent.toml"]));
    assert!(said.starts_with("exit 2"), "{said}");
}

#[test]
fn the_users_file_is_found_and_the_nearer_one_wins() {
    let place = Place::new("user", "");
    let user = place.0.join("config/crosspoint");
    fs::create_dir_all(&user).expect("the directory can be made");
    fs::write(user.join("crosspoint.toml"), "[server]\nname = \"from-user\"\n").expect("it can be written");
    let name = || {
        let mut command = place.crosspoint(&["config", "show"]);
        let said = transcript(command.env("XDG_CONFIG_HOME", place.0.join("config")));
        said.lines()
            .find(|line| line.starts_with("name = "))
            .map(|line| line.split(' ').nth(2).unwrap_or("").to_owned())
    };
    assert_eq!(name().as_deref(), Some("\"crosspoint\""));
    fs::remove_file(place.0.join("crosspoint.toml")).expect("it can be removed");
    assert_eq!(name().as_deref(), Some("\"from-user\""));
}
