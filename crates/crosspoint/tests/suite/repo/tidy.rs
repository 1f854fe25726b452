//! Boundaries within the code: what each part must not know.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crosspoint_contracts::{Contract, Kind};

use crate::support::program::root;

/// The crates that talk in contracts, or beside them.
const OURS: [&str; 7] = [
    "crosspoint",
    "crosspoint-agent",
    "crosspoint-engine",
    "crosspoint-exchange",
    "crosspoint-http",
    "crosspoint-bridge",
    "crosspoint-workflow",
];

/// The source files of a crate, without files of tests and without tests at their ends.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let source = root().join("crates").join(name).join("src");
    let mut found = Vec::new();
    gather(&source, &mut found);
    let below = |(path, text): (PathBuf, String)| (path.strip_prefix(&source).expect("it is below").to_owned(), text);
    found.into_iter().map(below).collect()
}

/// The files of one module: its own file, and those below it.
fn below(name: &str, module: &str) -> Vec<(PathBuf, String)> {
    let own = PathBuf::from(format!("{module}.rs"));
    sources(name).into_iter().filter(|(path, _)| *path == own || path.starts_with(module)).collect()
}

fn gather(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be read").path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_test {
            gather(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
            let text = fs::read_to_string(&path).expect("it can be read");
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.push((path.clone(), lines.collect::<Vec<_>>().join("\n")));
        }
    }
}

/// The names of a contract in code: itself, its module, its kinds.
fn names_of(contract: Contract) -> Vec<String> {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.contract() == contract);
    let kinds = kinds.flat_map(|kind| [format!("Kind::{kind:?}"), format!("Document::{kind:?}")]);
    let itself = [format!("Contract::{contract:?}"), format!("crosspoint_contracts::{}", contract.name())];
    itself.into_iter().chain(kinds).collect()
}

fn is_named(code: &str, name: &str) -> bool {
    let is_word = |next: char| next == '_' || next.is_alphanumeric();
    code.match_indices(name).any(|(at, _)| !code[at + name.len()..].starts_with(is_word))
}

/// Whether a file belongs to a contract: its door, its link, the settings of its agents, its commands.
fn is_own(path: &Path, contract: Contract) -> bool {
    let name = contract.name();
    let own = [name.to_owned(), format!("{name}_door")];
    let mut parts = path.iter().filter_map(|part| Path::new(part).file_stem()?.to_str());
    let migrates = contract == Contract::Workflow && path.iter().any(|part| part == "migrate.rs");
    parts.any(|part| own.iter().any(|own| own == part)) || migrates
}

/// Everything that a door or a link must know of a contract is in `crosspoint-contracts/src/<contract>`. Shared code
/// that serves or calls in any contract asks its exchange.
#[test]
fn no_code_names_a_contract_but_its_door_and_its_link() {
    let mut looked_at = 0;
    for name in OURS {
        for (path, code) in sources(name) {
            looked_at += 1;
            for contract in Contract::ALL.into_iter().filter(|contract| !is_own(&path, *contract)) {
                // These crates belong to their contracts.
                if name == format!("crosspoint-{}", contract.name()) {
                    continue;
                }
                let named = names_of(contract).into_iter().find(|name| is_named(&code, name));
                assert_eq!(named, None, "{name}/src/{}", path.display());
            }
        }
    }
    assert!(looked_at > 200, "only {looked_at} files were found");
}

/// An import of several modules at once would hide a name, so contracts are not imported like that.
#[test]
fn no_import_hides_a_contract() {
    for (path, code) in OURS.into_iter().flat_map(sources) {
        for import in code.split("use crosspoint_contracts::{").skip(1) {
            let (names, _) = import.split_once("};").expect("an import ends");
            let hidden = Contract::ALL.into_iter().find(|contract| {
                let is_own = is_own(&path, *contract);
                !is_own && names.split(',').any(|name| name.trim().split("::").next() == Some(contract.name()))
            });
            assert_eq!(hidden, None, "{}", path.display());
        }
    }
}

