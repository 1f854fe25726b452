//! Nothing that agents or people said is printed by `Debug`.

use crosspoint_workflow::repository::ClashReason;

use super::*;

#[test]
fn debug_prints_sizes() {
    let mut run = one_stage("params = { a = \"sesame\" }\n[paths]\np = \"{feature}/\"");
    let all = escalate("sesame").notes(&["sesame"]).wrote(&["sesame/sesame"]);
    let clashed = proceed().clashed(&[("sesame", ClashReason::Exists)]).at(2);
    let mut printed = vec![format!("{clashed:?}")];
    let happened = all.at(1);
    printed.push(format!("{happened:?}"));
    printed.push(format!("{:?}", run.next()));
    printed.push(format!("{:?}", run.apply(&happened)));
    printed.push(format!("{run:?} {:?} {:?}", run.next(), run.feature()));
    let happened = answer("\"sesame\"", 1);
    printed.push(format!("{happened:?} {:?} {run:?}", run.apply(&happened)));
    let broke = Happened::Broke { step: 2, job: None, failure: "f".into(), clause: None, message: "sesame".into() };
    printed.push(format!("{broke:?} {:?} {run:?} {:?}", run.apply(&broke), run.next()));
    assert!(run.feature().is_some());
    for line in printed {
        assert!(!line.contains("sesame"), "{line}");
    }
}
