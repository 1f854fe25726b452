//! `crosspoint clauses` and `crosspoint schema`.

use std::fs;

use crosspoint_contracts::Kind;

use crate::support::program::{crosspoint, root, stdout, transcript};

#[test]
fn one_clause_is_shown_whole() {
    insta::assert_snapshot!(stdout(&mut crosspoint(&["clauses", "bridge-2"])));
}

#[test]
fn one_contract_is_listed() {
    let listed = stdout(&mut crosspoint(&["clauses", "bridge"]));
    assert!(listed.lines().all(|line| line.starts_with("BRIDGE-")));
    assert!(listed.lines().count() > 30);
}

#[test]
fn all_are_listed_as_json_too() {
    let listed = stdout(&mut crosspoint(&["clauses"]));
    let json = stdout(&mut crosspoint(&["clauses", "--format", "json"]));
    assert_eq!(listed.lines().count(), json.lines().count());
    for line in json.lines() {
        let clause: serde_json::Value = serde_json::from_str(line).expect("every line is an object");
        for member in ["id", "level", "scope", "document", "text", "hint"] {
            assert!(clause[member].is_string(), "{line}");
        }
    }
}

#[test]
fn an_unknown_name_says_which_there_are() {
    insta::assert_snapshot!(transcript(&mut crosspoint(&["clauses", "brigde"])));
}

#[test]
fn the_page_is_fresh() {
    let kept = fs::read_to_string(root().join("docs/clauses.md")).unwrap_or_default();
    let fresh = stdout(&mut crosspoint(&["clauses", "--format", "markdown"]));
    assert!(kept == fresh, "docs/clauses.md is stale: run scripts/generate");
}

#[test]
fn schemas_are_printed_as_they_are_kept() {
    let kinds = stdout(&mut crosspoint(&["schema"]));
    assert_eq!(kinds.lines().count(), Kind::ALL.len());
    for kind in kinds.lines() {
        let kept = fs::read_to_string(root().join(format!("schemas/{kind}.json"))).expect("the schema is kept");
        assert_eq!(stdout(&mut crosspoint(&["schema", kind])), kept);
    }
}
