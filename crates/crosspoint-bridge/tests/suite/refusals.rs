//! Questions that cannot be asked, and responses that are not taken.

use crosspoint_bridge::ask::{Asked, Refused, Run};
use crosspoint_bridge::{Pair, Question, request, response};

use crate::scratch::Scratch;

const RESPONSE: &str = ".agent-response.json";

fn refused(scratch: &Scratch, question: &Question) -> Refused {
    let run = Run::resume(scratch.path()).expect("it is there");
    run.try_ask(question).expect_err("it is refused")
}

fn question() -> Question {
    Question::new("agent", "Do it.")
}

/// Asks, and removes the request as a driver does that has answered.
fn asked() -> (Scratch, String) {
    let scratch = Scratch::new();
    let run = Run::begin(scratch.path()).expect("it is there");
    assert!(matches!(run.try_ask(&question()), Ok(Asked::NeedsAgent)));
    let id = scratch.request(Pair::PLAIN).expect("it waits").request_id;
    request::remove(&scratch.open(), Pair::PLAIN, &id).expect("it can be removed");
    (scratch, id)
}

#[test]
fn a_question_that_is_no_request_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let questions = [
        (Question::new("", "b"), "BRIDGE-108"),
        (question().phase(0), "BRIDGE-106"),
        (question().phase(10), "BRIDGE-106"),
        (question().context("[]"), "BRIDGE-111"),
        (question().context("{"), "BRIDGE-111"),
        (question().context(r#"{}, "request_id": "mine""#), "BRIDGE-111"),
        (question().context(r#"{"a": "\ud800"}"#), "crosspoint validate"),
    ];
    for (question, expected) in questions {
        let said = refused(&scratch, &question).to_string();
        assert!(said.contains(expected), "{said}");
    }
    assert!(scratch.request(Pair::PLAIN).is_none());
}

#[test]
fn a_request_that_drivers_would_refuse_is_not_written() {
    let scratch = Scratch::new();
    let refused = refused(&scratch, &Question::new("agent", "x".repeat(1 << 20)));
    assert!(matches!(refused, Refused::TooLarge(length) if length > 1 << 20), "{refused:?}");
    assert!(scratch.request(Pair::PLAIN).is_none());
    let fits = Question::new("agent", "x".repeat((1 << 20) - 400));
    assert!(matches!(Run::resume(scratch.path()).expect("it is there").try_ask(&fits), Ok(Asked::NeedsAgent)));
    assert!(scratch.request(Pair::PLAIN).is_some(), "it can be acted on");
}

#[test]
fn the_answer_to_another_request_is_refused_and_kept() {
    let (scratch, id) = asked();
    let other = "32ecfadc-2b66-4daa-a7c0-a03c449fcea5";
    let document = response::success(other, "not for you", "2026-01-01T00:00:00Z", 0.0);
    scratch.put(RESPONSE, &document);
    let refused = refused(&scratch, &question());
    let said = refused.to_string();
    assert!(said.contains("BRIDGE-4.3") && said.contains(&id) && said.contains(other), "{said}");
    assert!(!format!("{refused:?} {said}").contains("not for you"));
    assert_eq!(scratch.text(RESPONSE), document);
}

#[test]
fn an_id_as_long_as_a_file_is_not_said_whole() {
    let (scratch, _) = asked();
    scratch.put(RESPONSE, &response::success(&"é".repeat(1 << 20), "text", "2026-01-01T00:00:00Z", 0.0));
    let said = refused(&scratch, &question()).to_string();
    assert!(said.contains("éé...") && said.len() < 1000, "{} bytes", said.len());
}

/// The driver that answers the request sets the older response aside.
#[test]
fn one_that_was_there_before_the_question_is_not_in_the_way() {
    for old in ["garbage", &response::success("old", "text", "2026-01-01T00:00:00Z", 0.0)] {
        let scratch = Scratch::new();
        scratch.put(RESPONSE, old);
        let run = Run::begin(scratch.path()).expect("it is there");
        assert!(matches!(run.try_ask(&question()), Ok(Asked::NeedsAgent)));
        assert_eq!(scratch.text(RESPONSE), old);
        scratch.answer("yes");
        assert!(matches!(run.try_ask(&question()), Ok(Asked::Answered(_))));
        assert_eq!(scratch.text(".agent-response.json.stale-1"), old);
    }
}

#[test]
fn words_that_change_from_run_to_run_are_named_as_the_mistake() {
    let scratch = Scratch::new();
    let run = Run::begin(scratch.path()).expect("it is there");
    run.try_ask(&Question::new("agent", "It is 10:00:00.")).expect("it can be asked");
    scratch.answer("yes");
    let refused = refused(&scratch, &Question::new("agent", "It is 10:00:01."));
    assert!(matches!(refused, Refused::Foreign { is_ours: true, .. }), "{refused:?}");
    assert!(refused.hint().contains("the same each time"), "{}", refused.hint());
}

/// A response to the question, with one thing changed.
fn mistaken(id: &str, from: &str, to: &str) -> String {
    let document = response::success(id, r#"{"a": 1}"#, "2026-01-01T00:00:00Z", 1.0);
    assert!(document.contains(from), "{from} is not in {document}");
    document.replace(from, to)
}

#[test]
fn a_malformed_response_is_refused_with_its_clauses_and_kept() {
    let mistakes = [
        ("\"response\":", "\"result\":", "BRIDGE-2", "Rename"),
        (r#""{\"a\": 1}""#, r#"{"a": "content"}"#, "BRIDGE-1.2", "JSON-encode"),
        ("\"metadata\":{}", "\"x\":{}", "BRIDGE-1", "metadata"),
        ("\"status\":\"success\"", "\"status\":\"done\"", "BRIDGE-3", "lower case"),
        ("\"error_type\":null", "\"error_type\":\"t\"", "BRIDGE-3.2", "null"),
        ("\"duration_seconds\":1.0", "\"duration_seconds\":\"1.0\"", "BRIDGE-6", "without quotes"),
        ("00:00:00Z", "00:00:00", "BRIDGE-6.2", "+00:00"),
        ("\"1.0\",\"status\"", "\"2.0\",\"status\"", "BRIDGE-6.3", "1.0"),
    ];
    for (from, to, clause, hint) in mistakes {
        let (scratch, id) = asked();
        let document = mistaken(&id, from, to);
        scratch.put(RESPONSE, &document);
        let refused = refused(&scratch, &question());
        let (said, advice) = (refused.to_string(), refused.hint());
        assert!(said.contains(&format!(" {clause}: ")), "{clause}: {said}");
        assert!(advice.contains(hint), "{clause}: {advice}");
        assert!(!format!("{refused:?}").contains("content"), "content is not printed");
        assert_eq!(scratch.text(RESPONSE), document, "{clause}");
        // The corrected response is taken.
        scratch.put(RESPONSE, &document.replace(to, from));
        let run = Run::resume(scratch.path()).expect("it is there");
        assert!(matches!(run.try_ask(&question()), Ok(Asked::Answered(_))), "{clause}");
    }
}

/// The requester was killed after it had taken the answer and before it removed the request, which another driver then
/// answered again.
#[test]
fn an_answer_that_was_taken_before_is_not_in_the_way_when_it_comes_again() {
    let scratch = Scratch::new();
    let run = Run::begin(scratch.path()).expect("it is there");
    let (first, second) = (Question::new("agent", "First."), Question::new("agent", "Second."));
    assert!(matches!(run.try_ask(&first), Ok(Asked::NeedsAgent)));
    let id = scratch.answer("one").remove(0);
    assert!(matches!(run.try_ask(&first), Ok(Asked::Answered(_))));
    let again = response::success(&id, "once more", "2026-01-01T00:00:00Z", 0.0);
    scratch.put(RESPONSE, &again);
    for _ in 0..2 {
        assert!(matches!(run.try_ask(&first), Ok(Asked::Answered(answer)) if answer.text() == Ok("one")));
        assert!(matches!(run.try_ask(&second), Ok(Asked::NeedsAgent)), "it is asked");
        let waiting = scratch.request(Pair::PLAIN).expect("it waits").request_id;
        // If the request is lost, it is written again.
        request::remove(&scratch.open(), Pair::PLAIN, &waiting).expect("it can be removed");
    }
    assert!(matches!(run.try_ask(&second), Ok(Asked::NeedsAgent)));
    scratch.answer("two");
    assert!(matches!(run.try_ask(&second), Ok(Asked::Answered(answer)) if answer.text() == Ok("two")));
    assert_eq!(scratch.text(".agent-response.json.stale-1"), again);
}
