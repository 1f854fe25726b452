//! Asking, step by step, with a driver that answers in between.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crosspoint_bridge::ask::{Asked, Refused, Run};
use crosspoint_bridge::{Directory, Pair, Question, ask, request, response};

use crate::scratch::Scratch;

fn asked(scratch: &Scratch, question: &Question) -> Option<String> {
    let run = Run::resume(scratch.path()).expect("it is there");
    match run.try_ask(question).expect("it can be asked") {
        Asked::Answered(answer) => Some(answer.text().expect("it succeeded").to_owned()),
        Asked::NeedsAgent => None,
    }
}

fn question(words: &str) -> Question {
    Question::new("agent", words)
}

#[test]
fn the_request_says_all_that_is_asked() {
    let scratch = Scratch::new();
    let question = Question::new("réviseur", "Say \"hello\",\nplease. ✅")
        .context(r#" {"files": ["a", 1.50]} "#)
        .phase(3)
        .phase_name("review")
        .timeout(Duration::from_millis(1500))
        .model("small");
    assert_eq!(asked(&scratch, &question), None);
    let request = scratch.request(Pair::of_phase(3).expect("there is one")).expect("it is there");
    assert!(request.report.findings.is_empty(), "{:?}", request.report);
    assert!(!format!("{question:?}").contains("hello"), "content is not printed");
    let text = scratch.text(".agent-request-phase3.json");
    for expected in [
        "\n  \"version\": \"1.0\",\n",
        "\"agent_name\": \"réviseur\"",
        r#""prompt": "Say \"hello\",\nplease. ✅""#,
        "\"phase\": 3",
        "\"phase_name\": \"review\"",
        "\"timeout_seconds\": 1.5",
        "1.50",
        "\"model\": \"small\"",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let mode = |name: &str| fs::metadata(scratch.path().join(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(".agent-request-phase3.json"), mode(".agent-answers")), (0o600, 0o700));
}

#[test]
fn an_answer_is_taken_once_and_given_as_often_as_it_is_asked_for() {
    let scratch = Scratch::new();
    assert_eq!(asked(&scratch, &question("one")), None);
    let before = scratch.text(".agent-request.json");
    assert_eq!(asked(&scratch, &question("one")), None, "nobody has answered");
    assert_eq!(scratch.text(".agent-request.json"), before, "it is not written again");
    scratch.answer("yes");
    for _ in 0..3 {
        assert_eq!(asked(&scratch, &question("one")).as_deref(), Some("yes"));
        assert_eq!(scratch.list(), [".agent-answers"], "the response is taken (BRIDGE-123)");
    }
    assert_eq!(asked(&scratch, &question("two")), None);
    scratch.answer("no");
    assert_eq!(asked(&scratch, &question("one")).as_deref(), Some("yes"));
    assert_eq!(asked(&scratch, &question("two")).as_deref(), Some("no"));
}

#[test]
fn every_word_makes_another_question_and_the_time_does_not() {
    let scratch = Scratch::new();
    let base = || Question::new("a", "b");
    assert_eq!(asked(&scratch, &base()), None);
    scratch.answer("yes");
    assert!(asked(&scratch, &base()).is_some());
    assert!(asked(&scratch, &base().timeout(Duration::from_secs(9))).is_some());
    let others = [
        Question::new("ab", ""),
        Question::new("a", "c"),
        base().context("{}"),
        base().phase(1),
        base().phase_name(""),
        base().model("m"),
    ];
    for other in others {
        assert_eq!(asked(&scratch, &other), None);
        scratch.answer("another");
        assert_eq!(asked(&scratch, &other).as_deref(), Some("another"));
    }
}

#[test]
fn a_new_run_asks_anew_and_withdraws_what_the_last_one_left() {
    let scratch = Scratch::new();
    asked(&scratch, &question("one"));
    scratch.answer("yes");
    asked(&scratch, &question("one"));
    asked(&scratch, &question("two"));
    let old = scratch.request(Pair::PLAIN).expect("it waits").request_id;
    Run::begin(scratch.path()).expect("it is there");
    assert_eq!(scratch.list(), [""; 0], "nothing is left of the last run");
    assert_eq!(asked(&scratch, &question("two")), None);
    assert_ne!(scratch.request(Pair::PLAIN).expect("it waits").request_id, old);
    // An answer that was not taken is not taken by the next run either. It stays, for its driver to set aside.
    scratch.answer("late");
    Run::begin(scratch.path()).expect("it is there");
    assert_eq!(scratch.list(), [".agent-response.json"]);
    assert_eq!(asked(&scratch, &question("two")), None);
}

#[test]
fn forgetting_leaves_what_others_have_put_there() {
    let scratch = Scratch::new();
    asked(&scratch, &question("one").phase(1));
    scratch.put(".agent-request.json", r#"{"request_id": "of somebody else"}"#);
    scratch.put(".agent-response.json", "not even JSON");
    ask::forget(&scratch.open()).expect("it can be forgotten");
    assert_eq!(scratch.list(), [".agent-request.json", ".agent-response.json"]);
    ask::forget(&scratch.open()).expect("there is nothing to forget");
}

#[test]
fn several_phases_wait_at_a_time_and_one_of_each() {
    let scratch = Scratch::new();
    let run = Run::begin(scratch.path()).expect("it is there");
    let phases = [1, 2, 9].map(|phase| question("the same words").phase(phase));
    for phase in &phases {
        assert!(matches!(run.try_ask(phase), Ok(Asked::NeedsAgent)));
    }
    let ids = scratch.answer("yes");
    assert_eq!(ids.len(), 3);
    for phase in &phases {
        assert_eq!(asked(&scratch, phase).as_deref(), Some("yes"));
    }
}

#[test]
fn a_question_of_the_same_run_takes_the_place_of_one_that_waits() {
    let scratch = Scratch::new();
    assert_eq!(asked(&scratch, &question("one")), None);
    assert_eq!(asked(&scratch, &question("two")), None);
    scratch.answer("two");
    // The program comes to its first question again, which has no answer yet.
    assert_eq!(asked(&scratch, &question("two")).as_deref(), Some("two"));
    assert_eq!(asked(&scratch, &question("one")), None);
    scratch.answer("one");
    assert_eq!(asked(&scratch, &question("one")).as_deref(), Some("one"));
    assert_eq!(asked(&scratch, &question("two")).as_deref(), Some("two"));
}

#[test]
fn a_request_of_another_program_is_not_replaced() {
    let scratch = Scratch::new();
    for theirs in [r#"{"request_id": "theirs", "version": "1.0", "agent_name": "a", "prompt": "b"}"#, "garbage"] {
        scratch.put(".agent-request.json", theirs);
        let run = Run::resume(scratch.path()).expect("it is there");
        let refused = run.try_ask(&question("one")).expect_err("it is refused");
        assert!(matches!(&refused, Refused::Taken(path) if path.ends_with(".agent-request.json")), "{refused}");
        assert_eq!(scratch.text(".agent-request.json"), theirs);
    }
}

/// The driver was killed between its last two steps.
#[test]
fn a_request_that_is_still_there_goes_when_its_answer_is_taken() {
    let scratch = Scratch::new();
    asked(&scratch, &question("one"));
    let id = scratch.request(Pair::PLAIN).expect("it waits").request_id;
    let document = response::success(&id, "yes", "2026-01-01T00:00:00Z", 0.0);
    response::write(&scratch.open(), Pair::PLAIN, &document).expect("it can be written");
    assert_eq!(asked(&scratch, &question("one")).as_deref(), Some("yes"));
    assert_eq!(scratch.list(), [".agent-answers"]);
}

#[test]
fn a_request_that_got_lost_is_left_again_under_the_same_id() {
    let scratch = Scratch::new();
    asked(&scratch, &question("one"));
    let id = scratch.request(Pair::PLAIN).expect("it waits").request_id;
    request::remove(&scratch.open(), Pair::PLAIN, &id).expect("it can be removed");
    assert_eq!(asked(&scratch, &question("one")), None);
    assert_eq!(scratch.request(Pair::PLAIN).expect("it waits").request_id, id);
}

#[test]
fn two_that_begin_at_a_time_are_of_one_run() {
    for _ in 0..20 {
        let scratch = Scratch::new();
        let ask_one = |phase: u8| {
            let directory = scratch.path().to_owned();
            std::thread::spawn(move || {
                let run = Run::resume(&directory).expect("it is there");
                run.try_ask(&question("one").phase(phase)).expect("it can be asked");
            })
        };
        let threads: Vec<_> = (1..=4).map(ask_one).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it asks"));
        assert_eq!(scratch.answer("yes").len(), 4);
        for phase in 1..=4 {
            assert_eq!(asked(&scratch, &question("one").phase(phase)).as_deref(), Some("yes"));
        }
    }
}

#[test]
fn a_run_whose_id_is_damaged_begins_anew() {
    let scratch = Scratch::new();
    asked(&scratch, &question("one"));
    scratch.answer("yes");
    asked(&scratch, &question("one"));
    scratch.put(".agent-answers/run", "no id\n");
    assert_eq!(asked(&scratch, &question("one")), None);
    scratch.answer("again");
    assert_eq!(asked(&scratch, &question("one")).as_deref(), Some("again"));
}

#[test]
fn a_directory_that_is_not_there_is_said() {
    let scratch = Scratch::new();
    let fault = Run::resume(&scratch.path().join("missing")).expect_err("it is not there");
    assert!(fault.to_string().ends_with("missing is not there"), "{fault}");
    assert!(Directory::open(scratch.path()).is_ok());
}
