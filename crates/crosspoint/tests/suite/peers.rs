//! The comparison with other systems: what is published is what the raw numbers give.
//!
//! The measurement itself is no test: it takes minutes, and its figures decide nothing. But all that is made from its numbers can
//! be made anew in an instant, so tables and plot cannot rot, and nobody can mend a figure by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::run::root;

/// Runs a script of `bench/peers` of some copy of the repository, leaving no compiled files behind.
fn python(root: &Path, script: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg("-B").arg(root.join("bench/peers").join(script)).args(arguments);
    command.output().expect("python3 is needed for this test")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A copy of everything that is published about the peers, and of what makes it.
fn copy(name: &str) -> PathBuf {
    let to = std::env::temp_dir().join(format!("crosspoint-peers-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&to);
    for directory in ["bench", "bench/raw", "bench/peers", "bench/peers/systems"] {
        fs::create_dir_all(to.join(directory)).expect("a directory can be made");
        for entry in fs::read_dir(root().join(directory)).expect("it can be listed") {
            let path = entry.expect("it can be read").path();
            if path.is_file() {
                let name = path.file_name().expect("a file has a name");
                fs::copy(&path, to.join(directory).join(name)).expect("a file can be copied");
            }
        }
    }
    fs::copy(root().join("README.md"), to.join("README.md")).expect("a file can be copied");
    to
}

fn newest_raw(root: &Path) -> PathBuf {
    let files = fs::read_dir(root.join("bench/raw")).expect("there are raw numbers");
    let paths = files.map(|entry| entry.expect("it can be read").path());
    paths.max().expect("at least one run is recorded")
}

#[test]
fn tables_and_plot_are_what_the_raw_numbers_give() {
    let output = python(&root(), "report.py", &["--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_figure_mended_by_hand_is_found() {
    let copy = copy("mended");
    let readme = fs::read_to_string(copy.join("README.md")).expect("it was copied");
    let (before, table) = readme.split_once("<!-- peers: begin -->").expect("the README has the table");
    let mended = table.replacen(" MiB", "0 MiB", 1);
    assert_ne!(table, mended, "there was something to mend");
    fs::write(copy.join("README.md"), format!("{before}<!-- peers: begin -->{mended}")).expect("it can be written");
    let output = python(&copy, "report.py", &["--check"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).starts_with("error: README.md: not what bench/raw/peers-"), "{}", said(&output));
    fs::remove_dir_all(copy).expect("it can be removed");
}

#[test]
fn a_peer_that_was_not_run_is_a_row_that_says_why() {
    let copy = copy("missing");
    let raw = newest_raw(&copy);
    let mut numbers: serde_json::Value =
        serde_json::from_slice(&fs::read(&raw).expect("it was copied")).expect("it is JSON");
    numbers["systems"]["restate"] = serde_json::json!({"title": "Restate", "missing": "not run: no npm today"});
    fs::write(&raw, numbers.to_string()).expect("it can be written");
    let output = python(&copy, "report.py", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for page in ["README.md", "bench/RESULTS.md"] {
        let text = fs::read_to_string(copy.join(page)).expect("it was written");
        assert!(text.contains("| Restate | not run: no npm today |"), "{page}: {text}");
        assert!(!text.contains(" / Restate |"), "{page} compares with what was not run");
    }
    fs::remove_dir_all(copy).expect("it can be removed");
}

#[test]
fn a_system_that_does_not_exist_is_refused_before_anything_is_installed() {
    let output = python(&root(), "run.py", &["--peers", "--only", "restate,nobody"]);
    assert_eq!(output.status.code(), Some(2));
    let expected =
        "error: no system is called nobody\nhint: crosspoint, crosspoint-agent, restate, dbos, celery, nats\n";
    assert_eq!(said(&output), expected);
}
