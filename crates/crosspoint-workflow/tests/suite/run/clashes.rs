//! Artifacts that clash with the repository (WF-5).

use crosspoint_workflow::repository::ClashReason;
use crosspoint_workflow::run::{Decided, Way, Why};

use super::*;

#[test]
fn wf_5_4_a_conflict_counts_as_retry_and_names_path_and_operation() {
    let mut run = specify();
    let output =
        proceed().notes(&["Wrote it"]).clashed(&[("a.md", ClashReason::Exists), ("b.md", ClashReason::Missing)]);
    let decided = said(&mut run, output);
    assert_eq!(decided, Decided::Stage { id: "write".to_owned(), step: 2, iteration: 2, why: Way::Conflict });
    assert_eq!(
        prior(&run),
        [
            "Wrote it",
            "Nothing was written: a.md exists already, so use the operation update.",
            "Nothing was written: b.md does not exist yet, so use the operation create.",
        ]
    );
}

#[test]
fn a_conflict_goes_where_the_retry_of_its_stage_goes() {
    let mut run = specify();
    said(&mut run, proceed());
    said(&mut run, proceed().clashed(&[("a.md", ClashReason::Exists)]));
    assert_eq!((stage(&run), run.iteration()), ("write", 2));
}

#[test]
fn a_conflict_counts_as_retry_whatever_was_recommended() {
    for output in [proceed(), retry(), escalate("Which?"), proceed().failed()] {
        let mut run = one_stage("");
        said(&mut run, output.clashed(&[("a.md", ClashReason::Exists)]));
        assert_eq!(run.iteration(), 2);
    }
}

#[test]
fn conflicts_use_up_the_limit() {
    let mut run = one_stage("retry = { limit = 1 }");
    said(&mut run, proceed().clashed(&[("a.md", ClashReason::Exists)]));
    said(&mut run, proceed().clashed(&[("a.md", ClashReason::Exists)]));
    let asking = asked(&run);
    assert_eq!((asking.why, asking.notes.len()), (Why::LimitReached, 0));
    let clashed = "Nothing was written: a.md exists already, so use the operation update.";
    assert_eq!(asking.question, clashed, "whatever the agent says of its work");
}

#[test]
fn twenty_clashes_are_named_and_the_others_counted() {
    let paths: Vec<String> = (0..23).map(|number| format!("f{number}.md")).collect();
    let clashes =
        |count: usize| paths.iter().take(count).map(|path| (path.as_str(), ClashReason::Exists)).collect::<Vec<_>>();
    for (count, last) in [(21, "1 more file clashed in this way."), (23, "3 more files clashed in this way.")] {
        let mut run = one_stage("");
        said(&mut run, proceed().clashed(&clashes(count)));
        assert_eq!((prior(&run).len(), prior(&run)[20].as_str()), (21, last));
    }
}
