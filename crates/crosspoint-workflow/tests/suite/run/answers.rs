//! A person is asked, and answers (WF-7.3, WF-7.4).

use crosspoint_workflow::run::{Decided, Way, Why};
use serde_json::json;

use super::*;

#[test]
fn escalate_asks_a_person_with_summary_and_notes() {
    let mut run = one_stage("");
    let decided = said(&mut run, escalate("Which login?").notes(&["OAuth or password"]));
    assert_eq!(decided, Decided::Ask { question: "Which login?".to_owned(), why: Why::Escalated });
    let asking = asked(&run);
    assert_eq!((asking.step, asking.question, asking.why), (1, "Which login?", Why::Escalated));
    assert_eq!(asking.notes, ["OAuth or password"]);
}

#[test]
fn the_same_stage_runs_again_with_the_answer() {
    let mut run = one_stage("params = { depth = 2 }");
    said(&mut run, escalate("Which login?").notes(&["OAuth or password"]));
    let decided = answered(&mut run, "\"OAuth\"");
    assert_eq!(decided, Decided::Stage { id: "a".to_owned(), step: 2, iteration: 1, why: Way::Escalated });
    let params = json!({ "depth": 2, "answers": [{ "question": "Which login?", "answer": "OAuth" }] });
    assert_eq!(envelope(&run)["task"]["params"], params);
    assert_eq!(prior(&run), ["OAuth or password", "Question: Which login? Answer: OAuth"]);
}

#[test]
fn an_answer_stays_in_params_and_is_told_once() {
    let mut run = one_stage("");
    said(&mut run, escalate("Which login?"));
    answered(&mut run, "\"OAuth\"");
    said(&mut run, retry().notes(&["Almost"]));
    assert_eq!(prior(&run), ["Almost"]);
    assert_eq!(envelope(&run)["task"]["params"]["answers"][0]["answer"], "OAuth");
}

#[test]
fn answers_add_up_in_their_order() {
    let mut run = one_stage("");
    for (question, json) in [("First?", "1"), ("Second?", "{\"b\": [1, 2], \"a\": null}")] {
        said(&mut run, escalate(question));
        answered(&mut run, json);
    }
    let answers = &envelope(&run)["task"]["params"]["answers"];
    let second = json!({ "question": "Second?", "answer": { "b": [1, 2], "a": null } });
    assert_eq!(answers, &json!([{ "question": "First?", "answer": 1 }, second]));
    assert_eq!(prior(&run), ["Question: Second? Answer: {\"b\":[1,2],\"a\":null}"]);
}

#[test]
fn the_answer_goes_where_the_route_says() {
    let mut run = specify();
    said(&mut run, proceed());
    said(&mut run, escalate("Which login?"));
    assert_eq!(asked(&run).stage.id, "validate");
    answered(&mut run, "\"OAuth\"");
    assert_eq!(stage(&run), "write");
    assert_eq!(envelope(&run)["task"]["params"]["answers"][0]["answer"], "OAuth");
    said(&mut run, proceed());
    assert_eq!(envelope(&run)["task"]["params"], json!({}), "the answer is not for validate");
}

#[test]
fn an_escalation_does_not_add_to_the_iteration() {
    let mut run = one_stage("");
    said(&mut run, escalate("Which?"));
    answered(&mut run, "1");
    assert_eq!((run.iteration(), run.step()), (1, 2));
}

#[test]
fn an_answer_starts_the_retries_of_the_stage_that_asked_anew() {
    let mut run = one_stage("retry = { limit = 1 }");
    said(&mut run, retry());
    said(&mut run, retry());
    assert_eq!(asked(&run).why, Why::LimitReached);
    answered(&mut run, "\"go on\"");
    assert_eq!(prior(&run), ["Question: Done what could be done. Answer: go on"]);
    said(&mut run, retry());
    assert_eq!((stage(&run), run.iteration()), ("a", 3));
    said(&mut run, retry());
    assert_eq!(asked(&run).why, Why::LimitReached);
}

#[test]
fn an_answer_for_one_stage_gives_no_retries_to_another() {
    let mut run = specify();
    for _ in 0..3 {
        said(&mut run, retry());
    }
    said(&mut run, proceed());
    said(&mut run, escalate("Which?"));
    answered(&mut run, "1");
    said(&mut run, retry());
    assert_eq!((asked(&run).stage.id.as_str(), asked(&run).why), ("write", Why::LimitReached));
}

#[test]
fn an_answer_is_spelled_as_it_was_written() {
    let mut run = one_stage("");
    said(&mut run, escalate("How much?"));
    answered(&mut run, "1.50");
    assert!(running(&run).envelope().contains("\"answer\":1.50}"));
    assert_eq!(prior(&run), ["Question: How much? Answer: 1.50"]);
}
