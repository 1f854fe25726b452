//! Documents without findings.

use crosspoint_contracts::{Finding, Kind, Options, read};

/// Checks that a document has no finding, warnings included: reading is tolerant, writing is strict.
pub(crate) fn faultless(text: &[u8], kind: Kind) {
    if let Some(faults) = faults(text, kind) {
        panic!("{faults}");
    }
}

pub(crate) fn faults(text: &[u8], kind: Kind) -> Option<String> {
    let findings = findings(text, kind);
    let shown = || format!("{kind}: {findings:?} in {}", String::from_utf8_lossy(text));
    (!findings.is_empty()).then(shown)
}

/// All findings of a document.
pub(crate) fn findings(text: &[u8], kind: Kind) -> Vec<Finding> {
    let options = Options { kind: Some(kind), ..Options::default() };
    read(text, &options).report.findings
}
