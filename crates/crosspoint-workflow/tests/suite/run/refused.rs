//! What does not fit is refused, and changes nothing.

use crosspoint_workflow::run::Impossible;

use super::*;

fn refuses(run: &mut Run, happened: &Happened, because: Impossible) {
    let before = run.clone();
    assert_eq!(run.apply(happened), Err(because));
    assert!(*run == before, "it changed nothing");
}

#[test]
fn an_answer_where_nothing_is_asked() {
    refuses(&mut specify(), &answer("1", 1), Impossible::NotAsked);
}

#[test]
fn an_output_while_a_person_is_asked() {
    let mut run = specify();
    said(&mut run, escalate("Which?"));
    refuses(&mut run, &proceed().at(1), Impossible::Asked);
}

#[test]
fn an_output_or_an_answer_of_another_step() {
    let mut run = specify();
    said(&mut run, proceed());
    refuses(&mut run, &proceed().at(1), Impossible::OtherStep { expected: 2, given: 1 });
    said(&mut run, escalate("Which?"));
    refuses(&mut run, &answer("1", 3), Impossible::OtherStep { expected: 2, given: 3 });
}

#[test]
fn anything_after_the_end() {
    let mut run = one_stage("");
    said(&mut run, proceed());
    refuses(&mut run, &proceed().at(1), Impossible::Over);
    refuses(&mut run, &answer("1", 1), Impossible::Over);
}

#[test]
fn an_answer_that_readers_of_json_would_not_agree_on() {
    let mut run = one_stage("");
    said(&mut run, escalate("Which?"));
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    for json in ["{\"a\":1,\"a\":2}", deep.as_str()] {
        refuses(&mut run, &answer(json, 1), Impossible::Unreadable);
    }
    let within = format!("{}{}", "[".repeat(100), "]".repeat(100));
    answered(&mut run, &within);
    envelope(&run);
}
