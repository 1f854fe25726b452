//! What the crate is built with, and its example.

use std::fs;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn it_is_built_without_the_orchestrator_and_its_store() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--package", "crosspoint-agent"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there");
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    assert!(tree.contains("crosspoint-http"), "the tree was not read: {tree}");
    for other in ["crosspoint-engine", "crosspoint-bridge", "crosspoint v", "rusqlite", "clap"] {
        assert!(!tree.contains(other), "it is built with {other}");
    }
}

#[test]
fn the_example_is_short_and_is_that_of_the_pages() {
    let example = read("examples/echo.rs");
    assert!(example.lines().count() < 30);
    let code = example.split_once("\n\n").map(|(_, code)| code).expect("it begins with a comment");
    for page in ["README.md", "../../README.md", "../../docs/sdk.md"] {
        assert!(read(page).contains(&format!("\n{code}```\n")), "{page} has another example");
    }
}

/// Everything that authors of agents use has an example in its documentation, and rustdoc runs it.
#[test]
fn everything_public_has_an_example_that_runs() {
    let mut seen = 0;
    for file in ["agent", "agent/reached", "answers", "context", "failure", "handler", "lib", "output"] {
        let text = read(&format!("src/{file}.rs"));
        assert!(
            !text.contains("```no_run") && !text.contains("```ignore"),
            "{file}.rs has an example that does not run"
        );
        let (mut examples, mut is_shown) = (0, true);
        for line in text.lines().map(str::trim_start) {
            let is_item =
                ["pub fn ", "pub async fn ", "pub struct ", "pub trait "].iter().any(|item| line.starts_with(item));
            if line.starts_with("/// ```") {
                examples += 1;
            } else if line == "#[doc(hidden)]" {
                // The documentation does not show it.
                is_shown = false;
            } else if is_item && !is_shown {
                (examples, is_shown) = (0, true);
            } else if is_item {
                assert!(examples >= 2, "{file}.rs: no example for {line}");
                (examples, seen) = (0, seen + 1);
            } else if !line.starts_with("///") && !line.starts_with("#[") {
                examples = 0;
            }
        }
    }
    assert!(seen >= 42, "only {seen} items were found");
}
