//! The feature of a run that starts without one (WF-10).

use std::sync::Arc;

use crosspoint_workflow::repository::ClashReason;
use crosspoint_workflow::run::Feature;
use serde_json::json;

use super::*;

fn feature(run: &Run) -> Option<&str> {
    run.feature().map(Feature::as_str)
}

#[test]
fn it_is_taken_from_the_first_artifact_at_one_of_the_paths() {
    let mut run = specify();
    assert_eq!(envelope(&run)["context"]["feature_id"], json!(null));
    assert_eq!(envelope(&run)["paths"], json!({}), "paths of an unknown feature are left out");
    said(&mut run, proceed().wrote(&["README.md", "specs/005-user-auth/notes.md", "specs/006/spec.md"]));
    assert_eq!(feature(&run), Some("005-user-auth"));
    assert_eq!(envelope(&run)["context"]["feature_id"], "005-user-auth");
    let paths = json!({ "feature_root": "specs/005-user-auth/", "spec": "specs/005-user-auth/spec.md" });
    assert_eq!(envelope(&run)["paths"], paths);
}

#[test]
fn it_stays_once_it_is_known() {
    let mut run = Run::begin(Arc::new(read(SPECIFY)), Feature::new("first").ok());
    said(&mut run, proceed().wrote(&["specs/second/spec.md"]));
    assert_eq!(feature(&run), Some("first"));
}

#[test]
fn artifacts_that_clashed_were_not_written_and_do_not_count() {
    let mut run = specify();
    said(&mut run, proceed().wrote(&["specs/005/spec.md"]).clashed(&[("specs/005/spec.md", ClashReason::Exists)]));
    assert_eq!(feature(&run), None);
}

#[test]
fn artifacts_count_whatever_the_agent_recommends() {
    let mut run = specify();
    said(&mut run, retry().failed().wrote(&["specs/005/spec.md"]));
    assert_eq!(feature(&run), Some("005"));
}

#[test]
fn paths_in_a_list_count_too_and_are_told_as_far_as_they_are_known() {
    let mut run = one_stage("[paths]\nall = [\"fixed.md\", \"specs/{feature}.md\"]\nhidden = [\"{feature}/\"]");
    assert_eq!(envelope(&run)["paths"], json!({ "all": ["fixed.md"] }));
    said(&mut run, retry().wrote(&["specs/005.md"]));
    assert_eq!(feature(&run), Some("005"));
    assert_eq!(envelope(&run)["paths"], json!({ "all": ["fixed.md", "specs/005.md"], "hidden": ["005/"] }));
}

#[test]
fn a_name_that_is_no_feature_is_passed_over() {
    let mut run = specify();
    said(&mut run, proceed().wrote(&["specs/.git/x", "specs/005/x"]));
    assert_eq!(feature(&run), Some("005"));
}
