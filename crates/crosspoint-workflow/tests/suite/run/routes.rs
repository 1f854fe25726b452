//! Where recommendations lead (WF-3, WF-6, WF-7).

use crosspoint_workflow::run::{Decided, Way, Why};

use super::*;

#[test]
fn a_run_begins_at_the_first_stage() {
    let run = specify();
    assert_eq!((stage(&run), run.step(), run.iteration()), ("write", 1, 1));
}

#[test]
fn stages_that_proceed_lead_to_the_end() {
    let mut run = specify();
    let decided = said(&mut run, proceed());
    assert_eq!(decided, Decided::Stage { id: "validate".to_owned(), step: 2, iteration: 1, why: Way::Proceed });
    assert_eq!(said(&mut run, proceed()), Decided::Done);
    assert!(is_done(&run));
}

#[test]
fn wf_6_notes_of_one_agent_are_told_to_the_next_and_to_no_other() {
    let mut run = specify();
    assert!(envelope(&run).get("prior_context").is_none());
    said(&mut run, proceed().notes(&["Spec complete", "3 edge cases"]));
    assert_eq!(prior(&run), ["Spec complete", "3 edge cases"]);
    said(&mut run, retry().notes(&["Login is vague"]));
    assert_eq!(prior(&run), ["Login is vague"]);
    said(&mut run, proceed());
    assert!(envelope(&run).get("prior_context").is_none());
}

#[test]
fn wf_6_a_stage_that_runs_again_is_told_its_own_notes() {
    let mut run = specify();
    said(&mut run, retry().notes(&["Once more"]));
    assert_eq!((stage(&run), prior(&run)), ("write", vec!["Once more".to_owned()]));
}

#[test]
fn wf_7_a_retry_adds_one_to_the_iteration_for_all_stages_from_there_on() {
    let mut run = specify();
    said(&mut run, proceed());
    let decided = said(&mut run, retry());
    assert_eq!(decided, Decided::Stage { id: "write".to_owned(), step: 3, iteration: 2, why: Way::Retry });
    assert_eq!(envelope(&run)["context"]["iteration"], 2);
    said(&mut run, proceed());
    assert_eq!((stage(&run), run.iteration()), ("validate", 2));
}

#[test]
fn wf_7_2_after_its_limit_a_retry_counts_as_escalate() {
    let mut run = one_stage("");
    for iteration in 2..=4 {
        said(&mut run, retry());
        assert_eq!(run.iteration(), iteration);
    }
    let decided = said(&mut run, retry().notes(&["Stuck"]));
    let question = "Done what could be done.".to_owned();
    assert_eq!(decided, Decided::Ask { question, why: Why::LimitReached });
    assert_eq!((asked(&run).question, asked(&run).notes), ("Done what could be done.", &["Stuck".to_owned()][..]));
    assert_eq!((run.iteration(), run.step()), (4, 4));
}

#[test]
fn wf_7_2_each_stage_has_retries_of_its_own() {
    let mut run = specify();
    for _ in 0..3 {
        said(&mut run, retry());
    }
    for _ in 0..3 {
        said(&mut run, proceed());
        said(&mut run, retry());
        assert_eq!(stage(&run), "write");
    }
    assert_eq!(run.iteration(), 7);
    said(&mut run, retry());
    assert_eq!(asked(&run).stage.id, "write");
}

#[test]
fn wf_7_2_going_on_does_not_give_retries_back() {
    let mut run = specify();
    for _ in 0..3 {
        said(&mut run, proceed());
        said(&mut run, retry());
    }
    said(&mut run, proceed());
    said(&mut run, retry());
    assert_eq!((asked(&run).stage.id.as_str(), asked(&run).why), ("validate", Why::LimitReached));
}

#[test]
fn a_stage_without_retries_asks_at_once() {
    let mut run = one_stage("retry = { limit = 0 }");
    said(&mut run, retry());
    assert_eq!((asked(&run).why, run.iteration()), (Why::LimitReached, 1));
}

#[test]
fn wf_3_a_failure_that_recommends_to_proceed_reads_as_escalate() {
    let mut run = specify();
    said(&mut run, proceed().failed());
    assert_eq!((asked(&run).why, asked(&run).stage.id.as_str()), (Why::Escalated, "write"));
}

#[test]
fn wf_3_a_failure_that_recommends_a_retry_is_retried() {
    let mut run = specify();
    said(&mut run, retry().failed());
    assert_eq!((stage(&run), run.iteration()), ("write", 2));
}

#[test]
fn wf_3_3_a_success_may_recommend_to_retry_or_to_escalate() {
    let mut run = specify();
    said(&mut run, retry());
    assert_eq!(stage(&run), "write");
    said(&mut run, escalate("Which login?"));
    assert_eq!(asked(&run).question, "Which login?");
}
