//! The law: a document that goes from one contract to another and back is unchanged.

use crosspoint_contracts::job::Canonical;
use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::translate::{Refused, Written, write};
use crosspoint_contracts::{Contract, Kind, Options, read_jobs};
use serde_json::Value;

use crate::corpus;

pub(crate) fn fresh() -> WriteContext<'static> {
    WriteContext {
        now: "2026-11-16T08:00:00Z",
        id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("a UUID"),
        message_id: "f0763953-805e-5282-8797-647eab1d92c2".parse().expect("a UUID"),
        agent_types: &[],
        agent_type: "code",
        carrying: Carrying::On,
        known_as: None,
        completing: false,
        levels: Levels::Received,
        facts: &[],
    }
}

/// Translates one document to another contract.
pub(crate) fn to(contract: Contract, bytes: &[u8]) -> Result<Written, Refused> {
    let (reading, jobs) = read_jobs(bytes, &Options::default());
    assert!(reading.report.is_valid(), "{:#?}\n{}", reading.report.findings, String::from_utf8_lossy(bytes));
    let [job] = &jobs[..] else { panic!("{} jobs in {}", jobs.len(), String::from_utf8_lossy(bytes)) };
    write(job, contract, &fresh())
}

/// The job of a valid document of this kind.
pub(crate) fn job(kind: Kind, bytes: &[u8]) -> Canonical<'_> {
    let (reading, mut jobs) = read_jobs(bytes, &Options { kind: Some(kind), ..Options::default() });
    assert!(reading.report.is_valid(), "{:#?}\n{}", reading.report.findings, String::from_utf8_lossy(bytes));
    jobs.pop().expect("a document is about one job")
}

pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The documents the law is about: requests and terminal results.
pub(crate) fn lawful() -> Vec<corpus::Case> {
    let mut cases = corpus::golden();
    cases.retain(|case| {
        let is_event = matches!(case.kind(), Kind::WorkStatus | Kind::RunStream);
        let underway =
            ["pending", "in_progress", "input_required", "question"].iter().any(|word| case.stem().contains(word));
        !is_event && !underway
    });
    cases
}

#[test]
fn every_golden_document_comes_back_from_every_contract() {
    for case in lawful() {
        let home = case.kind().contract();
        let strict = to(home, &case.bytes).expect("a document has a counterpart in its own contract");
        let original: Value = serde_json::from_slice(&case.bytes).expect("golden documents are JSON");
        if !case.stem().contains("loose") {
            assert_eq!(value(strict.text()), original, "{} as itself", case.path.display());
        }
        for contract in Contract::ALL {
            let there = to(contract, &case.bytes).expect("requests and results go everywhere");
            let back = to(home, there.text().as_bytes()).expect("and come back");
            assert_eq!(
                value(back.text()),
                value(strict.text()),
                "{} by way of {}:\n{}",
                case.path.display(),
                contract.name(),
                there.text()
            );
            assert_eq!(back.kind, strict.kind);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 1024, failure_persistence: None, ..Default::default() })]

    /// For any content, including unknown members. The translation is recognised without being told its kind.
    #[test]
    fn every_document_comes_back_from_every_contract((kind, document) in crate::documents::document()) {
        let bytes = document.to_string().into_bytes();
        let job = job(kind, &bytes);
        for contract in Contract::ALL.into_iter().filter(|contract| *contract != kind.contract()) {
            let there = write(&job, contract, &fresh()).expect("requests and results go everywhere");
            let back = to(kind.contract(), there.text().as_bytes()).expect("and come back");
            proptest::prop_assert_eq!(value(back.text()), document.clone(), "by way of {}", there.text());
        }
        let same = write(&job, kind.contract(), &fresh()).expect("a document has a counterpart in its own contract");
        proptest::prop_assert_eq!(value(same.text()), document);
    }
}
