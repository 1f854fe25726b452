//! Every golden document in every other contract, as a snapshot: what goes where, and what is carried.
//!
//! A new case is one file under `testdata/<contract>`; `INSTA_UPDATE=always` writes its snapshots.

use std::collections::BTreeSet;
use std::fs;

use crosspoint_contracts::json::{Tape, pretty};
use crosspoint_contracts::translate::{Refused, Written};
use crosspoint_contracts::{Contract, Kind, Options, translate};

use crate::corpus;
use crate::translation::fresh;

const SNAPSHOTS: &str = "translated";

/// Formatted for people: one document is indented, several stand one per line.
fn shown(written: &Result<Written, Refused>, several: bool) -> String {
    match written {
        Err(refused) => refused.to_string(),
        Ok(written) if several || written.kind == Kind::RunStream => written.text().trim_end().to_owned(),
        Ok(written) => {
            let tape = Tape::scan(written.text().as_bytes()).expect("what is written is JSON");
            pretty(tape.root().expect("and not empty"))
        }
    }
}

fn targets(case: &corpus::Case) -> impl Iterator<Item = Contract> {
    let own = case.kind().contract();
    // The strict form of a loose document is worth seeing too.
    let loose = case.stem().contains("loose");
    Contract::ALL.into_iter().filter(move |contract| *contract != own || loose)
}

fn name(case: &corpus::Case, contract: Contract) -> String {
    format!("{}.{}@{}", case.contract(), case.stem(), contract.name())
}

#[test]
fn golden_documents_in_every_contract() {
    for case in corpus::golden() {
        for contract in targets(&case) {
            let translation = translate(&case.bytes, &Options::default(), contract, &fresh());
            let several = translation.written.len() > 1;
            let lines: Vec<String> = translation.written.iter().map(|written| shown(written, several)).collect();
            insta::with_settings!({
                snapshot_path => corpus::testdata().join(SNAPSHOTS),
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, {
                insta::assert_snapshot!(name(&case, contract), lines.join("\n"));
            });
        }
    }
}

/// A snapshot that no test compares is useless.
#[test]
fn no_snapshot_is_left_over() {
    let cases = corpus::golden();
    let wanted: BTreeSet<String> =
        cases.iter().flat_map(|case| targets(case).map(|contract| format!("{}.snap", name(case, contract)))).collect();
    let found: BTreeSet<String> = fs::read_dir(corpus::testdata().join(SNAPSHOTS))
        .expect("there are snapshots")
        .map(|entry| entry.expect("the directory can be listed").file_name().into_string().expect("names are plain"))
        .collect();
    assert_eq!(found, wanted);
}
