//! The comparison with other systems: the published figures are those that the raw numbers give.
//!
//! The measurement itself is not a test: it takes minutes, and its figures decide nothing. But everything made from its
//! numbers can be made anew in an instant, so tables and plot cannot go stale, and no figure can be changed by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::program::root;

/// Runs a script of `bench/peers` of some copy of the repository, leaving no compiled files behind.
fn python(root: &Path, script: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg("-B").arg(root.join("bench/peers").join(script)).args(arguments);
    command.output().expect("python3 is needed for this test")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A copy of everything that is published about the peers, and of the scripts that make it.
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

/// The numbers of the newest run of all systems, which becomes the only one, and its file.
fn only_whole_run(root: &Path) -> (serde_json::Value, PathBuf) {
    let files = fs::read_dir(root.join("bench/raw")).expect("there are raw numbers");
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    let newest = paths.pop().expect("at least one run is recorded");
    for path in paths {
        fs::remove_file(path).expect("it can be removed");
    }
    assert!(newest.file_name().is_some_and(|name| name.to_string_lossy().starts_with("peers-")), "{newest:?}");
    let numbers = fs::read(&newest).expect("it was copied");
    (serde_json::from_slice(&numbers).expect("it is JSON"), newest)
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
    let (mut numbers, raw) = only_whole_run(&copy);
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
fn a_system_younger_than_the_last_whole_run_is_a_row_without_figures_until_it_is_run() {
    let copy = copy("younger");
    let (mut numbers, raw) = only_whole_run(&copy);
    let systems = numbers["systems"].as_object_mut().expect("it has systems");
    let mut young = systems["crosspoint-agent"].clone();
    young["title"] = "Crosspoint, run agent in another process".into();
    systems.remove("crosspoint-run");
    let part = serde_json::json!({"crosspoint-run": young, "restate": systems["restate"]});
    fs::write(&raw, numbers.to_string()).expect("it can be written");
    let report = |row: &str, compared: bool| {
        let output = python(&copy, "report.py", &[]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let text = fs::read_to_string(copy.join("bench/RESULTS.md")).expect("it was written");
        assert!(text.contains(&format!("| Crosspoint, run agent in another process | {row} |")), "{text}");
        assert_eq!(text.contains("| Crosspoint, run agent in another process / Restate | "), compared);
        let output = python(&copy, "report.py", &["--check"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    };
    report("not measured yet", false);
    numbers["systems"] = part;
    numbers["measured_on"] = "9999-01-01".into();
    fs::write(copy.join("bench/raw/part-9999-01-01-0000.json"), numbers.to_string()).expect("it can be written");
    report("measured later, below", true);
    fs::remove_dir_all(copy).expect("it can be removed");
}

#[test]
fn a_system_that_does_not_exist_is_refused_before_anything_is_installed() {
    let output = python(&root(), "run.py", &["--peers", "--only", "restate,nobody"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: no system is called nobody\nhint: crosspoint, crosspoint-agent, crosspoint-run, restate, dbos, celery, nats\n";
    assert_eq!(said(&output), expected);
}
