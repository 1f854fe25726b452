//! The page about security names tests, and they are there.

use std::fs;
use std::path::Path;

use crate::support::program::root;

/// Whether there is a test of this name, or a file of tests.
fn is_there(suite: &Path, name: &str) -> bool {
    let path = name.replace("::", "/");
    let is_file = |path: &str| suite.join(format!("{path}.rs")).is_file();
    let Some((file, test)) = path.rsplit_once('/').filter(|_| !is_file(&path)) else { return is_file(&path) };
    let source = fs::read_to_string(suite.join(format!("{file}.rs"))).unwrap_or_default();
    source.contains(&format!("#[test]\nfn {test}()"))
}

#[test]
fn every_promise_names_tests_that_there_are() {
    let page = fs::read_to_string(root().join("docs/security.md")).expect("it is there");
    let suite = root().join("crates/crosspoint/tests/suite");
    let rows: Vec<&str> = page.lines().skip_while(|line| *line != "|---|---|---|").skip(1).collect();
    let rows: Vec<&str> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 10, "the table was not found");
    for row in rows {
        let shown = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test shows this: {row}");
        for name in named {
            assert!(is_there(&suite, name), "there is no test {name}: {row}");
        }
    }
    assert!(!is_there(&suite, "access::nothing") && !is_there(&suite, "access::shares::nothing"));
}