#[test]
fn programs_know_neither_engine_nor_http() {
    let files = below("crosspoint", "exec");
    assert!(files.len() > 10, "only {} files were found", files.len());
    for (path, code) in files {
        for unknown in [
            "crosspoint_engine",
            "hyper",
            "axum",
            "reqwest",
            "crate::server",
            "crate::link",
            "crosspoint_exchange",
            "crosspoint_http",
        ] {
            assert!(!code.contains(unknown), "{} knows {unknown}", path.display());
        }
    }
}

/// What a crate must be unable to see is not among what it is built with.
#[test]
fn crates_are_built_without_what_they_must_not_know() {
    let io = ["tokio", "hyper", "axum", "rusqlite", "reqwest"];
    let walls: [(&str, &[&str]); 7] = [
        ("crosspoint-contracts", &io),
        (
            "crosspoint-exchange",
            &[&io[..], &["http", "crosspoint-engine", "crosspoint-http", "crosspoint-bridge"]].concat(),
        ),
        ("crosspoint-bridge", &[&io[..], &["crosspoint-engine", "crosspoint-exchange", "crosspoint-http"]].concat()),
        ("crosspoint-workflow", &[&io[..], &["crosspoint-engine", "crosspoint-exchange", "crosspoint-http"]].concat()),
        (
            "crosspoint-engine",
            &["hyper", "axum", "reqwest", "crosspoint-exchange", "crosspoint-http", "crosspoint-bridge", "clap"],
        ),
        ("crosspoint-http", &["rusqlite", "crosspoint-engine", "crosspoint-bridge", "clap"]),
        ("crosspoint-agent", &["rusqlite", "crosspoint-engine", "crosspoint-bridge", "clap"]),
    ];
    for (name, unknown) in walls {
        let known = built_with(name);
        assert!(known.contains(&"serde_json".to_owned()), "the tree of {name} was read: {known:?}");
        let seen: Vec<_> = unknown.iter().filter(|crate_| known.iter().any(|known| known == *crate_)).collect();
        assert!(seen.is_empty(), "{name} is built with {seen:?}");
    }
}

/// Returns the names of all crates that a crate is built with.
fn built_with(name: &str) -> Vec<String> {
    let arguments = ["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--package", name];
    let told = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().expect("cargo is there");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let lines = String::from_utf8(told.stdout).expect("text");
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Outcomes have parts. Only the code that shows them writes JSON of them, and only the store takes those of earlier
/// versions apart.
#[test]
fn the_machine_builds_no_json() {
    let machine = below("crosspoint-engine", "machine");
    assert!(machine.len() > 3, "only {} files were found", machine.len());
    for (path, code) in machine {
        for builder in ["serde_json", "Body::of", "Body::trusted", "{{\\\"", "r#\"{"] {
            assert!(!code.contains(builder), "{} has {builder}", path.display());
        }
    }
}

/// Longest file of code or tests, in lines: a longer one holds two ideas.
const FILE_LINES_MAX: usize = 400;
/// Longest page that is read in five minutes, in lines.
const PAGE_LINES_MAX: usize = 170;
/// Longest line of prose, in characters.
const PROSE_CHARS_MAX: usize = 120;

#[test]
fn files_and_pages_are_short_enough_to_be_read() {
    let lines = |path: &Path| fs::read_to_string(path).expect("it can be read").lines().count();
    for page in ["README.md", "ARCHITECTURE.md"] {
        assert!(lines(&root().join(page)) <= PAGE_LINES_MAX, "{page} is too long");
    }
    let mut folders = vec![root().join("crates")];
    let (mut looked_at, mut too_long) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it can be listed") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                looked_at += 1;
                let text = fs::read_to_string(&path).expect("it can be read");
                assert!(text.lines().count() <= FILE_LINES_MAX, "{} is too long", path.display());
                let long = text.lines().filter(|line| is_prose(line) && line.chars().count() > PROSE_CHARS_MAX);
                too_long.extend(long.map(|line| format!("{}: {}", path.display(), line.trim())));
            }
        }
    }
    assert_eq!(too_long, Vec::<String>::new());
    assert!(looked_at > 400, "only {looked_at} files were found");
}

fn is_prose(line: &str) -> bool {
    line.trim_start().starts_with("//")
}
