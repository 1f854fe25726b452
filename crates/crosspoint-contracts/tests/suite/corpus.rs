//! The documents under `testdata/`.

use std::fs;
use std::path::{Path, PathBuf};

use crosspoint_contracts::{Contract, Inner, Kind, Options, Reading};

pub(crate) struct Case {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

impl Case {
    pub(crate) fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).expect("file names are plain")
    }

    /// The directory it is in: the contract's name.
    pub(crate) fn contract(&self) -> &str {
        self.path
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str())
            .expect("every case is in a directory")
    }

    /// For a golden document, the kind its name says it is: `<kind>-<case>.json` in the contract's directory.
    pub(crate) fn kind(&self) -> Kind {
        let (kind, _) = self.stem().split_once('-').expect("golden files are named <kind>-<case>");
        let name = format!("{}.{kind}", self.contract());
        Kind::from_name(&name).unwrap_or_else(|| panic!("{} says it is a {name}", self.path.display()))
    }

    /// For a broken document, the clause its name says it breaks: `<CLAUSE>[-<case>].json`.
    pub(crate) fn clause(&self) -> String {
        self.stem().splitn(3, '-').take(2).collect::<Vec<_>>().join("-")
    }

    pub(crate) fn read(&self) -> Reading<'_> {
        // Inner texts are checked only in the cases that are about them.
        let inner = if self.stem().starts_with("BRIDGE-5.2") { Inner::Json } else { Inner::Any };
        crosspoint_contracts::read(&self.bytes, &Options { inner, ..Options::default() })
    }
}

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn cases(directory: &Path) -> Vec<Case> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("the directory can be listed").path())
        .filter(|path| path.extension().is_some())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| Case { bytes: fs::read(&path).expect("the file can be read"), path }).collect()
}

/// Documents without errors.
pub(crate) fn golden() -> Vec<Case> {
    Contract::ALL.iter().flat_map(|contract| cases(&testdata().join(contract.name()))).collect()
}

/// The directories of documents that are broken on purpose: what all contracts share, and each contract's own.
fn broken_directories() -> impl Iterator<Item = PathBuf> {
    ["all"].into_iter().chain(Contract::ALL.map(Contract::name)).map(|name| testdata().join("broken").join(name))
}

/// Documents that each break one clause.
pub(crate) fn broken() -> Vec<Case> {
    broken_directories().flat_map(|directory| cases(&directory)).collect()
}

/// What JSON Schema cannot express, each with the reason: clauses, and cases within a clause that it can express. They
/// stand beside the broken documents, one `<CLAUSE or case>: <reason>` per line.
pub(crate) fn beyond_schemas() -> Vec<(String, String)> {
    let texts = broken_directories().filter_map(|directory| fs::read_to_string(directory.join("beyond-schemas")).ok());
    let split = |line: &str| line.split_once(": ").map(|(which, reason)| (which.to_owned(), reason.to_owned()));
    texts.flat_map(|text| text.lines().map(|line| split(line).expect("a reason")).collect::<Vec<_>>()).collect()
}
