//! Limits of a run.

use crosspoint_workflow::run::{Decided, STEPS_MAX, Way, Why, kept_notes};

use super::*;

/// A run of a hundred stages that may each retry a hundred times from the first.
fn long() -> Run {
    let stage = |at| {
        format!("[[stage]]\nid = \"s{at}\"\nagent = \"x\"\naction = \"do\"\nretry = {{ goto = \"s0\", limit = 100 }}\n")
    };
    begin(&std::iter::once("name = \"w\"\n".to_owned()).chain((0..200).map(stage)).collect::<String>())
}

/// Goes on until a person is asked: the last stage with retries left retries.
fn until_asked(run: &mut Run) -> Decided {
    loop {
        let output = if stage(run) == "s199" { retry() } else { proceed() };
        let decided = said(run, output.notes(&["n"]));
        if matches!(decided, Decided::Ask { .. }) {
            return decided;
        }
    }
}

#[test]
fn after_ten_thousand_steps_a_person_is_asked_whether_to_go_on() {
    let mut run = long();
    until_asked(&mut run);
    assert_eq!((asked(&run).why, run.step()), (Why::StepsUsedUp, STEPS_MAX));
    assert!(asked(&run).question.contains("10000 stages"));
    let iteration = run.iteration();
    let decided = answered(&mut run, "true");
    assert!(matches!(decided, Decided::Stage { why: Way::Retry, .. }), "{decided:?}");
    assert_eq!((run.step(), run.iteration()), (STEPS_MAX + 1, iteration));
    assert_eq!(prior(&run), ["n"], "it goes on as it would have gone on");
    until_asked(&mut run);
    assert_eq!((asked(&run).why, run.step()), (Why::StepsUsedUp, 2 * STEPS_MAX));
}

#[test]
fn the_last_notes_are_kept_and_the_others_counted() {
    let notes: Vec<String> = (0..1_002).map(|number| number.to_string()).collect();
    let mut run = one_stage("");
    said(&mut run, retry().notes(&notes.iter().map(String::as_str).collect::<Vec<_>>()));
    let told = prior(&run);
    assert_eq!(told.len(), 1_000);
    assert_eq!(told[0], "3 earlier notes were left out, because the notes were too long.");
    assert_eq!((told[1].as_str(), told[999].as_str()), ("3", "1001"));
    assert_eq!(kept_notes(&told), told, "what was kept is kept");
}

#[test]
fn long_notes_are_left_out_from_the_first() {
    let long = "x".repeat(40 * 1024);
    let mut run = one_stage("");
    said(&mut run, retry().notes(&[&long, &long, "short"]));
    assert_eq!(prior(&run), ["1 earlier note was left out, because the notes were too long.", &long, "short"]);
    said(&mut run, retry().notes(&[&long.repeat(2)]));
    assert_eq!(prior(&run), ["1 earlier note was left out, because the notes were too long."]);
    said(&mut run, retry().notes(&[&"x".repeat(64 * 1024)]));
    assert_eq!(prior(&run)[0].len(), 64 * 1024);
}

#[test]
fn a_long_summary_is_cut_where_it_is_a_question() {
    let mut run = one_stage("");
    said(&mut run, escalate(&"é".repeat(40 * 1024)));
    assert!(asked(&run).question.ends_with("é...") && asked(&run).question.len() <= 64 * 1024);
}
