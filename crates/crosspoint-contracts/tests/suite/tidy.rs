//! What the repository promises about itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crosspoint_contracts::clause::{self, Scope};
use crosspoint_contracts::{Contract, Kind};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source() -> PathBuf {
    root().join("crates/crosspoint-contracts/src")
}

/// Whether a file is a table of clauses: `clause/all.rs`, or `clause.rs` of a contract.
fn is_clause_table(path: &Path) -> bool {
    path.ends_with("clause/all.rs")
        || Contract::ALL.iter().any(|contract| path.ends_with(contract.name().to_owned() + "/clause.rs"))
}

fn rust_files(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).expect("the directory can be listed") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            found.push((path, text));
        }
    }
}

#[test]
fn clause_ids_are_unique_and_belong_to_their_contract() {
    let mut seen = BTreeSet::new();
    for clause in clause::every() {
        assert!(seen.insert(clause.id), "{} stands twice", clause.id);
    }
    let prefix = |clause: &clause::Clause| clause.id.split('-').next().unwrap_or_default();
    let mut prefixes = BTreeSet::from(["ALL"]);
    for contract in Contract::ALL {
        let own: BTreeSet<&str> = clause::of(contract).iter().map(|clause| prefix(clause)).collect();
        assert_eq!(own.len(), 1, "the ids of {} begin with {own:?}", contract.name());
        assert!(own.iter().all(|prefix| prefixes.insert(prefix)), "two contracts have ids that begin with {own:?}");
    }
    assert!(clause::shared().iter().all(|clause| clause.id.starts_with("ALL-")));
}

#[test]
fn constants_are_named_after_their_ids() {
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    let mut checked = 0;
    for (path, text) in files.into_iter().filter(|(path, _)| is_clause_table(path)) {
        for line in text.lines().map(str::trim) {
            let Some((name, rest)) = line.split_once(" = \"") else { continue };
            let id = rest.split('"').next().unwrap_or_default();
            assert_eq!(name, id.replace(['-', '.'], "_"), "{}", path.display());
            checked += 1;
        }
    }
    assert_eq!(checked, clause::every().count());
}

#[test]
fn clauses_are_one_line_each_and_complete() {
    for clause in clause::every() {
        for text in [clause.text, clause.hint, clause.document] {
            assert!(!text.is_empty() && !text.contains('\n'), "{}", clause.id);
        }
        assert!(clause.text.ends_with('.') && clause.hint.ends_with('.'), "{} does not end in a full stop", clause.id);
    }
}

#[test]
fn implied_clauses_and_showing_tests_exist() {
    let ids: BTreeSet<&str> = clause::every().map(|clause| clause.id).collect();
    let mut tests = Vec::new();
    rust_files(&root().join("crates"), &mut tests);
    for clause in clause::every() {
        for implied in clause.implies {
            assert!(ids.contains(implied), "{} implies {implied}, which is not there", clause.id);
        }
        for shown_by in clause.shown_by {
            let (module, test) = shown_by.rsplit_once("::").expect("tests are named module::test");
            let file = format!("{}.rs", module.replace("::", "/"));
            let found = tests.iter().any(|(path, text)| path.ends_with(&file) && text.contains(&format!("fn {test}(")));
            assert!(found, "{} is shown by {shown_by}, which is not there", clause.id);
        }
        assert!(clause.scope != Scope::Document || clause.shown_by.is_empty(), "{} is shown by testdata", clause.id);
    }
}

/// A clause that no code cites is a rule that nothing enforces.
#[test]
fn every_clause_of_scope_document_is_cited_by_the_code() {
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    for clause in clause::every().filter(|clause| clause.scope == Scope::Document) {
        let cited = format!("&{}", clause.id.replace(['-', '.'], "_"));
        let found = files.iter().any(|(path, text)| {
            let whole_name = |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_ascii_alphanumeric());
            !is_clause_table(path) && text.match_indices(&cited).any(|(at, _)| whole_name(&text[at + cited.len()..]))
        });
        assert!(found, "no code cites {}", clause.id);
    }
}

#[test]
fn the_pure_crate_is_pure() {
    let manifest =
        fs::read_to_string(root().join("crates/crosspoint-contracts/Cargo.toml")).expect("the manifest is there");
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    assert!(!dependencies.contains("tokio"));
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    for (path, text) in files {
        for forbidden in [
            "use std::{",
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "std::thread",
            "std::time",
            "std::env",
            "async fn",
            "Timestamp::now",
            "Zoned::now",
        ] {
            assert!(!text.contains(forbidden), "{} uses {forbidden}", path.display());
        }
    }
}

/// The name by which a source refers to a contract: its module, the contract itself, or one of its kinds. Comments may
/// name anything.
fn names(text: &str, contract: Contract) -> Option<String> {
    let module = contract.name();
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.contract() == contract);
    let kinds = kinds.flat_map(|kind| [format!("Kind::{kind:?}"), format!("Document::{kind:?}")]);
    let banned: Vec<String> =
        [format!("{module}::"), format!("crate::{module}"), format!("mod {module}"), format!("Contract::{contract:?}")]
            .into_iter()
            .chain(kinds)
            .collect();
    let is_name = |next: char| next == '_' || next.is_alphanumeric();
    // Clauses name the tests that show them, which are in folders of the same names.
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !is_name_of_test(line);
    let code: String = text.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    // Nested imports would hide a module's name from the search.
    assert!(!code.contains("use crate::{"), "an import of several modules at once");
    banned.into_iter().find(|banned| {
        code.match_indices(banned.as_str()).any(|(at, _)| {
            let (before, after) = (&code[..at], &code[at + banned.len()..]);
            !before.ends_with(is_name) && (banned.ends_with("::") || !after.starts_with(is_name))
        })
    })
}

/// Whether a line of a clause names tests that show it.
fn is_name_of_test(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("shown_by [") || (line.starts_with('"') && line.contains("::"))
}

/// The contract that a source file belongs to, if any.
fn owner(path: &Path) -> Option<Contract> {
    let inside = path.strip_prefix(source()).expect("it is below");
    let first = Path::new(inside.components().next()?.as_os_str()).with_extension("");
    Contract::from_name(first.to_str()?)
}

#[test]
fn no_contract_names_another() {
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    for (path, text) in files {
        let Some(owner) = owner(&path) else { continue };
        for other in Contract::ALL.into_iter().filter(|other| *other != owner) {
            assert_eq!(names(&text, other), None, "{}", path.display());
        }
    }
}

/// This keeps a new contract to new files and its lines on the list at the end of `lib.rs`.
#[test]
fn shared_code_names_no_contract() {
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    files.retain(|(path, _)| owner(path).is_none() && !path.ends_with("src/lib.rs"));
    assert!(files.len() > 30, "only {} shared files were found", files.len());
    for (path, text) in files {
        for contract in Contract::ALL {
            assert_eq!(names(&text, contract), None, "{}", path.display());
        }
    }
}

/// Every rule of a contract is explained, or at least named, on the contract's page.
#[test]
fn every_clause_stands_on_its_page() {
    for contract in Contract::ALL {
        let page = root().join(format!("docs/contracts/{}.md", contract.name()));
        let text = fs::read_to_string(&page).expect("every contract has a page");
        for clause in clause::of(contract) {
            let whole = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit()) && !is_sub_clause(rest);
            let found = text.match_indices(clause.id).any(|(at, _)| whole(&text[at + clause.id.len()..]));
            assert!(found, "{} is not on {}", clause.id, page.display());
        }
    }
}

/// Whether an id continues after its number: `.2` of `MSG-9.2`, but not a full stop.
fn is_sub_clause(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
}
