//! A stage whose job failed.

use crosspoint_workflow::run::{Decided, Way, Why};
use serde_json::json;

use super::*;

#[test]
fn a_person_is_asked_to_mend_it() {
    let mut run = specify();
    broke(&mut run);
    let asking = asked(&run);
    assert_eq!((asking.why, asking.step, asking.notes.len()), (Why::Broke, 1, 0));
    insta::assert_snapshot!(asking.question);
}

#[test]
fn the_question_says_what_is_known_of_the_failure() {
    let mut run = specify();
    let (failure, message) = ("timeout".to_owned(), String::new());
    let happened = Happened::Broke { step: 1, job: None, failure, clause: None, message };
    run.apply(&happened).expect("a stage runs");
    insta::assert_snapshot!(asked(&run).question);
}

#[test]
fn the_answer_lets_the_same_stage_run_again_and_is_not_for_the_agent() {
    let mut run = specify();
    said(&mut run, proceed().notes(&["Spec complete"]));
    broke(&mut run);
    let decided = answered(&mut run, "\"mended\"");
    assert_eq!(decided, Decided::Stage { id: "validate".to_owned(), step: 3, iteration: 1, why: Way::Resumed });
    assert_eq!(prior(&run), ["Spec complete"], "it is told the same again");
    assert_eq!(envelope(&run)["task"]["params"], json!({}));
}

#[test]
fn an_answer_that_the_broken_run_was_told_is_told_again() {
    let mut run = one_stage("");
    said(&mut run, escalate("Which?"));
    answered(&mut run, "1");
    broke(&mut run);
    answered(&mut run, "null");
    assert_eq!(prior(&run), ["Question: Which? Answer: 1"]);
}

#[test]
fn the_answer_starts_the_retries_of_the_stage_anew() {
    let mut run = one_stage("retry = { limit = 1 }");
    said(&mut run, retry());
    broke(&mut run);
    answered(&mut run, "true");
    said(&mut run, retry());
    assert_eq!((stage(&run), run.iteration()), ("a", 3));
}
